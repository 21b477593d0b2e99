//! Connections to the target, and the idle ones kept for the next person from the same address.

use crate::ErrorKind;
use bytes::Bytes;
use flashweir_core::limits::LOAD_IDLE_CONNECTIONS;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::net::TcpSocket;
use tokio::task::AbortHandle;

/// A connection and the task that drives it; dropping it closes the connection at once.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Connection {
    /// Connects from `source` (or wherever the kernel pleases).
    pub(crate) async fn open(target: SocketAddr, source: Option<Ipv4Addr>) -> Result<Self, ErrorKind> {
        let socket = new_socket(target, source).map_err(|_| ErrorKind::GeneratorSocket)?;
        let stream = socket.connect(target).await.map_err(|error| connect_error(&error))?;
        // Requests are written whole; a failure here only costs time.
        let _ = stream.set_nodelay(true);
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|_| ErrorKind::Closed)?;
        // How the connection ends is told to the one who waits for an answer on it.
        let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Self { sender, driver })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn new_socket(target: SocketAddr, source: Option<Ipv4Addr>) -> io::Result<TcpSocket> {
    let socket = if target.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = source {
        socket.bind(SocketAddr::new(IpAddr::V4(source), 0))?;
    }
    Ok(socket)
}

fn connect_error(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => ErrorKind::GeneratorSocket,
        _ => ErrorKind::Connect,
    }
}

/// Idle connections of one thread, by the address they come from; at most [`LOAD_IDLE_CONNECTIONS`].
#[derive(Debug, Default)]
pub(crate) struct Idle {
    by_source: HashMap<Option<Ipv4Addr>, Vec<Connection>>,
    count: usize,
}

impl Idle {
    /// The connection from `source` that was used last, if one is still open.
    pub(crate) fn take(&mut self, source: Option<Ipv4Addr>) -> Option<Connection> {
        let connections = self.by_source.get_mut(&source)?;
        let mut open = None;
        while open.is_none()
            && let Some(connection) = connections.pop()
        {
            self.count -= 1;
            open = (!connection.sender.is_closed()).then_some(connection);
        }
        if connections.is_empty() {
            self.by_source.remove(&source);
        }
        open
    }

    /// Keeps a connection; beyond the bound it is closed instead.
    pub(crate) fn put(&mut self, source: Option<Ipv4Addr>, connection: Connection) {
        if self.count < LOAD_IDLE_CONNECTIONS && !connection.sender.is_closed() {
            self.count += 1;
            self.by_source.entry(source).or_default().push(connection);
        }
    }
}
