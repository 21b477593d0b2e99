//! Real origins: PHP-FPM, Python WSGI, Node, PostgreSQL and files over a narrow link, each behind nothing,
//! Flashweir with its defaults, HAProxy with the best static limit that a search finds, and Envoy's adaptive
//! concurrency.
//!
//! `make bench-origins` runs it; it writes `docs/origins.md` and `docs/origins.json`, in which each
//! invocation replaces its own rows. In the environment: ONLY (some of `php,wsgi,node,postgres,static`;
//! `none` makes the page again from the rows that are there), OVERLOAD (3, over the capacity), ROUNDS,
//! SECONDS (length of a crowd), SEARCH=stored (takes the static limit that an earlier invocation found), OUT
//! (where the two files go), TRACE (a folder for what the gateway believed, four times a second). Each origin
//! takes two minutes and a half as they are, of which the search is one. The link needs root.
//!
//! The origin's processes share core 0; protection and load generator have the other cores. What cannot be
//! installed is named, and the page says so.

mod application;
#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "the origins here are not `flashweir origin`")]
mod common;
mod core_time;
mod front;
mod link;
#[path = "../comparison/machine.rs"]
mod machine;
mod node;
mod on_core;
mod options;
mod pages;
mod php;
mod place;
mod postgres;
#[path = "../comparison/protection/mod.rs"]
#[expect(dead_code, reason = "rates and classes are compared in `make compare`")]
mod protection;
mod report;
mod search;
mod visit;
mod watch;
mod wsgi;

use flashweir_load::trials::origins::{Origin, Protection, Row};
use flashweir_testkit::number_from_environment;
use place::Place;
use protection::Tools;
use std::path::PathBuf;
use visit::{Crowd, Visits};

const ROUNDS: usize = 1;
const OVERLOAD: f64 = 3.0;
const CALM_S: u64 = 5;
const CROWD_S: u64 = 15;
/// The first three seconds are judged separately, and the rest must be worth it.
const CROWD_S_MIN: u64 = 6;

fn main() {
    if !common::is_asked_to_measure() {
        return;
    }
    let rounds = number_from_environment("ROUNDS", ROUNDS).max(1);
    let crowd_s = number_from_environment("SECONDS", CROWD_S).max(CROWD_S_MIN);
    let overload = number_from_environment("OVERLOAD", OVERLOAD).max(1.0);
    let asked = match options::asked(&Origin::ALL, Origin::key) {
        Ok(asked) => asked,
        Err(why) => return eprintln!("not measured: {why}"),
    };
    let is_stored = options::is_search_stored();
    let placement = machine::leave_core_0_to_the_origin();
    let visits = Visits { tools: Tools::find(), trace: std::env::var_os("TRACE").map(PathBuf::from) };
    if asked.is_empty() {
        // Its words may have changed since the rows were measured.
        report::write(report::read(), &placement);
    }
    for origin in asked {
        let mut report = report::read();
        let mut row = Row {
            origin,
            overload,
            lengths_s: [CALM_S, crowd_s],
            rounds,
            capacity_rps: Vec::new(),
            found: report.found(origin).filter(|_| is_stored).cloned(),
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
        let capacity_rps = Place::start(row.origin)?.capacity_rps()?;
        row.capacity_rps.push(capacity_rps);
        eprintln!("{}: {capacity_rps:.1}/s", row.origin.name());
        if row.found.is_none() {
            match search::search(visits, row.origin, capacity_rps) {
                Ok(found) => row.found = Some(found),
                Err(why) => eprintln!("no static limit was found: {why}"),
            }
        }
        let crowd = Crowd::whole(row, capacity_rps, round);
        let mut order = Protection::ALL.to_vec();
        // Backwards every other time, so that a change of the machine's speed falls on all.
        if round % 2 == 1 {
            order.reverse();
        }
        for protection in order {
            let run = front::kind(protection, row.found.as_ref())
                .and_then(|kind| visits.visit(row.origin, protection, kind, crowd));
            match run {
                Ok(run) => {
                    eprintln!(
                        "  round {}, {}: {:.3} = {:.3} × {:.3}, first seconds {:.3}, {:?}, taken {:.3?}, {} refused in calm",
                        round + 1,
                        protection.name(),
                        run.settled.useful(),
                        run.settled.busy,
                        run.settled.in_time,
                        run.first.useful(),
                        run.counts,
                        run.taken,
                        run.refused_in_calm
                    );
                    if let Some(belief) = &run.belief {
                        eprintln!("    {belief:?}");
                    }
                    row.runs.push(run);
                }
                Err(why) => {
                    eprintln!("  round {}, {}: not measured: {why}", round + 1, protection.name());
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
