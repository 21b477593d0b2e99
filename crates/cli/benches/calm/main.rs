//! Mixtures of requests in calm behind the gateway with its defaults: what is refused although nothing is
//! short.
//!
//! `make bench-calm` runs it and, when every case was measured, writes `docs/calm.md`. In the environment:
//! ONLY (a part of the names of some cases), SECONDS (length of a case). A quarter of an hour as it is; the
//! machine need not be idle, but a row that a late load generator spoilt says so.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "the origin only waits, and has no core to itself")]
mod common;
#[path = "../comparison/machine.rs"]
#[expect(dead_code, reason = "no process is moved to another core")]
mod machine;

use flashweir_load::trials::calm::{CASES, COLD_REQUESTS, Case, Kind, KindResult, LENGTH_S, Row, page};
use flashweir_load::{ClassPlan, LoadPlan, LoadResult, LoadTarget, Paths, Prepared, Sources, Template};
use flashweir_testkit::{Gateway, GatewayBuilder, Origin, number_from_environment};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule, Share, Stream};
use std::error::Error;
use std::time::Duration;

/// More than are in flight in any case.
const WORKERS: &str = "400";
/// Longer than any request takes.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Addresses of clients.
const SOURCES: u32 = 500;
const SEED: u64 = 1;
/// Seconds of a cold start.
const EARLY_S: u64 = 10;
/// Second in which the last rate changes.
const LAST_STEP_S: u64 = 35;
/// The verdict is read this long before the last request.
const VERDICT_BEFORE_END: Duration = Duration::from_secs(5);

#[expect(clippy::disallowed_methods, reason = "a measurement's only option")]
fn main() {
    if !common::is_asked_to_measure() {
        return;
    }
    let only = std::env::var("ONLY").unwrap_or_default();
    let length_s = number_from_environment("SECONDS", LENGTH_S).max(LAST_STEP_S + EARLY_S);
    let cases: Vec<Case> = CASES.into_iter().filter(|case| case.name.contains(&only)).collect();
    let mut rows = Vec::new();
    for case in &cases {
        eprintln!("{} ({length_s} s)", case.name);
        match run(case, length_s) {
            Ok(row) => rows.push(row),
            Err(why) => eprintln!("not measured: {why}"),
        }
    }
    let page = page(&rows, &machine::description());
    println!("{page}");
    if rows.len() == CASES.len() && length_s == LENGTH_S {
        let file = machine::repository().join("docs/calm.md");
        std::fs::write(&file, page).expect("a writable directory");
        println!("Written to {}", file.display());
    }
}

fn run(case: &Case, length_s: u64) -> Result<Row, Box<dyn Error>> {
    let binary = common::stage::binary();
    let cold = if case.cold_at_s == Some(0) { COLD_REQUESTS } else { 0 }.to_string();
    let mut restart_at = case.cold_at_s.filter(|at_s| *at_s > 0).map(Duration::from_secs);
    let options = ["--workers", WORKERS, "--work-ms", "0", "--cold-requests", &cold];
    let origin = Origin::start_with(&binary, &options);
    let gateway = GatewayBuilder::new(&binary).upstream(&origin.url()).start();
    let read_at = Duration::from_secs(length_s) - VERDICT_BEFORE_END;
    let mut cause = None;
    let load = flashweir_load::run(plan(case, &gateway, length_s)?, |progress| {
        if restart_at.take_if(|at| progress.elapsed >= *at).is_some() {
            origin.cool(COLD_REQUESTS);
        }
        if cause.is_none() && progress.elapsed >= read_at {
            cause = gateway.status()["verdict"]["cause"].as_str().map(str::to_owned);
        }
    })?;
    Ok(Row {
        name: case.name,
        kinds: case.kinds.iter().map(|kind| result(kind, &load)).collect(),
        is_spoilt: load.saturated || cause.is_none(),
        cause: cause.unwrap_or_default(),
    })
}

fn plan(case: &Case, gateway: &Gateway, length_s: u64) -> Result<LoadPlan, Box<dyn Error>> {
    let target = LoadTarget::parse(&format!("http://{}/", gateway.address()))?;
    let mut streams = Vec::new();
    let mut classes = Vec::new();
    for (kind, class) in case.kinds.iter().zip(0..) {
        let ends_s = kind.rates.iter().skip(1).map(|(from_s, _)| *from_s).chain([length_s]);
        let steps =
            kind.rates.iter().zip(ends_s).map(|((from_s, rps), end_s)| {
                RateProfile::constant(*rps, Duration::from_secs(end_s - from_s))
            });
        let steps: Vec<RateProfile> = steps.collect::<Result<_, _>>()?;
        let profile = steps.into_iter().reduce(RateProfile::then).ok_or("a kind has a rate")?;
        let arrivals = ArrivalProcess::Poisson(profile);
        streams.push(Stream { arrivals, classes: vec![Share { class, weight: 1.0 }] });
        let request = Prepared::new(&target, http::Method::GET, &[], bytes::Bytes::new())?;
        let paths = Paths::Template(Template::new(kind.path, None, 0)?);
        classes.push(ClassPlan {
            timeout: TIMEOUT,
            good_within: TIMEOUT,
            ..ClassPlan::new(kind.name, request, paths)
        });
    }
    let first = classes.first().cloned().ok_or("a case has requests")?;
    Ok(LoadPlan {
        classes: classes.into(),
        sources: Sources { count: SOURCES, ..Sources::default() },
        seed: SEED,
        ..LoadPlan::new(target, Schedule::new(streams, SEED)?, first)
    })
}

fn result(kind: &Kind, load: &LoadResult) -> KindResult {
    let tally = load.classes.get(kind.name).cloned().unwrap_or_default();
    let early = tally.series.iter().filter(|bin| bin.second < EARLY_S);
    KindResult {
        name: kind.name,
        offered: tally.offered,
        refused: tally.refused,
        refused_early: early.map(|bin| bin.refused).sum(),
        lost: tally.timed_out + tally.errors,
        p50_ms: tally.served_ms.p50,
        p99_ms: tally.served_ms.p99,
    }
}
