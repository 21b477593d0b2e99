//! Made-up results and moments for tests.

use flashweir_load::{Counts, LoadResult, Percentiles, Progress, RunFacts, Second, Tally};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Ten seconds of two classes, `browsers` and `buyers`, with ledgers that add up.
pub(super) fn result() -> LoadResult {
    let browsers = tally(|second| (100, second % 4));
    let buyers = tally(|_| (10, 1));
    let series = browsers.series.iter().zip(&buyers.series).map(|(one, other)| add(one, other)).collect();
    LoadResult {
        started: None,
        run: RunFacts {
            format: 1,
            url: "http://127.0.0.1:8080/".to_owned(),
            seed: 7,
            length_s: 10.0,
            duration_s: 10.2,
            shards: vec!["1/1".to_owned()],
            interrupted: false,
            ..RunFacts::default()
        },
        totals: conclude(series),
        connections: 1_000,
        syn_retransmissions: 3,
        saturated: false,
        hurst: None,
        crowd: None,
        recovery: None,
        series_bin_s: 1,
        classes: BTreeMap::from([("browsers".to_owned(), browsers), ("buyers".to_owned(), buyers)]),
    }
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

/// So many requests in each second, so many of them refused.
fn tally(second: impl Fn(u64) -> (u64, u64)) -> Tally {
    let series = (0..10).map(|number| {
        let (offered, refused) = second(number);
        Second {
            second: number,
            offered,
            unique_offered: offered,
            sent: offered,
            completed: offered - refused - 1,
            goodput: offered - refused - 2,
            refused,
            refused_by_reason: [("flash_crowd", refused / 2), ("other", refused - refused / 2)]
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| (reason.to_owned(), count))
                .collect(),
            errors: 1,
            errors_by_kind: [("closed".to_owned(), 1)].into(),
            body_bytes: offered * 512,
            latency_p50_ms: Some(10.0),
            latency_p99_ms: Some(100.0 + (number % 3) as f64),
            lag_max_us: 90,
            ..Second::default()
        }
    });
    conclude(series.collect())
}

fn add(one: &Second, other: &Second) -> Second {
    Second {
        offered: one.offered + other.offered,
        unique_offered: one.unique_offered + other.unique_offered,
        sent: one.sent + other.sent,
        completed: one.completed + other.completed,
        goodput: one.goodput + other.goodput,
        refused: one.refused + other.refused,
        refused_by_reason: add_maps(&one.refused_by_reason, &other.refused_by_reason),
        errors: one.errors + other.errors,
        errors_by_kind: add_maps(&one.errors_by_kind, &other.errors_by_kind),
        body_bytes: one.body_bytes + other.body_bytes,
        ..one.clone()
    }
}

fn add_maps(one: &BTreeMap<String, u64>, other: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut sum = one.clone();
    other.iter().for_each(|(name, count)| *sum.entry(name.clone()).or_default() += count);
    sum
}

/// The totals of a series, and latencies from 10 ms to 800 ms.
fn conclude(series: Vec<Second>) -> Tally {
    let sum = |count: fn(&Second) -> u64| series.iter().map(count).sum::<u64>();
    let maps = |of: fn(&Second) -> &BTreeMap<String, u64>| {
        series.iter().fold(BTreeMap::new(), |sum, second| add_maps(&sum, of(second)))
    };
    let points = |count: u64, scale: f64| Percentiles {
        count,
        mean: Some(20.0 * scale),
        p50: Some(10.0 * scale),
        p90: Some(50.0 * scale),
        p99: Some(612.34 * scale),
        p999: Some(700.0 * scale),
        p9999: Some(800.0 * scale),
        max: Some(800.0 * scale),
    };
    let (offered, goodput) = (sum(|second| second.offered), sum(|second| second.goodput));
    Tally {
        offered,
        unique_offered: sum(|second| second.unique_offered),
        sent: sum(|second| second.sent),
        completed: sum(|second| second.completed),
        goodput,
        refused: sum(|second| second.refused),
        refused_by_reason: maps(|second| &second.refused_by_reason),
        refused_by_status: [(429, 1), (503, sum(|second| second.refused) - 1)].into(),
        errors: sum(|second| second.errors),
        errors_by_kind: maps(|second| &second.errors_by_kind),
        body_bytes: sum(|second| second.body_bytes),
        goodput_ratio: Some(goodput as f64 / offered as f64),
        retry_amplification: Some(1.0),
        latency_ms: points(sum(|second| second.completed), 1.0),
        refusal_ms: points(sum(|second| second.refused), 0.1),
        ttfb_ms: points(sum(|second| second.completed), 0.9),
        served_ms: Percentiles::default(),
        lag_us: points(offered, 2.0),
        series,
        ..Tally::default()
    }
}
