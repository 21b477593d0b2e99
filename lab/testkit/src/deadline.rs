//! Waiting for something to happen, never for time to pass.

use std::time::{Duration, Instant};

/// Time that anything that should happen at once may take on a busy machine before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Pause between two looks: short against what is waited for, long against the cost of a look.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Looks until there is something, at most [`PATIENCE`]; `what` says in the panic what did not happen.
///
/// # Panics
/// When it does not happen in time.
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until(what, PATIENCE, look)
}

/// Looks until there is something, at most `within`; `what` says in the panic what did not happen.
///
/// # Panics
/// When it does not happen in time.
pub fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {within:?}");
        std::thread::park_timeout(LOOK_EVERY);
    }
}
