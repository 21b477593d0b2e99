//! Options of the experiments: seeds, threads, lengths and crowds.

use crate::experiments::{Crowd, ExperimentError, OPENING_MATCH, SEMI_FINAL};

/// Options of the experiments: seeds, threads, lengths and crowds.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The first seed; the others follow.
    pub seed: u64,
    /// Number of seeds, 1 to 1000.
    pub seeds: u32,
    /// Threads that run simulations at the same time, 1 to 256.
    pub threads: usize,
    /// Seconds before the crowd comes: 1,000 in the paper on NEWS; 120 to 20,000. Experiments on its testbed
    /// take 1,000 at most.
    pub quiet_s: u64,
    /// Seconds of crowd: 3,000 in the paper on NEWS; 120 to 20,000. Experiments on its testbed take 1,000 at
    /// most, as the paper did.
    pub crowd_s: u64,
    /// The crowd in the simulations of NEWS.
    pub opening_match: Crowd,
    /// The crowd in the experiments on its testbed.
    pub semi_final: Crowd,
}

impl Default for Options {
    /// The paper's 4,000 seconds, three seeds, two threads, the crowds of the counts in the repository.
    fn default() -> Self {
        Self {
            seed: 1,
            seeds: 3,
            threads: 2,
            quiet_s: 1_000,
            crowd_s: 3_000,
            opening_match: OPENING_MATCH.counted(),
            semi_final: SEMI_FINAL.counted(),
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        let check = |what, value: u64, range: std::ops::RangeInclusive<u64>, expected| {
            let value_text = value.to_string();
            let wrong = ExperimentError::Option { what, value: value_text, expected };
            if range.contains(&value) { Ok(()) } else { Err(wrong) }
        };
        check("number of seeds", u64::from(self.seeds), 1..=1_000, "1 to 1000")?;
        check("number of threads", self.threads as u64, 1..=256, "1 to 256")?;
        check("quiet time in seconds", self.quiet_s, 120..=20_000, "120 to 20000")?;
        check("crowd in seconds", self.crowd_s, 120..=20_000, "120 to 20000")
    }
}
