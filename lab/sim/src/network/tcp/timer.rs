//! A deadline that may move, with few events.

use flashweir_core::Instant;

/// Keeps one pending event, however often the deadline moves: when the event comes before a deadline that has
/// moved later, it is scheduled once more; when the deadline is gone, it is forgotten.
#[derive(Clone, Copy, Debug)]
pub(in crate::network) struct Timer {
    deadline: Instant,
    /// Time of the event that this timer will listen to.
    pending: Instant,
}

impl Timer {
    pub(in crate::network) const fn new() -> Self {
        Self { deadline: Instant::MAX, pending: Instant::MAX }
    }

    pub(in crate::network) fn set(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub(in crate::network) fn clear(&mut self) {
        self.deadline = Instant::MAX;
    }

    pub(in crate::network) fn is_set(&self) -> bool {
        self.deadline != Instant::MAX
    }

    /// The event to schedule now, if one is missing; the caller must schedule it.
    pub(in crate::network) fn unscheduled(&mut self) -> Option<Instant> {
        // Also false for a cleared timer, whose deadline is later than every event.
        let missing = self.deadline < self.pending;
        missing.then(|| {
            self.pending = self.deadline;
            self.deadline
        })
    }

    /// An event of this timer came: whether the deadline is reached, which clears it.
    pub(in crate::network) fn fires(&mut self, now: Instant) -> bool {
        if now != self.pending {
            // An earlier deadline had overtaken this event, and its own event has come already.
            return false;
        }
        self.pending = Instant::MAX;
        let reached = self.deadline <= now;
        if reached {
            self.deadline = Instant::MAX;
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn one_event_follows_a_deadline_that_moves_later() {
        let mut timer = Timer::new();
        timer.set(at(10));
        assert_eq!(timer.unscheduled(), Some(at(10)));
        timer.set(at(25));
        assert_eq!(timer.unscheduled(), None);
        assert!(!timer.fires(at(10)));
        assert_eq!(timer.unscheduled(), Some(at(25)));
        assert!(timer.fires(at(25)));
        assert!(!timer.is_set());
        assert_eq!(timer.unscheduled(), None);
    }

    #[test]
    fn a_cleared_deadline_does_not_fire() {
        let mut timer = Timer::new();
        timer.set(at(10));
        timer.unscheduled();
        timer.clear();
        assert!(!timer.fires(at(10)));
        assert_eq!(timer.unscheduled(), None);
    }

    #[test]
    fn an_earlier_deadline_gets_its_own_event() {
        let mut timer = Timer::new();
        timer.set(at(10));
        timer.unscheduled();
        timer.set(at(5));
        assert_eq!(timer.unscheduled(), Some(at(5)));
        assert!(timer.fires(at(5)));
        assert!(!timer.fires(at(10)));
    }
}
