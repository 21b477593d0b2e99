//! Budget of instructions: for each scenario its total and its phases. It only falls.

use super::{PerRequest, Scenario};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use thiserror::Error;

/// Name of a scenario's total: the tasks of its connections, without the runtime's scheduler and timers,
/// which depend on time.
const TOTAL: &str = "total";
/// A count may exceed its budget by this part of it ...
const OVER: f64 = 0.01;
/// ... and one that is lower by more than this part lowers it.
const UNDER: f64 = 0.02;
/// Difference that is none, of small counts: tables that depend on hashes differ by some instructions from
/// run to run.
const SLACK: f64 = 50.0;
/// Parts by which phases may exceed their budgets where the first request after some time does more: it
/// renews what the pipeline's stages have measured, and wakes the sweeper where it sleeps. A head that comes
/// late is asked for once more.
const UNSTEADY: [(&str, f64); 5] = [
    ("HTTP/1: a request's head read", 0.05),
    ("- arrive (pipeline)", 0.5),
    ("admit", 0.5),
    ("finish", 0.3),
    ("request: from its head to its answer", 0.03),
];
/// Phases without a budget: timers take part in them.
const UNBOUNDED: [&str; 2] = ["feedback", "metrics"];
/// First lines of the file.
const HEAD: &str = "\
# User instructions of one request in the test build: a scenario's total, and the inclusive cost of its phases.
# `make instructions-check` compares. A count may exceed its budget by 1 %, some by more (`UNSTEADY` in
# lab/load/src/trials/instructions/budget.rs). Budgets only fall: `FLASHWEIR_BLESS=1 make instructions-check` lowers
# them and adds missing ones; a higher one is written by hand, and the commit says why.
";

/// Budgets by scenario and count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget(BTreeMap<String, BTreeMap<String, u64>>);

/// Error in the file of budgets.
#[derive(Debug, Error)]
#[error("the budget is no table of tables of instructions: {0}")]
pub struct BudgetError(#[from] toml::de::Error);

impl Budget {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is anything but tables of integers.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        Ok(Self(toml::from_str(text)?))
    }

    /// The file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for scenario in Scenario::ALL {
            let Some(counts) = self.0.get(scenario.key()) else { continue };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[{}]\n", scenario.key());
            for (name, count) in counts {
                let _ = writeln!(text, "{name:?} = {count}");
            }
        }
        text
    }

    /// Problems of a scenario: counts over their budget, counts far below, budgets without a count and counts
    /// without a budget.
    #[must_use]
    pub fn problems(&self, scenario: Scenario, request: &PerRequest) -> Vec<String> {
        let empty = BTreeMap::new();
        let budgets = self.0.get(scenario.key()).unwrap_or(&empty);
        let counts = counts(request);
        let of = |name: &str| format!("{}: {name}", scenario.key());
        let mut problems: Vec<String> = counts
            .iter()
            .filter_map(|(name, count)| match budgets.get(*name) {
                None => Some(format!("{}: {count:.0} instructions, and no budget", of(name))),
                Some(budget) => problem(&of(name), *count, *budget, over(name)),
            })
            .collect();
        let gone = budgets.keys().filter(|name| !counts.contains_key(name.as_str()));
        problems.extend(
            gone.map(|name| {
                format!("{}: no such count: take its budget out, or name its functions", of(name))
            }),
        );
        problems
    }

    /// Lowers each budget to its count, and adds those that are missing; none rises.
    pub fn lower(&mut self, scenario: Scenario, request: &PerRequest) {
        let budgets = self.0.entry(scenario.key().to_owned()).or_default();
        let counts = counts(request);
        budgets.retain(|name, _| counts.contains_key(name.as_str()));
        for (name, count) in counts {
            let count = count.round() as u64;
            budgets.entry(name.to_owned()).and_modify(|budget| *budget = count.min(*budget)).or_insert(count);
        }
    }
}

fn counts(request: &PerRequest) -> BTreeMap<&'static str, f64> {
    // A phase that not every request has is no phase of this scenario.
    let is_steady = |name: &str, calls: f64| calls > 0.9 && !UNBOUNDED.contains(&name);
    let phases = request.phases().into_iter().filter(|(name, _, calls)| is_steady(name, *calls));
    let phases = phases.map(|(name, instructions, _)| (name, instructions));
    phases.chain([(TOTAL, request.counts().tasks)]).collect()
}

/// Part by which a count may exceed its budget.
fn over(name: &str) -> f64 {
    UNSTEADY.iter().find(|(phase, _)| *phase == name).map_or(OVER, |(_, over)| *over)
}

fn problem(name: &str, count: f64, budget: u64, over: f64) -> Option<String> {
    let excess = count - budget as f64;
    let part = excess / budget.max(1) as f64;
    if excess.abs() < SLACK {
        None
    } else if part > over {
        Some(format!("{name}: {count:.0} instructions, the budget is {budget} ({:+.1} %)", 100.0 * part))
    } else if part < -UNDER.max(over) {
        Some(format!(
            "{name}: {count:.0} instructions; lower the budget {budget} to it ({:+.1} %)",
            100.0 * part
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::Profile;
    use super::*;

    fn request(instructions: u32) -> PerRequest {
        let text = format!(
            "events: Ir\nfn=a\n1 1\ncfn=tokio::runtime::task::raw::poll\ncalls=1 1\n1 {instructions}\n\
             cfn=flashweir_gateway::request::received::ReceivedRequest::of\ncalls=1 1\n1 3000\n"
        );
        PerRequest::new(&Profile::parse(&text).expect("a profile"), &Profile::default(), 1)
    }

    #[test]
    fn a_count_over_its_budget_is_a_problem_and_one_far_below_lowers_it() {
        let text = "[get-512]\ntotal = 10000\n\"received: head, service, class, client\" = 3000\n";
        let budget = Budget::parse(text).expect("a budget");
        let problems = |instructions| budget.problems(Scenario::Get512, &request(instructions));
        assert_eq!(problems(10_099), [""; 0]);
        assert_eq!(problems(10_200), ["get-512: total: 10200 instructions, the budget is 10000 (+2.0 %)"]);
        assert_eq!(
            problems(9_000),
            ["get-512: total: 9000 instructions; lower the budget 10000 to it (-10.0 %)"]
        );
        assert_eq!(
            budget.problems(Scenario::Tls, &request(1))[1],
            "tls: total: 1 instructions, and no budget"
        );
    }

    #[test]
    fn a_budget_falls_and_never_rises() {
        let mut budget = Budget::parse("[get-512]\ntotal = 10000\ngone = 7\n").expect("a budget");
        budget.lower(Scenario::Get512, &request(12_000));
        let text = budget.text();
        assert!(text.contains("\"total\" = 10000") && !text.contains("gone"), "{text}");
        budget.lower(Scenario::Get512, &request(9_000));
        assert_eq!(Budget::parse(&budget.text()).expect("its text"), budget);
        assert!(
            budget.text().contains("\"received: head, service, class, client\" = 3000\n\"total\" = 9000")
        );
    }

    #[test]
    fn other_files_are_errors() {
        assert!(Budget::parse("[get-512]\ntotal = \"many\"\n").is_err());
    }
}
