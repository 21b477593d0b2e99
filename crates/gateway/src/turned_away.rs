//! Counts of refusals in the kernel, before a worker saw the request, on their way to the planner of NEWS:
//! they were offered all the same.

use flashweir_admission::flash_crowd::Sample;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests that the kernel turned away with their connections, as estimated; each is taken once.
#[derive(Debug, Default)]
pub(crate) struct TurnedAway {
    offered: AtomicU64,
    unique_offered: AtomicU64,
}

impl TurnedAway {
    /// Adds to the counts.
    #[cfg_attr(not(feature = "kernel"), expect(dead_code, reason = "only the gate in the kernel turns away"))]
    pub(crate) fn add(&self, offered: u64, unique_offered: u64) {
        self.offered.fetch_add(offered, Ordering::Relaxed);
        self.unique_offered.fetch_add(unique_offered, Ordering::Relaxed);
    }

    /// Takes what has come together.
    pub(crate) fn take(&self) -> TurnedAwayCounts {
        TurnedAwayCounts {
            offered: self.offered.swap(0, Ordering::Relaxed),
            unique_offered: self.unique_offered.swap(0, Ordering::Relaxed),
        }
    }
}

/// The counts since the last call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnedAwayCounts {
    offered: u64,
    unique_offered: u64,
}

impl TurnedAwayCounts {
    /// Adds it to a planner's sample; once for each planner.
    pub(crate) fn add_to(self, sample: &mut Sample) {
        sample.flow.offered += self.offered;
        sample.flow.refused_by_earlier += self.offered;
        sample.unique_offered += self.unique_offered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_admission::Flow;

    #[test]
    fn what_was_turned_away_is_offered_once() {
        let turned_away = TurnedAway::default();
        turned_away.offered.store(7, Ordering::Relaxed);
        turned_away.unique_offered.store(5, Ordering::Relaxed);
        let flow = Flow { offered: 1, admitted: 1, ..Flow::default() };
        let mut sample = Sample { flow, unique_offered: 1, ..Sample::default() };
        turned_away.take().add_to(&mut sample);
        turned_away.take().add_to(&mut sample);
        assert_eq!((sample.flow.offered, sample.unique_offered, sample.flow.admitted), (8, 6, 1));
    }
}
