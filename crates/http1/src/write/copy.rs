//! Copies fields to the next hop without those that belong to this one (RFC 9110 §7.6.1).

use super::{Sink, write_field};
use crate::body::{LAST_CHUNK, NO_TRAILERS};
use crate::head::{ConnectionOptions, FieldSet, FieldSpan, Fields, KnownField, elements};

/// Fields of one connection, wherever they occur. The proxy's own credentials and challenges are between it
/// and its neighbour; `Proxy` becomes `HTTP_PROXY` in a CGI environment ("httpoxy"), and no request needs it;
/// `Flashweir-*` is said by this gateway only. Lengths and codings are those of the next hop.
const HOP_BY_HOP: FieldSet = FieldSet::of(&[
    KnownField::Connection,
    KnownField::ContentLength,
    KnownField::Flashweir,
    KnownField::KeepAlive,
    KnownField::Proxy,
    KnownField::ProxyAuthenticate,
    KnownField::ProxyAuthenticationInfo,
    KnownField::ProxyAuthorization,
    KnownField::ProxyConnection,
    KnownField::Te,
    KnownField::TransferEncoding,
    KnownField::Upgrade,
]);

/// Fields that `Connection` may not remove, or a client could strip those that frame, route or describe its
/// request.
const KEPT: FieldSet = FieldSet::of(&[
    KnownField::Host,
    KnownField::ContentLength,
    KnownField::Via,
    KnownField::Forwarded,
    KnownField::XForwardedFor,
    KnownField::XForwardedHost,
    KnownField::XForwardedProto,
]);

/// Fields that this gateway writes or removes: in another spelling (`X_Forwarded_For`), a server behind CGI
/// would take them for the gateway's.
pub(super) const SPOKEN_FOR: FieldSet = HOP_BY_HOP.union(KEPT);

/// Writes the fields that go on to the next hop. `removed` are left out besides those of one connection, and
/// `kept` stay although they are of one; other spellings of `spoken_for` are left out, too.
pub(super) fn copy_fields(
    fields: Fields<'_>,
    options: ConnectionOptions,
    (removed, kept): (FieldSet, FieldSet),
    spoken_for: FieldSet,
    out: &mut impl Sink,
) {
    let bytes = fields.bytes();
    let left_out = HOP_BY_HOP.without(kept).union(removed);
    // Lines side by side that go on as they are.
    let (mut start, mut end) = (0, 0);
    for span in fields.spans() {
        let is_left_out = left_out.contains(span.known)
            || (span.has_odd_name && spoken_for.contains(KnownField::of_respelt(span.name.of(bytes))))
            || (options.names_fields && is_nominated(fields, span, kept));
        let line_start = span.name.start as usize;
        if is_left_out || !span.is_plain || line_start != end {
            out.put(&bytes[start..end]);
            (start, end) = (line_start, line_start);
        }
        if is_left_out {
            continue;
        }
        if span.is_plain {
            end = span.value.end as usize + b"\r\n".len();
        } else {
            write_field(out, span.name.of(bytes), span.value.of(bytes));
        }
    }
    out.put(&bytes[start..end]);
}

/// Returns whether `Connection` names the field. At most 64 options are compared.
#[cold]
fn is_nominated(fields: Fields<'_>, span: &FieldSpan, kept: FieldSet) -> bool {
    let name = span.name.of(fields.bytes());
    !KEPT.union(kept).contains(span.known)
        && elements(fields, KnownField::Connection).any(|option| option.eq_ignore_ascii_case(name))
}

/// Writes the last chunk and the trailers that go on: none of them may speak for this gateway, frame a
/// message or forge what is said of the client, in any spelling.
pub fn write_trailers(fields: Fields<'_>, out: &mut impl Sink) {
    out.put(LAST_CHUNK);
    for field in fields.iter() {
        if !SPOKEN_FOR.contains(KnownField::of_respelt(field.name)) {
            write_field(out, field.name, field.value);
        }
    }
    out.put(NO_TRAILERS);
}
