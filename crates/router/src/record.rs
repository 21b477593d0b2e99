//! The decisions that are remembered, by number, so that what was refused and why can be asked for later. The
//! kernel gives no connection its own number.

use flashweir_admission::flash_crowd::Plan;
use flashweir_core::Instant;
use flashweir_core::limits::ROUTER_PLANS_REMEMBERED;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// A decision and when it was made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) at: Instant,
    pub(crate) plan: Plan,
    /// Hot-spots that are limited by name, connections per second each.
    pub(crate) hot_spots: Vec<(SocketAddr, f64)>,
    pub(crate) shadow: bool,
}

/// The latest decisions, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions(VecDeque<Arc<Decision>>);

impl Decisions {
    /// Remembers one, forgetting the oldest when full.
    pub(crate) fn remember(&mut self, decision: Arc<Decision>) {
        if self.0.len() == ROUTER_PLANS_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(decision);
    }

    /// The one of this number. A reload restarts the numbers, so this is the latest of that number.
    pub(crate) fn of(&self, epoch: u64) -> Option<Arc<Decision>> {
        self.0.iter().rev().find(|decision| decision.plan.epoch == epoch).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_found_by_number_and_the_oldest_forgotten() {
        let mut decisions = Decisions::default();
        for epoch in 0..=ROUTER_PLANS_REMEMBERED as u64 {
            let plan = Plan { epoch, ..Plan::open(1) };
            let decision =
                Decision { at: Instant::from_secs(epoch), plan, hot_spots: Vec::new(), shadow: false };
            decisions.remember(Arc::new(decision));
        }
        assert!(decisions.of(0).is_none());
        assert_eq!(decisions.of(1).expect("remembered").at, Instant::from_secs(1));
        assert_eq!(decisions.0.len(), ROUTER_PLANS_REMEMBERED);
    }
}
