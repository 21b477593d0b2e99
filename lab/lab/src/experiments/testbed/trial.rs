//! The figures by name.

use super::results::Results;
use super::scale::{CROWD_S, QUIET_S};
use super::scene::{Protection, Scene, TestbedRun};
use super::{
    best_static, bulk_bystander, cost, dropping, fastest_tenth, interval, memory, network_limited,
    web_bystander,
};
use crate::experiments::{Crowd, ExperimentError, Finding, SEMI_FINAL, Subject};

/// A figure of a paper's testbed.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Its name, what it shows, what the paper says.
    pub subject: Subject,
    /// The runs it needs; of a search, those that are known to be needed from what there is. Once all of them
    /// are made and it names no other, it can be judged.
    pub runs: fn(&Scope, &Results) -> Vec<TestbedRun>,
    /// Judges them.
    pub judge: fn(&Scope, &Results) -> Result<Finding, ExperimentError>,
}

/// Amount of work of a trial: rounds, and the length of its phases.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// The first seed; a round each.
    pub seed: u64,
    /// Number of repetitions of each run.
    pub rounds: u32,
    /// Seconds of quiet.
    pub quiet_s: u64,
    /// Seconds of crowd.
    pub crowd_s: u64,
    /// In what course people come.
    pub crowd: Crowd,
}

impl Default for Scope {
    /// One round at the scale of [`scale`](super::scale), the counts of the semi-final in the repository.
    fn default() -> Self {
        Self { seed: 1, rounds: 1, quiet_s: QUIET_S, crowd_s: CROWD_S, crowd: SEMI_FINAL.counted() }
    }
}

impl Scope {
    /// A scene under each protection, once for each round.
    pub(super) fn runs(
        &self,
        scene: &Scene,
        protections: impl IntoIterator<Item = Protection>,
    ) -> Vec<TestbedRun> {
        let seeds = || (0..u64::from(self.rounds)).map(|round| self.seed + round);
        let runs = protections.into_iter().flat_map(|protection| {
            seeds().map(move |seed| TestbedRun { scene: scene.clone(), protection: protection.clone(), seed })
        });
        runs.collect()
    }
}

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
