//! Served connections: what a client gets for good, bad, slow and endless requests.

use crate::FramingViolation;
use crate::serve::HeadLimits;
use crate::serve::{
    Connection, ConnectionEnd, IncomingBody, IncomingBodyError, ServeSettings, Served, Server,
};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};

use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

const SETTINGS: ServeSettings = ServeSettings {
    head: HeadLimits { bytes_max: 1_024, fields_max: 10 },
    head_timeout: Duration::from_secs(4),
    idle_timeout: Duration::from_secs(20),
    http2_streams_max: 10,
    http2_ping_after: Duration::from_secs(30),
};

/// Echoes the request body; `/refused` answers without reading it.
async fn echo(request: Request<IncomingBody>) -> Result<Response<Full<Bytes>>, IncomingBodyError> {
    if request.uri().path() == "/refused" {
        let mut response = Response::new(Full::from("no"));
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        return Ok(response);
    }
    Ok(Response::new(Full::from(request.into_body().collect().await?.to_bytes())))
}

fn start(drain: impl Future<Output = ()> + 'static) -> (DuplexStream, JoinHandle<Served>) {
    let (client, server_side) = duplex(64 * 1024);
    let served = spawn_local(async move {
        let server = Server::new(SETTINGS);
        let service = |request, _: &Connection| echo(request);
        server.serve(server.guard(server_side), None, service, drain).await
    });
    (client, served)
}

/// Sends the pieces with pauses in which the server reads; gives all it answered until it closed.
async fn talk(pieces: &[&[u8]]) -> (String, Served) {
    let (mut client, served) = start(std::future::pending());
    for piece in pieces {
        client.write_all(piece).await.unwrap();
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    (String::from_utf8(answer).unwrap(), served.await.unwrap())
}

fn run<F: Future>(test: F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, test)
}

const GOOD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
const CLOSING: &[u8] = b"GET /refused HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[test]
fn pipelined_requests_are_all_answered() {
    let (answer, served) = run(talk(&[&[GOOD, GOOD, CLOSING].concat()]));
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 503").count(), 1, "{answer}");
    assert_eq!((served.requests, served.violation), (3, None));
    assert!(matches!(served.end, ConnectionEnd::Closed), "{:?}", served.end);
}

#[test]
fn a_bad_head_is_answered_400_and_closed_wherever_it_is_split() {
    let bad = b"GET /secret HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    for cut in 0..bad.len() {
        let (answer, served) = run(talk(&[GOOD, &bad[..cut], &bad[cut..]]));
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "cut at {cut}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 400 Bad Request").count(), 1, "cut at {cut}: {answer}");
        assert!(
            answer.ends_with("\r\n\r\nBoth Content-Length and Transfer-Encoding are given.\n"),
            "cut at {cut}: {answer}"
        );
        assert_eq!(served.requests, 1, "cut at {cut}");
        assert_eq!(served.violation, Some(FramingViolation::LengthAndTransferEncoding));
    }
}

#[test]
fn a_target_that_cannot_be_read_is_answered_with_the_rule_and_after_what_is_owed() {
    for target in ["/a`b", "/<a>", "/a#b", "/a\u{80}?<", "http://[::1/", "a b"] {
        let bad = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let (answer, served) = run(talk(&[GOOD, GOOD, bad.as_bytes()]));
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{target}: {answer}");
        let (_, refused) = answer.split_once("HTTP/1.1 400 Bad Request\r\n").expect("an answer");
        assert!(
            refused.contains("content-type: text/plain") && refused.contains("\r\n\r\nThe request "),
            "{target}: {answer}"
        );
        assert_eq!(served.requests, 2, "{target}");
        let pipelined = run(talk(&[[GOOD, bad.as_bytes()].concat().as_slice()]));
        assert!(
            pipelined.0.starts_with("HTTP/1.1 200 OK") && pipelined.0.ends_with(refused),
            "{pipelined:?}"
        );
    }
}

#[test]
fn a_bare_line_feed_gets_400_at_any_split() {
    let bad = b"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n";
    for cut in 0..bad.len() {
        let (answer, served) = run(talk(&[&bad[..cut], &bad[cut..]]));
        assert!(answer.starts_with("HTTP/1.1 400 "), "cut at {cut}: {answer}");
        assert_eq!((served.requests, served.violation), (0, Some(FramingViolation::BareLf)));
    }
}

#[test]
fn heads_over_their_limits_get_431_at_any_split() {
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(2_000));
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(20));
    for cut in (0..100).chain([1_023, 1_024, 1_025]) {
        for (head, violation) in
            [(&long, FramingViolation::HeadTooLarge), (&many, FramingViolation::TooManyFields)]
        {
            let cut = cut.min(head.len());
            let (answer, served) = run(talk(&[&head.as_bytes()[..cut], &head.as_bytes()[cut..]]));
            assert!(answer.starts_with("HTTP/1.1 431 "), "{violation} cut at {cut}: {answer:?}");
            assert!(answer.ends_with(violation.explanation()), "{violation} cut at {cut}: {answer:?}");
            assert_eq!((served.requests, served.violation), (0, Some(violation)), "cut at {cut}");
        }
    }
}

/// RFC 9110 §9.3.2: a client that reads no content would take it for the beginning of the next response.
#[test]
fn a_head_request_that_is_refused_or_too_slow_gets_no_content() {
    let long = format!("HEAD / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(2_000));
    let many = format!("HEAD / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(20));
    let no_end = format!("HEAD /{}", "y".repeat(2_000));
    let heads = [
        (400, "HEAD / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        (400, "\r\nHEAD /<a> HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "HEAD / HTTP/1.1\nHost: a\r\n\r\n"),
        (431, long.as_str()),
        (431, many.as_str()),
        (431, no_end.as_str()),
        (408, "HEAD / HTTP/1.1\r\nHost:"),
        (408, "HEAD /"),
    ];
    for (status, head) in heads {
        for cut in [0, 20.min(head.len())] {
            let (answer, _) = run(talk(&[&head.as_bytes()[..cut], &head.as_bytes()[cut..]]));
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head:?}: {answer:?}");
            assert!(
                answer.ends_with("\r\n\r\n") && answer.matches("\r\n\r\n").count() == 1,
                "{head:?}: {answer:?}"
            );
            assert!(
                answer.contains("\r\ncontent-length: ") && !answer.contains("content-length: 0"),
                "{answer:?}"
            );
        }
    }
    let (answer, _) = run(talk(&[
        b"HEAD /refused HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ]));
    assert!(answer.ends_with(".\n"), "the next request is another: {answer:?}");
}

#[test]
fn bad_chunks_fail_the_body_and_smuggle_nothing() {
    let bad = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    let (answer, served) = run(talk(&[bad]));
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 0, "{answer}");
    assert_eq!((served.requests, served.violation), (1, Some(FramingViolation::ChunkEnd)));
}

#[test]
fn a_refusal_sends_no_100_continue_and_reading_the_body_does() {
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
        )
    };
    let (refused, _) = run(talk(&[head("/refused").as_bytes()]));
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    let (wanted, _) = run(talk(&[head("/").as_bytes(), b"abc"]));
    assert!(wanted.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"), "{wanted}");
}

#[test]
fn slow_heads_get_408_and_silence_gets_nothing() {
    let (answer, served) = run(talk(&[b"GET / HTTP/1.1\r\nHost:"]));
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(matches!(served.end, ConnectionEnd::HeadTimeout), "{:?}", served.end);

    let (answer, served) = run(talk(&[GOOD, b"GET /"]));
    assert!(answer.contains("HTTP/1.1 200 OK") && answer.contains("HTTP/1.1 408 "), "{answer}");
    assert_eq!(served.requests, 1);

    let (answer, served) = run(talk(&[]));
    assert_eq!(answer, "");
    assert!(matches!(served.end, ConnectionEnd::HeadTimeout), "{:?}", served.end);

    let (answer, served) = run(talk(&[GOOD]));
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(matches!(served.end, ConnectionEnd::Idle), "{:?}", served.end);
}

#[test]
fn draining_finishes_what_has_begun_and_closes_the_idle() {
    run(async {
        let (begun, drain, drained) =
            (Rc::new(Notify::new()), Rc::new(Notify::new()), Rc::new(Notify::new()));
        let (mut client, server_side) = duplex(64 * 1024);
        let (begins, drains, seen) = (Rc::clone(&begun), Rc::clone(&drain), Rc::clone(&drained));
        let served = spawn_local(async move {
            let server = Server::new(SETTINGS);
            let service = move |request, _: &Connection| {
                begins.notify_one();
                echo(request)
            };
            let drain = async move {
                drains.notified().await;
                seen.notify_one();
            };
            server.serve(server.guard(server_side), None, service, drain).await
        });
        client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na").await.unwrap();
        begun.notified().await;
        drain.notify_one();
        drained.notified().await;
        client.write_all(b"bc").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("abc"), "{answer}");
        assert!(matches!(served.await.unwrap().end, ConnectionEnd::Closed));
    });
}

#[test]
fn http2_with_prior_knowledge_is_recognised_however_it_is_split() {
    run(async {
        let (client, served) = start(std::future::pending());
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(crate::serve::LocalExecutor, TokioIo::new(client))
                .await
                .unwrap();
        spawn_local(connection);
        for _ in 0..3 {
            let request = Request::get("http://a/refused").body(Empty::<Bytes>::new()).unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!(response.status(), 503);
        }
        drop(sender);
        let served = served.await.unwrap();
        assert_eq!((served.requests, served.violation), (3, None));
    });
}

#[test]
fn a_service_error_closes_without_an_answer() {
    run(async {
        let (mut client, server_side) = duplex(4_096);
        let served = spawn_local(async move {
            let server = Server::new(SETTINGS);
            let service = |_: Request<IncomingBody>, _: &Connection| async {
                Err::<Response<Empty<Bytes>>, _>(std::io::Error::other("aborted"))
            };
            server.serve(server.guard(server_side), None, service, std::future::pending()).await
        });
        client.write_all(CLOSING).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty());
        assert!(matches!(served.await.unwrap().end, ConnectionEnd::Failed(_)));
    });
}

/// The rest of a body whose request is answered already is a body all the same, however much of it has
/// been looked at: its bytes never become a request.
#[test]
fn a_body_that_is_held_beyond_its_answer_hides_no_request() {
    run(async {
        let (mut client, server_side) = duplex(64 * 1024);
        let (held, paths) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
        let seen = Rc::clone(&paths);
        let served = spawn_local(async move {
            let service = move |request: Request<IncomingBody>, _: &Connection| {
                let (held, paths) = (Rc::clone(&held), Rc::clone(&seen));
                async move {
                    paths.borrow_mut().push(request.uri().path().to_owned());
                    let mut body = request.into_body();
                    if let Some(frame) = body.frame().await {
                        frame?;
                    }
                    held.borrow_mut().push(body);
                    Ok::<_, IncomingBodyError>(Response::new(Full::<Bytes>::from("ok")))
                }
            };
            let server = Server::new(SETTINGS);
            server.serve(server.guard(server_side), None, service, std::future::pending()).await
        });
        // As long as what came of its chunk, with the chunk's frame, before the answer.
        let hidden = "\r\n0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
        let content = format!("{}{hidden}", "p".repeat(200));
        let size = format!("{:x}\r\n", content.len());
        let (early, late) = content.split_at(hidden.len() - "\r\n".len() - size.len());
        let head = "POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.write_all(format!("{head}1\r\nx\r\n{size}{early}").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\nok") {
            answer.push(client.read_u8().await.unwrap());
        }
        let next = "GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        client.write_all(format!("{late}\r\n0\r\n\r\n{next}").as_bytes()).await.unwrap();
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();
        served.await.unwrap();
        assert_eq!(*paths.borrow(), ["/upload", "/next"], "{answers}");
    });
}
