//! A made-up demo for tests: the shape of a real one without its minute and a half.

use crate::demo::outcome::{Numbers, Protected, Visit, VisitOutcome};
use crate::demo::useful::OriginTime;
use crate::demo::verdicts::Sighting;
use crate::demo::{Crowd, Options, PATIENCE, Story};
use flashweir_core::measure::Useful;
use flashweir_load::{LoadResult, Percentiles, RunFacts, Second, Tally};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const CAPACITY_RPS: f64 = 200.0;

/// A story whose report goes to `out`.
pub(crate) fn story(out: PathBuf) -> Story {
    let options = Options { seed: 7, out, json: false, plain: true, crowd_multiple: 5.0, origin_ms: 5.0 };
    let crowd = Crowd::new(CAPACITY_RPS, options.crowd_multiple, options.seed).expect("a valid crowd");
    let unprotected =
        Visit { load: load(&crowd, false), sightings: Vec::new(), origin_time: origin_time(1.0, 0.02) };
    let protected = Visit {
        load: load(&crowd, true),
        sightings: sightings(&crowd),
        origin_time: origin_time(0.98, 0.99),
    };
    let overload = crowd.overload.as_ref();
    let outcome = |visit: &Visit| VisitOutcome::new(visit, overload, CAPACITY_RPS, PATIENCE);
    let numbers = Numbers {
        capacity_rps: CAPACITY_RPS,
        unprotected: outcome(&unprotected),
        protected: Protected::new(outcome(&protected), &protected.sightings, overload),
    };
    Story { options, numbers, crowd, unprotected, protected }
}

/// On a machine that got slower by a fifth when the crowd came.
fn origin_time(busy: f64, in_time: f64) -> OriginTime {
    let before = Useful { busy: 0.3, in_time: 1.0, processor_ms: Some(5.0) };
    OriginTime::new(&before, &Useful { busy, in_time, processor_ms: Some(6.0) })
}

fn load(crowd: &Crowd, protected: bool) -> LoadResult {
    let seconds = crowd.length().as_secs() + 1;
    let series: Vec<Second> = (0..seconds).map(|second| one_second(crowd, second, protected)).collect();
    let sum = |value: fn(&Second) -> u64| series.iter().map(value).sum::<u64>();
    let completed = sum(|s| s.completed);
    let latency_ms =
        Percentiles { count: completed, p99: Some(480.0), p999: Some(700.0), ..Percentiles::default() };
    let totals = Tally {
        offered: sum(|s| s.offered),
        unique_offered: sum(|s| s.offered),
        sent: sum(|s| s.offered),
        completed,
        goodput: sum(|s| s.goodput),
        refused: sum(|s| s.refused),
        refused_by_reason: [("capacity".to_owned(), sum(|s| s.refused))].into(),
        timed_out: sum(|s| s.timed_out),
        latency_ms: Percentiles { p9999: Some(800.0), max: Some(900.0), ..latency_ms },
        series,
        ..Tally::default()
    };
    LoadResult {
        started: Some(Instant::now()),
        run: RunFacts {
            format: 1,
            url: "http://127.0.0.1:3000/".to_owned(),
            seed: 7,
            length_s: seconds as f64,
            duration_s: seconds as f64,
            shards: vec!["1/1".to_owned()],
            interrupted: false,
            ..RunFacts::default()
        },
        classes: [("all".to_owned(), totals.clone())].into(),
        totals,
        series_bin_s: 1,
        ..LoadResult::default()
    }
}

fn one_second(crowd: &Crowd, second: u64, protected: bool) -> Second {
    let within = |moment: &&Duration| moment.as_secs() == second;
    let offered = crowd.schedule.iter().filter(within).count() as u64;
    let overloaded =
        crowd.overload.as_ref().is_some_and(|crowd| crowd.contains(&Duration::from_secs(second)));
    let served = match (overloaded, protected) {
        (false, _) => offered,
        (true, true) => offered.min(185),
        (true, false) => offered.min(4),
    };
    let left = offered - served;
    let (refused, timed_out) = if protected { (left, 0) } else { (0, left) };
    let (p50, p99) = if overloaded && protected { (140.0, 480.0) } else { (8.0, 21.0) };
    let goodput = served;
    let latency = |value: f64| (protected || !overloaded).then_some(value);
    Second {
        second,
        offered,
        completed: served,
        goodput,
        refused,
        timed_out,
        latency_p50_ms: latency(p50),
        latency_p99_ms: latency(p99),
        ..Second::default()
    }
}

fn sightings(crowd: &Crowd) -> Vec<Sighting> {
    let overload = crowd.overload.clone().expect("five times the capacity is too much");
    let full = overload.start + Duration::from_millis(400);
    let released = overload.end + Duration::from_millis(2300);
    (0..crowd.length().as_millis() / 50)
        .map(|step| {
            let at = Duration::from_millis(50) * u32::try_from(step).expect("a short demo");
            let (mode, cause) = match at {
                at if at < Duration::from_secs(1) => ("normal", "too_few_samples"),
                at if at < overload.start => ("normal", "calm"),
                at if at < full => ("normal", "surge_ok"),
                at if at < released => ("full", "surge_ok"),
                _ => ("normal", "calm"),
            };
            Sighting { at, mode: mode.to_owned(), cause: cause.to_owned(), limit: Some(2) }
        })
        .collect()
}
