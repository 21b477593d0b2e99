//! The head guard against known smuggling vectors, and against the parser it protects.

use crate::FramingViolation::{self, *};
use crate::head_guard::{HeadGuard, HeadLimits, MessagePart, ReadPhase};
use proptest::prelude::*;

const LIMITS: HeadLimits = HeadLimits { bytes_max: 512, fields_max: 8 };

/// Inputs that must be refused, and the violation. `H` stands for a good request line and Host.
const VECTORS: &[(&str, FramingViolation)] = &[
    ("GET / HTTP/1.1\nHost: a\r\n\r\n", BareLf),
    ("H\nX: y\r\n\r\n", BareLf),
    ("HX: y\n\r\n", BareLf),
    ("HX: y\r\n\n", BareLf),
    ("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", BareLf),
    ("HX: a\rContent-Length: 5\r\n\r\n", BareCr),
    ("H\rX: y\r\n\r\n", BareCr),
    ("GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", BareCr),
    ("HX: a\0b\r\n\r\n", ControlByte),
    ("HTransfer-Encoding: \x0bchunked\r\n\r\n", ControlByte),
    ("HX: a\x7f\r\n\r\n", ControlByte),
    ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine),
    ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine),
    ("GET /\r\nHost: a\r\n\r\n", RequestLine),
    ("GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", RequestLine),
    ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine),
    ("\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine),
    ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", Version),
    ("GET / http/1.1\r\nHost: a\r\n\r\n", Version),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Version),
    ("HX: a\r\n b: c\r\n\r\n", ObsFold),
    ("H\tX: a\r\n\r\n", ObsFold),
    ("HTransfer-Encoding:\r\n chunked\r\n\r\n", TransferEncoding),
    ("HContent-Length : 5\r\n\r\n", SpaceBeforeColon),
    ("HTransfer-Encoding\t: chunked\r\n\r\n", SpaceBeforeColon),
    ("H: x\r\n\r\n", EmptyFieldName),
    ("HX y: z\r\n\r\n", FieldName),
    ("HContent-Length\r\n\r\n", FieldName),
    ("HContent_Length: 5\r\n\r\n", FieldName),
    ("Htransfer_encoding: chunked\r\n\r\n", FieldName),
    ("HContent.Length: 5\r\n\r\n", FieldName),
    ("HTransfer!Encoding: chunked\r\n\r\n", FieldName),
    ("HContent-Length: 5, 5\r\n\r\n", ContentLength),
    ("HContent-Length: +5\r\n\r\n", ContentLength),
    ("HContent-Length: -0\r\n\r\n", ContentLength),
    ("HContent-Length: 0x5\r\n\r\n", ContentLength),
    ("HContent-Length: 5 5\r\n\r\n", ContentLength),
    ("HContent-Length:\r\n\r\n", ContentLength),
    ("HContent-Length: 18446744073709551617\r\n\r\n", ContentLength),
    ("HContent-Length: 5\r\nContent-Length: 6\r\n\r\n", RepeatedContentLength),
    ("HContent-Length: 5\r\ncontent-length: 5\r\n\r\n", RepeatedContentLength),
    ("HTransfer-Encoding: gzip, chunked\r\n\r\n", TransferEncoding),
    ("HTransfer-Encoding: chunked, identity\r\n\r\n", TransferEncoding),
    ("HTransfer-Encoding: xchunked\r\n\r\n", TransferEncoding),
    ("HTransfer-Encoding: \"chunked\"\r\n\r\n", TransferEncoding),
    ("HTransfer-Encoding: identity\r\n\r\n", TransferEncoding),
    ("HTransfer-Encoding:\r\n\r\n", TransferEncoding),
    ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", TransferEncoding),
    ("HTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", RepeatedTransferEncoding),
    ("HContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", LengthAndTransferEncoding),
    ("HTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", LengthAndTransferEncoding),
    ("GET / HTTP/1.1\r\n\r\n", MissingHost),
    ("HHost: a\r\n\r\n", RepeatedHost),
    ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", InvalidHost),
    ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", InvalidHost),
    ("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", InvalidHost),
    ("GET / HTTP/1.1\r\nHost: \r\n\r\n", InvalidHost),
    ("GET / HTTP/1.1\r\nHost: a:80:90\r\n\r\n", InvalidHost),
    ("GET / HTTP/1.1\r\nHost: a:xx\r\n\r\n", InvalidHost),
    ("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", InvalidHost),
    ("GET http://b#x HTTP/1.1\r\nHost: b\r\n\r\n", RequestTarget),
    ("GET /a#b HTTP/1.1\r\nHost: b\r\n\r\n", RequestTarget),
    ("C-1\r\n\r\n", ChunkSize),
    ("C0x5\r\nhello\r\n0\r\n\r\n", ChunkSize),
    ("C\r\nhello\r\n0\r\n\r\n", ChunkSize),
    ("C5 \r\nhello\r\n0\r\n\r\n", ChunkSize),
    ("C5\nhello\r\n0\r\n\r\n", ChunkSize),
    ("C5;a\nb\r\nhello\r\n0\r\n\r\n", ChunkSize),
    ("C5\rxhello\r\n0\r\n\r\n", ChunkSize),
    ("C00000000000000005\r\nhello\r\n0\r\n\r\n", ChunkSize),
    ("Cffffffffffffffff\r\nhello\r\n0\r\n\r\n", ChunkSize),
    ("C5\r\nhelloX\r\n0\r\n\r\n", ChunkEnd),
    ("C5\r\nhello\n0\r\n\r\n", ChunkEnd),
    ("C0\r\nContent-Length: 5\r\n\r\n", Trailer),
    ("C0\r\nHost: b\r\n\r\n", Trailer),
    ("C0\r\nbad name: b\r\n\r\n", Trailer),
    ("C0\r\n folded: b\r\n\r\n", Trailer),
];

/// Inputs that every gateway must let pass.
const ACCEPTED: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a/b?c HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
    "POST / HTTP/1.1\r\nHost:a\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\ncontent-length:\t5 \r\n\r\n\r\n\r\n\0",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;n=v\r\nhello\r\nA ;x\r\n0123456789\r\n0\r\nT: v\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX:\r\nY: ä\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n",
];

fn expand(vector: &str) -> String {
    let good = "POST / HTTP/1.1\r\nHost: a\r\n";
    let chunked = format!("{good}Transfer-Encoding: chunked\r\n\r\n");
    match vector.split_at(1) {
        ("H", rest) => format!("{good}{rest}"),
        ("C", rest) => format!("{chunked}{rest}"),
        _ => vector.to_owned(),
    }
}

/// Feeds the pieces; gives the phase at the end, or the violation.
fn run<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<ReadPhase, FramingViolation> {
    let mut guard = HeadGuard::new(LIMITS);
    for piece in pieces {
        guard.inspect(piece).map_err(|refusal| refusal.violation)?;
    }
    Ok(guard.phase())
}

#[test]
fn every_known_vector_is_refused_as_what_it_is() {
    for (vector, expected) in VECTORS {
        let bytes = expand(vector);
        let outcome = run([bytes.as_bytes()]);
        assert_eq!(outcome, Err(*expected), "{vector:?}");
        let by_byte = run(bytes.as_bytes().chunks(1));
        assert_eq!(by_byte, Err(*expected), "{vector:?} byte by byte");
    }
}

#[test]
fn ordinary_requests_pass() {
    for request in ACCEPTED {
        assert_eq!(run([request.as_bytes()]), Ok(ReadPhase::Idle), "{request:?}");
        assert_eq!(run(request.as_bytes().chunks(1)), Ok(ReadPhase::Idle), "{request:?} byte by byte");
    }
}

#[test]
fn a_target_that_is_no_text_is_refused_and_raw_utf8_is_not() {
    assert_eq!(run([&b"GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n"[..]]), Err(RequestTarget));
    assert_eq!(run(["GET /\u{e4} HTTP/1.1\r\nHost: a\r\n\r\n".as_bytes()]), Ok(ReadPhase::Idle));
}

#[test]
fn heads_over_their_limits_are_told_apart() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(LIMITS.bytes_max));
    assert_eq!(run([long.as_bytes()]), Err(HeadTooLarge));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(LIMITS.fields_max));
    assert_eq!(run([many.as_bytes()]), Err(TooManyFields));
    let padding = LIMITS.bytes_max - "GET / HTTP/1.1\r\nHost: a\r\n\r\n".len();
    let exact = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(padding));
    assert_eq!(run([exact.as_bytes()]), Ok(ReadPhase::Idle));
}

#[test]
fn what_precedes_a_refused_head_in_one_read_is_kept() {
    let good = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let both = format!("{good}GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n");
    let refusal = HeadGuard::new(LIMITS).inspect(both.as_bytes()).unwrap_err();
    assert_eq!((refusal.keep_len, refusal.part), (good.len(), MessagePart::Head));
}

/// One well-formed request with a random body in a random framing.
fn good_request() -> impl Strategy<Value = Vec<u8>> {
    let body = || prop::collection::vec(any::<u8>(), 0..20);
    let sized = body().prop_map(|body| {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), &body].concat()
    });
    let chunked = (prop::collection::vec(body(), 0..4), any::<bool>()).prop_map(|(chunks, has_trailer)| {
        let mut request = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
            request.extend_from_slice(format!("{:x};e\r\n", chunk.len()).as_bytes());
            request.extend_from_slice(chunk);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(if has_trailer { b"00\r\nT: v\r\n\r\n" } else { b"0\r\n\r\n" });
        request
    });
    let listed = prop::sample::select(ACCEPTED).prop_map(|request| request.as_bytes().to_vec());
    prop_oneof![sized, chunked, listed]
}

/// Good requests of which some bytes were replaced by what smugglers like: still deep in, seldom still good.
fn request_bytes() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"",
        b"\r",
        b"\n",
        b"\r\n",
        b" ",
        b"\0",
        b":",
        b";",
        b"0",
        b"9",
        b"X: y\r\n",
        b"Content-Length: 3\r\n",
    ];
    let spoil = (any::<prop::sample::Index>(), 0..3usize, prop::sample::select(words));
    (prop::collection::vec(good_request(), 0..4), prop::collection::vec(spoil, 0..3)).prop_map(
        |(requests, spoils)| {
            let mut bytes = requests.concat();
            for (at, removed, word) in spoils {
                let at = at.index(bytes.len() + 1);
                let end = (at + removed).min(bytes.len());
                bytes.splice(at..end, word.iter().copied());
            }
            bytes
        },
    )
}

/// Frames by httparse and the plain rules of RFC 9112, as a lenient server would: the number of complete
/// requests, or `None` if it cannot read them.
fn frame_with_httparse(mut bytes: &[u8]) -> Option<usize> {
    let mut requests = 0;
    loop {
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut fields);
        let httparse::Status::Complete(head_len) = request.parse(bytes).ok()? else {
            return Some(requests);
        };
        let find = |name: &str| {
            request
                .headers
                .iter()
                .find(|field| field.name.eq_ignore_ascii_case(name))
                .map(|field| field.value)
        };
        let (is_chunked, length) = (find("transfer-encoding").is_some(), find("content-length"));
        let length: usize =
            length.map_or(Some(0), |length| std::str::from_utf8(length).ok()?.parse().ok())?;
        bytes = &bytes[head_len..];
        if is_chunked {
            loop {
                let httparse::Status::Complete((line_len, size)) = httparse::parse_chunk_size(bytes).ok()?
                else {
                    return Some(requests);
                };
                bytes = &bytes[line_len..];
                if size == 0 {
                    break;
                }
                let Some(rest) = bytes.get(size as usize + 2..) else { return Some(requests) };
                bytes = rest;
            }
            let mut trailers = [httparse::EMPTY_HEADER; 32];
            match httparse::parse_headers(bytes, &mut trailers).ok()? {
                httparse::Status::Complete((len, _)) => bytes = &bytes[len..],
                httparse::Status::Partial => return Some(requests),
            }
        } else {
            let Some(rest) = bytes.get(length..) else { return Some(requests) };
            bytes = rest;
        }
        requests += 1;
    }
}

/// Complete requests the guard saw and whether another has begun, if it refused nothing.
fn frame_with_guard(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut guard = HeadGuard::new(LIMITS);
    guard.inspect(bytes).ok()?;
    let has_begun = guard.phase() != ReadPhase::Idle;
    Some((guard.heads() as usize - usize::from(has_begun), has_begun))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn outcome_does_not_depend_on_how_bytes_are_split(
        bytes in request_bytes(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        let whole = run([&bytes[..]]);
        prop_assert_eq!(run(pieces), whole);
    }

    #[test]
    fn good_requests_are_framed_exactly(requests in prop::collection::vec(good_request(), 0..5)) {
        let heads: usize = requests.iter().map(|request| frame_with_httparse(request).unwrap()).sum();
        prop_assert_eq!(frame_with_guard(&requests.concat()), Some((heads, false)));
    }

    #[test]
    fn what_is_accepted_is_framed_as_the_parser_frames_it(bytes in request_bytes()) {
        if let Some((requests, has_begun)) = frame_with_guard(&bytes) {
            let framed = frame_with_httparse(&bytes);
            // The parser may refuse a line before its end has come, when the guard has not judged it yet.
            let agrees = framed == Some(requests) || (has_begun && framed.is_none());
            prop_assert!(agrees, "{:?} against {requests}: {:?}", framed, String::from_utf8_lossy(&bytes));
        }
    }
}
