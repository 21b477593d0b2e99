//! Writes the head of a response to a client of HTTP/1.1.

use flashweir_http1::connection::ResponseStart;
use flashweir_http1::write::{ConnectionField, Decimal, FramingField, write_field};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use hyper::ext::ReasonPhrase;

/// Returns whether the service wants the connection to end with this response.
pub(super) fn is_last(fields: &HeaderMap) -> bool {
    fields.get_all(CONNECTION).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// Length of the body: that which the head announces, else that which the body knows. Of an answer to HEAD
/// and of a 304 only the former says anything.
pub(super) fn length<B: Body>(parts: &Parts, is_head: bool, body: &B) -> Option<u64> {
    let announced = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let is_known = !is_head && parts.status != StatusCode::NOT_MODIFIED;
    announced.or_else(|| body.size_hint().exact().filter(|_| is_known))
}

/// Writes the head. What frames the message is said as `start` has it.
pub(super) fn write(parts: &Parts, start: &ResponseStart, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(parts.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(match parts.extensions.get::<ReasonPhrase>() {
        Some(reason) => reason.as_bytes(),
        None => parts.status.canonical_reason().unwrap_or("<none>").as_bytes(),
    });
    out.extend_from_slice(b"\r\n");
    for (name, value) in &parts.headers {
        let is_framing = *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING;
        let is_replaced = *name == CONNECTION && start.connection != ConnectionField::None;
        if !is_framing && !is_replaced {
            write_field(out, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    match start.framing {
        FramingField::None => {}
        FramingField::Length(length) => {
            write_field(out, b"content-length", Decimal::new(length).as_bytes());
        }
        FramingField::Chunked => write_field(out, b"transfer-encoding", b"chunked"),
    }
    match start.connection {
        ConnectionField::Close => write_field(out, b"connection", b"close"),
        ConnectionField::KeepAlive => write_field(out, b"connection", b"keep-alive"),
        ConnectionField::Upgrade => write_field(out, b"connection", b"upgrade"),
        ConnectionField::None | ConnectionField::Trailers => {}
    }
    out.extend_from_slice(b"\r\n");
}
