//! Flag of a planner that rests while no request comes, so that an idle machine is not woken.
//!
//! The planner says that it rests, and only then asks the gates for their samples. So a request is either
//! reported in a sample, or its gate, which was asked before, sees the flag: the first such request wakes the
//! planner. Asking orders memory (a bell does), which is why the flag itself need not. `tests/workers` checks
//! it in every order.

use crate::sync::{AtomicBool, Ordering::Relaxed};

/// One for all gates and their planner.
#[derive(Debug, Default)]
pub struct RestFlag(AtomicBool);

impl RestFlag {
    /// A request needs looking after: whether the planner is to be woken for it. One load of a word that
    /// nearly never changes while requests come.
    #[must_use]
    pub fn wakes(&self) -> bool {
        self.0.load(Relaxed) && self.0.swap(false, Relaxed)
    }

    /// From now on the next request is to wake the planner. To be called before samples are asked for.
    pub fn begin(&self) {
        self.0.store(true, Relaxed);
    }

    /// The planner looks anyway.
    pub fn end(&self) {
        self.0.store(false, Relaxed);
    }

    /// Returns true if the rest goes on: no request has come since it began.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.0.load(Relaxed)
    }
}
