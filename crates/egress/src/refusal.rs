//! Answers of our own: quick and honest. Status, `Retry-After`, and one field that says whose limit it was.
//!
//! `Flashweir-Egress: limit; target="api"; node="api@10.0.0.5:80"; rate=12.500; age_ms=80` (an Item of RFC
//! 9651 with parameters).

use crate::body::Body;
use crate::target::Endpoint;
use bytes::Bytes;
use flashweir_core::Duration;
use flashweir_telemetry::EgressRefusal;
use flashweir_tower::client::{Refused, Why};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use std::fmt::Write as _;

const EGRESS: HeaderName = HeaderName::from_static("flashweir-egress");

/// Response to a refused request, in place of an answer of the node.
#[derive(Clone, Debug)]
pub(crate) struct RefusalResponse {
    pub(crate) why: EgressRefusal,
    /// For people.
    text: String,
    /// Parameters of the field, and when to come back.
    parameters: String,
    retry_after: Option<Duration>,
}

impl RefusalResponse {
    /// Without a node.
    pub(crate) fn new(why: EgressRefusal, target: &str, text: &str) -> Self {
        let parameters = if target.is_empty() { String::new() } else { format!("; target=\"{target}\"") };
        Self { why, text: text.to_owned(), parameters, retry_after: None }
    }

    /// One that a node's state caused.
    pub(crate) fn of_node(target: &str, endpoint: &Endpoint, refused: &Refused) -> Self {
        let report = endpoint.caller.node().report();
        let mut parameters = format!("; target=\"{target}\"; node=\"{}\"", refused.node);
        // Writing to a string cannot fail.
        if let Some(rate) = report.rate {
            let _ = write!(parameters, "; rate={:.3}", rate.per_second());
        }
        if let Some(age) = report.feedback_age {
            let _ = write!(parameters, "; age_ms={}", age.as_millis());
        }
        let why = match refused.why {
            Why::Limit(_) => EgressRefusal::Limit,
            Why::Silent => EgressRefusal::Silent,
            Why::Deadline | Why::NoAnswer => EgressRefusal::Deadline,
            Why::RetryBudget => EgressRefusal::RetryBudget,
        };
        let retry_after = (why != EgressRefusal::Deadline).then_some(refused.retry_after);
        Self { why, text: refused.to_string(), parameters, retry_after }
    }

    /// The response.
    pub(crate) fn respond(&self, method: &Method) -> Response<Body> {
        let text = format!("{}\n", self.text);
        let body = if method == Method::HEAD { Bytes::new() } else { Bytes::from(text.clone()) };
        let mut response = Response::new(Body::Own(Full::new(body)));
        *response.status_mut() = status(self.why);
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        fields.insert(CONTENT_LENGTH, text.len().into());
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(after) = self.retry_after {
            // Rounded up: coming back earlier is of no use. Never 0, which asks for a retry at once.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            fields.insert(RETRY_AFTER, seconds.max(1).into());
        }
        let field = format!("{}{}", flashweir_telemetry::Label::as_str(self.why), self.parameters);
        // Names were checked to be printable when the configuration was read.
        fields.extend(HeaderValue::try_from(field).ok().map(|value| (EGRESS, value)));
        response
    }
}

/// 503 where the service is short, 429 where this caller retries too much, 504 where time is over.
fn status(why: EgressRefusal) -> StatusCode {
    match why {
        EgressRefusal::Limit
        | EgressRefusal::Silent
        | EgressRefusal::Connections
        | EgressRefusal::Unresolved => StatusCode::SERVICE_UNAVAILABLE,
        EgressRefusal::RetryBudget => StatusCode::TOO_MANY_REQUESTS,
        EgressRefusal::Deadline => StatusCode::GATEWAY_TIMEOUT,
        EgressRefusal::Failed => StatusCode::BAD_GATEWAY,
        EgressRefusal::NoTarget => StatusCode::MISDIRECTED_REQUEST,
        EgressRefusal::BadRequest => StatusCode::BAD_REQUEST,
    }
}
