//! HTTP/2 heads: what the rules accept, written as HTTP/1.1 for an upstream, is one request with the same
//! fields for the strict guard and for `httparse`. So no request gets past a rule by changing its version.
//!
//! The first line is method, space and target; each further one is a field's name, a colon and its value.

use super::{LIMITS, STRANGER};
use crate::reference::{Kind, lenient, strict, write_head};
use flashweir_http::fields::prepare_request;
use flashweir_http::rules::judge_http2;
use flashweir_http1::head::{HeadLimits, RequestReader};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Uri, Version};

pub(crate) fn run(data: &[u8]) {
    if let Some(head) = head_of(data) {
        check(head);
    }
}

/// Panics where what the rules accept is not one request of HTTP/1.1.
pub(super) fn check(mut head: Parts) {
    if judge_http2(&head, LIMITS.fields_max).is_err() {
        return;
    }
    let before = head.headers.clone();
    let length = before.get("content-length").map_or(0, decimal);
    if prepare_request(&mut head, &STRANGER).is_err() {
        return;
    }
    let mut bytes = write_head(&head);
    let head_bytes = bytes.len();
    // Enough of a body for the next head to be found where it begins.
    if length > 1 << 12 {
        return;
    }
    bytes.resize(head_bytes + length, b'x');
    let mut reader = RequestReader::new(HeadLimits { bytes_max: 1 << 16, fields_max: 128 });
    assert_eq!(reader.read(&bytes), Ok(Some(head_bytes)), "{}", bytes.escape_ascii());
    let (read, end) = strict(&bytes, Kind::Requests);
    assert_eq!(read.len(), 1, "{end:?}: {}", bytes.escape_ascii());
    assert_eq!(lenient(&bytes).0, read, "{}", bytes.escape_ascii());
    let (read, sent) = (&read[0], &head.headers);
    assert_eq!((read.method(), read.target()), (head.method.as_str(), target(&head)));
    assert_eq!(read.fields.len(), sent.len());
    for (name, value) in sent {
        assert!(read.all(name.as_str()).any(|read| read == value.as_bytes()), "{name} is lost");
    }
    for name in
        ["flashweir-decision", "keep-alive", "proxy-connection", "transfer-encoding", "x_forwarded_for"]
    {
        assert!(!sent.contains_key(name), "{name} was passed on");
    }
    assert_eq!(sent.get_all("x-forwarded-for").iter().collect::<Vec<_>>(), ["192.0.2.7"]);
}

fn target(head: &Parts) -> &str {
    head.uri.path_and_query().map_or("", |target| target.as_str())
}

fn decimal(value: &HeaderValue) -> usize {
    value.to_str().ok().and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn head_of(data: &[u8]) -> Option<Parts> {
    let mut lines = data.split(|&byte| byte == b'\n');
    let first = str::from_utf8(lines.next()?).ok()?;
    let (method, target) = first.split_once(' ')?;
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    let uri: Uri = target.parse().ok()?;
    let mut head = Request::new(()).into_parts().0;
    (head.method, head.uri, head.version) = (method, uri, Version::HTTP_2);
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        // The library refuses what HTTP/2 itself forbids (RFC 9113 §8.2.2).
        if ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]
            .contains(&name.as_str())
        {
            continue;
        }
        head.headers.try_append(name, HeaderValue::from_bytes(&line[colon + 1..]).ok()?).ok()?;
    }
    Some(head)
}
