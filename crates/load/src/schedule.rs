//! When each person of the run comes, fixed before it starts.

use flashweir_workload::ArrivalProcess;
use std::sync::Arc;
use std::time::Duration;

/// The moments at which people come, as offsets from the start of the run; the same at every reading.
///
/// Threads share a schedule without talking: of `n` threads, thread `k` takes every n-th person from the k-th.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// Drawn from a process and a seed while the run goes on: needs no memory, however long the run.
    Drawn {
        /// What to draw from.
        process: ArrivalProcess,
        /// The seed.
        seed: u64,
    },
    /// Given moment by moment, in order.
    Fixed(Arc<[Duration]>),
}

impl Schedule {
    /// The moments in order. About 30 ns for each.
    #[must_use]
    pub fn moments(&self) -> Box<dyn Iterator<Item = Duration> + '_> {
        match self {
            Self::Drawn { process, seed } => Box::new(process.moments(*seed)),
            Self::Fixed(moments) => Box::new(moments.iter().copied()),
        }
    }

    /// When the last person may come: the end of the profile, or the last fixed moment.
    #[must_use]
    pub fn length(&self) -> Duration {
        match self {
            Self::Drawn { process, .. } => process.profile().length(),
            Self::Fixed(moments) => moments.last().copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_workload::RateProfile;

    #[test]
    fn two_readings_are_equal() {
        let profile = RateProfile::constant(500.0, Duration::from_secs(2)).unwrap();
        let drawn = Schedule::Drawn { process: ArrivalProcess::Poisson(profile), seed: 9 };
        let fixed = Schedule::Fixed(drawn.moments().collect());
        assert!(drawn.moments().eq(drawn.moments()));
        assert!(drawn.moments().eq(fixed.moments()));
        assert!(fixed.length() <= drawn.length());
    }
}
