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
/// An absence in which no request was refused for this long is over, although no server has answered: none was asked.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);
/// Wait before the first further try, doubled before each that follows: six in a second.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(25);

/// An absence as all workers see it, in nanoseconds; 0 while there is none.
#[derive(Debug, Default)]
pub(super) struct Absence {
    began: AtomicU64,
    /// When a request was last refused.
    refused: AtomicU64,
}

impl Absence {
    /// A request was refused a connection by every server that it tried. Whether it may wait and try again.
    pub(super) fn goes_on(&self, now: Instant) -> bool {
        let now = now.as_nanos().max(1);
        let silent = now.saturating_sub(self.refused.swap(now, Relaxed));
        if silent > FORGOTTEN_AFTER.as_nanos() as u64 {
            self.end();
        }
        let began = self.began.compare_exchange(0, now, Relaxed, Relaxed).err().unwrap_or(now);
        now.saturating_sub(began) < RESTART_MAX.as_nanos() as u64
    }

    /// A server has answered.
    pub(super) fn end(&self) {
        self.began.store(0, Relaxed);
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
        assert!(!goes_on(1_001) && !goes_on(8_000) && !goes_on(17_000));
        absence.end();
        assert!(goes_on(17_001) && !goes_on(18_002));
        assert!(goes_on(28_003), "what was known is ten seconds old");
    }
}
