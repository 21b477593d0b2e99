//! A recorded log's requests as they came.

use super::{ArrivalArgs, ArrivalPlan};
use crate::command::values::absurd;
use anyhow::{bail, ensure};
use flashweir_core::limits::LOAD_RATE_PER_S;
use flashweir_workload::ArrivalProcess;
use flashweir_workload::recording::Recording;

impl ArrivalArgs {
    pub(super) fn replayed(&self, recording: Recording) -> anyhow::Result<ArrivalPlan> {
        if self.scale.is_some() || self.peak.is_some() {
            bail!(
                "a replay has the requests its log has: --scale and --peak cannot change how many; use --squeeze"
            );
        }
        let recording = match self.squeeze {
            Some(factor) => recording.squeeze(factor)?,
            None => recording,
        };
        let length = self.duration.map_or(recording.length(), |duration| duration.min(recording.length()));
        let moments = recording.moments();
        let arrivals = match moments.partition_point(|moment| *moment <= length) {
            0 => bail!("nobody comes before --duration is over"),
            // Without a copy: a log may have millions.
            all if all == moments.len() => ArrivalProcess::given_within(moments.clone(), length)?,
            some => ArrivalProcess::given_within(&moments[..some], length)?,
        };
        let mean_per_s = arrivals.expected() / length.as_secs_f64();
        ensure!(mean_per_s <= LOAD_RATE_PER_S, absurd(mean_per_s));
        Ok(ArrivalPlan { arrivals, recording: Some(recording), in_closed_loop: false })
    }
}
