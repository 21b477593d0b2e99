//! The numbers of one run: pure arithmetic on what the load generator and the status poller saw.

use crate::demo::crowd::QUIET;
use crate::demo::useful::OriginTime;
use crate::demo::verdicts::{self, Sighting};
use flashweir_load::{LoadResult, Percentiles, Second};
use serde::Serialize;
use std::ops::Range;
use std::time::Duration;

/// One crowd's visit, as it went.
#[derive(Debug)]
pub(crate) struct Visit {
    /// Counts of the load generator.
    pub(crate) load: LoadResult,
    /// Flashweir's status meanwhile; empty without it.
    pub(crate) sightings: Vec<Sighting>,
    /// Use of the origin's time.
    pub(crate) origin_time: OriginTime,
}

/// Numbers that `--json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Numbers {
    /// Requests per second the origin completed, kept busy and no more, before the first visit: the crowd's
    /// measure.
    pub(crate) capacity_rps: f64,
    /// The crowd straight at the origin.
    pub(crate) unprotected: VisitOutcome,
    /// The same crowd through Flashweir.
    pub(crate) protected: Protected,
}

/// Outcome of one visit, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct VisitOutcome {
    /// People who came.
    pub(crate) offered: u64,
    /// Whole answers before people lost patience.
    pub(crate) completed: u64,
    /// People who were asked to come back later.
    pub(crate) refused: u64,
    /// People who gave up waiting.
    pub(crate) timed_out: u64,
    /// Attempts that broke in other ways.
    pub(crate) errors: u64,
    /// The origin's capacity around this visit, the mean of one measurement before and one after: a shared
    /// machine changes its speed by half within a minute, and the origin with it.
    pub(crate) capacity_rps: f64,
    /// Completed within the target per second of the crowd.
    pub(crate) goodput_rps: Option<f64>,
    /// The same over the capacity around this visit.
    pub(crate) goodput_ratio: Option<f64>,
    /// The origin's time while the crowd was there; does not depend on the machine's speed.
    #[serde(flatten)]
    pub(crate) origin_time: OriginTime,
    /// 99th percentile over all people let in, those who gave up counted with their whole patience.
    pub(crate) p99_admitted_ms: Option<f64>,
    /// The load generator could not keep up: the run says little.
    pub(crate) generator_saturated: bool,
}

/// The numbers of the visit through Flashweir.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Protected {
    #[serde(flatten)]
    pub(crate) outcome: VisitOutcome,
    /// From the moment the scheduled rate exceeds the capacity until the first were turned away.
    pub(crate) protect_delay_s: Option<f64>,
    /// From the moment the scheduled rate is below the capacity for good until nothing is limited.
    pub(crate) release_delay_s: Option<f64>,
    /// The cause named while limiting.
    pub(crate) verdict: Option<String>,
    /// Alarms raised while traffic was still quiet.
    pub(crate) early_alarms: usize,
}

impl VisitOutcome {
    pub(crate) fn new(
        visit: &Visit,
        overload: Option<&Range<Duration>>,
        capacity_rps: f64,
        patience: Duration,
    ) -> Self {
        let load = &visit.load;
        let totals = &load.totals;
        let goodput_rps = overload.and_then(|overload| goodput_rps(&totals.series, overload));
        Self {
            offered: totals.offered,
            completed: totals.completed,
            refused: totals.refused,
            timed_out: totals.timed_out,
            errors: totals.errors,
            capacity_rps,
            goodput_rps,
            goodput_ratio: goodput_rps.map(|goodput| goodput / capacity_rps),
            origin_time: visit.origin_time.clone(),
            p99_admitted_ms: p99_admitted_ms(&totals.latency_ms, totals.timed_out, patience),
            generator_saturated: load.saturated,
        }
    }
}

impl Protected {
    pub(crate) fn new(
        outcome: VisitOutcome,
        sightings: &[Sighting],
        overload: Option<&Range<Duration>>,
    ) -> Self {
        Self {
            outcome,
            protect_delay_s: overload.and_then(|crowd| verdicts::protect_delay_s(sightings, crowd)),
            release_delay_s: overload.and_then(|crowd| verdicts::release_delay_s(sightings, crowd)),
            verdict: overload.and_then(|crowd| verdicts::verdict(sightings, crowd)),
            early_alarms: verdicts::early_alarms(sightings, QUIET),
        }
    }
}

/// Goodput per second of the crowd: each second of the series counts with the part of it that lies within.
fn goodput_rps(series: &[Second], crowd: &Range<Duration>) -> Option<f64> {
    let (mut seconds, mut goodput) = (0.0, 0.0);
    for entry in series {
        let start = entry.second as f64;
        let from = start.max(crowd.start.as_secs_f64());
        let within = ((start + 1.0).min(crowd.end.as_secs_f64()) - from).max(0.0);
        seconds += within;
        goodput += within * entry.goodput as f64;
    }
    (seconds > 0.0).then(|| goodput / seconds)
}

/// 99th percentile of how long people waited who were let in. Those who gave up waited at least their
/// patience, so leaving them out would flatter a service that answers no request in time.
fn p99_admitted_ms(completed: &Percentiles, timed_out: u64, patience: Duration) -> Option<f64> {
    let admitted = completed.count + timed_out;
    if admitted == 0 {
        return None;
    }
    let share_of_completed = 0.99 * admitted as f64 / completed.count as f64;
    if share_of_completed > 1.0 {
        return Some(patience.as_secs_f64() * 1e3);
    }
    percentile(completed, share_of_completed)
}

/// A percentile between the known ones, by straight lines; none below the 99th is needed here.
fn percentile(known: &Percentiles, share: f64) -> Option<f64> {
    let points = [(0.99, known.p99?), (0.999, known.p999?), (0.9999, known.p9999?), (1.0, known.max?)];
    let above = points.iter().position(|&(at, _)| share <= at)?;
    let (to_share, to) = points[above];
    let (from_share, from) = if above == 0 { return Some(to) } else { points[above - 1] };
    Some(from + (to - from) * (share - from_share) / (to_share - from_share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn seconds(goodput: &[u64]) -> Vec<Second> {
        let entry = |(second, &goodput)| Second { second, goodput, ..Second::default() };
        (0..).zip(goodput).map(entry).collect()
    }

    #[test]
    fn goodput_counts_only_the_crowds_own_time() {
        let series = seconds(&[7, 100, 200, 300, 7]);
        assert_eq!(goodput_rps(&series, &(SECOND..SECOND * 4)), Some(200.0));
        assert_eq!(goodput_rps(&series, &(SECOND * 3 / 2..SECOND * 3)), Some((50.0 + 200.0) / 1.5));
        assert_eq!(goodput_rps(&series, &(SECOND * 9..SECOND * 10)), None);
        assert_eq!(goodput_rps(&[], &(SECOND..SECOND * 4)), None);
    }

    #[test]
    fn people_who_gave_up_count_with_their_patience() {
        let completed = |count| Percentiles {
            count,
            p99: Some(100.0),
            p999: Some(190.0),
            p9999: Some(200.0),
            max: Some(300.0),
            ..Percentiles::default()
        };
        let p99 = |count, timed_out| p99_admitted_ms(&completed(count), timed_out, 2 * SECOND);
        assert_eq!(p99(1000, 0), Some(100.0));
        assert_eq!(p99(980, 20), Some(2000.0));
        // Half a percent gave up: the 99th of all is the 99.497th of the completed.
        let half = p99(995, 5).unwrap();
        assert!((half - (100.0 + 90.0 * (0.99 / 0.995 - 0.99) / 0.009)).abs() < 1e-6, "{half}");
        assert_eq!(p99_admitted_ms(&Percentiles::default(), 0, SECOND), None);
        assert_eq!(p99_admitted_ms(&Percentiles::default(), 3, SECOND), Some(1000.0));
    }
}
