//! Goal: for every behaviour of a server, a try is counted by its true outcome. Method: servers on loopback
//! that follow a script, and real TLS and HTTP/2 ones; every wait is bounded.

mod http1;
mod http1_connections;
mod http2;
mod scripted;
mod tls;

use super::{Answer, ConnectionCounts, Prepared, Protocol, Transport, TransportOptions};
use crate::{ErrorKind, LoadTarget};
use bytes::Bytes;
use http::Method;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Far longer than anything here takes, on however busy a machine.
const LONG: Duration = Duration::from_secs(20);

/// A client of one server.
struct Client {
    target: LoadTarget,
    transport: Transport,
}

impl Client {
    fn new(address: SocketAddr, protocol: Protocol) -> Self {
        Self::with(&format!("http://{address}/"), TransportOptions { protocol, ..Default::default() })
    }

    fn with(url: &str, options: TransportOptions) -> Self {
        let target = LoadTarget::parse(url).unwrap();
        let transport = Transport::new(&target, &options).unwrap();
        Self { target, transport }
    }

    fn prepare(&self, method: Method, body: impl Into<Bytes>) -> Prepared {
        Prepared::new(&self.target, method, &[], body.into()).unwrap()
    }

    async fn get(&self, path: &str) -> Result<Answer, ErrorKind> {
        self.get_from(None, path).await
    }

    async fn get_from(&self, source: Option<IpAddr>, path: &str) -> Result<Answer, ErrorKind> {
        self.ask(source, &self.prepare(Method::GET, ""), path).await
    }

    async fn ask(
        &self,
        source: Option<IpAddr>,
        prepared: &Prepared,
        path: &str,
    ) -> Result<Answer, ErrorKind> {
        let asked = self.transport.ask(source, prepared, path, || ());
        tokio::time::timeout(LONG, asked).await.expect("an end in time")
    }

    fn counts(&self) -> ConnectionCounts {
        self.transport.connection_counts()
    }
}

/// Runs a test as a sending thread does.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// Lets the runtime look at its sockets once, so that it knows what the kernel already does.
async fn look_at_sockets() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}
