//! Behaviour towards clients on real sockets when something goes wrong behind or before the answer.

use crate::serve::HeadLimits;
use crate::serve::{Connection, IncomingBody, ServeSettings, Server};
use crate::tests::sockets::support::{RawUpstream, read_head, run, settings};
use crate::upstream::{UpstreamShared, Upstreams};
use bytes::Bytes;
use flashweir_core::Rng;
use http::{Request, Response};
use http_body_util::Full;

use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

fn server() -> Server {
    Server::new(ServeSettings {
        head: HeadLimits { bytes_max: 8_192, fields_max: 100 },
        head_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(5),
        http2_streams_max: 10,
        http2_ping_after: Duration::from_secs(5),
    })
}

async fn connect() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (client, listener.accept().await.unwrap().0)
}

#[test]
fn an_upstream_that_fails_in_mid_body_never_looks_like_an_end() {
    for response in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        run(async {
            let upstream = RawUpstream::start(move |_, mut stream| async move {
                read_head(&mut stream).await;
                stream.write_all(response).await.unwrap();
            })
            .await;
            let shared = UpstreamShared::new(settings(&[upstream.address])).unwrap();
            let upstreams = Rc::new(Upstreams::<IncomingBody>::new(shared, Rng::new(1)));
            let (mut client, accepted) = connect().await;
            spawn_local(async move {
                let server = server();
                let service = move |request: Request<IncomingBody>, _: &Connection| {
                    let upstreams = Rc::clone(&upstreams);
                    async move { upstreams.send(request).await }
                };
                server.serve(server.guard(accepted), None, service, std::future::pending()).await
            });
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            // A reset is as good as an early end.
            let _ = client.read_to_end(&mut answer).await;
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
            assert!(!answer.ends_with("0\r\n\r\n"), "a clean end: {answer}");
            assert!(answer.contains("content-length: 10") || answer.contains("transfer-encoding: chunked"));
        });
    }
}

#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    run(async {
        let (mut client, accepted) = connect().await;
        let served = spawn_local(async move {
            let server = server();
            let service = |_: Request<IncomingBody>, _: &Connection| async {
                Ok::<_, io::Error>(Response::builder().status(503).body(Full::<Bytes>::from("no")).unwrap())
            };
            server.serve(server.guard(accepted), None, service, std::future::pending()).await
        });
        client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 250000\r\n\r\n").await.unwrap();
        for _ in 0..25 {
            client.write_all(&[b'x'; 10_000]).await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("no"), "{answer}");
        drop(client);
        assert_eq!(served.await.unwrap().requests, 1);
    });
}

/// A client may read nothing before it has sent all: its upload must not wait for its response to be read.
#[test]
fn an_upload_goes_on_while_its_response_waits_for_a_reader() {
    const BYTES: usize = 16 << 20;
    run(async {
        let upstream = RawUpstream::start(|_, mut stream| async move {
            read_head(&mut stream).await;
            let (mut reading, mut writing) = stream.split();
            let write = async {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BYTES}\r\n\r\n");
                writing.write_all(head.as_bytes()).await.unwrap();
                writing.write_all(&vec![b'd'; BYTES]).await.unwrap();
            };
            let read = async {
                let mut upload = vec![0; BYTES];
                reading.read_exact(&mut upload).await.unwrap();
                assert!(upload.iter().all(|byte| *byte == b'u'));
            };
            tokio::join!(write, read);
        })
        .await;
        let shared = UpstreamShared::new(settings(&[upstream.address])).unwrap();
        let upstreams = Rc::new(Upstreams::<IncomingBody>::new(shared, Rng::new(1)));
        let (mut client, accepted) = connect().await;
        let (served, service) = (server(), Rc::clone(&upstreams));
        spawn_local(async move {
            let service = move |request: Request<IncomingBody>, _: &Connection| {
                let upstreams = Rc::clone(&service);
                async move { upstreams.send(request).await }
            };
            served.serve(served.guard(accepted), None, service, std::future::pending()).await
        });
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {BYTES}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        client.write_all(&vec![b'u'; BYTES]).await.unwrap();
        let answer = read_head(&mut client).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        let mut download = vec![0; BYTES];
        client.read_exact(&mut download).await.unwrap();
        assert!(download.iter().all(|byte| *byte == b'd'));
        // Both connections go on.
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        assert_eq!((upstreams.shared().in_flight(), upstream.accepted.get()), (0, 1));
    });
}
