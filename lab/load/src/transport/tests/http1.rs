//! One exchange at a time: framing, garbage, bodies, and how each is called.

use super::scripted::{OK, Server, Step, answer, write};
use super::{Client, LONG, run};
use crate::ErrorKind;
use crate::transport::{Protocol, Transport};
use flashweir_core::Reason;
use http::Method;
use std::cell::Cell;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const BOTH: [Protocol; 2] = [Protocol::Http1New, Protocol::Http1KeepAlive];
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

#[test]
fn every_framing_is_read_to_its_end() {
    let check = |text: &str, status: u16, body_bytes: u64| {
        for protocol in BOTH {
            let server = Server::once(answer(text));
            let got = run(Client::new(server.address, protocol).get("/")).unwrap();
            assert_eq!((got.status, got.body_bytes), (status, body_bytes), "{text}");
            assert!(got.head_at <= got.end_at);
            server.join();
        }
    };
    check(OK, 200, 2);
    check("HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, 13);
    check("HTTP/1.0 200 OK\r\nserver: old\r\n\r\n", 200, 0);
    check(&format!("{CHUNKED}5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nx: y\r\n\r\n"), 200, 11);
    check("HTTP/1.1 204 None\r\n\r\n", 204, 0);
    check("HTTP/1.1 304 Same\r\ncontent-length: 9\r\n\r\n", 304, 0);
    check(&format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n{OK}"), 200, 2);
    check("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, 0);
    check("HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n", 500, 0);
}

#[test]
fn what_breaks_is_told_apart() {
    let check = |text: &str, wanted: ErrorKind| {
        for protocol in BOTH {
            let server = Server::once(answer(text));
            let got = run(Client::new(server.address, protocol).get("/"));
            assert_eq!(got.unwrap_err(), wanted, "{text}");
            server.join();
        }
    };
    check("", ErrorKind::Closed);
    check("HTTP/1.1 200 OK\r\ncontent-le", ErrorKind::Closed);
    check("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort", ErrorKind::Closed);
    check(&format!("{CHUNKED}5\r\nhel"), ErrorKind::Closed);
    check("HTTP/1.1 100 Continue\r\n\r\n", ErrorKind::Closed);
    check(&format!("{CHUNKED}rubbish\r\n"), ErrorKind::Malformed);
    check("rubbish, not HTTP at all\r\n\r\n", ErrorKind::Malformed);
    check("HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", ErrorKind::Malformed);
    check("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx", ErrorKind::Malformed);
}

#[test]
fn an_answer_may_come_byte_by_byte() {
    let text = format!("HTTP/1.1 100 Continue\r\n\r\n{CHUNKED}5\r\nhello\r\n0\r\n\r\n");
    let server = Server::once([Step::ReadHead, Step::WriteBytewise(text.into_bytes())]);
    let got = run(Client::new(server.address, Protocol::Http1KeepAlive).get("/")).unwrap();
    assert_eq!((got.status, got.body_bytes), (200, 5));
    server.join();
}

#[test]
fn a_large_body_is_counted() {
    let bytes = 5_000_000;
    let mut text = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").into_bytes();
    text.resize(text.len() + bytes, b'x');
    let server = Server::once([Step::ReadHead, Step::Write(text)]);
    let got = run(Client::new(server.address, Protocol::Http1New).get("/")).unwrap();
    assert_eq!(got.body_bytes, bytes as u64);
    server.join();
}

#[test]
fn the_answer_to_head_is_over_after_its_head() {
    let server = Server::once(
        [answer("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"), answer(OK)].into_iter().flatten(),
    );
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    run(async {
        let head = client.prepare(Method::HEAD, "");
        assert_eq!(client.ask(None, &head, "/a").await.unwrap().body_bytes, 0);
        client.get("/b").await.unwrap();
    });
    let seen = server.join();
    assert!(seen[0].heads[0].starts_with("HEAD /a HTTP/1.1\r\n"), "{seen:?}");
    assert!(seen[0].heads[1].starts_with("GET /b HTTP/1.1\r\n"), "{seen:?}");
}

#[test]
fn what_flashweir_says_reaches_the_ledger() {
    let server = Server::once(answer(
        "HTTP/1.1 503 Short\r\nFlashweir-Decision: 01; reason=flash_crowd\r\n\
         Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nDate: Wed, 21 Oct 2026 07:27:57 GMT\r\ncontent-length: 0\r\n\r\n",
    ));
    let got = run(Client::new(server.address, Protocol::Http1New).get("/")).unwrap();
    assert_eq!((got.status, got.reason), (503, Some(Reason::FlashCrowd)));
    assert_eq!(got.retry_after, Some(Duration::from_secs(3)));
    server.join();
}

/// A server that writes a large answer before it reads a large body blocks a client that does one after the
/// other.
#[test]
fn sending_and_receiving_go_on_together() {
    let bytes = 8_000_000;
    let mut text = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").into_bytes();
    text.resize(text.len() + bytes, b'x');
    let last = text.split_off(text.len() - 1);
    let first = [Step::ReadHead, Step::Write(text), Step::Read(bytes), Step::Write(last)];
    let server = Server::once(first.into_iter().chain(answer(OK)));
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    run(async {
        let post = client.prepare(Method::POST, vec![b'y'; bytes]);
        assert_eq!(client.ask(None, &post, "/").await.unwrap().body_bytes, bytes as u64);
        // Everything was read and written, so the connection is in order.
        client.get("/").await.unwrap();
    });
    assert_eq!(client.counts().reused, 1);
    server.join();
}

/// A refusal does not wait for the body; what was not sent makes the connection useless.
#[test]
fn an_early_answer_ends_the_try() {
    let (go, released) = mpsc::channel();
    let refusal = write("HTTP/1.1 413 Large\r\ncontent-length: 0\r\n\r\n");
    let server = Server::once([Step::ReadHead, refusal, Step::Await(released), Step::AwaitClose]);
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    // Larger than the buffers of both kernels, and the server reads nothing until the try is over.
    let post = client.prepare(Method::POST, vec![b'y'; 64_000_000]);
    assert_eq!(run(client.ask(None, &post, "/")).unwrap().status, 413);
    drop(go);
    server.join();
}

#[test]
fn sent_is_told_when_it_was_sent_and_only_then() {
    let (go, released) = mpsc::channel();
    let server = Server::once([Step::ReadHead, Step::Await(released), write(OK)]);
    let client = Client::new(server.address, Protocol::Http1New);
    let times = Cell::new(0);
    run(async {
        let get = client.prepare(Method::GET, "");
        let sent = || {
            times.set(times.get() + 1);
            go.send(()).unwrap();
        };
        // The server answers only because its script says so.
        let answered = client.transport.ask(None, &get, "/", sent);
        tokio::time::timeout(LONG, answered).await.unwrap().unwrap();
    });
    assert_eq!(times.get(), 1);
    server.join();
    // No server listens there any more.
    let refused = run(client.transport.ask(None, &client.prepare(Method::GET, ""), "/", || times.set(9)));
    assert_eq!((refused.unwrap_err(), times.get()), (ErrorKind::Connect, 1));
    assert_eq!(client.counts().failed, 1);
}

#[test]
fn whoever_leaves_closes_the_connection() {
    let server = Server::once([Step::ReadHead, write("HTTP/1.1 200 OK\r\n"), Step::AwaitClose]);
    let client = Client::new(server.address, Protocol::Http1KeepAlive);
    run(async {
        let get = client.prepare(Method::GET, "");
        let asked = client.transport.ask(None, &get, "/", || ());
        tokio::time::timeout(Duration::from_millis(50), asked).await.unwrap_err();
    });
    // It ends because the client closed.
    server.join();
}

/// Tens of thousands of people wait at once, so each must be small.
#[test]
fn a_waiting_request_is_small() {
    let client = Client::new(([127, 0, 0, 1], 1).into(), Protocol::Http1KeepAlive);
    let get = client.prepare(Method::GET, "");
    let bytes = size_of_val(&Transport::ask(&client.transport, None, &get, "/", || ()));
    assert!(bytes <= 512, "{bytes} bytes");
}

#[test]
fn times_are_those_of_the_head_and_of_the_end() {
    let (go, released) = mpsc::channel();
    let server = Server::once([
        Step::ReadHead,
        write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"),
        Step::Await(released),
        write("ok"),
    ]);
    let client = Client::new(server.address, Protocol::Http1New);
    let began = Instant::now();
    let got = run(async {
        let get = client.prepare(Method::GET, "");
        let asked = client.transport.ask(None, &get, "/", || ());
        let mut asked = std::pin::pin!(asked);
        // Not before the body goes on.
        let pause = Duration::from_millis(100);
        tokio::time::timeout(pause, &mut asked).await.unwrap_err();
        go.send(()).unwrap();
        tokio::time::timeout(LONG, asked).await.unwrap().unwrap()
    });
    assert!(got.head_at - began < got.end_at - began, "{got:?}");
    assert!(got.end_at - began >= Duration::from_millis(100), "{got:?}");
    server.join();
}
