//! Writes the head of a request to the next hop.

use super::copy::{SPOKEN_FOR, copy_fields};
use super::{ConnectionField, FramingField, Sink, write_field};
use crate::head::{FieldSet, KnownField, RequestHead, TargetForm};

/// Parts of a request's head that differ from the received one.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutgoingRequest<'a> {
    /// Framing of the body as it is sent on.
    pub framing: FramingField,
    /// Option of the connection to the next hop.
    pub connection: ConnectionField,
    /// Fields that are not copied besides those of one connection: those that `lines` replaces.
    pub removed: FieldSet,
    /// Value of `Host` where the request has neither that nor an authority (HTTP/1.0).
    pub default_host: &'a [u8],
    /// Whole field lines with their ends, to be put behind the copied ones.
    pub lines: &'a [u8],
}

/// Writes the head with its target in origin-form (RFC 9112 §3.2.1), and `*` as it is. An authority in the
/// target replaces `Host`.
///
/// ```
/// use flashweir_http1::head::{HeadLimits, RequestReader};
/// use flashweir_http1::write::{OutgoingRequest, write_request};
/// let bytes = b"GET http://a/b HTTP/1.1\r\nHost: c\r\nConnection: X\r\nX: 1\r\nY: 2\r\n\r\n";
/// let mut reader = RequestReader::new(HeadLimits { bytes_max: 16_384, fields_max: 100 });
/// reader.read(bytes).expect("a good head");
/// let (head, mut out) = (reader.head(bytes).expect("a whole head"), Vec::new());
/// let changes = OutgoingRequest { lines: b"Via: 1.1 x\r\n", ..OutgoingRequest::default() };
/// write_request(&head, &changes, &mut out);
/// assert_eq!(out, b"GET /b HTTP/1.1\r\nHost: a\r\nY: 2\r\nVia: 1.1 x\r\n\r\n");
/// ```
pub fn write_request(head: &RequestHead<'_>, changes: &OutgoingRequest<'_>, out: &mut impl Sink) {
    debug_assert!(changes.lines.is_empty() || changes.lines.ends_with(b"\r\n"), "whole lines");
    out.put(head.method_name());
    out.put(b" ");
    let target = head.path_and_query();
    if target.is_empty() || target.first() == Some(&b'?') {
        // An empty path is "/" (RFC 9110 §4.2.3).
        out.put(b"/");
    }
    out.put(target);
    out.put(b" HTTP/1.1\r\n");
    let mut removed = changes.removed;
    let is_absolute = matches!(head.target_form(), TargetForm::Absolute { .. } | TargetForm::Authority);
    if is_absolute || !head.fields().present().contains(KnownField::Host) {
        removed.insert(KnownField::Host);
        write_field(out, b"Host", head.authority().unwrap_or(changes.default_host));
    }
    let kept = match changes.connection {
        ConnectionField::Upgrade => FieldSet::of(&[KnownField::Upgrade]),
        _ => FieldSet::EMPTY,
    };
    copy_fields(head.fields(), head.connection(), (removed, kept), SPOKEN_FOR, out);
    changes.framing.write(out);
    out.put(changes.connection.lines());
    out.put(changes.lines);
    out.put(b"\r\n");
}
