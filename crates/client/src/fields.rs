//! What the fields of an answer say to its caller.

use flashweir_caller::{Answer, Quota, parse_pushback_ms, parse_rate_limit, parse_seconds};
use flashweir_core::Duration;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, StatusCode};
use std::time::SystemTime;

/// The field by which a sender says its name: a node that signs needs it, for a signature is for one sender.
pub const SENDER: HeaderName = HeaderName::from_static("flashweir-sender");
const OVERLOAD: HeaderName = HeaderName::from_static(flashweir_feedback::NAME);
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// The fields of an answer that a [`Node`](crate::Node) reads.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    status: StatusCode,
    headers: &'a HeaderMap,
}

impl<'a> Fields<'a> {
    /// Those of a response.
    #[must_use]
    pub fn new(status: StatusCode, headers: &'a HeaderMap) -> Self {
        Self { status, headers }
    }

    pub(crate) fn answer(&self) -> Answer<'a> {
        let mut lines = self.headers.get_all(OVERLOAD).iter();
        let overload = lines.next().map(|line| line.as_bytes());
        Answer { overload, has_further_lines: lines.next().is_some(), quota: self.quota() }
    }

    fn quota(&self) -> Option<Quota> {
        if let Some(quota) = self.headers.get(RATE_LIMIT).and_then(|value| parse_rate_limit(value.as_bytes()))
        {
            return Some(quota);
        }
        let is_refused = self.status == StatusCode::TOO_MANY_REQUESTS;
        let reset = is_refused.then(|| seconds(self.headers)).flatten()?;
        Some(Quota { remaining: 0, reset })
    }
}

/// When this request may be tried again, as far as its answer says: `grpc-retry-pushback-ms` before `Retry-After`. `Some(None)` where
/// the server forbids it, `None` where it says nothing that can be read.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Option<Duration>> {
    match headers.get(PUSHBACK) {
        Some(value) => Some(parse_pushback_ms(value.as_bytes())),
        None => seconds(headers).map(Some),
    }
}

/// `Retry-After`: seconds, or a date.
fn seconds(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?;
    parse_seconds(value.as_bytes()).or_else(|| {
        let date = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
        // A date that is over: now.
        Some(date.duration_since(SystemTime::now()).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn pushback_comes_before_retry_after() {
        let of = |fields: &[(&'static str, &str)]| retry_after(&headers(fields));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("retry-after", "3")]), Some(Some(Duration::from_secs(3))));
        assert_eq!(of(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(Some(Duration::ZERO)));
        assert_eq!(of(&[("retry-after", "soon")]), None);
        let both = [("retry-after", "3"), ("grpc-retry-pushback-ms", "40")];
        assert_eq!(of(&both), Some(Some(Duration::from_millis(40))));
        assert_eq!(of(&[("grpc-retry-pushback-ms", "-1")]), Some(None));
    }

    #[test]
    fn a_quota_is_that_of_ratelimit_or_of_a_429() {
        let of = |status: u16, fields: &[(&'static str, &str)]| {
            let headers = headers(fields);
            let answer = Fields::new(StatusCode::from_u16(status).unwrap(), &headers).answer();
            answer.quota.map(|quota| (quota.remaining, quota.reset.as_secs()))
        };
        assert_eq!(of(200, &[("ratelimit", "\"a\";r=7;t=2")]), Some((7, 2)));
        assert_eq!(of(429, &[("retry-after", "5")]), Some((0, 5)));
        assert_eq!(of(503, &[("retry-after", "5")]), None, "the service is short, not this caller's quota");
        let twice = headers(&[("flashweir-overload", ":a:"), ("flashweir-overload", ":b:")]);
        assert!(Fields::new(StatusCode::OK, &twice).answer().has_further_lines);
    }
}
