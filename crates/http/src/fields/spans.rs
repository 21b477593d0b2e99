//! Makes a request fit to be sent on without reading its fields into a map.

use super::{FieldsError, ForwardedMemo, Hop, Prepared, prepare_next_request};
use crate::head::{ReceivedHead, SpanHead};
use flashweir_http1::head::{FieldSet, KnownField, Method};

/// Fields that ask for more than copying or leaving out.
const ASKING: FieldSet = FieldSet::of(&[KnownField::Expect, KnownField::MaxForwards, KnownField::Upgrade]);

/// As [`prepare_next_request`]. A head that stays spans gets what this hop says of the client, and is changed
/// while it is written; any other is changed at once.
///
/// # Errors
/// As [`prepare_request`](super::prepare_request).
pub fn prepare_head(
    head: &mut ReceivedHead,
    hop: &Hop,
    memo: &ForwardedMemo,
) -> Result<Prepared, FieldsError> {
    match head {
        ReceivedHead::Spans(spans) if !hop.is_peer_trusted && is_plain(spans) => {
            let head = spans.as_head();
            let lines = memo.lines(hop, head.authority().unwrap_or_default(), head.version());
            spans.prepared(lines);
            Ok(Prepared { wants_upgrade: false, is_last_hop: false })
        }
        ReceivedHead::Spans(_) | ReceivedHead::Parts(_) => prepare_next_request(head.parts_mut(), hop, memo),
    }
}

/// Returns whether the head is only copied.
fn is_plain(head: &SpanHead) -> bool {
    let head = head.as_head();
    let present = head.fields().present();
    !matches!(head.method(), Method::Connect | Method::Trace)
        && !present.has_any(ASKING)
        && head.authority().is_some_and(|host| !host.is_empty())
}
