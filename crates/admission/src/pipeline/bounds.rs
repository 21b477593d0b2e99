//! The gateway's own bounds: requests in it at once, and doors that are closed.

use super::{AdmissionRequest, GatewayCount};
use crate::retry_after::AT_A_BOUND;
use crate::sentry::Position;
use alloc::sync::Arc;
use flashweir_core::{Duration, Reason, Shed};

/// A gateway that is stopping is back, or replaced, in about this time.
const RETRY_AFTER_DRAINING: Duration = Duration::from_secs(5);

/// This part of the places is not for clients that are over their share.
const OTHERS_PART: usize = 4;

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
    pub(super) fn check(&self, request: &AdmissionRequest, position: Position) -> Result<(), Shed> {
        if let Some(reason) = request.closed {
            let retry_after = if reason == Reason::Draining { RETRY_AFTER_DRAINING } else { AT_A_BOUND };
            return Err(Shed { reason, retry_after });
        }
        // The last `1 / OTHERS_PART` of the places is kept from clients over their share.
        let max = if position == Position::OverShare { self.max - self.max / OTHERS_PART } else { self.max };
        match self.in_gateway.take(max) {
            true => Ok(()),
            false => Err(Shed { reason: Reason::RequestsInFlight, retry_after: AT_A_BOUND }),
        }
    }

    /// The request has left the gateway.
    pub(super) fn give_back(&self) {
        self.in_gateway.give_back();
    }
}
