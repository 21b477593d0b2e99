//! HTTP/2: shared connections, their bounds and their ends, against hyper's server.

use super::tls::{Certificate, client as tls_client};
use super::{Client, LONG, look_at_sockets, run};
use crate::ErrorKind;
use crate::transport::{Protocol, TransportOptions};
use bytes::Bytes;
use flashweir_core::Reason;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};

/// Record and behaviour of the server.
struct Site {
    /// Each request needs one; the test gives them.
    leave: Semaphore,
    peers: Mutex<BTreeSet<SocketAddr>>,
    heads: Mutex<Vec<String>>,
    /// Requests on their way, most and now.
    busy: Mutex<(usize, usize)>,
    dropped: Notify,
    go_away: Notify,
    gone: Notify,
    streams_most: u32,
}

impl Site {
    fn new(streams_most: u32, leave: usize) -> Arc<Self> {
        Arc::new(Self {
            leave: Semaphore::new(leave),
            peers: Mutex::default(),
            heads: Mutex::default(),
            busy: Mutex::default(),
            dropped: Notify::new(),
            go_away: Notify::new(),
            gone: Notify::new(),
            streams_most,
        })
    }

    async fn listen(self: &Arc<Self>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let site = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((tcp, peer)) = listener.accept().await {
                tokio::spawn(Arc::clone(&site).serve(tcp, peer));
            }
        });
        address
    }

    async fn serve(
        self: Arc<Self>,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
    ) {
        self.peers.lock().unwrap().insert(peer);
        let site = Arc::clone(&self);
        let service = hyper::service::service_fn(move |request| Arc::clone(&site).respond(request));
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.streams_most)
            .serve_connection(TokioIo::new(io), service);
        let mut connection = std::pin::pin!(connection);
        let go_away = self.go_away.notified();
        tokio::select! {
            _ = connection.as_mut() => return,
            () = go_away => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
        self.gone.notify_one();
    }

    async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let _busy = Busy::new(Arc::clone(&self));
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        self.heads.lock().unwrap().push(format!("{} {} {}", head.method, head.uri, body.len()));
        self.leave.acquire().await.unwrap().forget();
        let mut response = Response::new(Full::new(Bytes::from(vec![b'x'; 3_000_000])));
        if head.uri.path() == "/refused" {
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            let headers = response.headers_mut();
            headers.insert("flashweir-decision", "01; reason=draining".parse().unwrap());
            headers.insert("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT".parse().unwrap());
            headers.insert("date", "Wed, 21 Oct 2026 07:27:56 GMT".parse().unwrap());
            *response.body_mut() = Full::default();
        }
        Ok(response)
    }

    fn connections(&self) -> usize {
        self.peers.lock().unwrap().len()
    }

    fn busiest(&self) -> usize {
        self.busy.lock().unwrap().0
    }

    async fn until_busy(&self, wanted: usize) {
        let reached = async {
            while self.busy.lock().unwrap().1 < wanted {
                look_at_sockets().await;
            }
        };
        let reached = tokio::time::timeout(LONG, reached).await;
        let (peers, busy) = (self.connections(), *self.busy.lock().unwrap());
        assert!(reached.is_ok(), "{peers} connections, {busy:?} requests (most, now), not {wanted}");
    }
}

/// A request on its way through the server.
struct Busy(Arc<Site>);

impl Busy {
    fn new(site: Arc<Site>) -> Self {
        let mut busy = site.busy.lock().unwrap();
        busy.1 += 1;
        busy.0 = busy.0.max(busy.1);
        drop(busy);
        Self(site)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.lock().unwrap().1 -= 1;
        self.0.dropped.notify_one();
    }
}

fn client(address: SocketAddr, connections_most: Option<usize>) -> Client {
    let options = TransportOptions { protocol: Protocol::Http2, connections_most, ..Default::default() };
    Client::with(&format!("http://{address}/"), options)
}

const fn source(last: u8) -> Option<IpAddr> {
    Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)))
}

#[test]
fn requests_share_a_connection_and_say_who_they_are() {
    run(async {
        let site = Site::new(100, 100);
        let address = site.listen().await;
        let client = client(address, None);
        let (one, two, three) = tokio::join!(client.get("/1?a=b"), client.get("/2"), client.get("/refused"));
        assert_eq!((one.unwrap().body_bytes, two.unwrap().status), (3_000_000, 200));
        let refused = three.unwrap();
        assert_eq!((refused.status, refused.reason), (503, Some(Reason::Draining)));
        assert_eq!(refused.retry_after, Some(Duration::from_secs(4)));
        let post = client.prepare(Method::POST, vec![b'y'; 200_000]);
        client.ask(None, &post, "/post").await.unwrap();
        assert_eq!((site.connections(), client.counts().opened, client.counts().reused), (1, 1, 3));
        let heads = site.heads.lock().unwrap().clone();
        assert!(heads.contains(&format!("GET http://{address}/1?a=b 0")), "{heads:?}");
        assert!(heads.contains(&format!("POST http://{address}/post 200000")), "{heads:?}");
    });
}

#[test]
fn another_connection_is_opened_when_the_streams_run_out() {
    run(async {
        let site = Site::new(2, 1);
        let client = client(site.listen().await, None);
        // Lets the client learn how many streams there may be.
        client.get("/").await.unwrap();
        let all = async { tokio::join!(client.get("/"), client.get("/"), client.get("/"), client.get("/")) };
        let let_go = async {
            site.until_busy(4).await;
            site.leave.add_permits(4);
        };
        let ((one, two, three, four), ()) = tokio::join!(all, let_go);
        assert!([one, two, three, four].iter().all(Result::is_ok));
        assert_eq!(site.connections(), 2);
    });
}

#[test]
fn at_the_bound_requests_queue_on_what_there_is() {
    run(async {
        let site = Site::new(2, 100);
        let client = client(site.listen().await, Some(1));
        client.get("/").await.unwrap();
        let four = tokio::join!(client.get("/"), client.get("/"), client.get("/"), client.get("/"));
        assert!([four.0, four.1, four.2, four.3].iter().all(Result::is_ok));
        assert_eq!(site.connections(), 1);
        assert!(site.busiest() <= 2, "{}", site.busiest());
    });
}

/// Two addresses with one connection between them: each waits until the other leaves it, in order.
#[test]
fn addresses_take_turns_at_the_bound() {
    run(async {
        let site = Site::new(100, 100);
        let client = client(site.listen().await, Some(1));
        let four = tokio::join!(
            client.get_from(source(5), "/1"),
            client.get_from(source(6), "/2"),
            client.get_from(source(5), "/3"),
            client.get_from(source(7), "/4"),
        );
        assert!([four.0, four.1, four.2, four.3].iter().all(Result::is_ok));
        // An idle one of another address is closed at once.
        client.get_from(source(8), "/5").await.unwrap();
        let peers: BTreeSet<_> = site.peers.lock().unwrap().iter().map(|peer| Some(peer.ip())).collect();
        assert_eq!(peers, [source(5), source(6), source(7), source(8)].into());
    });
}

#[test]
fn whoever_leaves_resets_the_stream_and_not_the_connection() {
    run(async {
        let site = Site::new(100, 0);
        let client = client(site.listen().await, None);
        let stays = client.get("/stays");
        let leaves = async {
            tokio::time::timeout(Duration::from_millis(50), client.get("/leaves")).await.unwrap_err();
            tokio::time::timeout(LONG, site.dropped.notified()).await.unwrap();
            site.leave.add_permits(1);
        };
        let (stayed, ()) = tokio::join!(stays, leaves);
        assert_eq!(stayed.unwrap().status, 200);
        assert_eq!(site.connections(), 1);
    });
}

#[test]
fn a_connection_that_goes_away_is_replaced() {
    run(async {
        let site = Site::new(100, 100);
        let client = client(site.listen().await, None);
        client.get("/1").await.unwrap();
        site.go_away.notify_waiters();
        tokio::time::timeout(LONG, site.gone.notified()).await.unwrap();
        look_at_sockets().await;
        client.get("/2").await.unwrap();
        assert_eq!((site.connections(), client.counts().opened), (2, 2));
    });
}

#[test]
fn what_breaks_is_told_apart() {
    run(async {
        let check = async |answer: &'static [u8], wanted: ErrorKind| {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = client(listener.local_addr().unwrap(), None);
            let server = async {
                let (mut tcp, _) = listener.accept().await.unwrap();
                tcp.read_u8().await.unwrap();
                tcp.write_all(answer).await.unwrap();
                tcp.shutdown().await.unwrap();
                // All that was sent is read, so that closing is no reset.
                let _ = tokio::time::timeout(LONG, tcp.read_to_end(&mut Vec::new())).await.unwrap();
            };
            let (got, ()) = tokio::join!(client.get("/"), server);
            assert_eq!(got.unwrap_err(), wanted, "{}", String::from_utf8_lossy(answer));
        };
        check(b"", ErrorKind::Closed).await;
        check(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", ErrorKind::Malformed).await;
        // SETTINGS, then GOAWAY with INTERNAL_ERROR.
        check(b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x02", ErrorKind::Closed).await;
        let closed = flashweir_testbed::reserve_address().unwrap();
        assert_eq!(client(closed, None).get("/").await.unwrap_err(), ErrorKind::Connect);
    });
}

#[test]
fn it_is_agreed_on_where_tls_is_spoken() {
    let certificate = Certificate::new("localhost");
    run(async {
        let site = Site::new(100, 100);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (acceptor, server) = (certificate.acceptor(&[b"h2", b"http/1.1"]), Arc::clone(&site));
        tokio::spawn(async move {
            let (tcp, peer) = listener.accept().await.unwrap();
            let stream = acceptor.accept(tcp).await.unwrap();
            server.serve(stream, peer).await;
        });
        let client = tls_client(address, Protocol::Http2, certificate.trusted());
        let (one, two) = tokio::join!(client.get("/1"), client.get("/2"));
        assert_eq!((one.unwrap().status, two.unwrap().status), (200, 200));
        let heads = site.heads.lock().unwrap().clone();
        assert!(heads.contains(&format!("GET https://localhost:{}/1 0", address.port())), "{heads:?}");
    });
}
