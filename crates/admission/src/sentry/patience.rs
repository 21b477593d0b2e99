//! When something that failed may be tried again: the more often it failed, the later.

use flashweir_core::{Duration, Instant};

/// The next attempt, and how long to wait after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    next_at: Instant,
    wait: Duration,
}

impl Patience {
    /// At once; after a failure not before `wait`, twice as long after the next one, a minute at most.
    pub(super) fn new(wait: Duration) -> Self {
        Self { next_at: Instant::ZERO, wait }
    }

    /// It failed.
    pub(super) fn fail(&mut self, now: Instant) {
        self.next_at = now + self.wait;
        self.wait = (self.wait * 2).min(WAIT_MOST);
    }

    /// Whether it is time.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.next_at
    }
}

/// However often it failed: origins change.
const WAIT_MOST: Duration = Duration::from_secs(60);
