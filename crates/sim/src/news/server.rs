//! The server of the crowd's pages, where it is not infinitely fast.

use super::Server;
use flashweir_core::{Duration, Instant};
use std::collections::VecDeque;

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The page leaves at this time.
    At(Instant),
    /// No room: the request is dropped.
    Dropped,
}

/// Requests are worked off one after another; only the times at which they will be done are kept.
#[derive(Debug)]
pub(super) struct Worker {
    kind: Server,
    /// When each request that is here will be done, in order.
    done_at: VecDeque<Instant>,
}

impl Worker {
    pub(super) fn new(kind: Server) -> Self {
        Self { kind, done_at: VecDeque::new() }
    }

    /// A request for a page of `bytes` is here. O(1) on average. The queue is bounded by the bound on flows.
    pub(super) fn request(&mut self, now: Instant, bytes: u64) -> Served {
        let Server::FirstComeFirstServed { bytes_per_s, requests_most } = self.kind else {
            return Served::At(now);
        };
        while self.done_at.front().is_some_and(|&done_at| done_at <= now) {
            self.done_at.pop_front();
        }
        if requests_most.is_some_and(|most| self.done_at.len() >= most) {
            return Served::Dropped;
        }
        // Rounded down to the nanosecond; a page that would take centuries is as good as never made.
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s);
        let work = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4));
        let done_at = self.done_at.back().copied().unwrap_or(now).max(now) + work;
        self.done_at.push_back(done_at);
        Served::At(done_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_one_after_another_and_drops_what_finds_no_room() {
        let kind = Server::FirstComeFirstServed { bytes_per_s: 1_000, requests_most: Some(2) };
        let mut worker = Worker::new(kind);
        let at = Instant::from_millis;
        assert_eq!(worker.request(at(0), 1_000), Served::At(at(1_000)));
        assert_eq!(worker.request(at(500), 500), Served::At(at(1_500)));
        assert_eq!(worker.request(at(600), 500), Served::Dropped);
        assert_eq!(worker.request(at(1_000), 100), Served::At(at(1_600)));
        assert_eq!(worker.request(at(9_000), 100), Served::At(at(9_100)));
        assert_eq!(Worker::new(Server::Immediate).request(at(7), 1 << 40), Served::At(at(7)));
    }
}
