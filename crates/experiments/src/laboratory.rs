//! Runs scenarios on a few threads, each once.

use crate::ExperimentError;
use flashweir_sim::news::{NewsError, Outcome, Scenario, run};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The first seed; the others follow.
    pub seed: u64,
    /// How many seeds, 1 to 1000.
    pub seeds: u32,
    /// Threads that run scenarios at the same time, 1 to 256.
    pub threads: usize,
    /// Seconds before the crowd comes: 1,000 in the paper; 120 to 20,000.
    pub quiet_s: u64,
    /// Seconds of crowd: 3,000 in the paper; 120 to 20,000.
    pub crowd_s: u64,
}

/// Options, and what was run so far.
#[derive(Debug)]
pub struct Laboratory {
    options: Options,
    outcomes: Mutex<BTreeMap<String, Arc<Outcome>>>,
}

impl Default for Options {
    /// The paper's 4,000 seconds, three seeds, two threads.
    fn default() -> Self {
        Self { seed: 1, seeds: 3, threads: 2, quiet_s: 1_000, crowd_s: 3_000 }
    }
}

impl Laboratory {
    /// An empty one.
    ///
    /// # Errors
    /// [`ExperimentError::Option`] for options out of range.
    pub fn new(options: Options) -> Result<Self, ExperimentError> {
        let check = |what, value: u64, range: std::ops::RangeInclusive<u64>, expected| {
            let value_text = value.to_string();
            let wrong = ExperimentError::Option { what, value: value_text, expected };
            if range.contains(&value) { Ok(()) } else { Err(wrong) }
        };
        check("number of seeds", u64::from(options.seeds), 1..=1_000, "1 to 1000")?;
        check("number of threads", options.threads as u64, 1..=256, "1 to 256")?;
        check("quiet time in seconds", options.quiet_s, 120..=20_000, "120 to 20000")?;
        check("crowd in seconds", options.crowd_s, 120..=20_000, "120 to 20000")?;
        Ok(Self { options, outcomes: Mutex::new(BTreeMap::new()) })
    }

    /// How much is run.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The outcomes of the scenarios, in their order. Each scenario runs once in the life of a laboratory.
    ///
    /// # Errors
    /// The first failure, by the order of the scenarios.
    pub(crate) fn run(&self, scenarios: &[Scenario]) -> Result<Vec<Arc<Outcome>>, ExperimentError> {
        let missing = self.missing(scenarios);
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, Result<Outcome, NewsError>)>> = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.options.threads.min(missing.len()) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(scenario) = missing.get(index) else { break };
                        let outcome = run(scenario);
                        lock(&done).push((index, outcome));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        let mut outcomes = lock(&self.outcomes);
        for (index, outcome) in done {
            outcomes.insert(key(missing[index]), Arc::new(outcome?));
        }
        // Holds because every scenario was there before or has just been run.
        let of = |scenario| outcomes.get(&key(scenario)).cloned().expect("every scenario has an outcome");
        Ok(scenarios.iter().map(of).collect())
    }

    /// Those that were not run yet, each once.
    fn missing<'a>(&self, scenarios: &'a [Scenario]) -> Vec<&'a Scenario> {
        let outcomes = lock(&self.outcomes);
        let mut missing: Vec<&Scenario> = Vec::new();
        for scenario in scenarios {
            if !outcomes.contains_key(&key(scenario)) && !missing.contains(&scenario) {
                missing.push(scenario);
            }
        }
        missing
    }
}

/// A scenario's settings, all of them, as text: outcomes depend on nothing else.
fn key(scenario: &Scenario) -> String {
    format!("{scenario:?}")
}

/// A panic in a run ends the whole laboratory, so nobody sees what a poisoned lock protects.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
