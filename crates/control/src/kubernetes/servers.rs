//! State of a workload: pods that are ready, pods that were ordered, and how long they took. No I/O.

use flashweir_core::Instant;
use flashweir_core::limits::KUBERNETES_ORDERS;
use flashweir_provisioning::{Moments, PoolState};
use std::collections::VecDeque;

/// Follows the replicas of one workload.
#[derive(Debug, Default)]
pub struct Servers {
    replicas: Option<u32>,
    ready: u32,
    /// Order times of the replicas that are not ready yet, the earliest first.
    ordered: VecDeque<Instant>,
}

impl Servers {
    /// Takes what the API says: `replicas` that are wanted there, and pods that are `ready`.
    pub fn observe(&mut self, now: Instant, replicas: u32, ready: u32) -> PoolState {
        // Replicas present at the first observation were ordered at an unknown time: their start-ups are not
        // counted.
        let before = self.replicas.replace(replicas).unwrap_or(replicas);
        let more = replicas.saturating_sub(before) as usize;
        let room = KUBERNETES_ORDERS - self.ordered.len();
        self.ordered.extend(std::iter::repeat_n(now, more.min(room)));
        let fewer = before.saturating_sub(replicas) as usize;
        self.ordered.truncate(self.ordered.len().saturating_sub(fewer));
        let mut start_ups = Moments::default();
        let started = (ready.saturating_sub(self.ready) as usize).min(self.ordered.len());
        for since in self.ordered.drain(..started) {
            start_ups.push(now.saturating_since(since).as_secs_f64());
        }
        self.ready = ready;
        let in_use = ready.min(replicas);
        PoolState { ready: in_use, starting: replicas - in_use, start_ups }
    }

    /// This program has ordered another number, so its start-ups are timed from now and not from the next
    /// look.
    pub fn ordered(&mut self, now: Instant, replicas: u32) {
        self.observe(now, replicas, self.ready);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Instant {
        Instant::from_secs(second)
    }

    #[test]
    fn start_ups_are_timed_from_the_order() {
        let mut servers = Servers::default();
        let state = servers.observe(at(0), 2, 1);
        assert_eq!((state.ready, state.starting, state.start_ups.count), (1, 1, 0));
        assert_eq!(servers.observe(at(1), 2, 2).start_ups.count, 0, "ordered before it was looked");
        servers.ordered(at(10), 5);
        let state = servers.observe(at(14), 5, 3);
        assert_eq!((state.ready, state.starting, state.start_ups.mean_s()), (3, 2, Some(4.0)));
        // Two are given back while they start: they never become ready.
        servers.ordered(at(15), 3);
        let state = servers.observe(at(20), 3, 3);
        assert_eq!((state.starting, state.start_ups.count), (0, 0));
        // A pod that was lost and comes back is no start-up that was ordered.
        servers.observe(at(21), 3, 2);
        assert_eq!(servers.observe(at(22), 3, 3).start_ups.count, 0);
    }

    #[test]
    fn more_ready_pods_than_replicas_are_leaving() {
        let mut servers = Servers::default();
        let state = servers.observe(at(0), 2, 5);
        assert_eq!((state.ready, state.starting), (2, 0));
        assert!(servers.observe(at(1), u32::MAX, 5).starting > 0);
        assert!(servers.ordered.len() <= KUBERNETES_ORDERS);
    }
}
