//! Answer to a client when the upstream failed before a response began, and the counting of failures.
//!
//! 502, 503 or 504 with one line of text and `Flashweir-Error: <kind>`: by that field a client, or the
//! operator looking over its shoulder, distinguishes our answer from the origin's.

use crate::no_store::NO_STORE;
use crate::shared::Shared;
use crate::upload::UploadBody;
use bytes::Bytes;
use flashweir_http::upstream::{ErrorSource, SendCounts, UpstreamError, UpstreamErrorKind, Upstreams};
use flashweir_telemetry::{BadRequest, Bound, Happening, RepeatDenied, UpstreamFailure, WorkerMetrics};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};

/// Names what went wrong, in the spelling of the metrics' `kind`.
const ERROR: HeaderName = HeaderName::from_static("flashweir-error");

/// The answer for a failed exchange.
pub(crate) fn respond(error: &UpstreamError, method: &Method) -> Response<Bytes> {
    let text = match error.kind {
        UpstreamErrorKind::ConnectTimeout
        | UpstreamErrorKind::HeaderTimeout
        | UpstreamErrorKind::BodyTimeout => "The service did not answer in time.\n",
        UpstreamErrorKind::RequestBody => "The request's body could not be read.\n",
        UpstreamErrorKind::Full | UpstreamErrorKind::NoUpstream => {
            "The service cannot take the request now.\n"
        }
        UpstreamErrorKind::Connect
        | UpstreamErrorKind::Reset
        | UpstreamErrorKind::Malformed
        | UpstreamErrorKind::HeadTooLarge => {
            "The service could not be reached, or did not answer properly.\n"
        }
    };
    plain(error.kind.status(), error.kind.as_str(), text, method)
}

/// An answer of the gateway's own: status, kind of error, one line.
pub(crate) fn plain(
    status: StatusCode,
    kind: &'static str,
    text: &'static str,
    method: &Method,
) -> Response<Bytes> {
    let body = if method == Method::HEAD { Bytes::new() } else { Bytes::from_static(text.as_bytes()) };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(CONTENT_LENGTH, text.len().into());
    fields.insert(NO_STORE.0, NO_STORE.1);
    fields.insert(ERROR, HeaderValue::from_static(kind));
    response
}

/// The answer to an upload that was cut for its slowness; counts it.
pub(crate) fn slow_upload(metrics: &WorkerMetrics, method: &Method) -> Response<Bytes> {
    metrics.requests.bad.increment(BadRequest::SlowBody);
    plain(StatusCode::REQUEST_TIMEOUT, "slow_body", "The request's body came too slowly.\n", method)
}

/// Counts tries and repeats of the requests that were sent.
pub(crate) fn count_sends(metrics: &WorkerMetrics, upstreams: &Upstreams<UploadBody>) {
    if let Some(SendCounts { retries, repeats, over_budget }) = upstreams.take_counts() {
        let metrics = &metrics.upstream;
        metrics.retries.add(retries);
        metrics.repeats.add(repeats);
        metrics.repeats_denied.add(RepeatDenied::Budget, over_budget);
    }
}

/// Counts a failed exchange by its kind and, not too often, logs it.
pub(crate) fn count_failure(shared: &Shared, metrics: &WorkerMetrics, error: &UpstreamError) {
    let failure = match error.kind {
        UpstreamErrorKind::Connect => UpstreamFailure::Connect,
        UpstreamErrorKind::ConnectTimeout => UpstreamFailure::ConnectTimeout,
        UpstreamErrorKind::HeaderTimeout => UpstreamFailure::HeaderTimeout,
        UpstreamErrorKind::BodyTimeout => UpstreamFailure::BodyTimeout,
        UpstreamErrorKind::Reset => UpstreamFailure::Reset,
        UpstreamErrorKind::Malformed => UpstreamFailure::Malformed,
        UpstreamErrorKind::HeadTooLarge => UpstreamFailure::HeadTooLarge,
        UpstreamErrorKind::NoUpstream => UpstreamFailure::NoUpstream,
        UpstreamErrorKind::Full => {
            metrics.bound_hits.increment(Bound::UpstreamConnections);
            return;
        }
        // The client's doing; its connection fails next and is counted there.
        UpstreamErrorKind::RequestBody => return,
    };
    metrics.upstream.failures.increment(failure);
    if error.kind.source() == ErrorSource::Upstream {
        let which =
            error.upstream.map_or_else(|| "no upstream".to_owned(), |index| format!("upstream {index}"));
        shared.warn(Happening::UpstreamFailed, format_args!("{which}: {error}"));
    }
}
