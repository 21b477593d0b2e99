//! A classified request as the pipeline is asked about it.

use crate::classify::Classified;
use flashweir_admission::pipeline::{AdmissionRequest, Asking, ServiceKey};
use flashweir_admission::sentry::{Position, SentryRequest};
use flashweir_core::Reason;

/// A client's request that asks for the first time; `closed` is the reason for which the door is closed to
/// it, if it is.
pub(super) fn admission_request(
    key: ServiceKey,
    asked: &Classified,
    closed: Option<Reason>,
) -> AdmissionRequest {
    let candidate = asked.candidate.filter(|candidate| !candidate.is_exempt);
    AdmissionRequest {
        service: key,
        class: asked.class,
        ceiling_priority: asked.ceiling_priority,
        client_key: asked.client_key,
        url_class: asked.url_class,
        host_key: asked.host_key,
        person_key: asked.person_key,
        candidate: candidate.map(|candidate| SentryRequest {
            is_uncounted: false,
            class: candidate.class,
            url_class: asked.url_class,
            client_key: candidate.client_key,
            position: Position::Usual,
        }),
        is_beyond_sender_share: asked.is_beyond_sender_share,
        deadline: asked.deadline,
        closed,
        signs: asked.signs,
        asking: Asking::First,
    }
}
