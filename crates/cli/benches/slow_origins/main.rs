//! Real origins whose requests differ: long polls, exports, streams, pauses and slow upstream services beside
//! pages, each behind nothing, Flashweir with its defaults, HAProxy with the best static limit that a search
//! finds, and Envoy's adaptive concurrency.
//!
//! `make bench-slow` runs it; it writes `docs/slow-origins.md` and `docs/slow-origins.json`, in which each
//! invocation replaces its own rows. In the environment: ONLY (some of
//! `polls,asyncio,streams,exports,pauses,api,model`; `none` makes the page again from the rows that are
//! there), ROUNDS, SECONDS (length of a crowd), SEARCH=stored (takes the static limit that an earlier
//! invocation found), OUT (where the two files go), TRACE (a folder for what the gateway believed, four times
//! a second). All take half an hour as they are, of which the searches are five minutes.
//!
//! The origin's processes share core 0; protection and load generator have the other cores. What cannot be
//! installed is named, and the page says so.

#[path = "../origins/application.rs"]
mod application;
#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "the origins here are not `flashweir origin`")]
mod common;
#[path = "../origins/core_time.rs"]
mod core_time;
mod crowd;
#[path = "../origins/front.rs"]
mod front;
mod loss;
#[path = "../comparison/machine.rs"]
mod machine;
#[path = "../origins/on_core.rs"]
mod on_core;
#[path = "../origins/options.rs"]
mod options;
#[path = "../origins/pages.rs"]
mod pages;
#[path = "../comparison/protection/mod.rs"]
#[expect(dead_code, reason = "rates and classes are compared in `make compare`")]
mod protection;
mod report;
mod running;
mod search;
mod streams;
mod visit;
#[path = "../origins/watch.rs"]
mod watch;
#[path = "../origins/wsgi.rs"]
#[expect(dead_code, reason = "the application is another")]
mod wsgi;

use crowd::Crowd;
use flashweir_load::trials::origins::Protection;
use flashweir_load::trials::slow::{CROWD_S, Origin, Phase, PhaseResult, Row, SlowRun};
use flashweir_testkit::number_from_environment;
use protection::Tools;
use running::Running;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use visit::Visits;

const ROUNDS: usize = 1;
/// The first three seconds are not judged, and the rest must be worth it.
const CROWD_S_MIN: u64 = 6;

fn main() {
    if !common::is_asked_to_measure() {
        return;
    }
    let rounds = number_from_environment("ROUNDS", ROUNDS).max(1);
    let crowd_s = number_from_environment("SECONDS", CROWD_S).max(CROWD_S_MIN);
    let asked = match options::asked(&Origin::ALL, Origin::key) {
        Ok(asked) => asked,
        Err(why) => return eprintln!("not measured: {why}"),
    };
    let placement = machine::leave_core_0_to_the_origin() + &report::company();
    let visits = Visits { tools: Tools::find(), trace: std::env::var_os("TRACE").map(PathBuf::from) };
    if asked.is_empty() {
        // Its words may have changed since the rows were measured.
        report::write(report::read(), &placement);
    }
    for origin in asked {
        let mut report = report::read();
        let stored = report.row(origin).and_then(|row| row.found.clone());
        let mut row = Row {
            origin,
            lengths_s: crowd::lengths_s(origin, crowd_s),
            rounds,
            capacity_rps: Vec::new(),
            found: stored.filter(|_| options::is_search_stored()),
            runs: Vec::new(),
            missing: Vec::new(),
        };
        if let Err(why) = measure(&visits, &mut row) {
            eprintln!("{}: {why}", origin.key());
            row.missing.push(format!("{}: {why}", origin.name()));
        }
        report.put(row);
        // After each origin: a run that is cut off keeps what it has.
        report::write(report, &placement);
    }
}

/// Measures one row; why not, if the origin does not start.
fn measure(visits: &Visits, row: &mut Row) -> Result<(), String> {
    for round in 0..row.rounds {
        // Of an origin that only waits no page's rate is asked for.
        let capacity_rps = if row.origin.is_work() {
            guarded(|| Running::start(row.origin)?.application.capacity_rps("page"))?
        } else {
            0.0
        };
        row.capacity_rps.extend(row.origin.is_work().then_some(capacity_rps));
        eprintln!("{}: {capacity_rps:.1}/s", row.origin.name());
        if row.found.is_none() {
            match guarded(|| search::search(visits, row.origin, capacity_rps)) {
                Ok(found) => row.found = Some(found),
                Err(why) => eprintln!("no static limit was found: {why}"),
            }
        }
        let crowd = Crowd::whole(row, capacity_rps);
        let mut order = Protection::ALL.to_vec();
        // Backwards every other time, so that a change of the machine's speed falls on all.
        if round % 2 == 1 {
            order.reverse();
        }
        for protection in order {
            let run = front::kind(protection, row.found.as_ref())
                .and_then(|kind| guarded(|| visits.visit(protection, kind, &crowd, round)));
            match run {
                Ok(run) => {
                    tell(&run);
                    row.runs.push(run);
                }
                Err(why) => {
                    eprintln!("  {}: not measured: {why}", protection.name());
                    row.missing.push(format!(
                        "{} before {}, round {}: {why}",
                        protection.name(),
                        row.origin.name(),
                        round + 1
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Turns a panic into an error: a server did not start or answer. That run is missing then, and the others go
/// on.
fn guarded<T>(measure: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let caught = panic::catch_unwind(AssertUnwindSafe(measure));
    caught.unwrap_or_else(|panic| {
        let said = panic.downcast::<String>().map_or_else(|_| "it panicked".to_owned(), |said| *said);
        Err(said)
    })
}

/// Lines of progress: a run of half an hour should not be silent.
fn tell(run: &SlowRun) {
    let worth = |phase| run.phase(phase).map(PhaseResult::worth);
    eprintln!(
        "  {}: in the crowd {:.3?}, during the loss {:.3?}",
        run.protection.name(),
        worth(Phase::Crowd),
        worth(Phase::Loss)
    );
    for phase in &run.phases {
        for kind in &phase.kinds {
            eprintln!("    {:?} {kind:?}", phase.phase);
        }
        if let Some(belief) = &phase.belief {
            eprintln!("    {:?} {belief:?}", phase.phase);
        }
    }
}
