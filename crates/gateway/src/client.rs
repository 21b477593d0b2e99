//! One client's connection as its requests see it.

use crate::tracked::Wire;
use flashweir_core::Reason;
use flashweir_http::client::ClientNetwork;
use flashweir_http::fields::ForwardedMemo;
use flashweir_telemetry::WorkerMetrics;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::sync::Notify;

/// Properties of a connection that its requests need.
#[derive(Debug)]
pub(crate) struct Client {
    /// The other end of the connection: the client itself or a proxy.
    pub(crate) peer: SocketAddr,
    /// Source network, if new connections from there may be refused.
    pub(crate) source: Option<ClientNetwork>,
    /// The connection is encrypted.
    pub(crate) is_tls: bool,
    /// Its requests are answered with a redirect to HTTPS.
    pub(crate) redirects: bool,
    /// Fields that tell upstreams of it.
    pub(crate) forwarded: ForwardedMemo,
    /// The fingerprint of its TLS handshake, once that has been made.
    pub(crate) tls_fingerprint: Cell<Option<u64>>,
    /// Its socket.
    pub(crate) wire: Rc<Wire>,
    /// Reason for which all its requests are refused, if they are.
    pub(crate) full: Option<Reason>,
    /// A request was answered whose body was not read.
    pub(crate) left_body_unread: Cell<bool>,
    /// Notified when the connection is to end after the responses in progress (HTTP/2 knows no `Connection:
    /// close`), or when its client has ended its half.
    pub(crate) end_wanted: Rc<Notify>,
    counted_sent: Cell<u64>,
    counted_received: Cell<u64>,
}

impl Client {
    /// A client whose connection has just been accepted.
    pub(crate) fn new(
        peer: SocketAddr,
        source: Option<ClientNetwork>,
        is_tls: bool,
        wire: Rc<Wire>,
        full: Option<Reason>,
    ) -> Self {
        Self {
            peer,
            source,
            is_tls,
            redirects: false,
            forwarded: ForwardedMemo::default(),
            tls_fingerprint: Cell::new(None),
            wire,
            full,
            left_body_unread: Cell::new(false),
            end_wanted: Rc::default(),
            counted_sent: Cell::new(0),
            counted_received: Cell::new(0),
        }
    }

    /// Adds what went over the wire since the last time.
    pub(crate) fn count_bytes(&self, metrics: &WorkerMetrics) {
        let (sent, received) = (self.wire.bytes_written(), self.wire.bytes_read());
        metrics.connections.sent_bytes.add(sent - self.counted_sent.replace(sent));
        metrics.connections.received_bytes.add(received - self.counted_received.replace(received));
    }
}
