//! Workers as benchmark tools have them, in the four ways that R. Esser's thesis (§3) compares.

use super::{ArrivalArgs, DEFAULT_LENGTH};
use anyhow::ensure;
use clap::ValueEnum;
use flashweir_core::limits::PACED_WORKERS;
use flashweir_workload::ArrivalProcess;
use std::time::Duration;

/// Two are enough to collide.
const MACHINES: u32 = 2;

/// How workers send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Timing {
    /// Method 1: each sends again as soon as it is answered. A slow server slows the load down.
    Closed,
    /// Method 2: each sends once a second, but machines that do not agree send at the same instants.
    Colliding,
    /// Method 3: each sends once a second, all evenly spaced.
    Interleaved,
    /// Method 4: each waits 0.7 s to 1.3 s between two requests, after any answer.
    Random,
}

impl ArrivalArgs {
    pub(super) fn paced(&self, workers: u32) -> anyhow::Result<ArrivalProcess> {
        let length = self.duration.unwrap_or(DEFAULT_LENGTH);
        let is_colliding = self.timing == Some(Timing::Colliding);
        ensure!(is_colliding || self.machines.is_none(), "--machines: only colliding workers have machines");
        let machines = self.machines.unwrap_or(MACHINES.min(workers));
        // The parser sees to it that workers have a timing.
        Ok(match self.timing.unwrap_or(Timing::Interleaved) {
            Timing::Closed => {
                ensure!(
                    workers <= PACED_WORKERS,
                    "--workers: {workers} are too many, at most {PACED_WORKERS}"
                );
                ArrivalProcess::given_within(vec![Duration::ZERO; workers as usize], length)?
            }
            Timing::Colliding => ArrivalProcess::colliding(workers, machines, length)?,
            Timing::Interleaved => ArrivalProcess::interleaved(workers, length)?,
            Timing::Random => ArrivalProcess::random_timing(workers, length)?,
        })
    }
}
