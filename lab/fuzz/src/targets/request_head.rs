//! Requests of HTTP/1.1: the verdict does not depend on how the bytes are split, and what is accepted is read
//! as the same requests by `httparse`.
//!
//! The first byte says where the bytes are cut in two.

use super::LIMITS;
use crate::reference::{End, lenient};
use flashweir_http::FramingViolation;
use flashweir_http::head_guard::{HeadGuard, ReadPhase};

pub(crate) fn run(data: &[u8]) {
    let Some((&cut, bytes)) = data.split_first() else { return };
    let whole = judge([bytes]);
    let at = usize::from(cut).min(bytes.len());
    assert_eq!(judge([&bytes[..at], &bytes[at..]]), whole, "cut at {at}");
    assert_eq!(judge(bytes.chunks(1)), whole, "byte by byte");
    if let Ok((heads, phase)) = whole {
        compare(bytes, heads, phase);
    }
}

/// Heads that began, and where the connection stands.
fn judge<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(u64, ReadPhase), FramingViolation> {
    let mut guard = HeadGuard::new(LIMITS);
    for piece in pieces {
        let refused = guard.inspect(piece);
        if let Err(refusal) = refused {
            assert!(refusal.keep_len <= piece.len(), "{refusal:?}");
            return Err(refusal.violation);
        }
    }
    Ok((guard.heads(), guard.phase()))
}

/// Panics where a lenient server reads other requests than the guard.
pub(super) fn compare(bytes: &[u8], heads: u64, phase: ReadPhase) {
    let (requests, end) = lenient(bytes);
    let has_begun = phase != ReadPhase::Idle;
    let whole = heads as usize - usize::from(has_begun);
    assert_eq!(requests.len(), whole, "{end:?}, while the guard is {phase:?}");
    match end {
        End::Whole => assert!(!has_begun || is_only_line_ends(bytes), "the guard waits for more: {phase:?}"),
        // httparse refuses some lines before their end has come, when the guard has not judged them.
        End::Partial | End::Bad(_) => assert!(has_begun, "the guard saw the end, and the server: {end:?}"),
    }
    for request in &requests {
        let is_http11 = request.start.ends_with("HTTP/1.1");
        assert!(request.all("host").count() <= 1 && (!is_http11 || request.all("host").count() == 1));
        let framings = request.all("content-length").count() + request.all("transfer-encoding").count();
        assert!(framings <= 1, "{framings} framings: {request:?}");
        assert!(
            request.start.split(' ').count() == 3 && !request.target().contains('#'),
            "{}",
            request.start
        );
    }
}

/// An empty line before a request is part of none, and httparse skips it without a word.
fn is_only_line_ends(bytes: &[u8]) -> bool {
    bytes.ends_with(b"\r\n")
}
