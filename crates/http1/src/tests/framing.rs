//! Known smuggling vectors against the server's side, in one piece, byte by byte and cut at random places.

use crate::FramingViolation::{self, *};
use crate::connection::{ReadPhase, RequestBodyUse, ServerConnection, ServerEvent, ServerLimits};
use crate::head::HeadLimits;
use flashweir_core::Rng;

pub(super) const LIMITS: ServerLimits =
    ServerLimits { head: HeadLimits { bytes_max: 512, fields_max: 8 }, drain_bytes_max: 64 };

/// Inputs that must be refused, and the violation. `H` stands for a good request line and Host, `C` for the
/// head of a chunked request.
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
    ("GET /a`b HTTP/1.1\r\nHost: b\r\n\r\n", RequestTarget),
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

/// Inputs that every gateway must let pass, and the content of their bodies.
const ACCEPTED: &[(&str, &str)] = &[
    ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""),
    ("GET / HTTP/1.0\r\n\r\n", ""),
    ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ""),
    ("GET http://a/b?c HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", ""),
    ("POST / HTTP/1.1\r\nHost:a\r\nContent-Length: 5\r\n\r\nhello", "hello"),
    ("POST / HTTP/1.1\r\nHost: a\r\ncontent-length:\t5 \r\n\r\n\r\n\r\n\0", "\r\n\r\n\0"),
    ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello"),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;n=v\r\nhello\r\nA ;x\r\n0123456789\r\n\
         0\r\nT: v\r\n\r\n",
        "hello0123456789",
    ),
    ("GET /\u{e4} HTTP/1.1\r\nHost: a\r\nX:\r\nY: \u{e4}\r\n\r\n", ""),
    ("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n", ""),
];

fn expand(vector: &str) -> String {
    let good = "POST / HTTP/1.1\r\nHost: a\r\n";
    match vector.split_at(1) {
        ("H", rest) => format!("{good}{rest}"),
        ("C", rest) => format!("{good}Transfer-Encoding: chunked\r\n\r\n{rest}"),
        _ => vector.to_owned(),
    }
}

/// Events without their places, content joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) heads: usize,
    pub(super) ends: usize,
    pub(super) content: Vec<u8>,
    pub(super) trailers: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) phase: Option<ReadPhase>,
    pub(super) violation: Option<FramingViolation>,
}

/// Feeds the pieces to a server that answers each request at once, as soon as its body has been read.
pub(super) fn read_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: ServerLimits) -> Read {
    let (mut server, mut read, mut unread) = (ServerConnection::new(limits), Read::default(), Vec::new());
    for piece in pieces {
        unread.extend_from_slice(piece);
        loop {
            let received = match server.receive(&unread) {
                Ok(received) => received,
                Err(refusal) => {
                    read.violation = Some(refusal.violation);
                    return read;
                }
            };
            assert!(received.taken <= unread.len());
            let Some(event) = received.event else {
                unread.drain(..received.taken);
                break;
            };
            match &event {
                ServerEvent::Head { bytes, .. } => {
                    assert_eq!(*bytes, received.taken);
                    let head = server.head(&unread).expect("a whole head");
                    assert!(head.fields().iter().all(|field| !field.name.is_empty()));
                    read.heads += 1;
                }
                ServerEvent::Content(range) => read.content.extend_from_slice(&unread[range.clone()]),
                ServerEvent::Trailers(range) => {
                    let trailers = server.trailers(&unread[range.clone()]);
                    read.trailers
                        .extend(trailers.iter().map(|field| (field.name.to_vec(), field.value.to_vec())));
                }
                ServerEvent::End => read.ends += 1,
            }
            unread.drain(..received.taken);
            if server.phase() == ReadPhase::Idle {
                server.respond(200, Some(0), RequestBodyUse::Read, false).expect("a response is due");
                server.end().expect("no body");
            }
        }
    }
    read.phase = Some(server.phase());
    read
}

/// Random places, in order, at which `bytes` are cut.
pub(super) fn cut<'a>(bytes: &'a [u8], rng: &mut Rng) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> =
        (0..rng.below(6)).map(|_| rng.below(bytes.len() as u64 + 1) as usize).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

#[test]
fn every_known_vector_is_refused_as_what_it_is() {
    for (vector, expected) in VECTORS {
        let bytes = expand(vector);
        let whole = read_pieces([bytes.as_bytes()], LIMITS);
        assert_eq!(whole.violation, Some(*expected), "{vector:?}");
        for at in 0..bytes.len() {
            let (first, second) = bytes.as_bytes().split_at(at);
            assert_eq!(read_pieces([first, second], LIMITS), whole, "{vector:?} cut at {at}");
        }
        assert_eq!(read_pieces(bytes.as_bytes().chunks(1), LIMITS), whole, "{vector:?} byte by byte");
    }
}

#[test]
fn ordinary_requests_pass() {
    for (request, content) in ACCEPTED {
        let whole = read_pieces([request.as_bytes()], LIMITS);
        assert_eq!((whole.violation, whole.phase), (None, Some(ReadPhase::Idle)), "{request:?}");
        assert_eq!(whole.content, content.as_bytes(), "{request:?}");
        assert_eq!(whole.heads, request.matches(" HTTP/").count());
        for at in 0..request.len() {
            let (first, second) = request.as_bytes().split_at(at);
            assert_eq!(read_pieces([first, second], LIMITS), whole, "{request:?} cut at {at}");
        }
    }
}

#[test]
fn heads_over_their_limits_are_told_from_each_other() {
    let of = |bytes: &str| {
        let whole = read_pieces([bytes.as_bytes()], LIMITS);
        assert_eq!(read_pieces(bytes.as_bytes().chunks(1), LIMITS), whole, "{bytes}");
        whole.violation
    };
    let max = LIMITS.head.bytes_max;
    let long = |padding: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(padding));
    let padding = max - long(0).len();
    assert_eq!(of(&long(padding)), None);
    assert_eq!(of(&long(padding + 1)), Some(HeadTooLarge));
    assert_eq!(of(&"x".repeat(max - 1)), None, "it may still end");
    assert_eq!(of(&"x".repeat(max)), Some(HeadTooLarge));
    let fields = |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(count - 1));
    assert_eq!(of(&fields(LIMITS.head.fields_max)), None);
    assert_eq!(of(&fields(LIMITS.head.fields_max + 1)), Some(TooManyFields));
    let options = |count: usize| {
        format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: a{}\r\n\r\n", ",b".repeat(count - 1))
    };
    assert_eq!(of(&options(64)), None);
    assert_eq!(of(&options(65)), Some(TooManyFields), "each option may name a field");
}

#[test]
fn a_head_that_comes_byte_by_byte_is_searched_once() {
    let limits = ServerLimits { head: HeadLimits { bytes_max: 1 << 20, fields_max: 8 }, ..LIMITS };
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "y".repeat(200_000));
    let mut server = ServerConnection::new(limits);
    // Quadratic, it would take 20 thousand million steps.
    for end in 1..=bytes.len() {
        let received = server.receive(&bytes.as_bytes()[..end]).expect("a good beginning");
        assert_eq!((received.taken, received.event), (0, None));
    }
    assert_eq!((server.phase(), server.heads()), (ReadPhase::ReadingHead, 1));
}

/// Good requests of which some bytes were replaced by those that smugglers like.
#[test]
fn the_outcome_does_not_depend_on_how_bytes_are_cut() {
    let words =
        ["", "\r", "\n", "\r\n", " ", "\0", ":", ";", "0", "9", "X: y\r\n", "Content-Length: 3\r\n", "\t"];
    let mut rng = Rng::new(5);
    let (mut refused, mut passed) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..=rng.below(3))
            .flat_map(|_| ACCEPTED[rng.below(ACCEPTED.len() as u64) as usize].0.bytes())
            .collect();
        for _ in 0..rng.below(3) {
            let at = rng.below(bytes.len() as u64 + 1) as usize;
            let end = (at + rng.below(3) as usize).min(bytes.len());
            let word = words[rng.below(words.len() as u64) as usize];
            bytes.splice(at..end, word.bytes());
        }
        let whole = read_pieces([&bytes[..]], LIMITS);
        *if whole.violation.is_some() { &mut refused } else { &mut passed } += 1;
        assert_eq!(read_pieces(cut(&bytes, &mut rng), LIMITS), whole, "{}", bytes.escape_ascii());
        assert_eq!(read_pieces(bytes.chunks(1), LIMITS), whole, "{}", bytes.escape_ascii());
    }
    assert!(refused > 4_000 && passed > 4_000, "{refused} refused, {passed} passed");
}
