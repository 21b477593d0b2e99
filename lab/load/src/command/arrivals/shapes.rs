//! Rates over time: plain, stepped, rising, spiking, from a table, or the built-in crowd.

use super::{ArrivalArgs, DEFAULT_LENGTH};
use crate::command::inputs::{self, Inputs};
use crate::command::values::RateAt;
use anyhow::{Context, ensure};
use flashweir_workload::profile_csv::read_profile;
use flashweir_workload::{Column, CsvError, ProfileError, RateProfile, Segment, crowd};
use std::path::Path;
use std::time::Duration;

impl ArrivalArgs {
    /// The rate over time; `None` if no option says.
    pub(super) fn shape(&self, inputs: &mut Inputs) -> anyhow::Result<Option<RateProfile>> {
        if let Some(rate) = self.rate {
            return self.around(rate).map(Some);
        }
        let mut profile = match (&self.profile, &self.column) {
            (Some(path), Some(column)) => self.table(path, column, inputs)?,
            _ if self.crowd => crowd::world_cup_semi_final(),
            _ => return Ok(None),
        };
        if let Some(factor) = self.squeeze {
            profile = profile.squeeze(factor)?;
        }
        if let Some(factor) = self.scale {
            profile = profile.scale(factor)?;
        }
        if let Some(rate) = self.peak {
            profile = profile.peak(rate).context("--peak")?;
        }
        Ok(Some(match self.duration {
            Some(duration) => profile.cut(duration)?,
            None => profile,
        }))
    }

    /// A plain rate and what may happen to it.
    fn around(&self, rate_per_s: f64) -> anyhow::Result<RateProfile> {
        let length = self.duration.unwrap_or(DEFAULT_LENGTH);
        if let Some(RateAt { rate_per_s: to_per_s, at }) = self.ramp {
            ensure!(at <= length, "--ramp: it is not over when the run ends; see --duration");
            return Ok(RateProfile::ramp(rate_per_s, to_per_s, at, length)?);
        }
        if let (Some(RateAt { rate_per_s: peak_per_s, at }), Some(half_life)) = (self.spike, self.half_life) {
            ensure!(at < length, "--spike: it comes after the end of the run; see --duration");
            ensure!(peak_per_s > rate_per_s, "--spike: its peak must be above --rate");
            return Ok(RateProfile::spike(rate_per_s, peak_per_s, at, half_life, length)?);
        }
        let changes = !self.step.is_empty();
        ensure!(
            rate_per_s > 0.0 || changes,
            "--rate 0: expected a number above zero, or the run would be empty"
        );
        self.steps(rate_per_s, length)
    }

    fn steps(&self, rate_per_s: f64, length: Duration) -> anyhow::Result<RateProfile> {
        let first = RateAt { rate_per_s, at: Duration::ZERO };
        let steps: Vec<_> = std::iter::once(first).chain(self.step.iter().copied()).collect();
        let in_order = steps.is_sorted_by(|one, next| one.at < next.at);
        ensure!(in_order, "--step: each step must come later than the one before");
        ensure!(steps.iter().all(|step| step.at < length), "--step: a step comes after the end of the run");
        let ends = steps.iter().skip(1).map(|step| step.at).chain([length]);
        let segments = steps.iter().zip(ends);
        let segments = segments.map(|(step, end)| Segment::constant(end - step.at, step.rate_per_s));
        Ok(RateProfile::new(segments)?)
    }

    fn table(&self, path: &Path, column: &str, inputs: &mut Inputs) -> anyhow::Result<RateProfile> {
        let text = inputs.open_text(path, "--profile")?;
        match read_profile(text, &Column::parse(column), self.bin) {
            Err(CsvError::Profile(ProfileError::Empty)) => Err(anyhow::anyhow!("it holds no counts")),
            read => read.map_err(Into::into),
        }
        .with_context(|| inputs::name(path))
    }
}
