//! One of a bounded number of connections.

use std::cell::Cell;
use std::rc::Rc;

/// A place among the connections of a pool, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Slot(Rc<Cell<usize>>);

impl Slot {
    /// A place, if fewer than `slots_max` are taken.
    pub(super) fn take(taken: &Rc<Cell<usize>>, slots_max: usize) -> Option<Self> {
        if taken.get() >= slots_max {
            return None;
        }
        taken.set(taken.get() + 1);
        Some(Self(Rc::clone(taken)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
