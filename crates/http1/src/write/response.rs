//! Writes the head of a response to the client.

use super::copy::copy_fields;
use super::{ConnectionField, Decimal, FramingField, Sink};
use crate::head::{FieldSet, KnownField, ResponseHead};

/// Status of an answer that names the protocols to upgrade to (RFC 9110 §15.5.22).
const UPGRADE_REQUIRED: u16 = 426;

/// Parts of a response's head that differ from the received one.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutgoingResponse<'a> {
    /// Framing of the body as it is sent on.
    pub framing: FramingField,
    /// Option of the client's connection.
    pub connection: ConnectionField,
    /// Fields that are not copied besides those of one connection: those that `lines` replaces.
    pub removed: FieldSet,
    /// Whole field lines with their ends, to be put behind the copied ones.
    pub lines: &'a [u8],
}

/// Writes the head, interim or final, with the version of this hop and the received reason phrase.
///
/// ```
/// use flashweir_http1::head::{HeadLimits, ResponseReader};
/// use flashweir_http1::write::{FramingField, OutgoingResponse, write_response};
/// let bytes = b"HTTP/1.0 200 Fine\r\nContent-Length: 2, 2\r\nKeep-Alive: x\r\nETag: y\r\n\r\n";
/// let mut reader = ResponseReader::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
/// reader.read(bytes).expect("a good head");
/// let (head, mut out) = (reader.head(bytes).expect("a whole head"), Vec::new());
/// let changes = OutgoingResponse { framing: FramingField::Length(2), ..OutgoingResponse::default() };
/// write_response(&head, &changes, &mut out);
/// assert_eq!(out, b"HTTP/1.1 200 Fine\r\nETag: y\r\nContent-Length: 2\r\n\r\n");
/// ```
pub fn write_response(head: &ResponseHead<'_>, changes: &OutgoingResponse<'_>, out: &mut impl Sink) {
    write_status_line(head.status(), head.reason(), out);
    let mut connection = changes.connection;
    if head.status() == UPGRADE_REQUIRED && connection == ConnectionField::None {
        connection = ConnectionField::Upgrade;
    }
    let names_upgrade = connection == ConnectionField::Upgrade || head.status() == UPGRADE_REQUIRED;
    let kept = if names_upgrade { FieldSet::of(&[KnownField::Upgrade]) } else { FieldSet::EMPTY };
    copy_fields(head.fields(), head.connection(), (changes.removed, kept), FieldSet::EMPTY, out);
    finish(changes, connection, out);
}

/// Writes the head of a response that is this gateway's own.
///
/// ```
/// use flashweir_http1::write::{FramingField, OutgoingResponse, write_own_response};
/// let mut out = Vec::new();
/// let parts = OutgoingResponse {
///     framing: FramingField::Length(2),
///     lines: b"Retry-After: 1\r\n",
///     ..Default::default()
/// };
/// write_own_response(503, b"Service Unavailable", &parts, &mut out);
/// assert!(out.starts_with(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nRetry-After: 1\r\n"));
/// ```
pub fn write_own_response(status: u16, reason: &[u8], parts: &OutgoingResponse<'_>, out: &mut impl Sink) {
    write_status_line(status, reason, out);
    finish(parts, parts.connection, out);
}

fn write_status_line(status: u16, reason: &[u8], out: &mut impl Sink) {
    out.put(b"HTTP/1.1 ");
    out.put(Decimal::new(u64::from(status)).as_bytes());
    out.put(b" ");
    out.put(reason);
    out.put(b"\r\n");
}

fn finish(parts: &OutgoingResponse<'_>, connection: ConnectionField, out: &mut impl Sink) {
    debug_assert!(parts.lines.is_empty() || parts.lines.ends_with(b"\r\n"), "whole lines");
    parts.framing.write(out);
    out.put(connection.lines());
    out.put(parts.lines);
    out.put(b"\r\n");
}
