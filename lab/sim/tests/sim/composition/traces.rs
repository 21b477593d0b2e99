//! Goal: ordinary days raise no alarm and no request is refused, and the surges that people made keep the
//! origin useful. Method: real counts, squeezed to minutes and scaled to the plant: calm stretches so that
//! even their busiest second stays below what the origin can do; surges so that their peak is several times
//! that. They lie beside the product; absent, the test says so.

use crate::composition::plant::{Composition, offered};
use flashweir_core::Duration;
use flashweir_testkit::trace_counts;
use flashweir_workload::RateProfile;

const CAPACITY_RPS: f64 = 200.0;
const FOUR_WEEKS: &str = "nasa_jul95_requests_per_second.txt.gz";
const SURGES: [(&str, usize); 3] = [
    ("wc98_brazil_netherlands_19980707.csv", 1),
    ("wc98_brazil_scotland_19980610.csv", 1),
    ("wc98_abrupt_burst_19980512.csv", 1),
];

#[test]
fn calm_stretches_of_real_days_raise_no_alarm_and_refuse_nobody() {
    let Some(counts) = trace_counts(FOUR_WEEKS, 0, "calm_stretches_of_real_days") else { return };
    // Two hours of each day, in two minutes.
    const STRETCH: usize = 7_200;
    const TOGETHER: usize = 60;
    let (mut alarmed, mut refused, mut looked_at) = (0, 0, 0);
    for (day, start) in ten_oclocks(&counts).enumerate() {
        let bins = counts.get(start..start + STRETCH).unwrap_or_default().chunks(TOGETHER);
        let rates: Vec<f64> = bins.map(|bin| bin.iter().sum::<f64>()).collect();
        let busiest = rates.iter().copied().fold(0.0, f64::max);
        if busiest <= 0.0 {
            continue;
        }
        looked_at += 1;
        let scale = 0.95 * CAPACITY_RPS / busiest;
        let profile = RateProfile::from_bins(Duration::from_secs(1), rates.iter().map(|rate| rate * scale));
        let outcome =
            offered(profile.expect("a profile"), CAPACITY_RPS, Composition::Default, 1 + day as u64);
        let has_ceiling = outcome.plans.iter().any(|plan| plan.explanation.ceiling_rps.is_some());
        let by_us = outcome.totals().shed_total();
        println!("day {}: alarmed {has_ceiling}, refused {by_us} of {}", day + 1, outcome.totals().offered);
        alarmed += usize::from(has_ceiling);
        refused += by_us;
    }
    assert!(looked_at >= 20, "{looked_at} stretches");
    assert_eq!((alarmed, refused), (0, 0), "of {looked_at} stretches");
}

#[test]
fn surges_that_people_made_keep_the_origin_useful() {
    for (file, column) in SURGES {
        let Some(counts) = trace_counts(file, column, "surges_that_people_made") else { return };
        let peak = counts.iter().copied().fold(0.0, f64::max);
        let at = counts.iter().position(|&count| count == peak).expect("a peak");
        // Forty minutes around the peak, each a second and a half.
        let bins = &counts[at.saturating_sub(20)..(at + 20).min(counts.len())];
        for times in [2.0, 5.0, 10.0] {
            let rates: Vec<f64> =
                bins.iter().map(|count| (count / peak * times * CAPACITY_RPS).max(1.0)).collect();
            let profile = RateProfile::from_bins(Duration::from_millis(BIN_MS), rates.clone());
            let profile = profile.expect("a profile");
            // A surge may be short for some seconds only: each is offered several times.
            let useful = [Composition::Sentry, Composition::Default].map(|by| {
                let short = SURGE_SEEDS
                    .map(|seed| short_of(&rates, &offered(profile.clone(), CAPACITY_RPS, by, seed)));
                println!("{file} at {times}: {by:?} {short:.3?}");
                short.iter().sum::<f64>() / short.len() as f64
            });
            println!("{file} at {times}: sentry {:.3}, default {:.3}", useful[0], useful[1]);
            assert!(useful[1] >= useful[0] - 0.005 && useful[1] >= 0.99, "{file} at {times}: {useful:?}");
        }
    }
}

/// A minute of the counts.
const BIN_MS: u64 = 1_500;
const SURGE_SEEDS: [u64; 3] = [7, 8, 9];

/// Useful over the seconds in which a request was refused and more was offered than the origin can do, all of
/// the second, as in the second before; 1 if there are none. Where the surge ends within a second, the rest
/// of it has little to do.
fn short_of(rates: &[f64], outcome: &flashweir_sim::request::RunOutcome) -> f64 {
    let seconds = outcome.levels.len();
    let is_above = |ms: u64| rates.get((ms / BIN_MS) as usize).is_some_and(|rate| *rate > CAPACITY_RPS);
    let is_short = |second: usize| {
        let from_ms = 1_000 * second as u64;
        let refused = outcome.began_within(second..second + 1).shed_total();
        refused > 0 && is_above(from_ms) && is_above(from_ms + 999)
    };
    let short: Vec<usize> = (1..seconds).filter(|&second| is_short(second) && is_short(second - 1)).collect();
    let (mut busy, mut good, mut completed) = (0.0, 0, 0);
    for &second in &short {
        busy += outcome.mean_level(second..second + 1).busy;
        let counts = outcome.began_within(second..second + 1);
        (good, completed) = (good + counts.goodput, completed + counts.completed);
    }
    if short.is_empty() { 1.0 } else { busy / short.len() as f64 * good as f64 / completed.max(1) as f64 }
}

/// Goal: where single seconds bring more than the origin can do and three do not, the sentry's queue is the
/// answer, and nothing else acts. Method: three minutes of each day by the second.
#[test]
fn single_seconds_of_bursty_days_raise_no_alarm_and_the_ceiling_refuses_nobody() {
    let Some(counts) = trace_counts(FOUR_WEEKS, 0, "single_seconds_of_bursty_days") else { return };
    let mut refused = [0; 2];
    for (day, start) in ten_oclocks(&counts).enumerate() {
        let counts = &counts[start..start + 180];
        let busiest = counts.windows(3).map(|three| three.iter().sum::<f64>() / 3.0).fold(0.0, f64::max);
        if busiest <= 0.0 {
            continue;
        }
        let rates = counts.iter().map(|count| count * 0.94 * CAPACITY_RPS / busiest);
        let profile = RateProfile::from_bins(Duration::from_secs(1), rates).expect("a profile");
        let seed = 1 + day as u64;
        let outcomes = [Composition::Sentry, Composition::Default]
            .map(|by| offered(profile.clone(), CAPACITY_RPS, by, seed));
        let alarmed = outcomes[1].plans.iter().any(|plan| plan.explanation.ceiling_rps.is_some());
        assert!(!alarmed, "day {}", day + 1);
        refused.iter_mut().zip(&outcomes).for_each(|(sum, outcome)| *sum += outcome.totals().shed_total());
    }
    assert_eq!(refused[0], refused[1], "the sentry alone, all stages");
}

/// Starts of the busy hours of the first 24 days.
fn ten_oclocks(counts: &[f64]) -> impl Iterator<Item = usize> {
    (0..counts.len() - 86_400).step_by(86_400).map(|day| day + 36_000).take(24)
}
