//! Answers that need no service: to a head that is refused, and to a client that waits with its body.

use super::Sink;
use crate::violation::FramingViolation;

/// Interim response that asks for the body (RFC 9110 §15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Writes the answer to a refused head, which names the rule, without its text where the method was HEAD. The
/// connection ends after it. `date` is the value of `Date`.
///
/// ```
/// use flashweir_http1::{FramingViolation, write::write_refusal};
/// let mut out = Vec::new();
/// write_refusal(FramingViolation::BareLf, false, b"Sun, 06 Nov 1994 08:49:37 GMT", &mut out);
/// assert!(out.starts_with(b"HTTP/1.1 400 Bad Request\r\n"));
/// ```
pub fn write_refusal(violation: FramingViolation, is_head: bool, date: &[u8], out: &mut impl Sink) {
    let text = violation.explanation().as_bytes();
    out.put(match violation {
        FramingViolation::HeadTooLarge | FramingViolation::TooManyFields => {
            b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
        }
        _ => b"HTTP/1.1 400 Bad Request\r\n",
    });
    out.put(b"connection: close\r\ncontent-type: text/plain; charset=utf-8\r\ncache-control: no-store\r\n");
    super::write_field(out, b"content-length", super::Decimal::new(text.len() as u64).as_bytes());
    super::write_field(out, b"flashweir-error", violation.as_str().as_bytes());
    super::write_field(out, b"date", date);
    out.put(b"\r\n");
    if !is_head {
        out.put(text);
    }
}
