//! The requests of one class, prepared once before the run.

use crate::{LoadError, LoadTarget};
use bytes::Bytes;
use flashweir_core::limits::LOAD_HEAD_BYTES;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};
use http_body_util::Full;
use std::io::IoSlice;

/// A request but for its path, in the forms in which it is sent: sending one costs no formatting, and over
/// HTTP/1 no allocation.
#[derive(Clone, Debug)]
pub struct Prepared {
    method: Method,
    body: Bytes,
    /// HTTP/1: the request line up to the path.
    before_path: Bytes,
    /// HTTP/1: from after the path to the empty line, if the connection is to be kept.
    after_path_keeping: Bytes,
    /// The same if this is the connection's only request.
    after_path_closing: Bytes,
    http2: Http2Head,
}

/// Pseudo-header fields of HTTP/2, and the fields that it may carry.
#[derive(Clone, Debug)]
struct Http2Head {
    scheme: Scheme,
    authority: Authority,
    fields: HeaderMap,
}

impl Prepared {
    /// Makes a request ready. Fields given here replace those sent by default (`Host`, `User-Agent`);
    /// `Content-Length` follows from the body.
    ///
    /// # Errors
    /// [`LoadError::Plan`]: `CONNECT`, which no load test means; a field that would contradict the body; more
    /// than one `Host`, or one that is none; fields longer than any server reads.
    pub fn new(
        target: &LoadTarget,
        method: Method,
        fields: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Self, LoadError> {
        let wrong = |why: &str| LoadError::Plan(why.to_owned());
        if method == Method::CONNECT {
            return Err(wrong("method CONNECT cannot be sent: it asks for a tunnel, not for an answer"));
        }
        let mut all = default_fields(target)?;
        for (name, _) in fields {
            all.remove(name);
        }
        for (name, value) in fields {
            all.append(name, value.clone());
        }
        check_body_fields(&all, &body)?;
        let says_length = !body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(&method);
        if says_length {
            all.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        let mut hosts = all.get_all(header::HOST).iter();
        let authority = hosts.next().and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let authority = authority.ok_or_else(|| wrong("field Host: expected HOST[:PORT]"))?;
        if hosts.next().is_some() {
            return Err(wrong("field Host may be given only once"));
        }
        let after_path_keeping = http1_head(&all);
        if after_path_keeping.len() > LOAD_HEAD_BYTES {
            return Err(LoadError::Plan(format!("the fields to send exceed {LOAD_HEAD_BYTES} bytes")));
        }
        if !all.contains_key(header::CONNECTION) {
            all.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let after_path_closing = http1_head(&all);
        for name in &ONLY_HTTP1 {
            all.remove(name);
        }
        let scheme = if target.tls { Scheme::HTTPS } else { Scheme::HTTP };
        Ok(Self {
            before_path: Bytes::from(format!("{method} ")),
            method,
            body,
            after_path_keeping,
            after_path_closing,
            http2: Http2Head { scheme, authority, fields: all },
        })
    }

    /// The bytes of the request over HTTP/1, in order; some may be empty.
    pub(super) fn http1<'a>(&'a self, path: &'a str, keep: bool) -> [IoSlice<'a>; 4] {
        let after_path = if keep { &self.after_path_keeping } else { &self.after_path_closing };
        [&self.before_path[..], path.as_bytes(), &after_path[..], &self.body[..]].map(IoSlice::new)
    }

    /// The request over HTTP/2; `None` if the path is none.
    pub(super) fn http2(&self, path: &str) -> Option<Request<Full<Bytes>>> {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.http2.scheme.clone());
        parts.authority = Some(self.http2.authority.clone());
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = Uri::from_parts(parts).ok()?;
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = self.http2.fields.clone();
        Some(request)
    }

    /// The answer to it may have a body.
    pub(super) fn asks_for_body(&self) -> bool {
        self.method != Method::HEAD
    }

    /// Sending it twice does no harm (RFC 9110 §9.2.1).
    pub(super) fn is_safe(&self) -> bool {
        self.method.is_safe()
    }
}

fn default_fields(target: &LoadTarget) -> Result<HeaderMap, LoadError> {
    let host = HeaderValue::from_str(&target.host)
        .map_err(|error| LoadError::Plan(format!("host \"{}\": {error}", target.host)))?;
    let mut fields = HeaderMap::new();
    fields.insert(header::HOST, host);
    let agent = HeaderValue::from_static(concat!("flashweir-load/", env!("CARGO_PKG_VERSION")));
    fields.insert(header::USER_AGENT, agent);
    Ok(fields)
}

fn check_body_fields(fields: &HeaderMap, body: &Bytes) -> Result<(), LoadError> {
    let wrong = |why: String| Err(LoadError::Plan(why));
    if fields.contains_key(header::TRANSFER_ENCODING) {
        return wrong("field Transfer-Encoding cannot be sent: bodies are sent whole".to_owned());
    }
    if fields.contains_key(header::EXPECT) {
        return wrong("field Expect cannot be sent: bodies are sent at once".to_owned());
    }
    let length = body.len().to_string();
    match fields.get_all(header::CONTENT_LENGTH).iter().find(|value| value.as_bytes() != length.as_bytes()) {
        Some(given) => wrong(format!("field Content-Length is {given:?}, but the body has {length} bytes")),
        None => Ok(()),
    }
}

/// From after the path to the empty line.
fn http1_head(fields: &HeaderMap) -> Bytes {
    let mut head = b" HTTP/1.1\r\n".to_vec();
    // Host goes first, as RFC 9110 §7.2 asks.
    let (first, rest): (Vec<_>, Vec<_>) = fields.iter().partition(|(name, _)| **name == header::HOST);
    for (name, value) in first.into_iter().chain(rest) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    Bytes::from(head)
}

/// Fields about one HTTP/1 connection (RFC 9113 §8.2.2), and `Host`, which HTTP/2 says as `:authority`.
const ONLY_HTTP1: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::UPGRADE,
    header::TE,
    header::HOST,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> LoadTarget {
        LoadTarget::parse("http://127.0.0.1:8080/").unwrap()
    }

    fn prepare(method: Method, fields: &[(HeaderName, &'static str)], body: &'static str) -> Prepared {
        try_prepare(method, fields, body).unwrap()
    }

    fn try_prepare(
        method: Method,
        fields: &[(HeaderName, &'static str)],
        body: &'static str,
    ) -> Result<Prepared, LoadError> {
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        Prepared::new(&target(), method, &fields, Bytes::from_static(body.as_bytes()))
    }

    fn text(prepared: &Prepared, keep: bool) -> String {
        prepared.http1("/a?b", keep).iter().map(|piece| std::str::from_utf8(piece).unwrap()).collect()
    }

    #[test]
    fn a_request_is_written_as_http1() {
        let agent = concat!("user-agent: flashweir-load/", env!("CARGO_PKG_VERSION"), "\r\n");
        let get = prepare(Method::GET, &[], "");
        assert_eq!(text(&get, true), format!("GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:8080\r\n{agent}\r\n"));
        let post = prepare(Method::POST, &[(header::USER_AGENT, "me"), (header::ACCEPT, "*/*")], "hello");
        let post = text(&post, false);
        let (head, body) = post.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "hello");
        let mut lines: Vec<_> = head.split("\r\n").collect();
        assert_eq!(lines[..2], ["POST /a?b HTTP/1.1", "host: 127.0.0.1:8080"]);
        lines[2..].sort_unstable();
        assert_eq!(lines[2..], ["accept: */*", "connection: close", "content-length: 5", "user-agent: me"]);
    }

    #[test]
    fn only_people_who_do_not_share_say_close() {
        let get = prepare(Method::GET, &[], "");
        assert!(!text(&get, true).contains("connection"));
        assert!(text(&get, false).contains("connection: close\r\n"));
        let own = prepare(Method::GET, &[(header::CONNECTION, "keep-alive")], "");
        assert!(text(&own, false).contains("connection: keep-alive\r\n"));
        assert!(!text(&own, false).contains("close"));
    }

    #[test]
    fn http2_says_in_its_own_way_what_http1_says_in_fields() {
        let post =
            prepare(Method::PUT, &[(header::HOST, "shop.example"), (header::CONNECTION, "close")], "x");
        let request = post.http2("/a?b").unwrap();
        assert_eq!(request.uri(), "http://shop.example/a?b");
        assert!(request.headers().get(header::HOST).is_none());
        assert!(request.headers().get(header::CONNECTION).is_none());
        assert_eq!(request.headers()[header::CONTENT_LENGTH], "1");
        assert!(post.http2("no path").is_none());
    }

    #[test]
    fn what_contradicts_itself_is_refused_by_name() {
        let check = |method: Method, fields: &[(HeaderName, &'static str)], wanted: &str| {
            let message = try_prepare(method, fields, "12345").unwrap_err().to_string();
            assert!(message.contains(wanted), "{message:?} lacks {wanted:?}");
        };
        check(Method::CONNECT, &[], "CONNECT");
        check(Method::POST, &[(header::CONTENT_LENGTH, "4")], "5 bytes");
        check(Method::POST, &[(header::TRANSFER_ENCODING, "chunked")], "Transfer-Encoding");
        check(Method::POST, &[(header::EXPECT, "100-continue")], "Expect");
        check(Method::GET, &[(header::HOST, "a"), (header::HOST, "b")], "only once");
        check(Method::GET, &[(header::HOST, "a b")], "Host");
        assert!(try_prepare(Method::POST, &[(header::CONTENT_LENGTH, "5")], "12345").is_ok());
    }
}
