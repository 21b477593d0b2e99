//! Goal: a spent quota is read where gRPC says it, in the trailers of an answer with messages and in the head
//! of one without, by the sidecar and by the gateway. Method: a server of HTTP/2 that answers calls; its
//! status and pushback are the test's to choose.

use crate::egress::scene::{Egress, binary};
use bytes::Bytes;
use flashweir_testkit::{GatewayBuilder, Http2Client, StreamEnd, eventually, frame};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::oneshot;

/// Status with which a call ends.
#[derive(Clone, Copy)]
enum Status {
    /// In trailers, after a message.
    InTrailers(&'static [(&'static str, &'static str)]),
    /// In the head: there is no message.
    InHead(&'static [(&'static str, &'static str)]),
}

/// Longer than a test, so that time ends no quota in it.
const SPENT: &[(&str, &str)] = &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "60000")];
/// The service is short, which is nothing of this caller's.
const SHORT: &[(&str, &str)] = &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "60000")];
const FORBIDDEN: &[(&str, &str)] = &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "-1")];
const OBEYS: &str = "protocol = \"http2\"\nobey_quota = true";

/// A server of calls on a thread, until it is dropped.
struct Calls {
    address: SocketAddr,
    count: Arc<AtomicUsize>,
    _ends: oneshot::Sender<()>,
}

impl Calls {
    fn start(status: Status) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("a bound listener");
        let (ends, ended) = oneshot::channel::<()>();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                tokio::select! {
                    () = accept(listener, status, counted) => {}
                    _ = ended => {}
                }
            });
        });
        Self { address, count, _ends: ends }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn count(&self) -> usize {
        self.count.load(Relaxed)
    }
}

async fn accept(listener: std::net::TcpListener, status: Status, count: Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
    while let Ok((stream, _)) = listener.accept().await {
        let count = Arc::clone(&count);
        let service = hyper::service::service_fn(move |_: Request<Incoming>| {
            count.fetch_add(1, Relaxed);
            std::future::ready(Ok::<_, Infallible>(answer(status)))
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
    }
}

fn answer(status: Status) -> Response<BoxBody<Bytes, Infallible>> {
    let (body, in_head) = match status {
        Status::InTrailers(fields) => {
            let message = Full::from("\0\0\0\0\0");
            (message.with_trailers(std::future::ready(Some(Ok(map(fields))))).boxed(), HeaderMap::new())
        }
        Status::InHead(fields) => (Empty::new().boxed(), map(fields)),
    };
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", "application/grpc".parse().expect("a value"));
    response.headers_mut().extend(in_head);
    response
}

fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    fields
        .iter()
        .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
        .collect()
}

/// One call over HTTP/2, on its own connection.
fn call(address: SocketAddr) -> StreamEnd {
    let fields: [(&str, &[u8]); 6] = [
        (":method", b"POST"),
        (":scheme", b"http"),
        (":authority", b"test"),
        (":path", b"/stock.Stock/Get"),
        ("content-type", b"application/grpc"),
        ("te", b"trailers"),
    ];
    let mut client = Http2Client::connect(address);
    client.request(1, &fields, frame::END_STREAM);
    client.outcome(1)
}

#[test]
fn a_sidecar_reads_a_spent_quota_in_trailers_and_heads() {
    for status in [Status::InTrailers(SPENT), Status::InHead(SPENT)] {
        let calls = Calls::start(status);
        let egress = Egress::start(&[calls.url()], OBEYS);
        assert_eq!(call(egress.address), StreamEnd::Status(200));
        egress.until_condition("quota");
        // A burst of two goes; the floor of one in ten seconds is a probe.
        let refused = (0..8).filter(|_| call(egress.address) == StreamEnd::Status(503)).count();
        assert!(refused >= 4, "{refused}");
        assert_eq!(calls.count() + refused, 9);
    }
}

#[test]
fn a_sidecar_is_not_held_back_by_what_is_no_quota_of_its_own() {
    let is_open = |status, more: &str| {
        let calls = Calls::start(status);
        let egress = Egress::start(&[calls.url()], more);
        for _ in 0..8 {
            assert_eq!(call(egress.address), StreamEnd::Status(200));
        }
        eventually("every call's end", || (egress.node()["in_flight"] == 0).then_some(()));
        assert_eq!((calls.count(), egress.node()["condition"].as_str()), (8, Some("open")));
    };
    is_open(Status::InTrailers(SHORT), OBEYS);
    is_open(Status::InHead(SHORT), OBEYS);
    is_open(Status::InTrailers(FORBIDDEN), OBEYS);
    is_open(Status::InTrailers(SPENT), "protocol = \"http2\"");
}

#[test]
fn a_gateway_that_is_counted_as_a_whole_obeys_a_spent_quota() {
    for status in [Status::InTrailers(SPENT), Status::InHead(SPENT)] {
        let calls = Calls::start(status);
        let gateway =
            GatewayBuilder::new(&binary()).upstream(&calls.url()).text("upstream.protocol", "http2");
        let gateway = gateway.set("upstream.obey_quota", "true").start();
        assert_eq!(call(gateway.address()), StreamEnd::Status(200));
        let spent_s = || gateway.status()["services"][0]["feedback"]["quota_spent_s"].as_f64();
        let left_s = eventually("the quota in /status", spent_s);
        assert!((0.0..=60.0).contains(&left_s), "{left_s}");
        eventually("a call refused", || (call(gateway.address()) == StreamEnd::Status(503)).then_some(()));
        let refused = "flashweir_requests_shed_total{reason=\"upstream_feedback\"}";
        gateway.wait_metric(refused, 1.0);
    }
}

#[test]
fn a_gateway_that_is_not_leaves_the_quota_to_its_clients() {
    let calls = Calls::start(Status::InTrailers(SPENT));
    let gateway =
        GatewayBuilder::new(&binary()).upstream(&calls.url()).text("upstream.protocol", "http2").start();
    for _ in 0..20 {
        assert_eq!(call(gateway.address()), StreamEnd::Status(200));
    }
    assert_eq!(calls.count(), 20);
    assert!(gateway.status()["services"][0]["feedback"]["quota_spent_s"].is_null());
}
