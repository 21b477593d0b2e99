//! An experiment: a table or figure of a paper, and the function that makes it again.

use crate::experiments::{ExperimentError, Finding, Laboratory};

/// Subject of a table or figure of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Its name, such as `NEWS-T1`.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The paper's statement, and where it is.
    pub paper: &'static str,
}

/// One table or figure of a paper, made again by the simulator; CAT-F4 and PURGE-F5 are measured instead.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name, such as `NEWS-T1`.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The paper's statement, and where it is.
    pub paper: &'static str,
    /// Runs it.
    pub run: fn(&Laboratory) -> Result<Finding, ExperimentError>,
}

impl From<&Experiment> for Subject {
    fn from(&Experiment { id, title, paper, .. }: &Experiment) -> Self {
        Self { id, title, paper }
    }
}
