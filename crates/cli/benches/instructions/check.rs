//! The check: Flashweir's instructions in the test build against their budget.

use crate::machine;
use crate::measure::{Length, Place};
use crate::servers::Server;
use flashweir_load::trials::instructions::{Budget, PerRequest, Scenario};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// As few requests as give counts that differ by less than 1 % from run to run, at an interval that is twice
/// what a request of the test build takes under valgrind on a busy machine.
const LENGTH: Length =
    Length { few: 40, requests: 150, interval: Duration::from_millis(25), uncounted: &PERIODICAL };
/// Work of a request that comes first after some time: it follows new plans, and ends a period of fairness.
const PERIODICAL: [&str; 3] = [
    "*flashweir_gateway::pipeline::worker_pipeline::WorkerPipeline::follow_service*",
    "*flashweir_gateway::pipeline::worker_pipeline::WorkerPipeline::follow_flash_crowd*",
    "*flashweir_admission::fairness::shares::Counts::end_period*",
];
/// Scenarios at a time: the servers are idle for most of their time.
const AT_ONCE: usize = 2;

/// Compares each scenario with its budget, or lowers the budget.
pub(crate) fn check(server: &Server, scenarios: &[Scenario], blesses: bool) -> ExitCode {
    let file = budget_file();
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let mut budget = match Budget::parse(&text) {
        Ok(budget) => budget,
        Err(error) => {
            eprintln!("{}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    };
    let place = Place::new();
    let mut problems = Vec::new();
    for some in scenarios.chunks(AT_ONCE) {
        for (scenario, request) in some.iter().zip(measure(&place, server, some)) {
            println!("{}: {:.0} instructions", scenario.name(), request.counts().tasks);
            if blesses {
                budget.lower(*scenario, &request);
            } else {
                let again = || place.measure(server, *scenario, LENGTH);
                problems.extend(problems_of(&budget, *scenario, &request, again));
            }
        }
    }
    if blesses {
        std::fs::write(&file, budget.text()).expect("a writable file");
        println!("Written to {}", file.display());
    }
    problems.iter().for_each(|problem| eprintln!("budget of instructions: {problem}"));
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Profiles of these scenarios, measured side by side.
fn measure(place: &Place, server: &Server, scenarios: &[Scenario]) -> Vec<PerRequest> {
    std::thread::scope(|scope| {
        let running: Vec<_> = scenarios
            .iter()
            .map(|scenario| scope.spawn(|| place.measure(server, *scenario, LENGTH)))
            .collect();
        running.into_iter().map(|running| running.join().expect("a measurement")).collect()
    })
}

/// Problems of two measurements: one alone may have met a busy machine, whose answers come when nothing waits
/// for them.
fn problems_of(
    budget: &Budget,
    scenario: Scenario,
    request: &PerRequest,
    again: impl Fn() -> PerRequest,
) -> Vec<String> {
    let first = budget.problems(scenario, request);
    if first.is_empty() {
        return first;
    }
    let second = budget.problems(scenario, &again());
    if second.len() < first.len() { second } else { first }
}

fn budget_file() -> PathBuf {
    machine::repository().join("crates/cli/benches/instructions/budget.toml")
}
