//! One thread's record of every try that it began.

use crate::counts::{Counts, TryOutcome};
use crate::distribution::Distributions;
use flashweir_core::measure::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// One thread's books: totals and distributions of each class, and what changed in each second since the last
/// look.
///
/// Memory does not grow with the run: the changes are taken away five times a second by
/// [`take_changes`](Self::take_changes), and a try can change only the second of its intended moment.
#[derive(Debug)]
pub(crate) struct Ledger {
    classes: Vec<ClassBook>,
    recent: Recent,
    changes: BTreeMap<Cell, Change>,
}

/// Measurements since the last [`Ledger::take_recent`], microseconds: small enough to be handed over while
/// the thread waits.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    /// Latencies of the completed.
    pub(crate) latency: Histogram,
    pub(crate) lag: Histogram,
}

/// One class's totals.
#[derive(Clone, Debug)]
pub(crate) struct ClassBook {
    pub(crate) counts: Counts,
    pub(crate) distributions: Distributions,
}

/// One second of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    /// The second in which the try was to begin, from the start of the run.
    pub(crate) second: u64,
    pub(crate) class: u16,
}

/// Changes to the tries of one [`Cell`] since the last look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) counts: Counts,
    /// Latencies of the completed, microseconds.
    pub(crate) latency: Histogram,
    pub(crate) lag_max_us: u64,
}

/// End of a try; times from the moment at which it was to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: TryOutcome,
    pub(crate) latency: Duration,
    pub(crate) ttfb: Option<Duration>,
    /// From the moment the person first asked, over all tries.
    pub(crate) served_after: Duration,
    pub(crate) body_bytes: u64,
}

impl Ledger {
    pub(crate) fn new(classes: usize) -> Self {
        Self {
            classes: (0..classes).map(|_| ClassBook::new()).collect(),
            recent: Recent::default(),
            changes: BTreeMap::new(),
        }
    }

    /// A try began, `lag` after the moment it was to begin.
    pub(crate) fn offer(&mut self, cell: Cell, first_try: bool, lag: Duration) {
        let book = self.book(cell);
        book.counts.offer(first_try);
        book.distributions.lag.record(lag);
        self.recent.lag.record(micros(lag));
        let change = self.change(cell);
        change.counts.offer(first_try);
        change.lag_max_us = change.lag_max_us.max(micros(lag));
    }

    /// The request of a try was handed to a connection.
    pub(crate) fn sent(&mut self, cell: Cell) {
        self.book(cell).counts.sent += 1;
        self.change(cell).counts.sent += 1;
    }

    /// It is known what became of a try.
    pub(crate) fn settle(&mut self, cell: Cell, end: &End) {
        let book = self.book(cell);
        book.counts.settle(end.outcome, end.body_bytes);
        match end.outcome {
            TryOutcome::Completed { .. } => {
                book.distributions.latency.record(end.latency);
                book.distributions.served.record(end.served_after);
                if let Some(ttfb) = end.ttfb {
                    book.distributions.ttfb.record(ttfb);
                }
                self.recent.latency.record(micros(end.latency));
            }
            TryOutcome::Refused { .. } => book.distributions.refusal.record(end.latency),
            TryOutcome::TimedOut | TryOutcome::Abandoned | TryOutcome::Failed(_) => {}
        }
        let change = self.change(cell);
        change.counts.settle(end.outcome, end.body_bytes);
        if matches!(end.outcome, TryOutcome::Completed { .. }) {
            change.latency.record(micros(end.latency));
        }
    }

    /// Totals of each class.
    pub(crate) fn classes(&self) -> &[ClassBook] {
        &self.classes
    }

    /// Takes what changed in each second since the last call.
    pub(crate) fn take_changes(&mut self) -> BTreeMap<Cell, Change> {
        std::mem::take(&mut self.changes)
    }

    /// Takes what was measured since the last call.
    pub(crate) fn take_recent(&mut self) -> Recent {
        std::mem::take(&mut self.recent)
    }

    fn book(&mut self, cell: Cell) -> &mut ClassBook {
        // The plan was checked: every class of the schedule has its entry.
        &mut self.classes[usize::from(cell.class)]
    }

    fn change(&mut self, cell: Cell) -> &mut Change {
        self.changes.entry(cell).or_default()
    }
}

impl ClassBook {
    pub(crate) fn new() -> Self {
        Self { counts: Counts::default(), distributions: Distributions::new() }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.distributions.add(&other.distributions);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::series::Series;
    use flashweir_core::Reason;
    use flashweir_core::limits::LOAD_SERIES_BINS;
    use proptest::prelude::*;

    fn end(outcome: TryOutcome) -> End {
        let latency = Duration::from_millis(5);
        let ttfb = Some(Duration::from_millis(2));
        End { outcome, latency, ttfb, served_after: latency, body_bytes: 7 }
    }

    fn outcomes() -> impl Strategy<Value = TryOutcome> {
        let reasons = proptest::option::of((0..Reason::ALL.len()).prop_map(|n| Reason::ALL[n]));
        prop_oneof![
            any::<bool>().prop_map(|good| TryOutcome::Completed { good }),
            (prop_oneof![Just(429), Just(503)], reasons)
                .prop_map(|(status, reason)| TryOutcome::Refused { status, reason }),
            Just(TryOutcome::TimedOut),
            Just(TryOutcome::Abandoned),
            (0..ErrorKind::ALL.len()).prop_map(|n| TryOutcome::Failed(ErrorKind::ALL[n])),
        ]
    }

    fn adds_up(counts: &Counts) -> bool {
        let Counts { offered, completed, refused, timed_out, abandoned, .. } = *counts;
        offered == completed + refused + timed_out + abandoned + counts.errors() + counts.in_flight()
            && counts.goodput <= completed
            && counts.unique_offered <= offered
            && counts.refused_429 <= refused
            && counts.refused_by_reason.iter().sum::<u64>() <= refused
    }

    proptest! {
        /// Tries begin in any second and are settled in any order; looks fall anywhere between. The books add
        /// up after every entry, per class, per second and in total, and the seconds add up to the totals.
        #[test]
        fn the_books_always_add_up(
            tries in proptest::collection::vec(
                (0u64..40, 0u16..3, any::<bool>(), outcomes(), any::<prop::sample::Index>(), any::<bool>()),
                1..200,
            ),
        ) {
            let mut ledger = Ledger::new(3);
            let mut series = vec![Series::new(); 3];
            let mut waiting: Vec<(Cell, TryOutcome)> = Vec::new();
            let mut look = |ledger: &mut Ledger| {
                for (cell, change) in ledger.take_changes() {
                    series[usize::from(cell.class)].add(cell.second, &change);
                }
                series.iter().zip(ledger.classes()).try_for_each(|(series, book)| {
                    let mut sum = Counts::default();
                    series.bins().iter().for_each(|bin| sum.add(&bin.counts));
                    prop_assert!(series.bins().iter().all(|bin| adds_up(&bin.counts)));
                    prop_assert!(adds_up(&book.counts));
                    prop_assert_eq!(sum, book.counts);
                    prop_assert_eq!(book.distributions.latency.count(), book.counts.completed);
                    prop_assert_eq!(book.distributions.refusal.count(), book.counts.refused);
                    prop_assert_eq!(book.distributions.lag.count(), book.counts.offered);
                    Ok(())
                })
            };
            for (second, class, first_try, outcome, who, looks) in tries {
                let cell = Cell { second, class };
                ledger.offer(cell, first_try, Duration::ZERO);
                waiting.push((cell, outcome));
                if who.index(2) == 0 {
                    let (cell, outcome) = waiting.swap_remove(who.index(waiting.len()));
                    ledger.sent(cell);
                    ledger.settle(cell, &end(outcome));
                }
                if looks {
                    look(&mut ledger)?;
                }
                let in_flight: u64 = ledger.classes().iter().map(|book| book.counts.in_flight()).sum();
                prop_assert_eq!(in_flight, waiting.len() as u64);
            }
            for (cell, outcome) in waiting {
                ledger.settle(cell, &end(outcome));
            }
            look(&mut ledger)?;
            prop_assert!(ledger.classes().iter().all(|book| book.counts.in_flight() == 0));
        }
    }

    /// An hour of looks holds what a minute's does, and the series: at most [`LOAD_SERIES_BINS`] bins of a
    /// class.
    #[test]
    fn an_hour_holds_no_more_than_a_minute() {
        let most_bytes = |seconds: u64| {
            let run = || {
                let mut ledger = Ledger::new(1);
                let mut series = Series::new();
                for try_number in 0..seconds * 50 {
                    let cell = Cell { second: try_number / 50, class: 0 };
                    ledger.offer(cell, true, Duration::from_micros(try_number % 977));
                    let outcome = TryOutcome::Completed { good: true };
                    let latency = Duration::from_micros(1_000 + try_number * 7_919 % 90_000);
                    ledger.settle(cell, &End { latency, ..end(outcome) });
                    if try_number % 10 == 0 {
                        ledger.take_recent();
                        ledger
                            .take_changes()
                            .iter()
                            .for_each(|(cell, change)| series.add(cell.second, change));
                    }
                }
            };
            allocation_counter::measure(run).bytes_max
        };
        let (minute, hour, day) = (most_bytes(60), most_bytes(3_600), most_bytes(24 * 3_600));
        let bin = 1_100;
        assert!(hour < minute + 3_600 * bin, "{hour} bytes in an hour, {minute} in a minute");
        let full = LOAD_SERIES_BINS as u64 * bin;
        assert!(day < minute + 2 * full, "{day} bytes in a day, {minute} in a minute");
    }
}
