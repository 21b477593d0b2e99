//! The server's side of `flashweir-http1` beside two other readers of requests: `httparse` with the plain
//! rules of RFC 9112, and hyper. What is accepted is read as the same requests.
//!
//! The verdict does not depend on how the
//! bytes are cut, and a head that is written from an accepted one is read as strictly, with the same fields.
//!
//! The first byte says where the bytes are cut in two.

use super::LIMITS;
use super::hyper_server;
use crate::reference::{End, Kind, Message, lenient, strict};
use flashweir_http1::FramingViolation;
use flashweir_http1::connection::{
    Disposition, ReadPhase, Refusal, RequestBodyUse, ServerConnection, ServerEvent, ServerLimits,
};
use flashweir_http1::head::{RequestHead, Version};
use flashweir_http1::write::{ConnectionField, OutgoingRequest, write_request};

const SERVER: ServerLimits = ServerLimits { head: LIMITS, drain_bytes_max: 1_024 };

/// Names that this gateway writes or removes.
const SPOKEN_FOR: [&str; 10] = [
    "host",
    "via",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "flashweir-decision",
];

/// Everything that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Read {
    requests: Vec<Message>,
    /// A request has begun and has not ended.
    pub(super) has_begun: bool,
    /// Bytes up to the end of the last request that ends its connection, if one does.
    closed_at: Option<usize>,
    pub(super) refused: Option<FramingViolation>,
    pub(super) heads: u64,
    /// Written heads of the accepted ones.
    written: Vec<Vec<u8>>,
}

pub(crate) fn run(data: &[u8]) {
    let Some((&cut, bytes)) = data.split_first() else { return };
    let whole = read([bytes]);
    let at = usize::from(cut).min(bytes.len());
    assert_eq!(read([&bytes[..at], &bytes[at..]]), whole, "cut at {at}");
    assert_eq!(read(bytes.chunks(1)), whole, "byte by byte");
    beside_httparse(bytes, &whole);
    beside_hyper(bytes, &whole);
    for (request, written) in whole.requests.iter().zip(&whole.written) {
        is_read_strictly(request, written);
    }
}

/// Answers each request at once, as soon as it has been read.
pub(super) fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let (mut server, mut read, mut unread, mut passed) =
        (ServerConnection::new(SERVER), Read::default(), Vec::new(), 0);
    for piece in pieces {
        unread.extend_from_slice(piece);
        loop {
            let received = match server.receive(&unread) {
                Ok(received) => received,
                Err(Refusal { violation, .. }) => {
                    read.refused = Some(violation);
                    read.heads = server.heads();
                    return read;
                }
            };
            match &received.event {
                None => {}
                Some(ServerEvent::Head { bytes, .. }) => {
                    let head = server.head(&unread[..*bytes]).expect("a whole head");
                    read.requests.push(message(&head));
                    let mut written = Vec::new();
                    write_request(&head, &OutgoingRequest::default(), &mut written);
                    read.written.push(written);
                }
                Some(ServerEvent::Content(range)) => {
                    let request = read.requests.last_mut().expect("a head came first");
                    request.body.extend_from_slice(&unread[range.clone()]);
                }
                Some(ServerEvent::Trailers(_) | ServerEvent::End) => {}
            }
            unread.drain(..received.taken);
            passed += received.taken;
            let is_whole = received.event.is_some() && server.phase() == ReadPhase::Idle;
            if is_whole {
                let start =
                    server.respond(403, Some(0), RequestBodyUse::Read, false).expect("a response is due");
                server.end().expect("no body");
                let is_closed = server.disposition() == Disposition::Close;
                assert_eq!(
                    is_closed,
                    start.connection == ConnectionField::Close,
                    "the client is not informed"
                );
                if is_closed {
                    read.closed_at = Some(passed);
                    read.heads = server.heads();
                    return read;
                }
            }
            if received.event.is_none() {
                break;
            }
        }
    }
    read.has_begun = server.phase() != ReadPhase::Idle;
    read.heads = server.heads();
    read
}

fn message(head: &RequestHead<'_>) -> Message {
    let text =
        |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("accepted lines are UTF-8 up to the fields");
    let version = if head.version() == Version::Http11 { "HTTP/1.1" } else { "HTTP/1.0" };
    Message {
        start: format!("{} {} {version}", text(head.method_name()), text(head.target())),
        fields: head
            .fields()
            .iter()
            .map(|field| (text(field.name).to_ascii_lowercase(), field.value.to_vec()))
            .collect(),
        body: Vec::new(),
    }
}

/// The same requests, with all that is in them.
fn beside_httparse(bytes: &[u8], whole: &Read) {
    if whole.refused.is_some() {
        return;
    }
    let end = whole.closed_at.unwrap_or(bytes.len());
    let (requests, end) = lenient(&bytes[..end]);
    let complete = whole.requests.len() - usize::from(is_body_open(whole));
    assert_eq!(requests.len(), complete, "{end:?}, here: {whole:?}");
    assert_eq!(requests[..], whole.requests[..complete]);
    match end {
        // An empty line before a request is part of none, and httparse skips it.
        End::Whole => assert!(!whole.has_begun || bytes.ends_with(b"\r\n"), "here more is awaited"),
        // httparse refuses some lines before their end has come.
        End::Partial | End::Bad(_) => assert!(whole.has_begun, "here the end was found, there {end:?}"),
    }
}

/// The last head has come whole, its body has not.
fn is_body_open(whole: &Read) -> bool {
    whole.has_begun && whole.heads == whole.requests.len() as u64
}

/// The same requests, in their order; hyper may stop before the end, never elsewhere.
fn beside_hyper(bytes: &[u8], whole: &Read) {
    if whole.refused.is_some() {
        return;
    }
    let end = whole.closed_at.unwrap_or(bytes.len());
    let requests = hyper_server::requests(&bytes[..end]);
    let complete = whole.requests.len() - usize::from(is_body_open(whole));
    match requests.last() {
        Some(last) if is_persistence_unread(last) => assert!(requests.len() <= complete),
        _ => assert_eq!(requests.len(), complete, "hyper: {requests:?}, here: {whole:?}"),
    }
    for (theirs, ours) in requests.iter().zip(&whole.requests) {
        assert_eq!(theirs.method(), ours.method());
        assert_eq!(theirs.body, ours.body);
        // hyper keeps fields by name, so their order among names is lost.
        let sorted = |message: &Message| {
            let mut fields = message.fields.clone();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            fields
        };
        assert_eq!(sorted(theirs), sorted(ours));
    }
}

/// hyper closes the connection after this request: it reads no Connection field that has a byte other than
/// visible ASCII, and so misses `keep-alive` of HTTP/1.0 beside it.
fn is_persistence_unread(request: &Message) -> bool {
    let is_unread = |line: &[u8]| line.iter().any(|byte| !matches!(byte, b'\t' | b' '..=b'~'));
    request.start.ends_with("HTTP/1.0") && request.all("connection").any(is_unread)
}

/// A written head has one reading: no field of one hop, one framing at most, nothing else lost or added.
fn is_read_strictly(request: &Message, written: &[u8]) {
    let (read, end) = strict(written, Kind::Requests);
    let shown = written.escape_ascii();
    assert_eq!((read.len(), end), (1, End::Whole), "{shown}");
    for name in ["connection", "keep-alive", "te", "upgrade", "transfer-encoding", "content-length", "proxy"]
    {
        assert_eq!(read[0].all(name).count(), 0, "{name}: {shown}");
    }
    // Behind CGI a sign in a name is as good as the hyphen.
    for (name, _) in &read[0].fields {
        let meant = name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
        assert!(*name == meant || !SPOKEN_FOR.contains(&&*meant), "{name}: {shown}");
    }
    assert_eq!(read[0].method(), request.method());
    for field in read[0].fields.iter().filter(|(name, _)| name != "host") {
        assert!(request.fields.contains(field), "{field:?} was not received: {shown}");
    }
    let named = |name: &str| {
        request
            .all("connection")
            .any(|line| line.to_ascii_lowercase().windows(name.len()).any(|part| part == name.as_bytes()))
    };
    for name in ["cookie", "authorization", "accept", "x"].into_iter().filter(|name| !named(name)) {
        assert!(read[0].all(name).eq(request.all(name)), "{name} was changed: {shown}");
    }
}
