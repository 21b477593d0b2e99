//! Puts the threads' books together, while the run goes on and at its end.

use crate::counts::{Counts, ErrorKind};
use crate::crowd_window::CrowdWindow;
use crate::plan::ClassPlan;
use crate::recovery;
use crate::result::{ClassFacts, HurstFigure, LoadResult, RunFacts};
use crate::sender::Sender;
use crate::tally::Book;
use crate::transport::ConnectionCounts;
use crate::{LoadPlan, Progress};
use flashweir_core::measure::Histogram;
use flashweir_workload::hurst::{Hurst, HurstEstimator};
use flashweir_workload::{ArrivalProcess, Schedule};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A generator whose 99th percentile of lag is above this did not keep up…
const SATURATED_LAG: Duration = Duration::from_millis(10);
/// …nor one that lags by more than this part of the target, where that is longer: lag counts as latency, and
/// a hundredth of the target does not change who is within it.
const SATURATED_PART_OF_TARGET: u32 = 100;
/// Arrivals from which the Hurst parameter is estimated; more cost time and tell little more.
const HURST_ARRIVALS: usize = 5_000_000;
/// Bins in which they are counted, if the run is long enough…
const HURST_BINS: u32 = 1 << 14;
/// …for each to hold about this number of arrivals.
const ARRIVALS_A_BIN: f64 = 4.0;
/// Version of the JSON of a [`LoadResult`].
pub const FORMAT: u32 = 1;

/// Reads the books of all threads.
#[derive(Debug)]
pub(crate) struct Books<'a> {
    plan: &'a LoadPlan,
    started: Instant,
    senders: &'a [Arc<Sender>],
    /// States of the last second or so, oldest first, with the latencies completed since the one before.
    looks: VecDeque<(Instant, Counts, Histogram)>,
    /// Lags so far, microseconds, to 3 %.
    lag: Histogram,
    /// By the number of the class; the totals of these stay empty until the end.
    classes: Vec<Book>,
}

impl<'a> Books<'a> {
    pub(crate) fn new(plan: &'a LoadPlan, started: Instant, senders: &'a [Arc<Sender>]) -> Self {
        Self {
            plan,
            started,
            senders,
            looks: VecDeque::from([(started, Counts::default(), Histogram::new())]),
            lag: Histogram::new(),
            classes: plan.classes.iter().map(|_| Book::new()).collect(),
        }
    }

    /// The state now. Also takes what changed out of the threads' books, which keeps those small.
    pub(crate) fn look(&mut self) -> Progress {
        let now = Instant::now();
        let mut totals = Counts::default();
        let mut latency = Histogram::new();
        for sender in self.senders {
            // The thread may be waiting for its books: only what is small is done while they are held.
            let mut ledger = sender.shared.ledger();
            ledger.classes().iter().for_each(|book| totals.add(&book.counts));
            let recent = ledger.take_recent();
            let changes = ledger.take_changes();
            drop(ledger);
            latency.add(&recent.latency);
            self.lag.add(&recent.lag);
            for (cell, change) in changes {
                self.classes[usize::from(cell.class)].series.add(cell.second, &change);
            }
        }
        self.looks.push_back((now, totals, latency));
        // The oldest state kept is the youngest that is at least a second old.
        while self.looks.get(1).is_some_and(|(at, ..)| *at + Duration::from_secs(1) <= now) {
            self.looks.pop_front();
        }
        self.progress(now, totals)
    }

    fn progress(&self, now: Instant, totals: Counts) -> Progress {
        let mut latencies = Histogram::new();
        self.looks.iter().skip(1).for_each(|(_, _, recent)| latencies.add(recent));
        let quantile_ms = |share| latencies.quantile(share).map(|us| us as f64 / 1e3);
        let before = self.looks.front().map(|(_, counts, _)| *counts).unwrap_or_default();
        Progress {
            started: self.started,
            elapsed: now.saturating_duration_since(self.started),
            length: self.plan.schedule.length(),
            totals,
            last_second: totals.since(&before),
            last_second_p50_ms: quantile_ms(0.5),
            last_second_p99_ms: quantile_ms(0.99),
            lag_p99_us: self.lag.quantile(0.99).unwrap_or(0),
        }
    }

    /// The result; every thread must have ended and [`look`](Self::look) been called since.
    pub(crate) fn conclude(mut self) -> LoadResult {
        let mut connections = ConnectionCounts::default();
        for sender in self.senders {
            for (mine, theirs) in self.classes.iter_mut().zip(sender.shared.ledger().classes()) {
                mine.totals.add(theirs);
            }
            connections.add(&sender.shared.transport.connection_counts());
        }
        let ended = Instant::now();
        let run = RunFacts {
            format: FORMAT,
            url: self.plan.target.to_string(),
            addresses: self.plan.target.addresses.iter().copied().collect(),
            seed: self.plan.seed,
            length_s: self.plan.schedule.length().as_secs_f64(),
            duration_s: ended.saturating_duration_since(self.started).as_secs_f64(),
            shards: vec![self.plan.part.to_string()],
            interrupted: self.plan.stop.is_set(),
            // A target is at most a day or so, so this fits.
            lag_bound_us: lag_bound(self.plan).as_micros() as u64,
            classes: self.plan.classes.iter().map(class_facts).collect(),
        };
        let named = self.plan.classes.iter().map(|class| class.name.clone()).zip(self.classes);
        let mut result = conclude(run, named.collect(), self.plan.crowd);
        result.started = Some(self.started);
        result.connections = connections;
        result.saturated = saturated(&result);
        result.hurst = hurst(&self.plan.schedule);
        result
    }
}

/// Computes the results that follow from the books of the classes alone.
pub(crate) fn conclude(
    run: RunFacts,
    classes: BTreeMap<String, Book>,
    crowd: Option<CrowdWindow>,
) -> LoadResult {
    let mut everybody = Book::new();
    classes.values().for_each(|class| everybody.merge(class));
    let bin_s = everybody.series.bin_s();
    let totals = everybody.tally();
    // A class whose last people came early has a shorter series, but all have bins of one width.
    let classes = classes.into_iter().map(|(name, mut class)| {
        class.series.widen_to(bin_s);
        (name, class.tally())
    });
    LoadResult {
        run,
        recovery: crowd.and_then(|crowd| recovery::judge(&totals.series, bin_s, crowd)),
        crowd,
        series_bin_s: bin_s,
        classes: classes.collect(),
        totals,
        ..LoadResult::default()
    }
}

/// Returns whether the generator itself fell behind or short of something.
fn saturated(result: &LoadResult) -> bool {
    let lag = result.totals.lag_us.p99.unwrap_or(0.0) > result.run.lag_bound_us as f64;
    let kinds = [ErrorKind::GeneratorFull, ErrorKind::GeneratorSocket];
    lag || kinds.iter().any(|kind| result.totals.errors_by_kind.contains_key(kind.as_str()))
}

fn lag_bound(plan: &LoadPlan) -> Duration {
    let target = plan.classes.iter().map(|class| class.good_within).min().unwrap_or_default();
    SATURATED_LAG.max(target / SATURATED_PART_OF_TARGET)
}

fn class_facts(class: &ClassPlan) -> (String, ClassFacts) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    (class.name.clone(), ClassFacts { target_ms: ms(class.good_within), timeout_ms: ms(class.timeout) })
}

/// Hurst parameter of the arrivals, without the rise and fall of the rate; `None` for arrivals given one by
/// one, which have no rate.
fn hurst(schedule: &Schedule) -> Option<HurstFigure> {
    if schedule.streams().iter().any(|stream| matches!(stream.arrivals, ArrivalProcess::Given(_))) {
        return None;
    }
    let even = schedule.evened();
    let mean_rate = even.expected() / even.length().as_secs_f64();
    let holds_a_few = Duration::try_from_secs_f64(ARRIVALS_A_BIN / mean_rate).ok()?;
    let bin = (even.length() / HURST_BINS).max(holds_a_few);
    let mut estimator = HurstEstimator::new(bin);
    let mut arrivals = even.arrivals();
    arrivals.by_ref().take(HURST_ARRIVALS).for_each(|arrival| estimator.arrive(arrival.moment));
    if arrivals.next().is_none() {
        estimator.advance(even.length());
    }
    let Hurst { h, low, high, octaves } = estimator.estimate()?;
    let (first, last) = octaves.into_inner();
    let bin_ms = bin.as_secs_f64() * 1e3;
    let estimator =
        format!("wavelet (Abry and Veitch, Daubechies 2), octaves {first} to {last} of {bin_ms:.3} ms");
    Some(HurstFigure { h, low, high, estimator })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LoadTarget;
    use crate::waiting::Waiting;
    use flashweir_workload::Part;
    use flashweir_workload::people::Retry;
    use std::net::TcpListener;

    /// Both are refused a connection and would try again, but no room is left to wait for that.
    #[tokio::test]
    async fn people_who_find_no_room_to_wait_are_the_generators_failure() {
        let closed = flashweir_testbed::reserve_address().unwrap();
        let target = LoadTarget::parse(&format!("http://{closed}/")).unwrap();
        let arrivals =
            ArrivalProcess::given_within(vec![Duration::ZERO; 2], Duration::from_secs(60)).unwrap();
        let mut class = ClassPlan::get(&target).unwrap();
        class.habits.retry =
            Some(Retry { pace: "fixed:1s".parse().unwrap(), tries_most: 2, ..Retry::default() });
        let plan = LoadPlan::new(target, Schedule::one(arrivals, 1), class);
        let mut sender = Sender::new(plan.clone(), Part::WHOLE, Instant::now(), 9).unwrap();
        sender.shared.waiting = Waiting::new(0);
        let senders = [Arc::new(sender)];
        Arc::clone(&senders[0]).send_all().await.unwrap();
        let mut books = Books::new(&plan, Instant::now(), &senders);
        books.look();
        let result = books.conclude();
        let totals = &result.totals;
        assert_eq!((totals.offered, totals.unique_offered, totals.in_flight), (4, 2, 0));
        assert_eq!(
            (totals.errors_by_kind.get("connect"), totals.errors_by_kind.get("generator_full")),
            (Some(&2), Some(&2))
        );
        assert!(result.saturated);
    }

    /// One person is on the way to a server that never answers; the bound of one is met by the next two,
    /// which is the generator's failure and makes the run worthless.
    #[tokio::test]
    async fn a_generator_that_is_full_says_so() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = LoadTarget::parse(&format!("http://{}/", silent.local_addr().unwrap())).unwrap();
        let arrivals = ArrivalProcess::given([Duration::ZERO; 3]).unwrap();
        let class = ClassPlan { timeout: Duration::from_secs(1), ..ClassPlan::get(&target).unwrap() };
        let plan = LoadPlan::new(target, Schedule::one(arrivals, 1), class);
        let sender = Sender::new(plan.clone(), Part::WHOLE, Instant::now(), 1).unwrap();
        let senders = [Arc::new(sender)];
        Arc::clone(&senders[0]).send_all().await.unwrap();
        let mut books = Books::new(&plan, Instant::now(), &senders);
        assert_eq!(books.look().last_second.errors(), 2);
        let result = books.conclude();
        let totals = &result.totals;
        assert_eq!((totals.offered, totals.timed_out, totals.in_flight), (3, 1, 0));
        assert_eq!(totals.errors_by_kind.get("generator_full"), Some(&2));
        assert!(result.saturated);
    }
}
