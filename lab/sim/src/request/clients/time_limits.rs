//! The clients' time limits of one class.
//!
//! All are equally long and begin in the order of time, so they end in that order, too: a line suffices, and
//! one pending event for it. Most tries end long before; a heap would hold all their limits until they are
//! over.

use crate::request::slab::Id;
use flashweir_core::Instant;
use std::collections::VecDeque;

/// Time limits of tries under way, the earliest first. Limits of tries that are over go when they are met at
/// the front, or all at once when they are more than half.
#[derive(Debug, Default)]
pub(in crate::request) struct TimeLimits {
    line: VecDeque<(Instant, Id)>,
    /// For how many more limits a look at the whole line is not worth it yet.
    look_at_len: usize,
    /// An event will look at the line at this moment, or before.
    is_armed: bool,
}

impl TimeLimits {
    /// A try begins whose limit ends at `ends_at`; `is_open` returns whether an earlier one is still under
    /// way. Returns when an event is to be scheduled, if one is. O(1) on average.
    pub(in crate::request) fn begin(
        &mut self,
        ends_at: Instant,
        visitor: Id,
        is_open: impl Fn(Id) -> bool,
    ) -> Option<Instant> {
        self.drop_closed(&is_open);
        if self.line.len() >= self.look_at_len {
            self.line.retain(|&(_, visitor)| is_open(visitor));
            self.look_at_len = (self.line.len() * 2).max(LOOK_LEN_LEAST);
        }
        self.line.push_back((ends_at, visitor));
        let arm = !self.is_armed;
        self.is_armed = true;
        arm.then_some(ends_at)
    }

    /// The next try whose limit is over by now.
    pub(in crate::request) fn next_over(&mut self, now: Instant, is_open: impl Fn(Id) -> bool) -> Option<Id> {
        self.drop_closed(&is_open);
        let &(ends_at, visitor) = self.line.front()?;
        (ends_at <= now).then(|| {
            self.line.pop_front();
            visitor
        })
    }

    /// After the event: when the next one is to be scheduled, if one is.
    pub(in crate::request) fn arm(&mut self) -> Option<Instant> {
        let next = self.line.front().map(|&(ends_at, _)| ends_at);
        self.is_armed = next.is_some();
        next
    }

    fn drop_closed(&mut self, is_open: impl Fn(Id) -> bool) {
        while self.line.front().is_some_and(|&(_, visitor)| !is_open(visitor)) {
            self.line.pop_front();
        }
    }
}

const LOOK_LEN_LEAST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::slab::Slab;

    #[test]
    fn only_tries_under_way_meet_their_limits() {
        let mut slab = Slab::with_bound(10_000);
        let mut limits = TimeLimits::default();
        let ids: Vec<Id> = (0..5_000).map(|_| slab.insert(()).unwrap()).collect();
        let mut armed = 0;
        for (id, at) in ids.iter().zip(1..) {
            armed += u32::from(limits.begin(Instant::from_nanos(at), *id, |id| slab.contains(id)).is_some());
            // All but every hundredth end at once.
            if at % 100 != 1 {
                slab.remove(*id);
            }
        }
        assert_eq!(armed, 1);
        assert!(limits.line.len() < 1_100, "{}", limits.line.len());
        let mut over = Vec::new();
        while let Some(id) = limits.next_over(Instant::from_nanos(1_001), |id| slab.contains(id)) {
            over.push(id);
        }
        assert_eq!(over, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000].map(|index| ids[index]));
        assert_eq!(limits.arm(), Some(Instant::from_nanos(1_101)));
    }
}
