//! Upstreams that behave, refuse, stall, reset, lie and talk rubbish.

use crate::tests::sockets::support::{
    RawUpstream, get, read_head, refusing_address, run, settings, until, upstreams,
};
use crate::upstream::{SendOptions, UpstreamErrorKind, UpstreamSettings, UpstreamShared};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Either, Full};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Closes with a reset instead of an orderly end.
fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
    drop(stream);
}

#[test]
fn one_connection_serves_many_requests() {
    run(async {
        let server = RawUpstream::answering(OK).await;
        let upstreams = upstreams(settings(&[server.address]));
        for _ in 0..5 {
            let response = upstreams.send(get("/")).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
            assert_eq!(upstreams.shared().in_flight(), 0);
        }
        assert_eq!(server.accepted.get(), 1);
    });
}

#[test]
fn a_full_pool_refuses_at_once() {
    run(async {
        let server = RawUpstream::answering(OK).await;
        let upstreams = upstreams(UpstreamSettings { connections_max: 1, ..settings(&[server.address]) });
        let first = upstreams.send(get("/")).await.unwrap();
        let error = upstreams.send(get("/")).await.unwrap_err();
        assert_eq!(
            (error.kind, error.kind.status()),
            (UpstreamErrorKind::Full, StatusCode::SERVICE_UNAVAILABLE)
        );
        assert_eq!(upstreams.shared().in_flight(), 1);
        first.into_body().collect().await.unwrap();
        assert!(upstreams.send(get("/")).await.is_ok());
    });
}

#[test]
fn a_connection_closed_while_idle_costs_no_request() {
    run(async {
        let closed = Rc::new(Cell::new(0));
        let count = Rc::clone(&closed);
        let server = RawUpstream::start(move |_, mut stream| {
            let count = Rc::clone(&count);
            async move {
                read_head(&mut stream).await;
                stream.write_all(OK).await.unwrap();
                stream.shutdown().await.unwrap();
                // The other side closes once it has seen this one's end.
                while stream.read_u8().await.is_ok() {}
                count.set(count.get() + 1);
            }
        })
        .await;
        let upstreams = upstreams(settings(&[server.address]));
        for round in 1..5 {
            upstreams.send(get("/")).await.unwrap().into_body().collect().await.unwrap();
            assert_eq!(server.accepted.get(), round);
            // The upstream's end must have been seen; a request racing with it could rightly fail.
            until(|| closed.get() == round).await;
        }
    });
}

#[test]
fn a_refused_connection_is_retried_elsewhere_and_ejects() {
    run(async {
        let server = RawUpstream::answering(OK).await;
        let upstreams = upstreams(settings(&[refusing_address(), server.address]));
        for _ in 0..20 {
            upstreams.send(get("/")).await.unwrap().into_body().collect().await.unwrap();
        }
        let statuses = upstreams.shared().statuses();
        assert_eq!(statuses.iter().map(|status| status.is_available()).collect::<Vec<_>>(), [false, true]);
        assert_eq!(upstreams.shared().in_flight(), 0);
    });
}

#[test]
fn what_is_known_of_a_server_outlives_a_change_of_the_others() {
    run(async {
        let server = RawUpstream::answering(OK).await;
        let gone = refusing_address();
        let former = upstreams(settings(&[gone, server.address]));
        for _ in 0..20 {
            former.send(get("/")).await.unwrap().into_body().collect().await.unwrap();
        }
        let joins = RawUpstream::answering(OK).await;
        let listed = settings(&[joins.address, server.address, gone]);
        let shared = UpstreamShared::succeeding(listed, former.shared()).unwrap();
        let statuses = shared.statuses();
        assert_eq!(
            statuses.iter().map(|status| (status.is_available(), status.share)).collect::<Vec<_>>(),
            [(true, 102), (true, 1_024), (false, 1_024)]
        );
    });
}

#[test]
fn nobody_listening_is_502() {
    run(async {
        let upstreams = upstreams(settings(&[refusing_address()]));
        // Ejected or not, the only upstream is always tried.
        for _ in 0..4 {
            let error = upstreams.send(get("/")).await.unwrap_err();
            assert_eq!(
                (error.kind, error.kind.status()),
                (UpstreamErrorKind::Connect, StatusCode::BAD_GATEWAY)
            );
            assert!(error.kind.may_retry());
        }
    });
}

/// An origin that restarts: its port refuses connections for a while, and nothing of a request has come to
/// it.
#[test]
fn requests_wait_for_a_server_that_restarts_and_not_for_one_that_is_gone() {
    run(async {
        let address = refusing_address();
        let upstreams = upstreams(settings(&[address]));
        let waits = SendOptions { waits: true, ..SendOptions::default() };
        let returns = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            RawUpstream::answering_at(address, OK).await
        };
        let post = || Request::post("/").header("host", "a").body(Either::Right(Full::from("body"))).unwrap();
        let (posted, asked, returned) =
            tokio::join!(upstreams.send_with(waits, post()), upstreams.send_with(waits, get("/")), returns);
        assert!(posted.is_ok() && asked.is_ok(), "{posted:?}, {asked:?}");
        let retries = upstreams.take_counts().unwrap().retries;
        assert!((2..=12).contains(&retries), "{retries}");
        drop((posted, asked));

        returned.end().await;
        let gone = upstreams.send_with(waits, get("/")).await.unwrap_err();
        assert_eq!(gone.kind, UpstreamErrorKind::Connect);
        // The absence is older than a restart takes.
        let retries = upstreams.take_counts().unwrap().retries;
        assert!((4..=10).contains(&retries), "{retries}");
        assert!(upstreams.send_with(waits, post()).await.is_err());
        assert_eq!(upstreams.take_counts().unwrap().retries, 1, "at once");
    });
}

/// Goal: the failures of a server that is back are recorded, as those of any server.
#[test]
fn a_server_that_returns_and_resets_is_left_out() {
    run(async {
        let address = refusing_address();
        let upstreams = upstreams(settings(&[address, refusing_address()]));
        let returns = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            RawUpstream::start_at(address, |_, mut stream| async move {
                read_head(&mut stream).await;
                reset(stream);
            })
            .await
        };
        let waits = |client| SendOptions { client: Some(client), waits: true, ..SendOptions::default() };
        let post = || Request::post("/").header("host", "a").body(Either::Right(Full::from("body"))).unwrap();
        let (answer, _returned) = tokio::join!(upstreams.send_with(waits(1), post()), returns);
        assert_eq!(answer.unwrap_err().kind, UpstreamErrorKind::Reset);
        assert!(!upstreams.shared().statuses()[0].is_available(), "refused, then reset");
    });
}

#[test]
fn a_request_that_was_sent_is_never_sent_again() {
    run(async {
        let server = RawUpstream::start(|_, mut stream| async move {
            read_head(&mut stream).await;
            reset(stream);
        })
        .await;
        let other = RawUpstream::start(|_, mut stream| async move {
            read_head(&mut stream).await;
            reset(stream);
        })
        .await;
        let upstreams = upstreams(settings(&[server.address, other.address]));
        let error = upstreams.send(get("/")).await.unwrap_err();
        assert_eq!(error.kind, UpstreamErrorKind::Reset);
        assert!(!error.kind.may_retry());
        assert_eq!(server.accepted.get() + other.accepted.get(), 1);
        assert_eq!(upstreams.shared().in_flight(), 0);
    });
}

#[test]
fn a_body_that_ends_early_is_an_error() {
    let scripts: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nhello",
    ];
    for (response, resets) in scripts.into_iter().flat_map(|script| [(script, false), (script, true)]) {
        run(async {
            let head_read = Rc::new(Notify::new());
            let wait = Rc::clone(&head_read);
            let server = RawUpstream::start(move |_, mut stream| {
                let wait = Rc::clone(&wait);
                async move {
                    read_head(&mut stream).await;
                    stream.write_all(response).await.unwrap();
                    wait.notified().await;
                    if resets {
                        reset(stream);
                    }
                }
            })
            .await;
            let upstreams = upstreams(settings(&[server.address]));
            let body = upstreams.send(get("/")).await.unwrap().into_body();
            head_read.notify_one();
            let error = body.collect().await.unwrap_err();
            assert_eq!(error.kind, UpstreamErrorKind::Reset, "{error}");
            assert_eq!(upstreams.shared().in_flight(), 0);
        });
    }
}

#[test]
fn rubbish_is_malformed() {
    let scripts: [&[u8]; 5] = [
        b"\x16\x03\x01rubbish\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\nhello",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    ];
    for response in scripts {
        run(async {
            let server = RawUpstream::answering(response).await;
            let upstreams = upstreams(settings(&[server.address]));
            let error = upstreams.send(get("/")).await.unwrap_err();
            assert_eq!(error.kind, UpstreamErrorKind::Malformed, "{error}");
        });
    }
}

#[test]
fn a_stalled_head_and_a_stalled_body_time_out_and_close() {
    run(async {
        let closed = Rc::new(Cell::new(0));
        let count = Rc::clone(&closed);
        let server = RawUpstream::start(move |_, mut stream| {
            let count = Rc::clone(&count);
            async move {
                let head = read_head(&mut stream).await.unwrap();
                if head.starts_with("GET /body ") {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhel").await.unwrap();
                }
                assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
                count.set(count.get() + 1);
            }
        })
        .await;
        let upstreams = upstreams(UpstreamSettings {
            response_header_timeout: Duration::from_millis(50),
            body_idle_timeout: Duration::from_millis(50),
            ..settings(&[server.address])
        });
        let error = upstreams.send(get("/head")).await.unwrap_err();
        assert_eq!(
            (error.kind, error.kind.status()),
            (UpstreamErrorKind::HeaderTimeout, StatusCode::GATEWAY_TIMEOUT)
        );
        until(|| closed.get() == 1).await;
        let body = upstreams.send(get("/body")).await.unwrap().into_body();
        assert_eq!(body.collect().await.unwrap_err().kind, UpstreamErrorKind::BodyTimeout);
        until(|| closed.get() == 2).await;
        assert_eq!(upstreams.shared().in_flight(), 0);
    });
}

#[test]
fn bytes_beyond_the_length_never_answer_the_next_request() {
    run(async {
        let server = RawUpstream::answering(
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nbad",
        )
        .await;
        let upstreams = upstreams(settings(&[server.address]));
        for round in 1..4 {
            let body = upstreams.send(get("/")).await.unwrap().into_body();
            assert_eq!(body.collect().await.unwrap().to_bytes(), "ok");
            assert_eq!(server.accepted.get(), round);
        }
    });
}

#[test]
fn a_client_that_goes_away_ends_the_exchange_upstream() {
    run(async {
        let closed = Rc::new(Cell::new(0));
        let count = Rc::clone(&closed);
        let server = RawUpstream::start(move |_, mut stream| {
            let count = Rc::clone(&count);
            async move {
                let head = read_head(&mut stream).await.unwrap();
                if head.starts_with("GET /body ") {
                    let endless = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nhel";
                    stream.write_all(endless).await.unwrap();
                }
                assert_eq!(stream.read(&mut [0]).await.unwrap_or(0), 0);
                count.set(count.get() + 1);
            }
        })
        .await;
        let upstreams = upstreams(settings(&[server.address]));
        drop(upstreams.send(get("/body")).await.unwrap());
        until(|| closed.get() == 1).await;
        let waiting = tokio::time::timeout(Duration::from_millis(20), upstreams.send(get("/head"))).await;
        assert!(waiting.is_err());
        until(|| closed.get() == 2).await;
        assert_eq!(upstreams.shared().in_flight(), 0);
    });
}

#[test]
fn trailers_pass_and_the_connection_is_reused() {
    run(async {
        let response = b"HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n";
        let server = RawUpstream::answering(response).await;
        let upstreams = upstreams(settings(&[server.address]));
        for _ in 0..2 {
            let collected = upstreams.send(get("/")).await.unwrap().into_body().collect().await.unwrap();
            assert_eq!(collected.trailers().unwrap()["x-sum"], "7");
            assert_eq!(collected.to_bytes(), "ok");
        }
        assert_eq!(server.accepted.get(), 1);
    });
}

#[test]
fn the_request_arrives_in_origin_form_with_its_body() {
    run(async {
        let seen = Rc::new(Cell::new(String::new()));
        let store = Rc::clone(&seen);
        let server = RawUpstream::start(move |_, mut stream| {
            let store = Rc::clone(&store);
            async move {
                let mut request = read_head(&mut stream).await.unwrap();
                let mut body = [0; 5];
                stream.read_exact(&mut body).await.unwrap();
                request.push_str(std::str::from_utf8(&body).unwrap());
                store.set(request);
                stream.write_all(OK).await.unwrap();
            }
        })
        .await;
        let upstreams = upstreams(settings(&[server.address]));
        let request =
            Request::post("http://shop.example/buy?x=1").body(Either::Right(Full::from("hello"))).unwrap();
        upstreams.send(request).await.unwrap();
        let request = seen.take().to_ascii_lowercase();
        assert!(request.starts_with("post /buy?x=1 http/1.1\r\n"), "{request}");
        assert!(request.contains("host: shop.example\r\n") && request.contains("content-length: 5\r\n"));
        assert!(request.ends_with("\r\n\r\nhello"));
    });
}

#[test]
fn idle_connections_are_closed_in_time() {
    run(async {
        let closed = Rc::new(Cell::new(0));
        let count = Rc::clone(&closed);
        let server = RawUpstream::start(move |_, mut stream| {
            let count = Rc::clone(&count);
            async move {
                while read_head(&mut stream).await.is_some() {
                    stream.write_all(OK).await.unwrap();
                }
                count.set(count.get() + 1);
            }
        })
        .await;
        let idle = Duration::from_millis(30);
        let upstreams =
            upstreams(UpstreamSettings { pool_idle_timeout: idle, ..settings(&[server.address]) });
        upstreams.send(get("/")).await.unwrap().into_body().collect().await.unwrap();
        until(|| closed.get() == 1).await;
        upstreams.send(get("/")).await.unwrap();
        assert_eq!(server.accepted.get(), 2);
    });
}
