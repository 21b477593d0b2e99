//! User instructions, system calls, allocations and copies of a request by callgrind, beside nginx and
//! HAProxy.
//!
//! `make instructions` runs it and, when every scenario was measured, writes `docs/instructions.md`. In the
//! environment: ONLY (a part of the keys of some scenarios), REQUESTS (by which two runs differ), BINARY
//! (another flashweir than the one that cargo built), OTHER (further binaries of flashweir, in place of the
//! other servers; nothing is written).
//!
//! With `--check` in place of `--bench` it compares Flashweir with `budget.toml`, and fails if it takes more;
//! FLASHWEIR_BLESS=1 lowers the budget. `make instructions-check` does that with the test build, as the gate
//! does.
//!
//! Counts depend on the processor by what the C library and ring choose for it. Valgrind presents the same
//! one on every machine with AVX2, so nothing is pinned.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "no origin and no crowd of the other benches")]
mod common;
#[path = "../common/servers.rs"]
mod common_servers;
#[path = "../comparison/machine.rs"]
#[expect(dead_code, reason = "no process is moved to another core")]
mod machine;

mod check;
mod client;
mod measure;
mod origin;
mod servers;

use common_servers::is_installed;
use flashweir_load::trials::instructions::{Measured, Results, Scenario, page};
use flashweir_testkit::number_from_environment;
use measure::{Length, Place};
use servers::Server;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Requests by which two runs differ.
const REQUESTS: u32 = 1_000;
const FEW: u32 = 100;
/// Twice what a request of the release build takes under valgrind.
const INTERVAL: Duration = Duration::from_millis(8);

#[expect(clippy::disallowed_methods, reason = "a measurement's options")]
fn main() -> ExitCode {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let only = variable("ONLY");
    let scenarios: Vec<Scenario> =
        Scenario::ALL.into_iter().filter(|scenario| scenario.key().contains(&only)).collect();
    let built = PathBuf::from(env!("CARGO_BIN_EXE_flashweir"));
    let binary = Some(variable("BINARY")).filter(|path| !path.is_empty()).map_or(built, PathBuf::from);
    let is_check = std::env::args().any(|argument| argument == "--check");
    if !is_check && !common::is_asked_to_measure() {
        return ExitCode::SUCCESS;
    }
    if !is_installed("valgrind") {
        eprintln!("instructions: valgrind is not installed");
        return ExitCode::FAILURE;
    }
    if is_check {
        return check::check(&Server::Flashweir(binary), &scenarios, variable("FLASHWEIR_BLESS") == "1");
    }
    let other = variable("OTHER");
    let others: Vec<Server> = other.split_whitespace().map(|path| Server::Flashweir(path.into())).collect();
    compare(binary, others, &scenarios);
    ExitCode::SUCCESS
}

fn compare(binary: PathBuf, others: Vec<Server>, scenarios: &[Scenario]) {
    let is_page = others.is_empty() && scenarios.len() == Scenario::ALL.len();
    let others = match others.is_empty() {
        false => others,
        true => [("nginx", Server::Nginx), ("haproxy", Server::Haproxy)]
            .into_iter()
            .filter(|(name, _)| is_installed(name))
            .map(|(_, server)| server)
            .collect(),
    };
    let servers: Vec<Server> = [Server::Flashweir(binary)].into_iter().chain(others).collect();
    let is_complete = servers.len() > 2;
    let place = Place::new();
    let requests = number_from_environment("REQUESTS", REQUESTS);
    let length = Length { few: FEW, requests, interval: INTERVAL, uncounted: &[] };
    let measured = scenarios.iter().map(|scenario| {
        let servers = servers.iter().map(|server| {
            eprintln!("{}: {server:?}", scenario.name());
            Some(place.measure(server, *scenario, length))
        });
        Measured { scenario: *scenario, servers: servers.collect() }
    });
    let results = Results {
        scenarios: measured.collect(),
        machine: machine::description(),
        servers: servers.iter().map(Server::version).collect(),
        requests,
    };
    let page = page(&results);
    println!("{page}");
    if is_page && is_complete {
        let file = machine::repository().join("docs/instructions.md");
        std::fs::write(&file, page).expect("a writable directory");
        println!("Written to {}", file.display());
    }
}
