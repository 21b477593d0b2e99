//! The trials by name.

use super::trial::Trial;
use super::{
    best_static, bulk_bystander, cost, dropping, fastest_tenth, interval, memory, network_limited,
    web_bystander,
};
use crate::experiments::ExperimentError;

/// All there are, in the order of the papers.
pub const TRIALS: &[Trial] = &[
    fastest_tenth::TRIAL,
    network_limited::TRIAL,
    best_static::TRIAL,
    memory::TRIAL,
    interval::TRIAL,
    cost::TRIAL,
    web_bystander::TRIAL,
    bulk_bystander::TRIAL,
    dropping::THROUGHPUT,
    dropping::RESPONSE_TIMES,
];

/// The trial of this name, in capitals or not.
///
/// # Errors
/// [`ExperimentError::Unknown`], which lists all names.
pub fn find_trial(id: &str) -> Result<&'static Trial, ExperimentError> {
    TRIALS.iter().find(|trial| trial.subject.id.eq_ignore_ascii_case(id)).ok_or_else(|| {
        let known: Vec<&str> = TRIALS.iter().map(|trial| trial.subject.id).collect();
        ExperimentError::Unknown { id: id.to_owned(), known: known.join(", ") }
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Results, Scope};
    use super::*;

    #[test]
    fn names_are_found_and_each_run_is_named_once() {
        assert_eq!(find_trial("news-f20").expect("it exists").subject.id, "NEWS-F20");
        assert!(find_trial("NEWS-F6").is_err());
        let scope = Scope { rounds: 2, ..Scope::default() };
        for trial in TRIALS {
            let runs = (trial.runs)(&scope, &Results::default());
            let distinct = runs.iter().enumerate().all(|(at, run)| !runs[..at].contains(run));
            assert!(distinct && runs.len() >= 2, "{}", trial.subject.id);
            assert!(runs.iter().all(|run| run.scene.length_s() <= 120), "{}", trial.subject.id);
        }
    }

    /// Goal: judging nothing claims nothing. Method: no run at all.
    #[test]
    fn without_runs_every_trial_differs() {
        for trial in TRIALS {
            let finding = (trial.judge)(&Scope::default(), &Results::default());
            let finding = finding.expect("a chart of nothing can be drawn");
            assert!(finding.verdict.to_string().starts_with("differs"), "{}", trial.subject.id);
        }
    }
}
