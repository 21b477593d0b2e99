//! The gateway's own bounds: requests in it at once, and doors that are closed.

use super::AdmissionRequest;
use crate::retry_after::AT_A_BOUND;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use flashweir_core::{Duration, Reason, Shed};

/// A gateway that is stopping is back, or replaced, in about this time.
const RETRY_AFTER_DRAINING: Duration = Duration::from_secs(5);

/// Requests in the gateway, of all workers: at the origin, on their way, or waiting.
#[derive(Debug, Default)]
pub struct GatewayCount(AtomicUsize);

impl GatewayCount {
    /// How many there are.
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

/// The stage.
#[derive(Debug)]
pub(super) struct Bounds {
    in_gateway: Arc<GatewayCount>,
    max: usize,
}

impl Bounds {
    pub(super) fn new(in_gateway: Arc<GatewayCount>) -> Self {
        Self { in_gateway, max: usize::MAX }
    }

    pub(super) fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    /// Reserves a place in the gateway, which is held until the request has left it.
    pub(super) fn check(&self, request: &AdmissionRequest) -> Result<(), Shed> {
        if let Some(reason) = request.closed {
            let retry_after = if reason == Reason::Draining { RETRY_AFTER_DRAINING } else { AT_A_BOUND };
            return Err(Shed { reason, retry_after });
        }
        match self.in_gateway.take(self.max) {
            true => Ok(()),
            false => Err(Shed { reason: Reason::RequestsInFlight, retry_after: AT_A_BOUND }),
        }
    }

    /// The request has left the gateway.
    pub(super) fn give_back(&self) {
        self.in_gateway.give_back();
    }
}
