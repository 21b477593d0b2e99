//! State of a request that waits for its turn, from the queue until its handler takes notice.

use super::offered_request::OfferedRequest;
use crate::refusal::Refusal;
use flashweir_admission::pipeline::{self, AdmissionRequest, Asking, Ticket};
use flashweir_core::Reason;
use std::task::Waker;

/// State of a queued request.
pub(super) enum Waiting {
    /// For its turn. One that `defers` is not refused while another answer may come.
    ForTurn { asked: OfferedRequest, ticket: Ticket, waker: Option<Waker>, defers: bool },
    /// For its handler to take notice.
    ForHandler { asked: OfferedRequest, decided: Result<pipeline::Permit, Denied> },
}

/// A refusal of a request that waited.
pub(super) enum Denied {
    /// Counted; the client is to be answered with it.
    Refused(Refusal),
    /// Charged by the pipeline, and not counted: its handler decides.
    Deferred(pipeline::Refusal),
}

/// The same for its handler to take notice of.
pub(super) type Noticed = (OfferedRequest, Result<pipeline::Permit, Denied>);

impl Waiting {
    pub(super) fn request(&self) -> &AdmissionRequest {
        match self {
            Self::ForTurn { asked, .. } | Self::ForHandler { asked, .. } => &asked.request,
        }
    }
}

/// Only a refusal for want of room at the origin or on the way there: a door that is closed stays closed.
/// That of a request that no client sent has no owner.
pub(super) fn may_defer(request: &AdmissionRequest, refusal: &pipeline::Refusal) -> bool {
    let is_for_room = !matches!(
        refusal.shed.reason,
        Reason::Draining
            | Reason::CallerDeadline
            | Reason::Connections
            | Reason::ConnectionsPerClient
            | Reason::RequestsInFlight
    );
    is_for_room || request.asking == Asking::Refresh
}
