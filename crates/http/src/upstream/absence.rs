//! Time for which no server of a service has accepted a connection: requests wait for one that restarts, and
//! not for one that is gone.
//!
//! A refused connection shows that nothing of the request has come to a server, so that any method may be
//! sent later. All requests of an absence wait until the same moment, [`RESTART_MAX`] after it began: a
//! request that comes later is answered at once.
//!
//! Pure: the clock is an argument.

use flashweir_core::Instant;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Time without a server up to which it is taken to restart.
const RESTART_MAX: Duration = Duration::from_secs(1);
/// An absence in which no request was refused for this long is over, although no server has answered: none
/// was asked.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);
/// Wait before the first further try, doubled before each that follows up to [`LAST_WAIT`]: eight in a
/// second.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(25);
pub(super) const LAST_WAIT: Duration = Duration::from_millis(200);

/// An absence as all workers see it, in nanoseconds; 0 while there is none.
#[derive(Debug, Default)]
pub(super) struct Absence {
    began: AtomicU64,
    /// Time at which a request was last refused.
    refused: AtomicU64,
}

impl Absence {
    /// A request was refused a connection by every server that it tried, at first at `since`. For how long it
    /// may wait and try again; none if it may not. A server that goes in order still answers on its old
    /// connections, and each answer begins a new absence: so a request waits for a second from its first
    /// refusal at most, too.
    pub(super) fn wait_max(&self, since: Instant, now: Instant) -> Option<Duration> {
        let own = RESTART_MAX.checked_sub(now.saturating_since(since))?;
        let now = now.as_nanos().max(1);
        let silent = now.saturating_sub(self.refused.swap(now, Relaxed));
        if silent > FORGOTTEN_AFTER.as_nanos() as u64 {
            self.end();
        }
        let began = self.began.compare_exchange(0, now, Relaxed, Relaxed).err().unwrap_or(now);
        let left = RESTART_MAX.checked_sub(Duration::from_nanos(now.saturating_sub(began)))?;
        Some(left.min(own)).filter(|left| !left.is_zero())
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
        let wait_max = |since, now| absence.wait_max(Instant::from_millis(since), Instant::from_millis(now));
        let goes_on = |ms| wait_max(ms, ms).is_some();
        assert!(goes_on(0) && goes_on(500) && goes_on(999));
        assert!(!goes_on(1_001) && !goes_on(8_000) && !goes_on(17_000));
        absence.end();
        assert!(goes_on(17_001) && !goes_on(18_002));
        assert!(goes_on(28_003), "what was known is ten seconds old");
        assert_eq!(wait_max(28_503, 28_703), Some(Duration::from_millis(300)), "what is left of the absence");
        absence.end();
        assert_eq!(
            wait_max(28_503, 28_903),
            Some(Duration::from_millis(600)),
            "what is left of the second of this request"
        );
        assert_eq!(wait_max(28_503, 29_503), None);
    }
}
