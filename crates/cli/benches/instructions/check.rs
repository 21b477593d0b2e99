//! The gate's check: Flashweir's instructions in the test build against their budget.

use crate::machine;
use crate::measure::Place;
use crate::servers::Server;
use flashweir_load::trials::instructions::{Budget, PerRequest, Scenario};
use std::path::PathBuf;
use std::process::ExitCode;

/// Requests by which two runs differ: as few as give counts that differ by less than 1 % from run to run.
const REQUESTS: u32 = 300;

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
    for scenario in scenarios {
        let measure = || place.measure(server, *scenario, REQUESTS);
        let request = measure();
        println!("{}: {:.0} instructions", scenario.name(), request.counts().tasks);
        if blesses {
            budget.lower(*scenario, &request);
        } else {
            problems.extend(problems_of(&budget, *scenario, &request, measure));
        }
    }
    if blesses {
        std::fs::write(&file, budget.text()).expect("a writable file");
        println!("Written to {}", file.display());
    }
    problems.iter().for_each(|problem| eprintln!("budget of instructions: {problem}"));
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
