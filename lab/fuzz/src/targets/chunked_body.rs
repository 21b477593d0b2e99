//! Chunked bodies: what is accepted has the same end and the same content for `httparse`; a body made by the
//! grammar is always accepted, however it is split.

use super::LIMITS;
use crate::reference::chunks;
use flashweir_http1::FramingViolation;
use flashweir_http1::body::{BodyFraming, BodyPart, BodyReader};

pub(crate) fn run(data: &[u8]) {
    as_they_come(data);
    made_by_the_grammar(data);
}

fn as_they_come(body: &[u8]) {
    let Ok(end) = end_of(body, 1) else { return };
    assert_eq!(end_of(body, body.len().max(1)), Ok(end), "as a whole");
    let other = chunks(body);
    match end {
        Some(end) => {
            let (content, taken) = other.expect("no fault").expect("a whole body");
            assert_eq!(taken, end, "the body ends elsewhere");
            assert!(content.len() < end);
        }
        // Not there yet; a fault in a line that has not ended is none yet.
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
    assert_eq!(end_of(&body, body.len() / 2 + 1), Ok(Some(body.len())));
    assert_eq!(chunks(&body), Ok(Some((content, body.len()))));
}

/// Place behind the body, read as its bytes come, `piece` at a time.
fn end_of(body: &[u8], piece: usize) -> Result<Option<usize>, FramingViolation> {
    let mut reader = BodyReader::new(LIMITS);
    reader.begin(BodyFraming::Chunked);
    let (mut at, mut come) = (0, 0);
    loop {
        let step = reader.read(&body[at..come])?;
        at += step.taken;
        match step.part {
            Some(BodyPart::End) => return Ok(Some(at)),
            Some(_) => {}
            None if come == body.len() => return Ok(None),
            None => come = (come + piece).min(body.len()),
        }
    }
}
