//! Long requests: they hold no place among those that the limit is for.
//!
//! The planner says which (`calm`): URL classes whose requests take longer than the target even alone, and
//! requests of any class that are in flight for a long time while others come back. Where the origin is
//! short, the number that holds no place is bounded; others are as any request. O(log classes) for each
//! request, and one comparison where no class is long.

use alloc::vec::Vec;
use flashweir_core::Duration;
use flashweir_core::limits::URL_CLASSES;

/// Requests that take longer than the target even alone, while others do not: they hold no place among those
/// that the limit is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongRequests {
    /// URL classes of such requests, ascending; at most [`CLASSES_MAX`](flashweir_limit::CLASSES_MAX).
    pub url_classes: Vec<u16>,
    /// Requests in flight that hold no place, at most; `None` while the origin is short of nothing.
    pub limit: Option<u32>,
    /// Time in flight after which a request of any class holds no place any more; zero if all do.
    pub release_after: Duration,
}

impl LongRequests {
    /// Returns true if requests of a URL class hold no place. O(log classes), and one comparison where there
    /// is none.
    #[must_use]
    pub fn has(&self, url_class: u32) -> bool {
        let url_class = (url_class as usize % URL_CLASSES) as u16;
        !self.url_classes.is_empty() && self.url_classes.binary_search(&url_class).is_ok()
    }
}
