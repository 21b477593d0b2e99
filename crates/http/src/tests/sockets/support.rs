//! Raw upstreams on loopback, and upstream settings with short timeouts.

use crate::guarded::Protocol;
use crate::upstream::{EjectionSettings, PoolSettings, UpstreamSettings, UpstreamShared, Upstreams};
use bytes::Bytes;
use flashweir_core::Rng;
use http::Request;
use http_body_util::{Either, Empty, Full};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet, LocalSet, spawn_local};

pub(crate) type RequestBody = Either<Empty<Bytes>, Full<Bytes>>;

/// Runs a test on one thread, as a worker does, and fails it if it hangs.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bounded =
        async { tokio::time::timeout(Duration::from_secs(20), test).await.expect("the test hangs") };
    LocalSet::new().block_on(&runtime, bounded)
}

/// An upstream that runs `script` for each connection, given its number from 0.
pub(crate) struct RawUpstream {
    pub(crate) address: SocketAddr,
    pub(crate) accepted: Rc<Cell<usize>>,
    listening: JoinHandle<()>,
}

impl RawUpstream {
    pub(crate) async fn start<F>(script: impl Fn(usize, TcpStream) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Self::start_at("127.0.0.1:0".parse().unwrap(), script).await
    }

    pub(crate) async fn start_at<F>(
        address: SocketAddr,
        script: impl Fn(usize, TcpStream) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Rc::new(Cell::new(0));
        let count = Rc::clone(&accepted);
        let mut connections = JoinSet::new();
        let listening = spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = count.replace(count.get() + 1);
                connections.spawn_local(script(number, stream));
            }
        });
        Self { address, accepted, listening }
    }

    /// Closes its socket and its connections.
    pub(crate) async fn end(self) {
        self.listening.abort();
        let _aborted = self.listening.await;
    }

    /// The same as [`answering`](Self::answering) at an address that the process has reserved.
    pub(crate) async fn answering_at(address: SocketAddr, response: &'static [u8]) -> Self {
        Self::start_at(address, move |_, mut stream| async move {
            while read_head(&mut stream).await.is_some() {
                stream.write_all(response).await.unwrap();
            }
        })
        .await
    }

    /// Answers every request on every connection with the same bytes.
    pub(crate) async fn answering(response: &'static [u8]) -> Self {
        Self::answering_at("127.0.0.1:0".parse().unwrap(), response).await
    }
}

/// Reads one request head; `None` at the end of the stream.
pub(crate) async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

pub(crate) fn settings(addresses: &[SocketAddr]) -> UpstreamSettings {
    UpstreamSettings {
        addresses: addresses.iter().map(|address| format!("http://{address}").parse().unwrap()).collect(),
        protocol: Protocol::Http1,
        connections_max: 4,
        connect_timeout: Duration::from_secs(5),
        response_header_timeout: Duration::from_secs(5),
        response_fields_max: 256,
        body_idle_timeout: Duration::from_secs(5),
        pool_idle_timeout: Duration::from_secs(30),
        ca_file: None,
        pool: PoolSettings {
            ejection: EjectionSettings { failures: 2, ..EjectionSettings::default() },
            ..PoolSettings::default()
        },
    }
}

pub(crate) fn upstreams(settings: UpstreamSettings) -> Upstreams<RequestBody> {
    Upstreams::new(UpstreamShared::new(settings).unwrap(), Rng::new(1))
}

pub(crate) fn get(path: &str) -> Request<RequestBody> {
    Request::get(path).header("host", "shop.example").body(Either::Left(Empty::new())).unwrap()
}

/// An address on which no server listens.
pub(crate) fn refusing_address() -> SocketAddr {
    flashweir_testbed::reserve_address().unwrap()
}

/// Waits until `is_met`, giving the other tasks their turn; bounded by the test's own time limit.
pub(crate) async fn until(is_met: impl Fn() -> bool) {
    while !is_met() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
