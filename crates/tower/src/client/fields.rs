//! Fields of an answer that concern its caller.

use flashweir_core::Duration;
use flashweir_feedback::caller::{Answer, Quota, quota_of, retry_after_of};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::time::SystemTime;

/// The field by which a sender says its name: a node that signs needs it, for a signature is for one sender.
pub const SENDER: HeaderName = HeaderName::from_static("flashweir-sender");
const OVERLOAD: HeaderName = HeaderName::from_static(flashweir_feedback::NAME);

/// The fields of an answer that a [`Node`](crate::client::Node) reads.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    status: StatusCode,
    headers: &'a HeaderMap,
}

impl<'a> Fields<'a> {
    /// The fields of a response.
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
        quota_of(Some(self.status.as_u16()), |name| value(self.headers, name), until_date)
    }
}

/// The quota in the trailers of an answer.
pub(crate) fn quota_of_trailers(trailers: &HeaderMap) -> Option<Quota> {
    quota_of(None, |name| value(trailers, name), until_date)
}

/// Time until this request may be tried again, as far as its answer says: `grpc-retry-pushback-ms` before
/// `Retry-After`. `Some(None)` where the server forbids it, `None` where it says nothing that can be read.
#[must_use]
pub fn retry_after(headers: &HeaderMap) -> Option<Option<Duration>> {
    retry_after_of(|name| value(headers, name), until_date)
}

fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a [u8]> {
    headers.get(name).map(HeaderValue::as_bytes)
}

/// The time until an HTTP date, zero for one that is over.
fn until_date(value: &[u8]) -> Option<Duration> {
    let date = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
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
