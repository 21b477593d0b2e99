//! What one thread writes down about everybody it took up.

use crate::counts::{Counts, Outcome};
use crate::distribution::{Coarse, Fine};
use std::collections::VecDeque;
use std::time::Duration;

/// One thread's books: totals, distributions, and the seconds not yet settled.
///
/// Memory does not grow with the run: seconds whose people are all settled are taken away by
/// [`take_settled`](Self::take_settled), and nobody stays unsettled for longer than their patience.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) totals: Counts,
    pub(crate) distributions: Distributions,
    /// Latencies completed since the last [`take_recent`](Self::take_recent).
    recent: Coarse,
    /// Seconds in which people came and may still be on their way, in order.
    open: VecDeque<SettledSecond>,
    /// Nobody will be offered any more in seconds before this one.
    offered_before: u64,
}

/// Whole-run distributions.
#[derive(Clone, Debug)]
pub(crate) struct Distributions {
    pub(crate) latency: Fine,
    pub(crate) refusal: Fine,
    pub(crate) ttfb: Fine,
    pub(crate) lag: Fine,
}

/// What became of the people who came in one second.
#[derive(Clone, Debug)]
pub(crate) struct SettledSecond {
    pub(crate) second: u64,
    pub(crate) counts: Counts,
    pub(crate) latency: Coarse,
}

/// How a person's attempt ended; times from the moment they were to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) latency: Duration,
    pub(crate) ttfb: Option<Duration>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            totals: Counts::default(),
            distributions: Distributions::new(),
            recent: Coarse::new(),
            open: VecDeque::new(),
            offered_before: 0,
        }
    }

    /// The next person comes in `second`, which never goes back: earlier ones are complete.
    pub(crate) fn advance_to(&mut self, second: u64) {
        self.offered_before = self.offered_before.max(second);
    }

    /// Somebody came in `second`, taken up `lag` after the moment they were to come.
    pub(crate) fn offer(&mut self, second: u64, lag: Duration) {
        self.totals.offer();
        self.distributions.lag.record(lag);
        if self.open.back().is_none_or(|open| open.second < second) {
            self.open.push_back(SettledSecond::new(second));
        }
        self.in_second(second, Counts::offer);
    }

    /// The request of somebody who came in `second` was handed to a connection.
    pub(crate) fn sent(&mut self, second: u64) {
        self.totals.sent += 1;
        self.in_second(second, |counts| counts.sent += 1);
    }

    /// It is known what became of somebody who came in `second`.
    pub(crate) fn settle(&mut self, second: u64, end: End) {
        self.totals.settle(end.outcome);
        self.in_second(second, |counts| counts.settle(end.outcome));
        match end.outcome {
            Outcome::Completed { .. } => {
                self.distributions.latency.record(end.latency);
                if let Some(ttfb) = end.ttfb {
                    self.distributions.ttfb.record(ttfb);
                }
                self.recent.record(end.latency);
                if let Ok(place) = self.place(second) {
                    self.open[place].latency.record(end.latency);
                }
            }
            Outcome::Refused { .. } => self.distributions.refusal.record(end.latency),
            Outcome::TimedOut | Outcome::Failed(_) => {}
        }
    }

    /// Takes the leading seconds in which everybody is settled; all seconds before the returned one are done.
    pub(crate) fn take_settled(&mut self) -> (Vec<SettledSecond>, u64) {
        let mut settled = Vec::new();
        while let Some(front) = self.open.front() {
            if front.second >= self.offered_before || front.counts.in_flight() > 0 {
                return (settled, front.second);
            }
            settled.extend(self.open.pop_front());
        }
        (settled, self.offered_before)
    }

    /// Takes the latencies completed since the last call.
    pub(crate) fn take_recent(&mut self) -> Coarse {
        std::mem::replace(&mut self.recent, Coarse::new())
    }

    fn in_second(&mut self, second: u64, change: impl FnOnce(&mut Counts)) {
        // A second leaves only when everybody in it is settled, so it is there for those who are not.
        if let Ok(place) = self.place(second) {
            change(&mut self.open[place].counts);
        }
    }

    fn place(&self, second: u64) -> Result<usize, usize> {
        self.open.binary_search_by_key(&second, |open| open.second)
    }
}

impl Distributions {
    pub(crate) fn new() -> Self {
        Self { latency: Fine::new(), refusal: Fine::new(), ttfb: Fine::new(), lag: Fine::new() }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.refusal.add(&other.refusal);
        self.ttfb.add(&other.ttfb);
        self.lag.add(&other.lag);
    }
}

impl SettledSecond {
    pub(crate) fn new(second: u64) -> Self {
        Self { second, counts: Counts::default(), latency: Coarse::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use flashweir_core::Reason;
    use proptest::prelude::*;

    fn end(outcome: Outcome) -> End {
        End { outcome, latency: Duration::from_millis(5), ttfb: Some(Duration::from_millis(2)) }
    }

    fn outcomes() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            any::<bool>().prop_map(|good| Outcome::Completed { good }),
            (0..Reason::ALL.len()).prop_map(|n| Outcome::Refused { reason: Some(Reason::ALL[n]) }),
            Just(Outcome::Refused { reason: None }),
            Just(Outcome::TimedOut),
            (0..ErrorKind::ALL.len()).prop_map(|n| Outcome::Failed(ErrorKind::ALL[n])),
        ]
    }

    fn adds_up(counts: &Counts) -> bool {
        counts.offered
            == counts.completed + counts.refused + counts.timed_out + counts.errors() + counts.in_flight()
            && counts.goodput <= counts.completed
            && counts.refused_by_reason.iter().sum::<u64>() <= counts.refused
    }

    proptest! {
        /// People come in order and are settled in any order; the books add up after every entry, per second
        /// and in total, and the seconds taken away add up to the totals at the end.
        #[test]
        fn the_books_always_add_up(
            people in proptest::collection::vec((0u64..3, outcomes(), any::<prop::sample::Index>()), 1..200),
        ) {
            let mut ledger = Ledger::new();
            let mut taken = Counts::default();
            let mut waiting: Vec<(u64, Outcome)> = Vec::new();
            let mut second = 0;
            for (gap, outcome, who) in people {
                second += gap;
                ledger.advance_to(second);
                ledger.offer(second, Duration::ZERO);
                waiting.push((second, outcome));
                if who.index(2) == 0 {
                    let (second, outcome) = waiting.swap_remove(who.index(waiting.len()));
                    ledger.settle(second, end(outcome));
                }
                prop_assert!(adds_up(&ledger.totals));
                prop_assert_eq!(ledger.totals.in_flight(), waiting.len() as u64);
                let (settled, done_before) = ledger.take_settled();
                for settled in settled {
                    prop_assert!(adds_up(&settled.counts) && settled.counts.in_flight() == 0);
                    prop_assert!(settled.second < done_before);
                    taken.add(&settled.counts);
                }
                prop_assert!(waiting.iter().all(|(second, _)| *second >= done_before));
            }
            ledger.advance_to(u64::MAX);
            for (second, outcome) in waiting {
                ledger.settle(second, end(outcome));
            }
            let (settled, done_before) = ledger.take_settled();
            settled.iter().for_each(|settled| taken.add(&settled.counts));
            prop_assert_eq!(done_before, u64::MAX);
            prop_assert_eq!(taken, ledger.totals);
            prop_assert_eq!(taken.in_flight(), 0);
        }
    }

    #[test]
    fn a_second_stays_until_it_is_over_and_its_people_are_settled() {
        let mut ledger = Ledger::new();
        ledger.advance_to(3);
        ledger.offer(3, Duration::ZERO);
        ledger.settle(3, end(Outcome::Completed { good: true }));
        assert_eq!(ledger.take_settled().1, 3, "more people may come in second 3");
        ledger.advance_to(5);
        let (settled, done_before) = ledger.take_settled();
        assert_eq!((settled.len(), done_before), (1, 5));
        assert!((settled[0].latency.quantile_ms(0.5).unwrap() - 5.0).abs() < 0.1);
    }
}
