//! Made-up results for tests: the shape of real ones, with ledgers that add up.

use flashweir_load::{
    CrowdWindow, Histograms, HurstFigure, LoadResult, Percentiles, Recovery, RunFacts, Second, Tally,
};
use flashweir_measure::histogram::index;
use std::collections::BTreeMap;

/// Who comes in a second before and after the crowd, with it, and how many can be served.
const QUIET: u64 = 100;
const CROWD: u64 = 700;
const CAPACITY: u64 = 150;

/// Everybody is served, second after second.
pub(super) fn quiet(seconds: u64, per_second: u64) -> LoadResult {
    result(seconds, BTreeMap::from([("all".to_owned(), tally(seconds, |_| per_second))]))
}

/// A crowd beyond what can be served: refusals, timeouts, retries, people who leave, in so many classes.
pub(super) fn crowd(seconds: u64, classes: u64) -> LoadResult {
    let (from, to) = (seconds / 3, 2 * seconds / 3);
    let came = |second: u64| if (from..to).contains(&second) { CROWD } else { QUIET };
    let names = (1..=classes).map(|class| (format!("class-{class}"), tally(seconds, came)));
    let mut result = result(seconds, names.collect());
    result.crowd = Some(CrowdWindow { from_s: from as f64, to_s: to as f64 });
    result.recovery = Some(Recovery {
        goodput_ratio_before: 0.998,
        p99_before_ms: 14.0,
        seconds: Some(2.0),
        watched_s: (seconds - to) as f64,
    });
    result.hurst = Some(HurstFigure {
        h: 0.52,
        low: 0.48,
        high: 0.56,
        estimator: "a wavelet of nine octaves".to_owned(),
    });
    result
}

fn result(seconds: u64, classes: BTreeMap<String, Tally>) -> LoadResult {
    let totals = classes.values().fold(Tally::default(), sum);
    LoadResult {
        started: None,
        run: RunFacts {
            format: 1,
            url: "http://127.0.0.1:8080/<b>?a=1&b=\"2\"".to_owned(),
            seed: 7,
            length_s: seconds as f64,
            duration_s: seconds as f64 + 0.3,
            shards: vec!["1/1".to_owned()],
            interrupted: false,
            ..RunFacts::default()
        },
        connections: totals.offered,
        syn_retransmissions: 3,
        saturated: false,
        hurst: None,
        crowd: None,
        recovery: None,
        series_bin_s: 1,
        totals,
        classes,
    }
}

fn tally(seconds: u64, came: impl Fn(u64) -> u64) -> Tally {
    let series: Vec<Second> = (0..seconds).map(|number| second(number, came(number))).collect();
    conclude(Tally { series, ..Tally::default() })
}

/// Half of those who cannot be served are refused, the others wait in vain; a part of all come again.
fn second(second: u64, people: u64) -> Second {
    let again = people.saturating_sub(CAPACITY) / 3;
    let offered = people + again;
    let completed = offered.min(CAPACITY);
    let left = offered - completed;
    let (refused, abandoned, errors) = (left / 2, left / 10, left / 50);
    let latency_us = |place: u64| {
        let waited = if left > 0 { 180_000 } else { 2_000 };
        waited + waited * (place * 37 % 100) * (place * 37 % 100) / 5_000 + 40 * (second * 13 % 17)
    };
    let mut buckets = BTreeMap::new();
    (0..completed).for_each(|place| *buckets.entry(u64::from(index(latency_us(place)))).or_insert(0) += 1);
    let late = if left > 0 { completed / 8 } else { 0 };
    Second {
        second,
        offered,
        unique_offered: people,
        sent: offered,
        completed,
        goodput: completed - late,
        refused,
        refused_by_reason: [("flash_crowd".to_owned(), refused)].into(),
        timed_out: left - refused - abandoned - errors,
        abandoned,
        errors,
        errors_by_kind: [("closed".to_owned(), errors)].into(),
        body_bytes: completed * 1_024,
        latency_p50_ms: (completed > 0).then(|| latency_us(12) as f64 / 1e3),
        latency_p99_ms: (completed > 0).then(|| latency_us(27) as f64 / 1e3),
        lag_max_us: 90 + second * 29 % 41,
        latency_buckets: buckets.into_iter().collect(),
        ..Second::default()
    }
}

/// The sums of both.
fn sum(totals: Tally, tally: &Tally) -> Tally {
    if totals.series.is_empty() {
        return conclude(Tally { series: tally.series.clone(), ..totals });
    }
    let series = totals.series.iter().zip(&tally.series).map(|(mine, theirs)| Second {
        offered: mine.offered + theirs.offered,
        unique_offered: mine.unique_offered + theirs.unique_offered,
        completed: mine.completed + theirs.completed,
        goodput: mine.goodput + theirs.goodput,
        refused: mine.refused + theirs.refused,
        timed_out: mine.timed_out + theirs.timed_out,
        abandoned: mine.abandoned + theirs.abandoned,
        errors: mine.errors + theirs.errors,
        body_bytes: mine.body_bytes + theirs.body_bytes,
        ..mine.clone()
    });
    conclude(Tally { series: series.collect(), ..Tally::default() })
}

/// Everything that follows from the series.
fn conclude(tally: Tally) -> Tally {
    let sum = |of: fn(&Second) -> u64| tally.series.iter().map(of).sum::<u64>();
    let (offered, unique_offered) = (sum(|s| s.offered), sum(|s| s.unique_offered));
    let (completed, goodput, refused, errors) =
        (sum(|s| s.completed), sum(|s| s.goodput), sum(|s| s.refused), sum(|s| s.errors));
    let ratio = |part: u64| (unique_offered > 0).then(|| part as f64 / unique_offered as f64);
    let only = |name: &str, tries: u64| (tries > 0).then(|| (name.to_owned(), tries)).into_iter().collect();
    let histograms = Histograms {
        latency_us: spread(completed, 2_500),
        refusal_us: spread(refused, 400),
        ttfb_us: spread(completed, 2_200),
        served_us: spread(completed, 4_000),
        lag_us: spread(offered, 20),
    };
    Tally {
        offered,
        unique_offered,
        sent: offered,
        completed,
        goodput,
        refused,
        refused_by_reason: only("flash_crowd", refused),
        refused_by_status: (refused > 0).then_some((503, refused)).into_iter().collect(),
        timed_out: sum(|s| s.timed_out),
        abandoned: sum(|s| s.abandoned),
        errors,
        errors_by_kind: only("closed", errors),
        in_flight: 0,
        body_bytes: sum(|s| s.body_bytes),
        goodput_ratio: ratio(goodput),
        retry_amplification: ratio(offered),
        latency_ms: points(&histograms.latency_us, 1e3),
        refusal_ms: points(&histograms.refusal_us, 1e3),
        ttfb_ms: points(&histograms.ttfb_us, 1e3),
        served_ms: points(&histograms.served_us, 1e3),
        lag_us: points(&histograms.lag_us, 1.0),
        histograms,
        ..tally
    }
}

/// Half of all at the lowest value, a quarter at twice that, and so on.
fn spread(count: u64, lowest_us: u64) -> Vec<(u64, u64)> {
    let mut left = count;
    let mut pairs = Vec::new();
    while left > 0 {
        let here = left.div_ceil(2);
        pairs.push((lowest_us << pairs.len(), here));
        left -= here;
    }
    pairs
}

fn points(pairs: &[(u64, u64)], unit_us: f64) -> Percentiles {
    let count: u64 = pairs.iter().map(|(_, count)| count).sum();
    let value = |us: u64| us as f64 / unit_us;
    let at = |share: f64| {
        let mut seen = 0;
        pairs
            .iter()
            .find(|(_, count)| {
                seen += count;
                seen as f64 >= share * pairs.iter().map(|(_, count)| count).sum::<u64>() as f64
            })
            .map(|(us, _)| value(*us))
    };
    let sum: f64 = pairs.iter().map(|&(us, count)| value(us) * count as f64).sum();
    Percentiles {
        count,
        mean: (count > 0).then(|| sum / count as f64),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        p9999: at(0.9999),
        max: at(1.0),
    }
}
