//! Puts the threads' books together, while the run goes on and at its end.

use crate::counts::{Counts, ErrorKind};
use crate::distribution::Coarse;
use crate::ledger::{Distributions, SettledSecond};
use crate::sender::Sender;
use crate::{LoadPlan, LoadResult, Progress, Second};
use flashweir_core::Reason;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A generator whose 99th percentile of lag is above this did not keep up…
const SATURATED_LAG: Duration = Duration::from_millis(10);
/// …nor one that lags by more than this part of the target, where that is longer: lag counts as latency, and a
/// hundredth of the target does not change who is within it.
const SATURATED_PART_OF_TARGET: u32 = 100;

/// Reads the books of all threads.
#[derive(Debug)]
pub(crate) struct Reporter<'a> {
    started: Instant,
    length: Duration,
    lag_bound: Duration,
    senders: &'a [Arc<Sender>],
    /// States of the last second or so, oldest first, with the latencies completed since the one before.
    looks: VecDeque<(Instant, Counts, Coarse)>,
    /// Seconds some thread has settled and another may not have.
    merging: BTreeMap<u64, SettledSecond>,
    series: Vec<Second>,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(plan: &LoadPlan, started: Instant, senders: &'a [Arc<Sender>]) -> Self {
        Self {
            started,
            length: plan.schedule.length(),
            lag_bound: SATURATED_LAG.max(plan.good_within / SATURATED_PART_OF_TARGET),
            senders,
            looks: VecDeque::from([(started, Counts::default(), Coarse::new())]),
            merging: BTreeMap::new(),
            series: Vec::new(),
        }
    }

    /// The state now. Also takes settled seconds out of the threads' books, which keeps those small.
    pub(crate) fn look(&mut self) -> Progress {
        let now = Instant::now();
        let mut totals = Counts::default();
        let mut recent = Coarse::new();
        let mut done_before = u64::MAX;
        for sender in self.senders {
            let mut ledger = sender.ledger();
            totals.add(&ledger.totals);
            recent.add(&ledger.take_recent());
            let (settled, done) = ledger.take_settled();
            drop(ledger);
            done_before = done_before.min(done);
            settled.into_iter().for_each(|second| self.merge(second));
        }
        self.close_before(done_before);
        self.looks.push_back((now, totals, recent));
        // The oldest state kept is the youngest that is at least a second old.
        while self.looks.get(1).is_some_and(|(at, ..)| *at + Duration::from_secs(1) <= now) {
            self.looks.pop_front();
        }
        self.progress(now, totals)
    }

    fn progress(&self, now: Instant, totals: Counts) -> Progress {
        let mut latencies = Coarse::new();
        self.looks.iter().skip(1).for_each(|(_, _, recent)| latencies.add(recent));
        let before = self.looks.front().map(|(_, counts, _)| *counts).unwrap_or_default();
        Progress {
            started: self.started,
            elapsed: now.saturating_duration_since(self.started),
            length: self.length,
            totals,
            last_second: totals.since(&before),
            last_second_p99_ms: latencies.quantile_ms(0.99),
        }
    }

    fn merge(&mut self, settled: SettledSecond) {
        let merged = self.merging.entry(settled.second).or_insert_with(|| SettledSecond::new(settled.second));
        merged.counts.add(&settled.counts);
        merged.latency.add(&settled.latency);
    }

    /// Writes down the seconds that every thread has settled; those in which nobody came are zero.
    fn close_before(&mut self, done_before: u64) {
        while let Some(first) = self.merging.first_entry()
            && *first.key() < done_before
        {
            let settled = first.remove();
            for second in self.series.len() as u64..settled.second {
                self.series.push(Second { second, ..Second::default() });
            }
            self.series.push(Second {
                second: settled.second,
                offered: settled.counts.offered,
                completed: settled.counts.completed,
                goodput: settled.counts.goodput,
                refused: settled.counts.refused,
                timed_out: settled.counts.timed_out,
                errors: settled.counts.errors(),
                latency_p50_ms: settled.latency.quantile_ms(0.5),
                latency_p99_ms: settled.latency.quantile_ms(0.99),
            });
        }
    }

    /// The result; every thread must have ended and [`look`](Self::look) been called since.
    pub(crate) fn conclude(self) -> LoadResult {
        let mut totals = Counts::default();
        let mut distributions = Distributions::new();
        for sender in self.senders {
            let ledger = sender.ledger();
            totals.add(&ledger.totals);
            distributions.add(&ledger.distributions);
        }
        let of_kind = |kind: ErrorKind| totals.errors_by_kind[kind as usize];
        let failed_itself = of_kind(ErrorKind::GeneratorFull) + of_kind(ErrorKind::GeneratorSocket);
        LoadResult {
            started: self.started,
            duration_s: self.started.elapsed().as_secs_f64(),
            offered: totals.offered,
            unique_offered: totals.unique_offered,
            sent: totals.sent,
            completed: totals.completed,
            goodput: totals.goodput,
            refused: totals.refused,
            refused_by_reason: refusals(&totals),
            timed_out: totals.timed_out,
            abandoned: 0,
            errors: totals.errors(),
            errors_by_kind: ErrorKind::ALL
                .into_iter()
                .filter(|kind| of_kind(*kind) > 0)
                .map(|kind| (kind.as_str(), of_kind(kind)))
                .collect(),
            in_flight: totals.in_flight(),
            latency_ms: distributions.latency.percentiles(1e3),
            refusal_ms: distributions.refusal.percentiles(1e3),
            ttfb_ms: distributions.ttfb.percentiles(1e3),
            lag_us: distributions.lag.percentiles(1.0),
            saturated: failed_itself > 0 || distributions.lag.p99() > self.lag_bound,
            series: self.series,
        }
    }
}

fn refusals(totals: &Counts) -> BTreeMap<&'static str, u64> {
    let by_flashweir = Reason::ALL.into_iter().zip(totals.refused_by_reason);
    let mut refusals: BTreeMap<_, _> = by_flashweir
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| (reason.as_str(), count))
        .collect();
    let others = totals.refused - totals.refused_by_reason.iter().sum::<u64>();
    if others > 0 {
        refusals.insert("other", others);
    }
    refusals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alarm::Alarm;
    use crate::{Schedule, Target};
    use std::net::TcpListener;

    /// One person is on the way to a server that never answers; the bound of one is met by the next two, which
    /// is the generator's failure and makes the run worthless.
    #[tokio::test]
    async fn a_generator_that_is_full_says_so() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::parse(&format!("http://{}/", silent.local_addr().unwrap())).unwrap();
        let moments = [Duration::ZERO; 3];
        let plan = LoadPlan {
            patience: Duration::from_secs(1),
            ..LoadPlan::new(target, Schedule::Fixed(moments.as_slice().into()))
        };
        let senders = [Arc::new(Sender::new(plan.clone(), 0, Instant::now(), 1))];
        Arc::clone(&senders[0]).send_all(Alarm::new().unwrap()).await.unwrap();
        let mut reporter = Reporter::new(&plan, Instant::now(), &senders);
        assert_eq!(reporter.look().last_second.errors(), 2);
        let result = reporter.conclude();
        assert_eq!((result.offered, result.timed_out, result.in_flight), (3, 1, 0));
        assert_eq!(result.errors_by_kind.get("generator_full"), Some(&2));
        assert!(result.saturated);
    }

    /// A second is written down when every thread is done with it; seconds in which nobody came are zero.
    #[test]
    fn the_series_waits_for_all_and_leaves_no_gap() {
        let target = Target::parse("http://127.0.0.1:1/").unwrap();
        let plan = LoadPlan::new(target, Schedule::Fixed([Duration::ZERO].as_slice().into()));
        let senders = [0, 1].map(|thread| Arc::new(Sender::new(plan.clone(), thread, Instant::now(), 1)));
        let mut reporter = Reporter::new(&plan, Instant::now(), &senders);
        senders[0].ledger().offer(2, Duration::ZERO);
        let end = crate::ledger::End {
            outcome: crate::Outcome::TimedOut,
            latency: Duration::from_secs(2),
            ttfb: None,
        };
        senders[0].ledger().settle(2, end);
        senders[0].ledger().advance_to(9);
        reporter.look();
        assert_eq!(reporter.series, [], "the other thread may still offer somebody in second 2");
        senders[1].ledger().advance_to(3);
        reporter.look();
        let timed_out: Vec<_> =
            reporter.series.iter().map(|second| (second.second, second.timed_out)).collect();
        assert_eq!(timed_out, [(0, 0), (1, 0), (2, 1)]);
        let result = reporter.conclude();
        assert!(!result.saturated);
    }
}
