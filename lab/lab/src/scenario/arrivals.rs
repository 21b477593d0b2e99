//! Arrival processes, from what a scenario file says.

use crate::scenario::file::{ArrivalsFile, Spread};
use crate::scenario::problem::{Problem, within, wrong};
use crate::scenario::text::{RateAt, Text, Time};
use flashweir_core::Duration;
use flashweir_core::limits::{LOAD_RATE_PER_S, SCENARIO_TABLE_BYTES};
use flashweir_workload::profile_csv::read_profile;
use flashweir_workload::{ArrivalProcess, Column, RateProfile, Segment, SelfSimilarity, crowd};
use std::path::Path;

/// Context that is the same for all tables of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    /// `duration` of the file.
    pub(crate) length: Option<Duration>,
    /// Names of files are relative to this.
    pub(crate) directory: &'a Path,
}

impl ArrivalsFile {
    /// The arrival process that the table at `key` describes.
    pub(crate) fn process(&self, key: &str, around: Around<'_>) -> Result<ArrivalProcess, Problem> {
        let shapes = [self.rate.is_some(), self.profile.is_some(), self.crowd];
        if shapes.iter().filter(|given| **given).count() != 1 {
            return wrong(key, "expected one of rate, profile and crowd = true");
        }
        self.check_company(key)?;
        let profile = match self.rate {
            Some(rate) => self.around_rate(key, rate, around.length)?,
            None => self.table(key, around)?,
        };
        if profile.peak_rate() > LOAD_RATE_PER_S {
            let peak = profile.peak_rate();
            return wrong(
                key,
                format!("{peak:e} people a second is absurd: expected at most {LOAD_RATE_PER_S:.0}"),
            );
        }
        if profile.expected_arrivals() <= 0.0 {
            return wrong(key, "nobody would come: expected a rate above zero");
        }
        self.spread(key, profile)
    }

    /// Keys that go with others only.
    fn check_company(&self, key: &str) -> Result<(), Problem> {
        let with_rate = self.rate.is_some();
        let changes = [self.step.is_some(), self.ramp.is_some(), self.spike.is_some()];
        let similar = self.arrivals == Spread::SelfSimilar;
        let wants = [
            ("step", self.step.is_some() && !with_rate, "goes with rate"),
            ("ramp", self.ramp.is_some() && !with_rate, "goes with rate"),
            ("spike", self.spike.is_some() && !with_rate, "goes with rate"),
            (
                "spike",
                changes.iter().filter(|given| **given).count() > 1,
                "expected one of step, ramp and spike",
            ),
            ("spike", self.spike.is_some() != self.half_life.is_some(), "spike and half_life go together"),
            ("column", self.profile.is_some() != self.column.is_some(), "profile and column go together"),
            ("bin", self.bin.is_some() && self.profile.is_none(), "goes with profile"),
            ("squeeze", self.squeeze.is_some() && with_rate, "does not go with rate"),
            ("scale", self.scale.is_some() && with_rate, "does not go with rate"),
            ("peak", self.peak.is_some() && with_rate, "does not go with rate"),
            ("peak", self.peak.is_some() && self.scale.is_some(), "expected scale or peak, not both"),
            ("peak", self.crowd && self.peak.is_none(), "crowd needs it: how high is the crowd?"),
            (
                "pareto_alpha",
                self.pareto_alpha.is_some() && !similar,
                "goes with arrivals = \"self_similar\"",
            ),
            ("gap", self.gap.is_some() && !similar, "goes with arrivals = \"self_similar\""),
        ];
        match wants.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
            Some((name, _, what)) => wrong(format!("{key}.{name}"), what),
            None => Ok(()),
        }
    }

    fn around_rate(&self, key: &str, rate: f64, length: Option<Duration>) -> Result<RateProfile, Problem> {
        let Some(length) = length else { return wrong("duration", "missing: a rate needs to know how long") };
        let at = |name: &str| format!("{key}.{name}");
        let rate = within(at("rate"), rate, 0.0, LOAD_RATE_PER_S)?;
        let made = if let Some(Text(RateAt { rate_per_s: to, at: over })) = self.ramp {
            let to = within(at("ramp"), to, 0.0, LOAD_RATE_PER_S)?;
            if over > length {
                return wrong(at("ramp"), "it is not over when the run ends");
            }
            RateProfile::ramp(rate, to, over, length)
        } else if let (Some(Text(RateAt { rate_per_s: peak, at: from })), Some(Text(Time(half_life)))) =
            (self.spike, self.half_life)
        {
            let peak = within(at("spike"), peak, rate, LOAD_RATE_PER_S)?;
            if from >= length {
                return wrong(at("spike"), "it comes after the end of the run");
            }
            RateProfile::spike(rate, peak, from, half_life, length)
        } else {
            return self.steps(key, rate, length);
        };
        made.map_err(|error| Problem::new(key, error.to_string()))
    }

    fn steps(&self, key: &str, rate_per_s: f64, length: Duration) -> Result<RateProfile, Problem> {
        let mut steps = vec![RateAt { rate_per_s, at: Duration::ZERO }];
        steps.extend(self.step.iter().flat_map(|steps| &steps.0));
        let at = format!("{key}.step");
        for step in &steps {
            within(at.clone(), step.rate_per_s, 0.0, LOAD_RATE_PER_S)?;
        }
        if !steps.is_sorted_by(|one, next| one.at < next.at) {
            return wrong(at, "each step must come later than the one before");
        }
        if steps.iter().any(|step| step.at >= length) {
            return wrong(at, "a step comes after the end of the run");
        }
        let ends = steps.iter().skip(1).map(|step| step.at).chain([length]);
        let segments = steps.iter().zip(ends);
        RateProfile::new(segments.map(|(step, end)| Segment::constant(end - step.at, step.rate_per_s)))
            .map_err(|error| Problem::new(key, error.to_string()))
    }

    fn table(&self, key: &str, around: Around<'_>) -> Result<RateProfile, Problem> {
        let mut profile = match (&self.profile, &self.column) {
            (Some(path), Some(Text(column))) => {
                let bin = self.bin.map_or(MINUTE, |Text(Time(bin))| bin);
                counted(&format!("{key}.profile"), &around.directory.join(path), column, bin)?
            }
            _ => crowd::world_cup_semi_final(),
        };
        let at = |name: &str| format!("{key}.{name}");
        if let Some(factor) = self.squeeze {
            profile =
                profile.squeeze(factor).map_err(|error| Problem::new(at("squeeze"), error.to_string()))?;
        }
        if let Some(factor) = self.scale {
            profile = profile.scale(factor).map_err(|error| Problem::new(at("scale"), error.to_string()))?;
        }
        if let Some(peak) = self.peak {
            profile = profile.peak(peak).map_err(|error| Problem::new(at("peak"), error.to_string()))?;
        }
        match around.length {
            Some(length) => profile.cut(length).map_err(|error| Problem::new("duration", error.to_string())),
            None => Ok(profile),
        }
    }

    fn spread(&self, key: &str, profile: RateProfile) -> Result<ArrivalProcess, Problem> {
        match self.arrivals {
            Spread::Poisson => Ok(ArrivalProcess::Poisson(profile)),
            Spread::Constant => Ok(ArrivalProcess::Constant(profile)),
            Spread::SelfSimilar => {
                let usual = SelfSimilarity::default();
                // The default's shape has no getter; it is the Hurst parameter turned round.
                let alpha = self.pareto_alpha.unwrap_or(3.0 - 2.0 * usual.hurst());
                let gap = self.gap.map_or(usual.gap(), |Text(Time(gap))| gap);
                SelfSimilarity::new(alpha, gap)
                    .and_then(|similarity| ArrivalProcess::self_similar(profile, similarity))
                    .map_err(|error| Problem::new(key, error.to_string()))
            }
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Reads a table of counts. Empty lines between counts are refused: what is missing must not close up.
fn counted(key: &str, path: &Path, column: &str, bin: Duration) -> Result<RateProfile, Problem> {
    let problem = |what: &dyn std::fmt::Display| Problem::new(key, format!("{}: {what}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| problem(&error))?.len();
    if size > SCENARIO_TABLE_BYTES {
        return Err(problem(&format!("more than {SCENARIO_TABLE_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| problem(&error))?;
    if let Some(line) = hole(&text) {
        return Err(problem(&format!(
            "line {line} is empty: the table has a hole, expected a count for each stretch"
        )));
    }
    read_profile(text.as_bytes(), &Column::parse(column), bin).map_err(|error| problem(&error))
}

/// The first empty line (from 1) with something on both sides.
fn hole(text: &str) -> Option<usize> {
    let is_empty = |line: &str| line.trim().is_empty();
    let counts = |line: &str| !is_empty(line) && !line.starts_with('#');
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| counts(line))?;
    let last = lines.iter().rposition(|line| counts(line))?;
    lines[first..last].iter().position(|line| is_empty(line)).map(|place| first + place + 1)
}

#[cfg(test)]
mod tests {
    use super::hole;

    #[test]
    fn a_hole_is_an_empty_line_between_counts() {
        assert_eq!(hole("# a\n\nminute,n\n1,5\n\n2,6\n"), Some(5));
        assert_eq!(hole("\n\nn\n5\n6\n\n\n"), None);
        assert_eq!(hole(""), None);
    }
}
