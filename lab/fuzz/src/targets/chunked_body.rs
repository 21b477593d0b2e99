//! Chunked bodies: what is accepted has the same end and the same content for `httparse`; a body made by the
//! grammar is always accepted, however it is split.

use super::LIMITS;
use crate::reference::chunks;
use flashweir_http::head_guard::{HeadGuard, ReadPhase};

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

pub(crate) fn run(data: &[u8]) {
    as_they_come(data);
    made_by_the_grammar(data);
}

fn as_they_come(body: &[u8]) {
    // The body's end is where the guard is idle for the first time.
    let mut guard = begun();
    let mut end = None;
    for (at, byte) in body.iter().enumerate() {
        if guard.inspect(&[*byte]).is_err() {
            return;
        }
        if guard.phase() == ReadPhase::Idle {
            end = Some(at + 1);
            break;
        }
    }
    let other = chunks(body);
    match end {
        Some(end) => {
            let (content, taken) = other.expect("no fault").expect("a whole body");
            assert_eq!(taken, end, "the body ends elsewhere");
            assert!(content.len() < end);
        }
        // Refused before its end, or not there yet; a fault in a line that has not ended is none yet for the
        // guard.
        None => assert!(!matches!(other, Ok(Some(_))), "a body that ends for the server only: {other:?}"),
    }
}

/// Each byte of `data` is the length of a chunk; the chunks' bytes are `data` again.
fn made_by_the_grammar(data: &[u8]) {
    let (mut body, mut content, mut rest) = (Vec::new(), Vec::new(), data);
    for &size in data.iter().take(6) {
        let chunk = &rest[..usize::from(size).min(rest.len())];
        rest = &rest[chunk.len()..];
        if chunk.is_empty() {
            continue;
        }
        let extension = ["", ";a", ";a=b", ";a=\"b\"", " ;x"][usize::from(size % 5)];
        body.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
        content.extend_from_slice(chunk);
    }
    body.extend_from_slice(if data.len().is_multiple_of(2) { b"0\r\n\r\n" } else { b"00\r\nSum: 1\r\n\r\n" });
    let mut guard = begun();
    let cut = body.len() / 2;
    guard.inspect(&body[..cut]).expect("the first half of a good body");
    guard.inspect(&body[cut..]).expect("the second half of a good body");
    assert_eq!(guard.phase(), ReadPhase::Idle);
    assert_eq!(chunks(&body), Ok(Some((content, body.len()))));
}

fn begun() -> HeadGuard {
    let mut guard = HeadGuard::new(LIMITS);
    guard.inspect(HEAD).expect("a good head");
    guard
}
