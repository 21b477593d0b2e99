//! Test whether a response can measure the quality of the service, as far as request and status show.

use flashweir_http1::head::{KnownField, RequestView};
use flashweir_telemetry::Unmeasured;
use http::StatusCode;

/// Reason for which the response to this request would not count.
pub(super) fn of_request(head: RequestView<'_>) -> Option<Unmeasured> {
    if head.method() == b"HEAD" {
        Some(Unmeasured::Empty)
    } else if head.fields().has(KnownField::Range) {
        Some(Unmeasured::Partial)
    } else {
        None
    }
}

/// Reason for which a response with this status would not count.
#[must_use]
pub fn of_response(status: StatusCode) -> Option<Unmeasured> {
    match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => Some(Unmeasured::Empty),
        StatusCode::PARTIAL_CONTENT => Some(Unmeasured::Partial),
        StatusCode::SWITCHING_PROTOCOLS => Some(Unmeasured::Tunnel),
        status if status.is_client_error() || status.is_server_error() => Some(Unmeasured::Error),
        _ => None,
    }
}
