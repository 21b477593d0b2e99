//! Detection of clock jumps between two rounds.

use flashweir_core::{Duration, Instant};

/// Gap that counts as a jump, in intervals, and at least [`AHEAD_MIN`]: the time between rounds is at most a
/// second or an interval.
const AHEAD_INTERVALS: u32 = 10;
/// See [`AHEAD_INTERVALS`].
const AHEAD_MIN: Duration = Duration::from_secs(60);

/// Jump of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// It is later by this much, where a moment was expected: the process or the machine was stopped, or the
    /// clock is wrong.
    Ahead(Duration),
    /// It is earlier than before.
    Back(Duration),
}

/// The instants of one loop.
#[derive(Debug)]
pub(super) struct Timeline {
    last: Instant,
}

impl Timeline {
    pub(super) fn new(now: Instant) -> Self {
        Self { last: now }
    }

    /// The next instant, and the jump there, if it was one.
    pub(super) fn advance(&mut self, now: Instant, interval: Duration) -> Option<Jump> {
        let last = std::mem::replace(&mut self.last, now);
        if now < last {
            return Some(Jump::Back(last.saturating_since(now)));
        }
        let ahead = now.saturating_since(last);
        (ahead >= AHEAD_MIN.max(interval.saturating_mul(AHEAD_INTERVALS))).then_some(Jump::Ahead(ahead))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_told_once() {
        let mut timeline = Timeline::new(Instant::from_secs(10));
        let mut advance = |secs| timeline.advance(Instant::from_secs(secs), Duration::from_millis(100));
        assert_eq!(advance(11), None);
        assert_eq!(advance(11 + 3_600), Some(Jump::Ahead(Duration::from_secs(3_600))));
        assert_eq!(advance(11 + 3_601), None);
        assert_eq!(advance(5), Some(Jump::Back(Duration::from_secs(3_607))));
        assert_eq!(advance(5), None);
        assert_eq!(
            timeline.advance(Instant::MAX, Duration::MAX),
            None,
            "a loop with an endless interval waits"
        );
    }
}
