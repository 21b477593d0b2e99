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
    debug_assert!(changes.lines.is_empty() || changes.lines.ends_with(b"\r\n"), "whole lines");
    out.put(b"HTTP/1.1 ");
    out.put(Decimal::new(u64::from(head.status())).as_bytes());
    out.put(b" ");
    out.put(head.reason());
    out.put(b"\r\n");
    let mut connection = changes.connection;
    if head.status() == UPGRADE_REQUIRED && connection == ConnectionField::None {
        connection = ConnectionField::Upgrade;
    }
    let names_upgrade = connection == ConnectionField::Upgrade || head.status() == UPGRADE_REQUIRED;
    let kept = if names_upgrade { FieldSet::of(&[KnownField::Upgrade]) } else { FieldSet::EMPTY };
    copy_fields(head.fields(), head.connection(), (changes.removed, kept), out);
    changes.framing.write(out);
    out.put(connection.lines());
    out.put(changes.lines);
    out.put(b"\r\n");
}
