//! How long no server of a service has accepted a connection: requests wait for one that restarts, and not for one that is gone.
//!
//! A refused connection shows that nothing of the request has come to a server, so that any method may be sent later. All requests of an
//! absence wait until the same moment, [`RESTART_MAX`] after it began: who comes later is answered at once.
//!
//! Pure: the clock is an argument.

use flashweir_core::Instant;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Time without a server up to which it is taken to restart.
const RESTART_MAX: Duration = Duration::from_secs(1);
/// Wait before the first further try, doubled before each that follows: six in a second.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(25);

/// When the absence began that all workers see; 0 while there is none.
#[derive(Debug, Default)]
pub(super) struct Absence(AtomicU64);

impl Absence {
    /// A request was refused a connection by every server that it tried. Whether it may wait and try again.
    pub(super) fn goes_on(&self, now: Instant) -> bool {
        let nanos = now.as_nanos().max(1);
        let began = self.0.compare_exchange(0, nanos, Relaxed, Relaxed).err().unwrap_or(nanos);
        nanos.saturating_sub(began) < RESTART_MAX.as_nanos() as u64
    }

    /// A server has answered.
    pub(super) fn end(&self) {
        self.0.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_requests_of_an_absence_wait_until_the_same_moment() {
        let absence = Absence::default();
        let goes_on = |ms| absence.goes_on(Instant::from_millis(ms));
        assert!(goes_on(0) && goes_on(500) && goes_on(999));
        assert!(!goes_on(1_001) && !goes_on(60_000));
        absence.end();
        assert!(goes_on(60_001) && !goes_on(61_002));
    }
}
