//! Everything that defines a run.

use crate::{LoadError, Schedule, Target};
use flashweir_core::limits::LOAD_SOURCES;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One open-loop run. Made by [`LoadPlan::new`] with the defaults of `flashweir load`, then changed at will.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// What is asked for.
    pub target: Target,
    /// When each person comes.
    pub schedule: Schedule,
    /// How long after the moment they came people wait for the whole answer before they leave.
    pub patience: Duration,
    /// A completed answer within this time of the moment they came is goodput.
    pub good_within: Duration,
    /// How many client addresses people come from, each person from one, drawn from `seed`. More than one needs
    /// a target on the IPv4 loopback network.
    pub sources: u32,
    /// Whether people share connections.
    pub connections: Connections,
    /// Draws each person's address. The schedule has a seed of its own.
    pub seed: u64,
    /// Threads that send, each with its share of the schedule.
    pub threads: NonZeroUsize,
    /// Ends the run early, with a full report of what was done.
    pub stop: StopFlag,
}

/// Whether people share connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Connections {
    /// A new connection for each person, closed by them: what a crowd of strangers does.
    #[default]
    New,
    /// An idle connection left by somebody from the same address (and thread), or a new one if there is none.
    KeepAlive,
}

/// Asks a run to end; clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// No more people come; those on their way are waited for, at most their patience.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`stop`](Self::stop) was called.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl LoadPlan {
    /// A run with patience 2 s, goodput within 1 s, one client address, new connections, seed 1, one thread.
    #[must_use]
    pub fn new(target: Target, schedule: Schedule) -> Self {
        Self {
            target,
            schedule,
            patience: Duration::from_secs(2),
            good_within: Duration::from_secs(1),
            sources: 1,
            connections: Connections::New,
            seed: 1,
            threads: NonZeroUsize::MIN,
            stop: StopFlag::default(),
        }
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// [`LoadError::Plan`], with the one thing that is wrong.
    pub fn check(&self) -> Result<(), LoadError> {
        let wrong = |why: String| Err(LoadError::Plan(why));
        if self.patience.is_zero() {
            return wrong("patience must be longer than zero".to_owned());
        }
        if self.sources == 0 || self.sources > LOAD_SOURCES {
            return wrong(format!("sources must be 1 to {LOAD_SOURCES}, not {}", self.sources));
        }
        let on_loopback = self.target.address.is_ipv4() && self.target.address.ip().is_loopback();
        if self.sources > 1 && !on_loopback {
            let address = self.target.address;
            return wrong(format!("many sources need a target on 127.0.0.0/8, not {address}"));
        }
        if self.threads.get() > MAX_THREADS {
            return wrong(format!("threads must be 1 to {MAX_THREADS}, not {}", self.threads));
        }
        if self.schedule.length() > MAX_LENGTH {
            return wrong(format!("a run lasts at most {} s", MAX_LENGTH.as_secs()));
        }
        if self.schedule.moments().next().is_none() {
            return wrong("the schedule is empty: nobody would come".to_owned());
        }
        Ok(())
    }
}

/// Far more threads than help; a bound against typing errors.
const MAX_THREADS: usize = 256;
/// A week; bounds the report, which has a line for each second.
const MAX_LENGTH: Duration = Duration::from_secs(7 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> LoadPlan {
        LoadPlan::new(
            Target::parse("http://127.0.0.1:1/").unwrap(),
            Schedule::Fixed([Duration::ZERO].as_slice().into()),
        )
    }

    #[test]
    fn what_the_types_cannot_exclude_is_refused() {
        assert!(plan().check().is_ok());
        let check = |plan: LoadPlan, wanted: &str| {
            let message = plan.check().unwrap_err().to_string();
            assert!(message.contains(wanted), "{message:?} lacks {wanted:?}");
        };
        check(LoadPlan { patience: Duration::ZERO, ..plan() }, "patience");
        check(LoadPlan { sources: 0, ..plan() }, "sources");
        check(LoadPlan { sources: LOAD_SOURCES + 1, ..plan() }, "sources");
        check(LoadPlan { schedule: Schedule::Fixed([].as_slice().into()), ..plan() }, "nobody");
        check(
            LoadPlan { sources: 2, target: Target::parse("http://[::1]/").unwrap(), ..plan() },
            "127.0.0.0/8",
        );
    }
}
