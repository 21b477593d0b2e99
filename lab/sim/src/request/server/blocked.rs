//! Requests in service that wait for something elsewhere: they keep their worker, if there are workers, and
//! use no processor.

use super::{Accepted, Turn};
use flashweir_core::Instant;
use std::collections::BTreeMap;

/// Blocked requests by the moment at which their wait ends. All operations are O(log n).
#[derive(Debug, Default)]
pub(super) struct Blocked {
    by_end: BTreeMap<(Instant, Turn), Accepted>,
    ends: BTreeMap<Turn, Instant>,
}

impl Blocked {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn insert(&mut self, ends_at: Instant, request: Accepted) {
        self.ends.insert(request.turn, ends_at);
        self.by_end.insert((ends_at, request.turn), request);
    }

    /// Takes a request out whose client is gone; whether it was blocked.
    pub(super) fn remove(&mut self, turn: Turn) -> bool {
        let Some(ends_at) = self.ends.remove(&turn) else { return false };
        self.by_end.remove(&(ends_at, turn)).is_some()
    }

    /// The end of the earliest wait.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.by_end.keys().next().map(|(ends_at, _)| *ends_at)
    }

    /// Takes the request out whose wait ended first, if it ended by `now`.
    pub(super) fn wake(&mut self, now: Instant) -> Option<(Instant, Accepted)> {
        let first = self.by_end.first_entry().filter(|first| first.key().0 <= now)?;
        let ((ends_at, turn), request) = first.remove_entry();
        self.ends.remove(&turn);
        Some((ends_at, request))
    }

    /// Takes all out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Accepted> {
        self.ends.clear();
        std::mem::take(&mut self.by_end).into_values()
    }
}
