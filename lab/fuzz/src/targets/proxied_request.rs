//! The differential target: what a client sends, through the server, the rules and the pool of the gateway,
//! to an upstream that records.
//!
//! Every request that arrives there is one that the client sent, in order, each once, with the client's body;
//! and strict reader, `httparse` and hyper read the same requests in the bytes that arrived. The client gets
//! one answer for each request that its bytes hold.
//!
//! The first byte says where the client's bytes are cut in two.

use super::http1_connection;
use super::world::{self, Way};
use crate::reference::{End, Kind, Message, lenient, strict};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::task::{spawn_local, yield_now};

/// An answer without a body, for any method.
const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
/// RFC 9113 §3.4.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Room between client and server: more than an input or its answers.
const PIPE_BYTES: usize = 1 << 16;

/// Bytes that arrived at the upstream since the last input: each read, with the number of its connection.
type Tape = Rc<RefCell<Vec<(u64, Vec<u8>)>>>;

thread_local! {
    // Never dropped, as the world it lives in.
    static UPSTREAM: OnceCell<ManuallyDrop<(Way, Tape)>> = const { OnceCell::new() };
}

pub(crate) fn run(data: &[u8]) {
    let Some((&cut, bytes)) = data.split_first() else { return };
    world::with(|world| world.run(compare(cut.into(), bytes)));
}

async fn compare(cut: usize, bytes: &[u8]) {
    // HTTP/2 from here on, where the server may wait for the rest of a frame: the target `http2_connection`.
    if bytes.starts_with(HTTP2_PREFACE) {
        return;
    }
    let (way, tape) = recorder().await;
    tape.borrow_mut().clear();
    let read = http1_connection::read([bytes]);
    let is_refused = read.refused.is_some();
    if HTTP2_PREFACE.starts_with(bytes) {
        // It looks like a head that is refused, but the server waits for the rest of the preface.
        exchange(way, bytes, cut, Some(0), &Rc::default()).await;
        assert!(tape.borrow().is_empty(), "nothing was asked for");
        return;
    }
    let has_begun = read.has_begun;
    let whole = read.heads - u64::from(has_begun && !is_refused);
    let answers_wanted = (!is_refused).then_some(whole as usize);
    let counted = Rc::new(RefCell::new(0));
    let answers = exchange(way, bytes, cut, answers_wanted, &counted).await;
    let (sent, _) = lenient(bytes);
    let arrived = arrived(&tape).await;
    check_order(&sent, &arrived);
    let is_cut_short = has_begun || is_refused || closes(&sent);
    if !is_cut_short {
        let finals = count_finals(&answers);
        // A target that is no URI ends the connection with a 400 of hyper's.
        let is_ended = answers.windows(13).any(|window| window == b"HTTP/1.1 400 ");
        let is_answered = if is_ended { finals <= sent.len() } else { finals == sent.len() };
        assert!(is_answered, "{finals} answers to {}: {}", sent.len(), answers.escape_ascii());
    }
    assert!(arrived.len() as u64 <= *counted.borrow(), "more arrived than was sent on");
}

/// Returns whether the client asks for the end of its connection before its last request.
fn closes(sent: &[Message]) -> bool {
    let asks = |message: &Message| {
        message.start.ends_with("HTTP/1.0")
            || message
                .all("connection")
                .any(|value| value.to_ascii_lowercase().windows(5).any(|word| word == b"close"))
    };
    sent.iter().rev().skip(1).any(asks)
}

/// Talks to the server until all answers that are to be expected are there, or the server ends the
/// connection.
async fn exchange(
    way: Way,
    bytes: &[u8],
    cut: usize,
    answers_wanted: Option<usize>,
    counted: &Rc<RefCell<u64>>,
) -> Vec<u8> {
    let (client, server_side) = duplex(PIPE_BYTES);
    let service = world::service(way, Rc::clone(counted));
    let server = world::server();
    let served = spawn_local(async move {
        server.serve(server.guard(server_side), None, service, std::future::pending()).await
    });
    let (mut reading, mut writing) = tokio::io::split(client);
    let at = cut.min(bytes.len());
    let write = async {
        // The server may be gone before it has read everything.
        let _ = writing.write_all(&bytes[..at]).await;
        for _ in 0..4 {
            yield_now().await;
        }
        let _ = writing.write_all(&bytes[at..]).await;
    };
    let read = async {
        let (mut answers, mut buffer) = (Vec::new(), [0; 4_096]);
        while answers_wanted.is_none_or(|wanted| count_finals(&answers) < wanted) {
            match reading.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => answers.extend_from_slice(&buffer[..read]),
            }
        }
        answers
    };
    let ((), mut answers) = tokio::join!(write, read);
    let _ = writing.shutdown().await;
    let _ = reading.read_to_end(&mut answers).await;
    drop((reading, writing));
    served.await.expect("the server does not panic");
    answers
}

fn count_finals(answers: &[u8]) -> usize {
    let starts = answers
        .windows(9)
        .filter(|window| window.starts_with(b"HTTP/1.1 ") || window.starts_with(b"HTTP/1.0 "));
    let interim = answers.windows(12).filter(|window| window.starts_with(b"HTTP/1.1 100")).count();
    starts.count() - interim
}

/// Each request that arrived is the next of those that were sent, some of which the gateway answers itself.
fn check_order(sent: &[Message], arrived: &[Message]) {
    let mut sent = sent.iter();
    for request in arrived {
        let found = sent.by_ref().find(|sent| is_same(sent, request));
        assert!(found.is_some(), "this was not sent, or not now: {request:?}");
    }
}

fn is_same(sent: &Message, arrived: &Message) -> bool {
    sent.method() == arrived.method()
        && origin_form(sent.target()) == arrived.target()
        && sent.body == arrived.body
        && arrived
            .fields
            .iter()
            .all(|(name, value)| is_ours(name) || sent.all(name).any(|sent| sent == value))
}

/// Fields that the gateway writes.
fn is_ours(name: &str) -> bool {
    let ours = [
        "host",
        "via",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "connection",
        "te",
        "upgrade",
        "transfer-encoding",
        "content-length",
        "max-forwards",
    ];
    ours.contains(&name)
}

/// RFC 9112 §3.2.2, for targets that the gateway passes on.
fn origin_form(target: &str) -> String {
    let Some((_, rest)) = target.split_once("://").filter(|_| !target.starts_with('/')) else {
        return target.to_owned();
    };
    match rest.find(['/', '?']) {
        None => "/".to_owned(),
        Some(at) if rest[at..].starts_with('?') => format!("/{}", &rest[at..]),
        Some(at) => rest[at..].to_owned(),
    }
}

async fn recorder() -> (Way, Tape) {
    if let Some(known) = UPSTREAM.with(|upstream| upstream.get().map(|known| (**known).clone())) {
        return known;
    }
    let tape = Tape::default();
    let (writer, connections) = (Rc::clone(&tape), Cell::new(0));
    let script = move |stream| record(stream, connections.replace(connections.get() + 1), Rc::clone(&writer));
    let way = world::upstream(script).await;
    UPSTREAM.with(|upstream| (**upstream.get_or_init(|| ManuallyDrop::new((way, tape)))).clone())
}

/// Answers each whole request, and keeps its bytes.
async fn record(mut stream: TcpStream, connection: u64, tape: Tape) {
    let (mut unread, mut buffer) = (Vec::new(), [0; 4_096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        unread.extend_from_slice(&buffer[..read]);
        tape.borrow_mut().push((connection, buffer[..read].to_vec()));
        let (requests, end) = strict(&unread, Kind::Requests);
        // The comparison finds the fault again.
        if matches!(end, End::Bad(_)) {
            return;
        }
        if end == End::Whole {
            unread.clear();
            for _ in &requests {
                if stream.write_all(ANSWER).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The whole requests in the order in which they arrived, read by three readers that agree.
async fn arrived(tape: &Tape) -> Vec<Message> {
    let (mut all, mut unread) = (Vec::new(), BTreeMap::<u64, Vec<u8>>::new());
    let mut connections = BTreeMap::<u64, Vec<u8>>::new();
    for (connection, bytes) in tape.borrow().iter() {
        connections.entry(*connection).or_default().extend_from_slice(bytes);
        let unread = unread.entry(*connection).or_default();
        unread.extend_from_slice(bytes);
        let (requests, end) = strict(unread, Kind::Requests);
        if end == End::Whole {
            unread.clear();
            all.extend(requests);
        }
    }
    for bytes in connections.values() {
        let (requests, end) = strict(bytes, Kind::Requests);
        assert!(!matches!(end, End::Bad(_)), "{end:?} arrived: {}", bytes.escape_ascii());
        assert_eq!(lenient(bytes).0, requests, "httparse reads otherwise: {}", bytes.escape_ascii());
        let hyper = read_by_hyper(bytes, requests.len()).await;
        let read: Vec<_> = requests
            .iter()
            .map(|one| (one.method().to_owned(), one.target().to_owned(), one.body.clone()))
            .collect();
        assert_eq!(hyper, read, "hyper reads otherwise: {}", bytes.escape_ascii());
    }
    all
}

type Read = (String, String, Vec<u8>);

/// Method, target and body of all whole requests, as hyper's server reads them.
async fn read_by_hyper(bytes: &[u8], wanted: usize) -> Vec<Read> {
    let seen: Rc<RefCell<Vec<Read>>> = Rc::default();
    let writer = Rc::clone(&seen);
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let seen = Rc::clone(&writer);
        async move {
            let (head, body) = request.into_parts();
            if let Ok(body) = body.collect().await {
                let body = body.to_bytes().to_vec();
                seen.borrow_mut().push((head.method.to_string(), head.uri.to_string(), body));
            }
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let (mut client, server_side): (DuplexStream, DuplexStream) = duplex(PIPE_BYTES.max(2 * bytes.len()));
    client.write_all(bytes).await.expect("room in the pipe");
    let served = spawn_local(async move {
        let _ = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(server_side), service)
            .await;
    });
    let mut buffer = [0; 4_096];
    while seen.borrow().len() < wanted {
        match client.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    drop(client);
    let _ = served.await;
    seen.take()
}
