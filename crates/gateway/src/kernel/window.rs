//! Rates over the last second, from counters that only grow.

use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Instant};
use std::collections::VecDeque;

/// All that is counted, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) at: Instant,
    /// Connections the workers accepted.
    pub(crate) accepted: u64,
    /// Requests that came on them.
    pub(crate) requests: u64,
    /// Attempts to connect at the kernel's gate, without retransmissions.
    pub(crate) arriving: u64,
    /// Each service.
    pub(crate) services: Vec<ServiceTotals>,
}

/// Counts of one service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServiceTotals {
    /// The rank of each class.
    pub(crate) ranks: Vec<u8>,
    /// Requests offered, by rank.
    pub(crate) offered: [u64; CLASSES],
    /// Of these, refused by the sentry, or in its shadow.
    pub(crate) refused: u64,
}

/// The last of them.
#[derive(Debug, Default)]
pub(crate) struct Window(VecDeque<Counts>);

/// Long enough for a ratio of a few dozen, short enough to follow a crowd.
const SPAN: Duration = Duration::from_secs(1);
/// As many looks at most, should they come faster than planned.
const COUNTS_KEPT: usize = 32;

impl Window {
    /// Takes the newest; those older than a second go, but for one.
    pub(crate) fn push(&mut self, counts: Counts) {
        // After a reload there may be others, whose counts do not go on from these.
        let ranks = |counts: &Counts| -> Vec<Vec<u8>> {
            counts.services.iter().map(|service| service.ranks.clone()).collect()
        };
        if self.0.back().is_some_and(|last| ranks(last) != ranks(&counts)) {
            self.0.clear();
        }
        let is_old = |second: Option<&Counts>| {
            second.is_some_and(|second| counts.at.saturating_since(second.at) >= SPAN)
        };
        while is_old(self.0.get(1)) || self.0.len() >= COUNTS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back(counts);
    }

    /// The last counts.
    pub(crate) fn last(&self) -> Option<&Counts> {
        self.0.back()
    }

    /// Growth of a counter in a second; 0 while there are no two moments.
    pub(crate) fn per_second(&self, counter: impl Fn(&Counts) -> u64) -> f64 {
        let (Some(first), Some(last)) = (self.0.front(), self.0.back()) else { return 0.0 };
        let span_s = last.at.saturating_since(first.at).as_secs_f64();
        if span_s <= 0.0 { 0.0 } else { counter(last).saturating_sub(counter(first)) as f64 / span_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64, accepted: u64) -> Counts {
        Counts { at: Instant::from_nanos(millis * 1_000_000), accepted, ..Counts::default() }
    }

    #[test]
    fn rates_are_those_of_the_last_second() {
        let mut window = Window::default();
        assert_eq!(window.per_second(|counts| counts.accepted), 0.0);
        for tick in 0..=50 {
            // Ten at each of the first thirty looks, then none.
            window.push(at(tick * 100, 10 * tick.min(30)));
            if tick == 30 {
                assert_eq!(window.per_second(|counts| counts.accepted), 100.0);
            }
        }
        assert_eq!(window.per_second(|counts| counts.accepted), 0.0);
    }

    #[test]
    fn time_that_stands_still_and_counters_that_begin_anew_are_no_rate() {
        let mut window = Window::default();
        (0..100).for_each(|count| window.push(at(1, count)));
        assert_eq!(window.per_second(|counts| counts.accepted), 0.0);
        assert!(window.0.len() <= COUNTS_KEPT);
        window.push(at(500, 3));
        assert_eq!(window.per_second(|counts| counts.accepted), 0.0);
        let service =
            |ranks: &[u8]| vec![ServiceTotals { ranks: ranks.to_vec(), ..ServiceTotals::default() }];
        window.push(Counts { services: service(&[0, 1]), ..at(600, 4) });
        assert_eq!(window.0.len(), 1, "other services: the past says nothing");
        window.push(Counts { services: service(&[0, 1]), ..at(700, 5) });
        assert_eq!(window.0.len(), 2);
        window.push(Counts { services: service(&[1, 0]), ..at(800, 6) });
        assert_eq!(window.0.len(), 1, "nor do counts of other ranks");
    }
}
