//! One end of a connection at a time: ends of input, faults, and requests to do what is not due.

use super::framing::LIMITS;
use crate::FramingViolation;
use crate::body::{BodyFraming, LengthError};
use crate::connection::{
    ClientConnection, ClientEvent, Disposition, MessagePart, ReadPhase, RequestBodyUse, RequestStart,
    ResponseEnd, ResponseError, ResponseFault, ResponseStart, ServerConnection, ServerEvent, ServerInputEnd,
};
use crate::head::{Method, ResponseViolation};
use crate::write::{ConnectionField, FramingField};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";

fn server(bytes: &[u8]) -> ServerConnection {
    let mut server = ServerConnection::new(LIMITS);
    let mut at = 0;
    while let received = server.receive(&bytes[at..]).expect("good bytes")
        && received.event.is_some()
    {
        at += received.taken;
    }
    server
}

fn client(method: Method) -> ClientConnection {
    let mut client = ClientConnection::new(LIMITS.head);
    let body = BodyFraming::None;
    assert!(client.begin(RequestStart { method, body, wants_upgrade: false, is_last: false }));
    client.end().expect("no body");
    client
}

/// Events' heads and content, joined.
fn read(client: &mut ClientConnection, bytes: &[u8]) -> Result<Vec<u8>, ResponseFault> {
    let (mut at, mut content) = (0, Vec::new());
    loop {
        let received = client.receive(&bytes[at..])?;
        match received.event {
            Some(ClientEvent::Content(range)) => content.extend_from_slice(&bytes[at..][range]),
            Some(_) => {}
            None => return Ok(content),
        }
        at += received.taken;
    }
}

#[test]
fn the_end_of_a_clients_half_means_something_else_in_each_phase() {
    for (bytes, end) in [
        (&b""[..], ServerInputEnd::Clean),
        (b"GET /", ServerInputEnd::Truncated(MessagePart::Head)),
        (POST, ServerInputEnd::Truncated(MessagePart::Body)),
        (GET, ServerInputEnd::ResponseOwed),
    ] {
        assert_eq!(server(bytes).end_input(), end, "{}", bytes.escape_ascii());
    }
    let mut server = server(GET);
    server.end_input();
    let start = server.respond(200, Some(2), RequestBodyUse::Read, false).expect("still owed");
    assert_eq!(start.connection, ConnectionField::Close, "no request can follow");
    assert_eq!(server.end_input(), ServerInputEnd::ResponseOwed, "as before");
    server.frame(2).expect("as long as announced");
    server.end().expect("as long as announced");
    assert_eq!(server.disposition(), Disposition::Close);
}

#[test]
fn requests_behind_each_other_wait_for_their_turn() {
    let bytes = [POST, b"hello", GET, b"GET /2 HTTP/1.1\r\nHost"].concat();
    let (mut server, mut at, mut heads) = (ServerConnection::new(LIMITS), 0, 0);
    loop {
        let received = server.receive(&bytes[at..]).expect("good requests");
        heads += u32::from(matches!(received.event, Some(ServerEvent::Head { .. })));
        at += received.taken;
        if received.event.is_some() {
            continue;
        }
        if server.phase() == ReadPhase::ReadingHead {
            break;
        }
        assert_eq!(server.heads(), u64::from(heads), "the next one has not been looked at");
        server.respond(204, None, RequestBodyUse::Read, false).expect("a response is due");
        assert_eq!(server.disposition(), Disposition::Busy);
        server.end().expect("no body");
    }
    assert_eq!((heads, server.heads(), &bytes[at..at + 6]), (2, 3, &b"GET /2"[..]));
}

#[test]
fn a_response_has_the_framing_that_its_client_reads() {
    let http10 = b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let head = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n";
    for (request, status, length, framing, connection) in [
        (GET, 200, Some(5), FramingField::Length(5), ConnectionField::None),
        (GET, 200, Some(0), FramingField::Length(0), ConnectionField::None),
        (GET, 200, None, FramingField::Chunked, ConnectionField::None),
        (GET, 204, Some(5), FramingField::None, ConnectionField::None),
        (GET, 304, Some(5), FramingField::Length(5), ConnectionField::None),
        (GET, 304, None, FramingField::None, ConnectionField::None),
        (head, 200, Some(5), FramingField::Length(5), ConnectionField::None),
        (head, 200, None, FramingField::None, ConnectionField::None),
        (last, 200, Some(5), FramingField::Length(5), ConnectionField::Close),
        (http10, 200, Some(5), FramingField::Length(5), ConnectionField::KeepAlive),
        (http10, 200, None, FramingField::None, ConnectionField::Close),
        (b"GET / HTTP/1.0\r\n\r\n", 200, Some(5), FramingField::Length(5), ConnectionField::Close),
    ] {
        let start = server(request).respond(status, length, RequestBodyUse::Read, false);
        assert_eq!(start, Ok(ResponseStart { framing, connection }), "{} {status}", request.escape_ascii());
    }
}

#[test]
fn a_response_that_is_not_due_is_refused() {
    let mut idle = server(b"");
    assert_eq!(idle.respond(200, None, RequestBodyUse::Read, false), Err(ResponseError::NotDue));
    let mut asked = server(GET);
    assert_eq!(asked.respond(101, None, RequestBodyUse::Read, false), Err(ResponseError::NoUpgrade));
    assert_eq!(asked.respond(103, None, RequestBodyUse::Read, false), Err(ResponseError::Interim));
    asked.respond(200, Some(3), RequestBodyUse::Read, false).expect("a response is due");
    assert_eq!(asked.respond(200, None, RequestBodyUse::Read, false), Err(ResponseError::NotDue));
    assert_eq!(asked.frame(4), Err(LengthError::Exceeded));
    assert_eq!(asked.end(), Err(LengthError::Short));
    assert_eq!(asked.disposition(), Disposition::Close, "the client sees the cut");
}

/// RFC 9110 §10.1.1: which of the two such a client does, sending its body or not, cannot be known.
#[test]
fn a_client_that_waits_for_100_and_gets_a_refusal_is_closed() {
    let expecting = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    for (body, connection) in [(&b""[..], ConnectionField::Close), (b"h", ConnectionField::None)] {
        let mut server = server(&[expecting, body].concat());
        assert_eq!(server.expects_continue(), body.is_empty());
        let start = server.respond(503, Some(0), RequestBodyUse::Discard, false).expect("a response is due");
        assert_eq!(start.connection, connection, "{body:?}");
    }
    let http10 = b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    assert!(!server(http10).expects_continue(), "HTTP/1.0 has no such thing");
}

#[test]
fn a_refusal_says_whether_it_can_be_answered() {
    let chunked = b"HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for is_begun in [false, true] {
        let mut server = server(chunked);
        if is_begun {
            server.respond(200, None, RequestBodyUse::Read, false).expect("a response is due");
        }
        let refusal = server.receive(b"x").expect_err("no size");
        assert_eq!((refusal.violation, refusal.part), (FramingViolation::ChunkSize, MessagePart::Body));
        assert_eq!((refusal.is_answerable, refusal.is_head), (!is_begun, true));
        assert_eq!(server.receive(GET).expect("nothing is read").taken, 0);
    }
    for (bytes, is_head) in [
        (&b"HEAD /<a> HTTP/1.1\r\n"[..], true),
        (b"\r\nHEAD /\n", true),
        (b"HEAD / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", true),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", false),
    ] {
        let refusal = ServerConnection::new(LIMITS).receive(bytes).expect_err("a bad head");
        assert_eq!((refusal.is_head, refusal.is_answerable), (is_head, true), "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_fault_in_a_body_that_is_dropped_ends_the_connection_silently() {
    let mut server = server(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    server.respond(200, Some(0), RequestBodyUse::Read, false).expect("a response is due");
    server.end().expect("no body");
    assert_eq!(server.disposition(), Disposition::Draining);
    assert!(server.receive(b"rubbish").is_ok());
    assert_eq!(server.disposition(), Disposition::Close);
}

#[test]
fn a_body_of_unknown_length_is_drained_up_to_the_bound() {
    for (chunk, end) in [(32, Disposition::Draining), (64, Disposition::Close)] {
        let mut server = server(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        server.respond(200, Some(0), RequestBodyUse::Read, false).expect("a response is due");
        server.end().expect("no body");
        let bytes = format!("{chunk:x}\r\n{}\r\n", "x".repeat(chunk));
        server.receive(bytes.as_bytes()).expect("a good chunk");
        assert_eq!(server.disposition(), end, "{chunk} bytes and their framing");
        if end == Disposition::Draining {
            server.receive(b"0\r\n\r\n").expect("a good end");
            assert_eq!(server.disposition(), Disposition::Ready);
        }
    }
}

#[test]
fn the_end_of_a_servers_half_means_something_else_in_each_phase() {
    for (bytes, end) in [
        (&b""[..], ResponseEnd::Unanswered),
        (b"HTTP", ResponseEnd::Truncated),
        (b"HTTP/1.1 103 Early\r\n\r\n", ResponseEnd::Truncated),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", ResponseEnd::Truncated),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", ResponseEnd::Truncated),
        (b"HTTP/1.1 200 OK\r\n\r\nall of it", ResponseEnd::Whole),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ResponseEnd::Clean),
    ] {
        let mut client = client(Method::Get);
        read(&mut client, bytes).expect("good bytes");
        assert_eq!(client.end_input(), end, "{}", bytes.escape_ascii());
        assert_eq!(client.disposition(), Disposition::Close);
    }
}

#[test]
fn a_response_that_leaves_its_end_open_is_refused() {
    use FramingViolation::*;
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    for (fields, violation) in [
        ("Content-Length: 5\r\nContent-Length: 6\r\n", ContentLength),
        ("Content-Length: 5, 6\r\n", ContentLength),
        ("Content-Length: +5\r\n", ContentLength),
        ("Transfer-Encoding: gzip\r\n", TransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", RepeatedTransferEncoding),
        ("X y: 5\r\n", FieldName),
        ("X: y\r\n folded\r\n", ObsFold),
        ("X: a\rContent-Length: 5\r\n", BareCr),
        ("X: a\0\r\n", ControlByte),
        ("X : a\r\n", SpaceBeforeColon),
    ] {
        let fault = read(&mut client(Method::Get), head(fields).as_bytes());
        assert_eq!(fault, Err(ResponseFault::Head(ResponseViolation::Framing(violation))), "{fields:?}");
    }
    let http10 = b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(read(&mut client(Method::Get), http10).is_err());
    let status = read(&mut client(Method::Get), b"ICY 200 OK\r\n\r\n");
    assert_eq!(status, Err(ResponseFault::Head(ResponseViolation::StatusLine)));
    let chunk = read(&mut client(Method::Get), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx");
    assert_eq!(chunk, Err(ResponseFault::Body(ChunkSize)));
}

#[test]
fn a_response_of_an_old_server_is_read() {
    let mut client = client(Method::Get);
    let bytes = b"\r\nHTTP/1.0 200\nContent-Length: 2, 2\nContent-Length: 2\nConnection: keep-alive\n\nok";
    assert_eq!(read(&mut client, bytes).as_deref(), Ok(&b"ok"[..]));
    assert_eq!(client.disposition(), Disposition::Ready, "the server keeps the connection");
}

#[test]
fn bytes_that_answer_nothing_end_a_connection() {
    let mut idle = ClientConnection::new(LIMITS.head);
    let bytes = b"HTTP/1.1 408 Request Timeout\r\n\r\n";
    assert_eq!(read(&mut idle, bytes), Err(ResponseFault::Unsolicited));
    let mut answered = client(Method::Head);
    let two = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(read(&mut answered, two), Err(ResponseFault::Unsolicited), "HEAD has no content");
    assert_eq!(answered.disposition(), Disposition::Close);
    let switched = read(&mut client(Method::Get), b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n");
    assert_eq!(switched, Err(ResponseFault::UnrequestedSwitch));
    let hints = b"HTTP/1.1 103 Early\r\n\r\n".repeat(101);
    assert_eq!(read(&mut client(Method::Get), &hints), Err(ResponseFault::Interims));
}

#[test]
fn a_connection_is_used_again_only_after_both_halves_of_an_exchange() {
    let start = RequestStart {
        method: Method::Post,
        body: BodyFraming::Length(5),
        wants_upgrade: false,
        is_last: false,
    };
    let answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let mut client = ClientConnection::new(LIMITS.head);
    assert!(client.begin(start));
    assert!(!client.begin(start), "one is under way");
    client.frame(2).expect("as long as announced");
    read(&mut client, answer).expect("a good response");
    assert!(client.is_answered());
    assert_eq!(client.disposition(), Disposition::Busy);
    client.frame(3).expect("as long as announced");
    client.end().expect("as long as announced");
    assert_eq!((client.disposition(), client.answers()), (Disposition::Ready, 1));
    assert!(client.begin(start));
    read(&mut client, answer).expect("a good response");
    assert_eq!(client.end(), Err(LengthError::Short));
    assert_eq!(client.disposition(), Disposition::Close, "the server waits for the rest");
    let mut last = ClientConnection::new(LIMITS.head);
    assert!(last.begin(RequestStart { body: BodyFraming::None, is_last: true, ..start }));
    last.end().expect("no body");
    read(&mut last, answer).expect("a good response");
    assert_eq!(last.disposition(), Disposition::Close);
}

#[test]
fn memory_is_released_between_requests_only() {
    let mut busy = server(GET);
    busy.release();
    assert!(busy.head(GET).is_some(), "its request is under way");
    busy.respond(204, None, RequestBodyUse::Read, false).expect("a response is due");
    busy.end().expect("no body");
    busy.release();
    assert!(busy.head(GET).is_none());
    let mut idle = client(Method::Get);
    read(&mut idle, b"HTTP/1.1 204 No Content\r\n\r\n").expect("a good response");
    idle.release();
    assert!(idle.head(b"").is_none());
}

/// RFC 9112 §6.3: old servers send both, and every client reads the chunks.
#[test]
fn chunks_override_a_length_in_a_response_and_other_spellings_frame_nothing() {
    let bytes =
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(read(&mut client(Method::Get), bytes).as_deref(), Ok(&b"ok"[..]));
    let respelt = b"HTTP/1.1 200 OK\r\nContent_Length: 9\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(read(&mut client(Method::Get), respelt).as_deref(), Ok(&b"ok"[..]), "another field");
}
