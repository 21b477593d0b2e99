//! Goal: a ledger gets the same facts however an answer is cut, and what odd servers send is accepted or
//! refused as written here. Method: whole answers at once, byte by byte and cut at random. How framing is
//! judged is tested in the engine.

use super::*;
use proptest::prelude::*;

/// Result of feeding an answer in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Came {
    /// Status, body bytes, in order.
    Whole(u16, u64, bool),
    /// Not whole when the server closes, and whether it is by that.
    Cut {
        whole_when_closed: bool,
    },
    Malformed,
}

fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, asks_for_body: bool) -> Came {
    let mut reader = AnswerReader::new();
    let mut whole: Option<bool> = None;
    for piece in pieces {
        if let Some(in_order) = &mut whole {
            *in_order &= piece.is_empty();
            continue;
        }
        match reader.feed(piece, asks_for_body) {
            Ok(Fed::More) => {}
            Ok(Fed::Whole { in_order }) => whole = Some(in_order),
            Err(_) => return Came::Malformed,
        }
        assert!(reader.kept.len() <= LOAD_HEAD_BYTES, "{} bytes kept", reader.kept.len());
    }
    match (whole, reader.head()) {
        (Some(in_order), Some(head)) => Came::Whole(head.status, reader.body_bytes(), in_order),
        _ => Came::Cut { whole_when_closed: reader.finish() },
    }
}

/// The answer at once and in pieces of one byte and of 4 KiB.
fn check(text: &str, wanted: &Came) {
    for piece in [text.len(), 1, 4096] {
        assert_eq!(&feed(text.as_bytes().chunks(piece), true), wanted, "by {piece}: {text:.200}");
    }
}

fn head_of(text: &str) -> Head {
    let mut reader = AnswerReader::new();
    reader.feed(text.as_bytes(), true).unwrap();
    *reader.head().unwrap()
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

#[test]
fn bodies_are_counted_and_what_follows_them_is_seen() {
    check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", &Came::Whole(200, 5, true));
    check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello?", &Came::Whole(200, 5, false));
    check("HTTP/1.1 204 None\r\n\r\n", &Came::Whole(204, 0, true));
    check(&format!("{CHUNKED}5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"), &Came::Whole(200, 15, true));
    check(&format!("{CHUNKED}0\r\nDigest: x\r\nmore: y\r\n\r\nHTTP"), &Came::Whole(200, 0, false));
    check("HTTP/1.1 200 OK\r\n\r\nuntil the end", &Came::Cut { whole_when_closed: true });
    check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell", &Came::Cut { whole_when_closed: false });
    check("HTTP/1.1 200 O", &Came::Cut { whole_when_closed: false });
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(feed([&answer[..]], false), Came::Whole(200, 0, true), "an answer to HEAD");
}

#[test]
fn interim_heads_are_skipped() {
    check(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\nno",
        &Came::Whole(404, 2, true),
    );
    check("HTTP/1.1 100 Continue\r\n\r\n", &Came::Cut { whole_when_closed: false });
    check("HTTP/1.1 101 Switching\r\n\r\n", &Came::Malformed);
}

/// A load generator measures servers of others: what common ones send is to be accepted.
#[test]
fn odd_answers_are_accepted_or_not() {
    for accepted in [
        "HTTP/1.1 204\r\n\r\n",
        "HTTP/1.1 204 \r\nx:y\r\n\r\n",
        "HTTP/1.1 204 F\u{e4}und\nserver: old\n\n",
        "\r\n\r\nHTTP/1.0 204 None\r\n\r\n",
        "HTTP/1.1 204 None\r\ncontent_length: 1\r\nx.y: \t\u{e4} \t\r\nx:\r\n\r\n",
        "HTTP/1.1 204 None\r\nContent-Length: 5, 5\r\ncontent-length: 5\r\n\r\n",
    ] {
        check(accepted, &Came::Whole(204, 0, true));
    }
    let both = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: Chunked\r\n\r\n0005\r\nhello\r\n00\r\n\r\n";
    check(both, &Came::Whole(200, 5, true));
    for refused in [
        "rubbish, not HTTP at all\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 042 Odd\r\n\r\n",
        "\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: y\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\n",
        "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    ] {
        check(refused, &Came::Malformed);
    }
    for chunks in ["5 \r\nhello\r\n", "0\r\nx: y\n\r\n", "0\r\ncontent-length: 5\r\n\r\n"] {
        check(&format!("{CHUNKED}{chunks}"), &Came::Malformed);
    }
}

#[test]
fn a_connection_is_kept_by_version_fields_and_framing() {
    for (version, fields, keeps_alive) in [
        ("HTTP/1.1", "content-length: 0\r\n", true),
        ("HTTP/1.1", "content-length: 0\r\nconnection: x, Close\r\n", false),
        ("HTTP/1.1", "", false),
        ("HTTP/1.0", "content-length: 0\r\n", false),
        ("HTTP/1.0", "content-length: 0\r\nconnection: Keep-Alive\r\n", true),
        ("HTTP/1.0", "connection: keep-alive\r\n", false),
    ] {
        let head = head_of(&format!("{version} 200 OK\r\n{fields}\r\n"));
        assert_eq!(head.keeps_alive, keeps_alive, "{version} {fields}");
    }
}

#[test]
fn the_fields_of_a_refusal_are_read() {
    let head = head_of(
        "HTTP/1.1 503 Short\r\nFlashweir-Overload: x\r\nFlashweir-Decision: 0; reason=draining\r\nRetry-After: 7\r\n\r\n",
    );
    assert_eq!((head.status, head.reason), (503, Some(Reason::Draining)));
    assert_eq!(head.retry_after, RetryAfter::read(b"7", None));
    let dated = head_of(
        "HTTP/1.1 503 Short\r\nDate: Wed, 21 Oct 2026 07:27:57 GMT\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n\r\n",
    );
    assert_eq!(dated.retry_after, RetryAfter::read(b"3", None));
    assert_eq!(dated.reason, None);
}

#[test]
fn heads_and_trailers_are_bounded() {
    let (start, end) = ("HTTP/1.1 204 None\r\nx: ", "\r\n\r\n");
    let room = LOAD_HEAD_BYTES - start.len() - end.len();
    // Not byte by byte: a cut head is read from its beginning again.
    let check = |text: String, wanted: Came| {
        for piece in [text.len(), 1_000] {
            assert_eq!(feed(text.as_bytes().chunks(piece), true), wanted, "{} by {piece}", text.len());
        }
    };
    check(format!("{start}{}{end}", "y".repeat(room)), Came::Whole(204, 0, true));
    check(format!("{start}{}{end}", "y".repeat(room + 1)), Came::Malformed);
    check(format!("{start}{}", "y".repeat(LOAD_HEAD_BYTES)), Came::Malformed);
    check(format!("{CHUNKED}0\r\nx: {}", "y".repeat(LOAD_HEAD_BYTES)), Came::Malformed);
    let fields = "x: y\r\n".repeat(LOAD_ANSWER_FIELDS + 1);
    check(format!("HTTP/1.1 204 None\r\n{fields}\r\n"), Came::Malformed);
    check(format!("{CHUNKED}0\r\n{fields}\r\n"), Came::Malformed);
}

/// The table of fields is the thread's, and only what is cut is kept.
#[test]
fn an_answer_costs_no_allocation() {
    let answer = format!("{CHUNKED}5\r\nhello\r\n0\r\n\r\n");
    let read = || {
        let mut reader = AnswerReader::new();
        let (head, body) = answer.as_bytes().split_at(CHUNKED.len());
        let (body, end) = body.split_at(body.len() - 2);
        let fed = [head].into_iter().chain(body.chunks(1)).chain([end]).map(|piece| reader.feed(piece, true));
        assert_eq!(fed.last(), Some(Ok(Fed::Whole { in_order: true })));
    };
    read();
    assert_eq!(allocation_counter::measure(read).count_total, 0);
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
        prop_assert_eq!(feed(pieces, true), feed([&answer[..]], true));
    }
}
