//! A gate that a test opens once, for handlers that must wait in the meantime.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::deadline::PATIENCE;

/// Closed until a test opens it; then open for good. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    /// A closed one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets every waiting thread through, now and later.
    pub fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Waits until it is open; gives up after [`PATIENCE`], so that no thread outlives a failed test.
    pub fn wait(&self) {
        let guard = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_timeout_while(guard, PATIENCE, |open| !*open);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}
