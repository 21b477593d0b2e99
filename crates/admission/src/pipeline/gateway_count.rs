//! Requests in the gateway: the one count that all workers' pipelines share.

use crate::sync::{AtomicUsize, Ordering::Relaxed};

/// Requests in the gateway, of all workers: at the origin, on their way, or waiting.
#[derive(Debug, Default)]
pub struct GatewayCount(AtomicUsize);

impl GatewayCount {
    /// Number of requests in the gateway.
    #[must_use]
    pub fn get(&self) -> usize {
        self.0.load(Relaxed)
    }

    /// Adds one if there are fewer than `max`.
    pub(super) fn take(&self, max: usize) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |count| (count < max).then_some(count + 1)).is_ok()
    }

    /// One has gone.
    pub(super) fn give_back(&self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
