//! Runs simulations on a few threads, each once.

use crate::experiments::{ExperimentError, Options};
use flashweir_sim::news;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Something that can be simulated.
///
/// Its `Debug` text has to show every setting: simulations of one type with the same text are the same, and
/// run once.
pub(crate) trait Simulation: Debug + Sync + 'static {
    /// Result of a run.
    type Outcome: Send + Sync + 'static;

    /// Runs it; the same settings give the same outcome.
    fn run(&self) -> Result<Self::Outcome, ExperimentError>;
}

/// Options, and what was run so far.
#[derive(Debug)]
pub struct Laboratory {
    options: Options,
    outcomes: Mutex<BTreeMap<Key, Arc<dyn Any + Send + Sync>>>,
    progress: fn(Progress),
}

/// Progress of the runs that an experiment is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs that are over.
    pub done: usize,
    /// Runs in all; those that were there already are not counted.
    pub of: usize,
}

/// The kind of simulation, and its settings.
type Key = (TypeId, String);

impl Laboratory {
    /// An empty one.
    ///
    /// # Errors
    /// [`ExperimentError::Option`] for options out of range.
    pub fn new(options: Options) -> Result<Self, ExperimentError> {
        options.check()?;
        Ok(Self { options, outcomes: Mutex::default(), progress: |_| () })
    }

    /// Reports the progress of the runs, whenever one is over, from the thread that ran it; the others wait
    /// with theirs meanwhile.
    #[must_use]
    pub fn telling(self, progress: fn(Progress)) -> Self {
        Self { progress, ..self }
    }

    /// Options of the experiments.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The outcomes of the simulations, in their order. Each runs once in the life of a laboratory.
    ///
    /// # Errors
    /// The first failure, by the order of the simulations.
    pub(crate) fn run<S: Simulation>(
        &self,
        simulations: &[S],
    ) -> Result<Vec<Arc<S::Outcome>>, ExperimentError> {
        let keys: Vec<Key> = simulations.iter().map(key).collect();
        let missing = self.missing(&keys);
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..self.options.threads.min(missing.len()) {
                scope.spawn(|| {
                    while let Some(&index) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = simulations[index].run();
                        let mut done = lock(&done);
                        done.push((index, outcome));
                        (self.progress)(Progress { done: done.len(), of: missing.len() });
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        let mut outcomes = lock(&self.outcomes);
        for (index, outcome) in done {
            outcomes.insert(keys[index].clone(), Arc::new(outcome?));
        }
        // Holds because every simulation was there before or has just been run, and the key says its type.
        let of = |key| outcomes.get(key).cloned().and_then(|outcome| outcome.downcast().ok());
        Ok(keys.iter().map(|key| of(key).expect("every simulation has an outcome")).collect())
    }

    /// The places of those that were not run yet, each once.
    fn missing(&self, keys: &[Key]) -> Vec<usize> {
        let outcomes = lock(&self.outcomes);
        let mut missing = BTreeMap::new();
        for (index, key) in keys.iter().enumerate().filter(|(_, key)| !outcomes.contains_key(*key)) {
            missing.entry(key).or_insert(index);
        }
        let mut missing: Vec<usize> = missing.into_values().collect();
        missing.sort_unstable();
        missing
    }
}

impl Simulation for news::Scenario {
    type Outcome = news::NewsOutcome;

    fn run(&self) -> Result<news::NewsOutcome, ExperimentError> {
        Ok(news::run(self)?)
    }
}

fn key<S: Simulation>(simulation: &S) -> Key {
    (TypeId::of::<S>(), format!("{simulation:?}"))
}

/// A panic in a run ends the whole laboratory, so no code sees what a poisoned lock protects.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    static RUNS: AtomicUsize = AtomicUsize::new(0);
    static OVER: AtomicUsize = AtomicUsize::new(0);

    /// Doubles its number; fails above 9.
    #[derive(Debug)]
    struct Double(u64);
    /// Another kind with the same text.
    mod other {
        #[derive(Debug)]
        pub(super) struct Double(pub(super) u64);
    }

    impl Simulation for Double {
        type Outcome = u64;
        fn run(&self) -> Result<u64, ExperimentError> {
            RUNS.fetch_add(1, Ordering::Relaxed);
            if self.0 > 9 {
                Err(crate::experiments::find(&self.0.to_string()).unwrap_err())
            } else {
                Ok(self.0 * 2)
            }
        }
    }

    impl Simulation for other::Double {
        type Outcome = String;
        fn run(&self) -> Result<String, ExperimentError> {
            Ok(format!("{0}{0}", self.0))
        }
    }

    /// Goal: what has run is not run again, kinds with the same text are distinguished, the first failure
    /// is the one by order. Method: count the runs of a simulation that only doubles.
    #[test]
    fn each_simulation_runs_once_whatever_its_kind() {
        let laboratory = Laboratory::new(Options::default()).unwrap().telling(|progress| {
            assert!(progress.done <= progress.of);
            OVER.fetch_add(1, Ordering::Relaxed);
        });
        let doubled = |numbers: &[u64]| {
            let simulations: Vec<Double> = numbers.iter().copied().map(Double).collect();
            laboratory.run(&simulations).map(|outcomes| outcomes.iter().map(|it| **it).collect::<Vec<_>>())
        };
        assert_eq!(doubled(&[3, 1, 3, 2]).unwrap(), [6, 2, 6, 4]);
        assert_eq!(doubled(&[2, 4, 3]).unwrap(), [4, 8, 6]);
        assert_eq!(RUNS.load(Ordering::Relaxed), 4);
        assert_eq!(*laboratory.run(&[other::Double(3)]).unwrap()[0], "33");
        assert_eq!(OVER.load(Ordering::Relaxed), 5);
        let failure = doubled(&[1, 11, 10]).unwrap_err().to_string();
        assert!(failure.starts_with("there is no experiment `11`"), "{failure}");
        assert_eq!(doubled(&[]).unwrap(), [0; 0]);
    }
}
