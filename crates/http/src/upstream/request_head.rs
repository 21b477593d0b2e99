//! Writes the head of a request to an HTTP/1.1 upstream.

use super::RequestBody;
use super::connect::ConnectTarget;
use crate::head::{ReceivedHead, SpanHead};
use flashweir_http1::body::BodyFraming;
use flashweir_http1::connection::RequestStart;
use flashweir_http1::head::Method;
use flashweir_http1::write::{Decimal, FramingField, write_field};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, Version};

/// Gives the head the form that HTTP/1.1 wants: `Host`, a target without an authority, and a framing for a
/// body that is there. Doing it twice changes nothing.
pub(super) fn adapt<B: RequestBody>(head: &mut ReceivedHead, body: &B, target: &ConnectTarget) {
    // Spans are written so.
    let ReceivedHead::Parts(parts) = head else { return };
    if parts.headers.get(HOST).is_none_or(HeaderValue::is_empty) {
        let authority = parts.uri.authority().unwrap_or_else(|| target.authority());
        // An authority has no byte a field value cannot hold.
        if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
            parts.headers.insert(HOST, host);
        }
    }
    if parts.uri.authority().is_some() {
        let path = parts.uri.path_and_query().cloned();
        parts.uri = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    }
    let is_unknown = !body.is_end_stream() && body.size_hint().exact().is_none();
    if is_unknown && !parts.headers.contains_key(CONTENT_LENGTH) {
        parts.headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    parts.version = Version::HTTP_11;
}

/// Facts of the request that the connection depends on. A body that is there but does not know its length is
/// sent in chunks.
pub(super) fn start<B: RequestBody>(head: &ReceivedHead, body: &B) -> RequestStart {
    match head {
        ReceivedHead::Spans(head) => start_of_spans(head, body),
        ReceivedHead::Parts(parts) => start_of_parts(parts, body),
    }
}

fn start_of_spans<B: RequestBody>(head: &SpanHead, body: &B) -> RequestStart {
    let body = match (body.is_end_stream(), head.announced()) {
        (true, _) => BodyFraming::None,
        (false, BodyFraming::Length(length)) => BodyFraming::Length(length),
        // Chunks that were gathered have a length now.
        (false, _) => body.size_hint().exact().map_or(BodyFraming::Chunked, BodyFraming::Length),
    };
    RequestStart { method: head.as_head().method(), body, wants_upgrade: false, is_last: false }
}

fn start_of_parts<B: RequestBody>(parts: &Parts, body: &B) -> RequestStart {
    let fields = &parts.headers;
    RequestStart {
        method: Method::of(parts.method.as_str().as_bytes()),
        body: framing(fields, body),
        wants_upgrade: fields.contains_key(UPGRADE),
        is_last: fields.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close")),
    }
}

fn framing<B: RequestBody>(fields: &HeaderMap, body: &B) -> BodyFraming {
    if body.is_end_stream() {
        return BodyFraming::None;
    }
    if fields.contains_key(TRANSFER_ENCODING) {
        return BodyFraming::Chunked;
    }
    let announced = fields.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    match announced.or_else(|| body.size_hint().exact()) {
        Some(length) => BodyFraming::Length(length),
        None => BodyFraming::Chunked,
    }
}

/// Writes the head; its target is in origin-form, or `*`.
pub(super) fn write(head: &ReceivedHead, framing: BodyFraming, out: &mut Vec<u8>) {
    match head {
        ReceivedHead::Spans(head) => {
            // A body that was announced to be empty still is.
            let is_empty = framing == BodyFraming::None && head.announced() == BodyFraming::Length(0);
            head.write(if is_empty { FramingField::Length(0) } else { framing.into() }, out);
        }
        ReceivedHead::Parts(parts) => write_parts(parts, framing, out),
    }
}

fn write_parts(parts: &Parts, framing: BodyFraming, out: &mut Vec<u8>) {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    for part in [parts.method.as_str(), " ", target, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in &parts.headers {
        // A length that the body does not have would take the next request for the body.
        let is_true = match framing {
            BodyFraming::Length(_) => true,
            BodyFraming::None => value == "0",
            _ => false,
        };
        if *name != TRANSFER_ENCODING && (is_true || *name != CONTENT_LENGTH) {
            write_field(out, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    match framing {
        BodyFraming::Chunked => write_field(out, b"transfer-encoding", b"chunked"),
        BodyFraming::Length(length) if !parts.headers.contains_key(CONTENT_LENGTH) => {
            write_field(out, b"content-length", Decimal::new(length).as_bytes());
        }
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use flashweir_http1::head::{HeadLimits, RequestReader};
    use http::Request;
    use http_body_util::{Either, Empty, Full};

    type Body = Either<Empty<Bytes>, Full<Bytes>>;

    /// The same of a head that is spans, without what `write` does not depend on.
    fn written_of_spans(head: &str, body: Body) -> (BodyFraming, String) {
        let bytes = Bytes::copy_from_slice(head.as_bytes());
        let mut reader = RequestReader::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
        reader.read(&bytes).expect("a good head");
        let head = ReceivedHead::new(bytes, reader.take().expect("a whole head")).expect("a head");
        assert!(head.as_parts().is_none());
        let (start, mut out) = (start(&head, &body), Vec::new());
        write(&head, start.body, &mut out);
        (start.body, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn spans_frame_the_body_that_is_there() {
        let none = || Either::Left(Empty::new());
        let some = || Either::Right(Full::from("hello"));
        for (line, field, body, framing, expected) in [
            ("GET", "", none(), BodyFraming::None, ""),
            ("POST", "Content-Length: 0\r\n", none(), BodyFraming::None, "Content-Length: 0\r\n"),
            ("POST", "Content-Length: 5\r\n", some(), BodyFraming::Length(5), "Content-Length: 5\r\n"),
            ("POST", "Content-Length: 5\r\n", none(), BodyFraming::None, ""),
            (
                "PUT",
                "Transfer-Encoding: chunked\r\n",
                some(),
                BodyFraming::Length(5),
                "Content-Length: 5\r\n",
            ),
            ("PUT", "Transfer-Encoding: chunked\r\n", none(), BodyFraming::None, ""),
        ] {
            let head = format!("{line} / HTTP/1.1\r\nHost: h\r\n{field}\r\n");
            let expected = format!("{line} / HTTP/1.1\r\nHost: h\r\n{expected}\r\n");
            assert_eq!(written_of_spans(&head, body), (framing, expected), "{head}");
        }
    }

    fn written(request: Request<Body>) -> (BodyFraming, String) {
        let (parts, body) = request.into_parts();
        let head = ReceivedHead::from(parts);
        let (start, mut out) = (start(&head, &body), Vec::new());
        write(&head, start.body, &mut out);
        (start.body, String::from_utf8(out).expect("text"))
    }

    #[test]
    fn the_head_frames_the_body_that_is_there() {
        let none = || Either::Left(Empty::new());
        let some = |text: &'static str| Either::Right(Full::from(text));
        let get =
            Request::get("/a?b").header("host", "h").header("transfer-encoding", "chunked").body(none());
        assert_eq!(
            written(get.expect("a request")),
            (BodyFraming::None, "GET /a?b HTTP/1.1\r\nhost: h\r\n\r\n".into())
        );
        let post = Request::post("/").header("content-length", "0").body(none()).expect("a request");
        assert_eq!(written(post), (BodyFraming::None, "POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n".into()));
        let post = Request::post("/").body(some("hello")).expect("a request");
        assert_eq!(
            written(post),
            (BodyFraming::Length(5), "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n".into())
        );
        let lying = Request::post("/").header("content-length", "5").body(none()).expect("a request");
        assert_eq!(written(lying), (BodyFraming::None, "POST / HTTP/1.1\r\n\r\n".into()));
        let chunked = Request::put("*").header("transfer-encoding", "chunked").header("content-length", "9");
        assert_eq!(
            written(chunked.body(some("hello")).expect("a request")),
            (BodyFraming::Chunked, "PUT * HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n".into())
        );
    }
}
