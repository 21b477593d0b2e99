//! Writes the head of a response to a client of HTTP/1.1.

use super::date;
use crate::head::AnswerHead;
use flashweir_http1::connection::ResponseStart;
use flashweir_http1::write::{ConnectionField, Decimal, FramingField, write_field};
use http::StatusCode;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::response::Parts;
use http_body::Body;
use hyper::ext::ReasonPhrase;

/// Returns whether the service wants the connection to end with this response. What an upstream says of its
/// own connection is no matter of this one.
pub(super) fn is_last(head: &AnswerHead) -> bool {
    match head {
        AnswerHead::Spans(_) => false,
        AnswerHead::Own(head) => head.is_last(),
        AnswerHead::Parts(Parts { headers, .. }) => {
            let mut values = headers.get_all(CONNECTION).iter();
            values.any(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
        }
    }
}

/// Length of the body: that which the head announces, else that which the body knows. Of an answer to HEAD
/// and of a 304 only the former says anything.
pub(super) fn length<B: Body>(head: &AnswerHead, is_head: bool, body: &B) -> Option<u64> {
    let announced = match head {
        AnswerHead::Spans(head) => head.as_head().content_length(),
        AnswerHead::Own(head) => Some(head.length()),
        AnswerHead::Parts(parts) => {
            parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok())
        }
    };
    let is_known = !is_head && head.status() != StatusCode::NOT_MODIFIED;
    announced.or_else(|| body.size_hint().exact().filter(|_| is_known))
}

/// Writes the head. What frames the message is said as `start` has it.
pub(super) fn write(head: &mut AnswerHead, start: &ResponseStart, out: &mut Vec<u8>) {
    match head {
        AnswerHead::Spans(head) => head.write(start, date::now, out),
        AnswerHead::Own(head) => {
            let reason = head.status().canonical_reason().unwrap_or_default();
            write_status(head.status(), reason.as_bytes(), out);
            out.extend_from_slice(head.lines());
            if !head.has_date() {
                write_field(out, b"date", date::now().as_bytes());
            }
            write_end(start, out);
        }
        AnswerHead::Parts(parts) => {
            parts.headers.entry(DATE).or_insert_with(date::now);
            write_parts(parts, start, out);
        }
    }
}

fn write_parts(parts: &Parts, start: &ResponseStart, out: &mut Vec<u8>) {
    let reason = match parts.extensions.get::<ReasonPhrase>() {
        Some(reason) => reason.as_bytes(),
        None => parts.status.canonical_reason().unwrap_or("<none>").as_bytes(),
    };
    write_status(parts.status, reason, out);
    for (name, value) in &parts.headers {
        let is_framing = *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING;
        let is_replaced = *name == CONNECTION && start.connection != ConnectionField::None;
        if !is_framing && !is_replaced {
            write_field(out, name.as_str().as_bytes(), value.as_bytes());
        }
    }
    write_end(start, out);
}

fn write_status(status: StatusCode, reason: &[u8], out: &mut Vec<u8>) {
    for part in [b"HTTP/1.1 ", status.as_str().as_bytes(), b" ", reason, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Writes what frames the message, and the end of the head.
fn write_end(start: &ResponseStart, out: &mut Vec<u8>) {
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
