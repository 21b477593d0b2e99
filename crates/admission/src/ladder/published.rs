//! The paper's settings (Iyer, Tewari and Kant §4 and §5), for experiments: queue lengths, polled.
//!
//! Onset and discard thresholds are the paper's. It never names an abatement threshold; half the onset is
//! ours (ALGORITHMS §5.1).

use super::{LadderGate, Rung, Rungs, Scheme};
use flashweir_core::Duration;

/// Interval at which the paper's tool could read the queue length (§3.3).
pub const PUBLISHED_POLL: Duration = Duration::from_secs(1);
/// Onset levels of the four severities that ALGORITHMS §5.6 gives a server with 256 waiting places; the paper
/// uses one at a time.
pub const SEVERITY_ONSETS: [u64; 4] = [80, 120, 160, 200];
/// A threshold that no queue reaches, where a scheme does not use it.
const NEVER: u64 = u64::MAX;

/// One of the paper's experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// §5.2: connection requests are dropped from this queue length on.
    Dropping {
        /// 20 in the paper, which calls it onset.
        discard: u64,
    },
    /// §5.3: senders are asked for more time between requests from this queue length on.
    Throttling {
        /// 150 and 200 in the paper.
        onset: u64,
    },
    /// §5.4: both.
    Combined {
        /// 150 in the paper.
        onset: u64,
        /// 200 in the paper.
        discard: u64,
    },
    /// §5.5: throttling of two ranks. The paper names no thresholds; these are those of ALGORITHMS §5.6.
    TwoPriorities,
}

impl Published {
    /// The ladder of this experiment, nothing throttled yet.
    ///
    /// # Panics
    /// For thresholds below 2, or a discard threshold that is not above the onset.
    #[must_use]
    pub fn gate(self) -> LadderGate {
        let single = |onset: u64, discard| Rungs::single(Rung { abatement: onset / 2, onset, discard });
        let rungs = match self {
            // The onset is not in use: it lies between the two that are.
            Self::Dropping { discard } => {
                Rungs::single(Rung { abatement: discard / 2, onset: discard - 1, discard })
            }
            Self::Throttling { onset } => single(onset, NEVER),
            Self::Combined { onset, discard } => single(onset, discard),
            Self::TwoPriorities => Rungs::new(alloc::vec![
                Rung { abatement: 110, onset: 150, discard: 200 },
                Rung { abatement: 40, onset: 80, discard: 100 },
            ]),
        };
        LadderGate::new(self.scheme(), rungs.expect("thresholds in order, which the caller saw to"), &[])
    }

    /// Scheme of the paper.
    #[must_use]
    pub fn scheme(self) -> Scheme {
        match self {
            Self::Dropping { .. } => Scheme::DropOnly,
            Self::Throttling { .. } | Self::TwoPriorities => Scheme::ThrottleOnly,
            Self::Combined { .. } => Scheme::Combined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_settings_make_ladders() {
        let mut dropping = Published::Dropping { discard: 20 }.gate();
        dropping.observe(20);
        assert!(dropping.is_discarding(0) && dropping.throttled_from().is_none());
        let mut combined = Published::Combined { onset: 150, discard: 200 }.gate();
        combined.observe(150);
        assert_eq!((combined.throttled_from(), combined.is_discarding(0)), (Some(0), false));
        combined.observe(200);
        assert!(combined.is_discarding(0));
        let mut two = Published::TwoPriorities.gate();
        two.observe(120);
        assert_eq!((two.throttled_from(), two.is_discarding(1)), (Some(1), false));
        let mut throttling = Published::Throttling { onset: 150 }.gate();
        throttling.observe(256);
        assert_eq!((throttling.throttled_from(), throttling.is_discarding(0)), (Some(0), false));
    }
}
