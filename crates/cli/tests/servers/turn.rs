//! Turns of tests under load that measure the machine: one of them at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other test measures, for as long as the guard is held.
///
/// `make test-load` runs three tests at a time. A test takes a turn when its origin works instead of waiting,
/// or when it judges rates; the others run beside it.
pub(crate) fn take() -> MutexGuard<'static, ()> {
    // A test that failed in its turn left nothing behind.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
