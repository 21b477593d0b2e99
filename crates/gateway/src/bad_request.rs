//! Answers of the gateway's own to requests that it cannot take: each is counted, and says in its body what
//! is wrong.

use crate::body::Body;
use crate::client::Client;
use crate::shared::Shared;
use crate::upload::GatherError;
use crate::upstream_error::{plain, slow_upload};
use flashweir_http::FramingViolation;
use flashweir_http::fields::FieldsError;
use flashweir_http::serve::Connection;
use flashweir_telemetry::{BadRequest, Happening, StatusClass, WorkerMetrics};
use http::header::{ALLOW, CONNECTION};
use http::{HeaderValue, Method, Response, StatusCode, Version};

/// Methods that are passed on; named where one is not.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// A head of HTTP/2 that breaks a rule; the guard answers those of HTTP/1.
pub(crate) fn answer_violation(
    shared: &Shared,
    metrics: &WorkerMetrics,
    violation: FramingViolation,
    method: &Method,
) -> Response<Body> {
    let (kind, status) = match violation {
        FramingViolation::TooManyFields => {
            (BadRequest::TooManyFields, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
        }
        _ => (BadRequest::Framing, StatusCode::BAD_REQUEST),
    };
    metrics.requests.bad.increment(kind);
    metrics.responses.by_class.increment(StatusClass::ClientError);
    shared.warn(Happening::BadRequest, format_args!("refused a request: {}", violation.as_str()));
    plain(status, violation.as_str(), violation.explanation(), method).map(Body::own)
}

/// The stream is to speak a protocol that is not tunnelled, or its upstream speaks HTTP/2, where no 101
/// comes.
pub(crate) fn answer_no_websocket(metrics: &WorkerMetrics, method: &Method) -> Response<Body> {
    metrics.requests.bad.increment(BadRequest::Method);
    metrics.responses.by_class.increment(StatusClass::ServerError);
    let text = "Of streams, only WebSockets to services that speak HTTP/1.1 are tunnelled here.\n";
    plain(StatusCode::NOT_IMPLEMENTED, "protocol", text, method).map(Body::own)
}

/// No service is configured for this host (421, RFC 9110 §15.5.20); another server may have it.
pub(crate) fn answer_misdirected(metrics: &WorkerMetrics, method: &Method) -> Response<Body> {
    metrics.requests.bad.increment(BadRequest::Misdirected);
    metrics.responses.by_class.increment(StatusClass::ClientError);
    let text = "No service here has this host.\n";
    plain(StatusCode::MISDIRECTED_REQUEST, "misdirected", text, method).map(Body::own)
}

/// The head cannot be made fit to be sent on.
pub(crate) fn answer_unfit(metrics: &WorkerMetrics, error: FieldsError, method: &Method) -> Response<Body> {
    let (kind, name, text) = match error {
        FieldsError::Method => (BadRequest::Method, "method", "CONNECT and TRACE are not served here.\n"),
        FieldsError::Target => (BadRequest::Target, "target", "The request target names nothing here.\n"),
        FieldsError::Host => (BadRequest::Target, "host", "The request does not say for which host it is.\n"),
        FieldsError::Expectation => {
            (BadRequest::Malformed, "expectation", "The expectation cannot be met.\n")
        }
    };
    metrics.requests.bad.increment(kind);
    metrics.responses.by_class.increment(StatusClass::ClientError);
    let mut response = plain(error.status(), name, text, method);
    if error == FieldsError::Method {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(METHODS));
    }
    response.map(Body::own)
}

/// The body did not come, or not in time; nothing of the request has been sent on.
pub(crate) fn answer_unsent(
    metrics: &WorkerMetrics,
    client: &Client,
    connection: &Connection,
    error: GatherError,
    version: Version,
    method: &Method,
) -> Response<Body> {
    metrics.responses.by_class.increment(StatusClass::ClientError);
    let is_http1 = version < Version::HTTP_2;
    client.left_body_unread.set(is_http1);
    let mut response = match error {
        GatherError::Cut => slow_upload(metrics, method),
        // Bad framing is counted with the connection, which ends.
        GatherError::Broken => {
            let text = connection.violation().map(FramingViolation::explanation);
            let text = text.unwrap_or("The request's body could not be read.\n");
            plain(StatusCode::BAD_REQUEST, "request_body", text, method)
        }
    };
    if is_http1 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.map(Body::own)
}
