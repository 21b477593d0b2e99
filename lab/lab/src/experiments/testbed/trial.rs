//! A figure of a paper's testbed: the runs it needs, and their judgement.

use super::results::Results;
use super::scene::TestbedRun;
use super::scope::Scope;
use crate::experiments::{ExperimentError, Finding, Subject};

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
