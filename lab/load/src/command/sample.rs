//! Made-up results and moments for tests: the shape of real ones, with ledgers that add up.

use crate::{
    ConnectionCounts, Counts, CrowdWindow, Histograms, HurstFigure, LoadResult, Percentiles, Progress,
    Recovery, RunFacts, Second, Tally,
};
use flashweir_core::measure::histogram::index;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Arrivals in a second before and after the crowd, with it, and the number that can be served.
const QUIET: u64 = 100;
const CROWD: u64 = 700;
const CAPACITY: u64 = 150;

/// Ten seconds of two classes, `browsers` and `buyers`, with few refusals and round figures.
pub(super) fn result() -> LoadResult {
    let browsers = conclude(over(10, |second| busy(second, 100, second % 4)));
    let buyers = conclude(over(10, |second| busy(second, 10, 1)));
    let classes = [("browsers", browsers), ("buyers", buyers)];
    let mut result = of_classes(10, classes.map(|(name, tally)| (name.to_owned(), tally)).into());
    result.connections.opened = 1_000;
    result.classes.values_mut().chain([&mut result.totals]).for_each(|tally| {
        tally.latency_ms = round(tally.completed, 1.0);
        tally.refusal_ms = round(tally.refused, 0.1);
        tally.ttfb_ms = round(tally.completed, 0.9);
        tally.served_ms = Percentiles::default();
        tally.lag_us = round(tally.offered, 2.0);
    });
    result
}

/// All requests are served, second after second.
pub(super) fn quiet(seconds: u64, per_second: u64) -> LoadResult {
    of_classes(
        seconds,
        BTreeMap::from([("all".to_owned(), conclude(over(seconds, |second| crowded(second, per_second))))]),
    )
}

/// A crowd beyond what can be served: refusals, timeouts, retries, people who leave, in `classes` classes.
pub(super) fn crowd(seconds: u64, classes: u64) -> LoadResult {
    let (from, to) = (seconds / 3, 2 * seconds / 3);
    let came = |second: u64| if (from..to).contains(&second) { CROWD } else { QUIET };
    let names = (1..=classes).map(|class| {
        (format!("class-{class}"), conclude(over(seconds, |second| crowded(second, came(second)))))
    });
    let mut result = of_classes(seconds, names.collect());
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

/// A moment of a run of 40 s.
pub(super) fn progress(second: u64) -> Progress {
    let counts = |offered| Counts {
        offered,
        unique_offered: offered,
        completed: offered / 2,
        goodput: offered / 2,
        refused: 7,
        abandoned: 3,
        ..Counts::default()
    };
    Progress {
        started: Instant::now(),
        elapsed: Duration::from_secs(second),
        length: Duration::from_secs(40),
        totals: counts(10 * second * (second + 1)),
        last_second: Counts { goodput: 190, completed: 193, ..counts(20 * second) },
        last_second_p50_ms: Some(12.25),
        last_second_p99_ms: Some(321.4),
        lag_p99_us: 412,
    }
}

fn of_classes(seconds: u64, classes: BTreeMap<String, Tally>) -> LoadResult {
    let mut series: Vec<Second> = Vec::new();
    for tally in classes.values() {
        if series.is_empty() {
            series = tally.series.clone();
        } else {
            series.iter_mut().zip(&tally.series).for_each(|(sum, second)| add(sum, second));
        }
    }
    let totals = conclude(series);
    LoadResult {
        run: RunFacts {
            format: 1,
            url: "http://127.0.0.1:8080/<b>?a=1&b=\"2\"".to_owned(),
            addresses: [SocketAddr::from(([127, 0, 0, 1], 8080))].into(),
            seed: 7,
            length_s: seconds as f64,
            duration_s: seconds as f64 + 0.3,
            shards: vec!["1/1".to_owned()],
            ..RunFacts::default()
        },
        connections: ConnectionCounts {
            opened: totals.offered,
            failed: 2,
            syn_retransmissions: 3,
            ..ConnectionCounts::default()
        },
        series_bin_s: 1,
        totals,
        classes,
        ..LoadResult::default()
    }
}

fn over(seconds: u64, second: impl Fn(u64) -> Second) -> Vec<Second> {
    (0..seconds).map(second).collect()
}

/// A second with `offered` requests, `refused` of them refused, half of those by Flashweir; one broken and
/// one late.
fn busy(second: u64, offered: u64, refused: u64) -> Second {
    let reasons = [("flash_crowd", refused / 2), ("other", refused - refused / 2)];
    Second {
        second,
        offered,
        unique_offered: offered,
        sent: offered,
        completed: offered - refused - 1,
        goodput: offered - refused - 2,
        refused,
        refused_by_reason: named(&reasons),
        refused_429: u64::from(second == 3 && refused > 1),
        errors: 1,
        errors_by_kind: named(&[("closed", 1)]),
        body_bytes: offered * 512,
        latency_p50_ms: Some(10.0),
        latency_p99_ms: Some(100.0 + (second % 3) as f64),
        lag_max_us: 90,
        ..Second::default()
    }
}

/// Half of those who cannot be served are refused, the others wait until they give up; a part of all come
/// again.
fn crowded(second: u64, people: u64) -> Second {
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
        refused_by_reason: named(&[("flash_crowd", refused)]),
        timed_out: left - refused - abandoned - errors,
        abandoned,
        errors,
        errors_by_kind: named(&[("closed", errors)]),
        body_bytes: completed * 1_024,
        latency_p50_ms: (completed > 0).then(|| latency_us(12) as f64 / 1e3),
        latency_p99_ms: (completed > 0).then(|| latency_us(27) as f64 / 1e3),
        lag_max_us: 90 + second * 29 % 41,
        latency_buckets: buckets.into_iter().collect(),
        ..Second::default()
    }
}

/// The counts of both; of the times only those of `sum`.
fn add(sum: &mut Second, other: &Second) {
    for (mine, theirs) in [
        (&mut sum.offered, other.offered),
        (&mut sum.unique_offered, other.unique_offered),
        (&mut sum.sent, other.sent),
        (&mut sum.completed, other.completed),
        (&mut sum.goodput, other.goodput),
        (&mut sum.refused, other.refused),
        (&mut sum.refused_429, other.refused_429),
        (&mut sum.timed_out, other.timed_out),
        (&mut sum.abandoned, other.abandoned),
        (&mut sum.errors, other.errors),
        (&mut sum.body_bytes, other.body_bytes),
    ] {
        *mine += theirs;
    }
    add_counts(&mut sum.refused_by_reason, &other.refused_by_reason);
    add_counts(&mut sum.errors_by_kind, &other.errors_by_kind);
}

fn add_counts(sum: &mut BTreeMap<String, u64>, other: &BTreeMap<String, u64>) {
    other.iter().for_each(|(name, count)| *sum.entry(name.clone()).or_default() += count);
}

/// The counts that are not zero.
fn named(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Everything that follows from the series.
fn conclude(series: Vec<Second>) -> Tally {
    let mut sum = Second::default();
    series.iter().for_each(|second| add(&mut sum, second));
    let ratio = |part: u64| (sum.unique_offered > 0).then(|| part as f64 / sum.unique_offered as f64);
    let by_status = [(429, sum.refused_429), (503, sum.refused - sum.refused_429)];
    let histograms = Histograms {
        latency_us: spread(sum.completed, 2_500),
        refusal_us: spread(sum.refused, 400),
        ttfb_us: spread(sum.completed, 2_200),
        served_us: spread(sum.completed, 4_000),
        lag_us: spread(sum.offered, 20),
    };
    Tally {
        offered: sum.offered,
        unique_offered: sum.unique_offered,
        sent: sum.sent,
        completed: sum.completed,
        goodput: sum.goodput,
        refused: sum.refused,
        refused_by_reason: sum.refused_by_reason,
        refused_by_status: by_status.into_iter().filter(|(_, count)| *count > 0).collect(),
        timed_out: sum.timed_out,
        abandoned: sum.abandoned,
        errors: sum.errors,
        errors_by_kind: sum.errors_by_kind,
        in_flight: 0,
        body_bytes: sum.body_bytes,
        goodput_ratio: ratio(sum.goodput),
        retry_amplification: ratio(sum.offered),
        latency_ms: points(&histograms.latency_us, 1e3),
        refusal_ms: points(&histograms.refusal_us, 1e3),
        ttfb_ms: points(&histograms.ttfb_us, 1e3),
        served_ms: points(&histograms.served_us, 1e3),
        lag_us: points(&histograms.lag_us, 1.0),
        series,
        histograms,
    }
}

/// Points that tests can name.
fn round(count: u64, scale: f64) -> Percentiles {
    let at = |value: f64| Some(value * scale);
    Percentiles {
        count,
        mean: at(20.0),
        p50: at(10.0),
        p90: at(50.0),
        p99: at(612.34),
        p999: at(700.0),
        p9999: at(800.0),
        max: at(800.0),
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
