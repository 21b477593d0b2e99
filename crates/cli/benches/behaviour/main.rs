//! Flashweir, nginx, HAProxy and Caddy in front of the same scripted origin: each case is sent to each, what
//! they do stands in one table.
//!
//! `make compare-behaviour` runs it, prints the table and writes `docs/behaviour.md`. It ends with 1 where
//! Flashweir is wrong in a row on which an RFC has a word. In the environment: ONLY (a part of the names of
//! cases: prints them, writes nothing) and OUT (the folder of the page). Each case has a fresh origin and a
//! fresh proxy on loopback; each wait has a time-out, so a run takes three minutes at most.

mod case;
mod cases;
mod client;
mod http2;
mod observation;
mod origin;
mod page;
mod proxies;
mod reports;
mod restarts;

use case::{Case, Script, Verdict};
use observation::Observation;
use page::Row;
use proxies::{Kind, Programs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    // `cargo test --benches` and `cargo bench -- --list` must not start servers.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    let only = std::env::var_os("ONLY").map(|only| only.to_string_lossy().into_owned());
    let is_wanted = |case: &Case| only.as_deref().is_none_or(|only| case.name.contains(only));
    let cases = cases::all();
    for report in reports::ALL {
        assert!(cases.iter().any(|case| case.name == report.case), "no case `{}`", report.case);
    }
    let programs = Programs::find();
    let rows: Vec<Row> = cases.into_iter().filter(is_wanted).map(|case| run(&programs, case)).collect();
    let is_restarts_wanted = only.as_deref().is_none_or(|only| "an origin that restarts".contains(only));
    let mut restarted = String::new();
    if is_restarts_wanted {
        restarted = restarts::text(&Kind::ALL.map(|kind| (kind, restarts::run(&programs, kind))));
        println!("{restarted}");
    }
    if only.is_none() {
        let versions = Kind::ALL.map(|kind| programs.version(kind));
        write(&page::text(&rows, &restarted, &versions));
    }
    let wrong: Vec<&Row> = rows.iter().filter(|row| row.is_wrong()).collect();
    println!("\n{} rows, Flashweir wrong in {} on which an RFC has a word", rows.len(), wrong.len());
    for row in &wrong {
        println!("  {} (RFC {})", row.case.name, row.case.rfc);
    }
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Sends a case to each proxy, and prints the row.
fn run(programs: &Programs, case: Case) -> Row {
    println!("{} (RFC {}, {}: {})", case.name, case.rfc, case.word, case.asks);
    let cells = Kind::ALL.map(|kind| {
        let verdict = visit(programs, &case, kind);
        let (mark, cell) = page::parts(verdict.as_ref());
        println!("  {:<9} {mark} {cell}", kind.name());
        verdict
    });
    Row { case, cells }
}

/// One case at one proxy; an error is the reason why the proxy could not take part.
fn visit(programs: &Programs, case: &Case, kind: Kind) -> Result<Verdict, String> {
    let origin = origin::start(&case.origin);
    let running = programs.start(kind, origin.address())?;
    let events = match &case.client {
        Script::Http1(steps) => client::play(running.http1, steps, || origin.open_connections() == 0),
        Script::Http2 { fields, body } => http2::request(running.http2, fields, *body),
        Script::Flood(frame) => {
            vec![http2::flood(running.http2, frame, || proxies::processor_time(running.id()))]
        }
    };
    let observed = Observation { events, origin: origin.received() };
    Ok((case.judge)(&observed))
}

fn write(page: &str) {
    let docs = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let file = std::env::var_os("OUT").map_or_else(docs, PathBuf::from).join("behaviour.md");
    match std::fs::write(&file, page) {
        Ok(()) => println!("\nWritten to {}", file.display()),
        Err(error) => eprintln!("{} cannot be written: {error}", file.display()),
    }
}
