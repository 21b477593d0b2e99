//! Goal: however an answer is cut into pieces it is the same answer, and nothing a server sends breaks the
//! parser. Method: whole answers fed at once, byte by byte and cut at random; random bytes.

use super::*;
use proptest::prelude::*;

/// Result of feeding an answer in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Came {
    /// Status, body bytes, in order.
    Whole(u16, u64, bool),
    /// Not whole when the server closes, and whether it would have been.
    Cut {
        whole_when_closed: bool,
    },
    Malformed,
}

fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, asks_for_body: bool) -> Came {
    let mut parser = Parser::new(asks_for_body);
    let mut whole: Option<bool> = None;
    for piece in pieces {
        if let Some(in_order) = &mut whole {
            *in_order &= piece.is_empty();
            continue;
        }
        match parser.feed(piece) {
            Ok(Fed::More) => {}
            Ok(Fed::Whole { in_order }) => whole = Some(in_order),
            Err(Malformed) => return Came::Malformed,
        }
    }
    match (whole, parser.head()) {
        (Some(in_order), Some(head)) => Came::Whole(head.status, parser.body_bytes(), in_order),
        _ => Came::Cut { whole_when_closed: parser.is_whole_when_closed() },
    }
}

fn at_once(bytes: &[u8]) -> Came {
    feed([bytes], true)
}

/// The answer at once and byte by byte.
fn check(bytes: &[u8], wanted: &Came) {
    let text = String::from_utf8_lossy(bytes);
    assert_eq!(&at_once(bytes), wanted, "{text}");
    assert_eq!(&feed(bytes.chunks(1), true), wanted, "byte by byte: {text}");
}

#[test]
fn bodies_end_where_the_head_says() {
    check(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", &Came::Whole(200, 5, true));
    check(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello?", &Came::Whole(200, 5, false));
    check(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", &Came::Whole(200, 0, true));
    check(b"HTTP/1.1 204 None\r\n\r\n", &Came::Whole(204, 0, true));
    check(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
        &Came::Whole(200, 15, true),
    );
    check(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nDigest: x\r\nmore: y\r\n\r\nHTTP",
        &Came::Whole(200, 0, false),
    );
    check(b"HTTP/1.1 200 OK\r\n\r\nuntil the end", &Came::Cut { whole_when_closed: true });
    check(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell", &Came::Cut { whole_when_closed: false });
}

#[test]
fn what_is_announced_is_not_yet_the_answer() {
    check(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\nno",
        &Came::Whole(404, 2, true),
    );
    check(b"HTTP/1.1 100 Continue\r\n\r\n", &Came::Cut { whole_when_closed: false });
    check(b"HTTP/1.1 101 Switching\r\n\r\n", &Came::Malformed);
}

#[test]
fn the_answer_to_head_has_no_body() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(feed([&answer[..]], false), Came::Whole(200, 0, true));
}

#[test]
fn broken_chunks_are_malformed() {
    for chunks in [
        "rubbish\r\n",
        "\r\n",
        ";x\r\n",
        "5\r\nhello!\r\n",
        "5\r\nhello0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\n",
        "5\nhello\r\n",
        "0\r\nno colon\r\n\r\n",
        "-1\r\n",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}");
        check(answer.as_bytes(), &Came::Malformed);
    }
}

#[test]
fn nothing_is_kept_without_bound() {
    let head = format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(LOAD_HEAD_BYTES));
    assert_eq!(feed(head.as_bytes().chunks(1000), true), Came::Malformed);
    assert_eq!(at_once(head.as_bytes()), Came::Malformed);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let line = format!("{chunked}5;{}", "y".repeat(CHUNK_LINE_BYTES));
    assert_eq!(feed(line.as_bytes().chunks(100), true), Came::Malformed);
    let trailers = format!("{chunked}0\r\n{}\r\n", "x: y\r\n".repeat(LOAD_ANSWER_FIELDS + 1));
    assert_eq!(feed(trailers.as_bytes().chunks(100), true), Came::Malformed);
}

#[test]
fn a_head_as_long_as_it_may_be_is_read() {
    let (start, end) = ("HTTP/1.1 204 None\r\nx: ", "\r\n\r\n");
    let room = LOAD_HEAD_BYTES - start.len() - end.len();
    let longest = format!("{start}{}{end}", "y".repeat(room));
    assert_eq!(feed(longest.as_bytes().chunks(4096), true), Came::Whole(204, 0, true));
    assert_eq!(at_once(longest.as_bytes()), Came::Whole(204, 0, true));
    let too_long = format!("{start}{}{end}", "y".repeat(room + 1));
    assert_eq!(feed(too_long.as_bytes().chunks(4096), true), Came::Malformed);
    assert_eq!(at_once(too_long.as_bytes()), Came::Malformed);
}

/// Answers with every framing, sometimes damaged by one byte.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let body = proptest::collection::vec(any::<u8>(), 0..300);
    let sized = body.prop_map(|body| {
        let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        answer.extend_from_slice(&body);
        answer
    });
    let chunks = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6);
    let chunked = (chunks, "(x-[a-z]{1,5}: [a-z]{0,9}\r\n){0,3}").prop_map(|(chunks, trailers)| {
        let mut answer =
            b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for chunk in chunks {
            answer.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
            answer.extend_from_slice(&chunk);
            answer.extend_from_slice(b"\r\n");
        }
        answer.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
        answer
    });
    let whole = prop_oneof![sized, chunked];
    (whole, proptest::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()))).prop_map(
        |(mut answer, damage)| {
            if let Some((place, byte)) = damage {
                let place = place.index(answer.len());
                answer[place] = byte;
            }
            answer
        },
    )
}

/// The pieces between these places.
fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let ends = places.iter().copied().chain([bytes.len()]);
    let starts = [0].into_iter().chain(places.iter().copied());
    starts.zip(ends).map(|(start, end)| &bytes[start..end]).collect()
}

proptest! {
    #[test]
    fn the_cuts_do_not_matter(
        answer in answers(),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let pieces = cut(&answer, &places);
        prop_assert_eq!(feed(pieces, true), at_once(&answer));
    }

    #[test]
    fn no_bytes_break_it(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        after_head in any::<bool>(),
    ) {
        let chunked: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut all = if after_head { chunked.to_vec() } else { Vec::new() };
        all.extend_from_slice(&bytes);
        // Random bytes may be malformed sooner or later depending on the cuts, but never panic.
        let _ = feed(cut(&all, &places), true);
        let _ = at_once(&all);
    }
}
