//! Long requests: they hold no place among those that the limit is for.
//!
//! The planner says which (`calm`): URL classes whose requests take longer than the target even alone, and
//! requests of any class that are in flight for a long time while others come back. Where the origin is
//! short, the number that holds no place is bounded; others are as any request. O(log classes) for each
//! request, and one comparison where no class is long.

use super::gate::SentryGate;
use super::request::SentryRequest;
use alloc::vec::Vec;
use flashweir_core::limits::{SENTRY_IN_FLIGHT, URL_CLASSES};
use flashweir_core::{Duration, Instant};

/// Requests that take longer than the target even alone, while others do not: they hold no place among those
/// that the limit is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Long {
    /// URL classes of such requests, ascending; at most [`CLASSES_MAX`](flashweir_limit::CLASSES_MAX).
    pub url_classes: Vec<u16>,
    /// Requests in flight that hold no place, at most; `None` while the origin is short of nothing.
    pub limit: Option<u32>,
    /// Time in flight after which a request of any class holds no place any more; zero if all do.
    pub release_after: Duration,
}

impl Long {
    /// Returns true if requests of a URL class hold no place. O(log classes), and one comparison where there
    /// is none.
    #[must_use]
    pub fn has(&self, url_class: u32) -> bool {
        let url_class = (url_class as usize % URL_CLASSES) as u16;
        !self.url_classes.is_empty() && self.url_classes.binary_search(&url_class).is_ok()
    }
}

impl<T> SentryGate<T> {
    /// Requests in flight that hold no place, from all gates together.
    #[must_use]
    pub fn long_in_flight(&self) -> u32 {
        self.common.long()
    }

    /// Counts a request as long, if its class is and no more of them are in flight than the plan allows.
    pub(super) fn take_long(&mut self, now: Instant, request: &SentryRequest) -> bool {
        if !self.plan.long.has(request.url_class) {
            return false;
        }
        let limit = self.plan.long.limit.unwrap_or(SENTRY_IN_FLIGHT);
        self.in_flight.take_long(now, &self.plan, limit)
    }
}
