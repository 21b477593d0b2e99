//! Connections from clients.

use super::bounds::Bound;
use crate::counter::{Counter, CounterSet};
use crate::group::{Scrape, WorkerGroup, sum};
use crate::label::labels;

/// Connections from clients. Open = opened − closed.
#[derive(Debug, Default)]
pub struct ConnectionMetrics {
    /// Connections accepted and served, those that only get refusals included.
    pub opened: Counter,
    /// Connections that were opened and are closed now.
    pub closed: Counter,
    /// Connections beyond a bound: answered with refusals only, or closed at once.
    pub refused: CounterSet<Bound>,
    /// Connections that failed.
    pub failed: CounterSet<ConnectionFailure>,
    /// Clients that ended their half of the connection while they waited for an answer, or both halves.
    pub half_closed: Counter,
    /// Bytes read from clients, TLS included.
    pub received_bytes: Counter,
    /// Bytes written to clients, TLS included.
    pub sent_bytes: Counter,
    /// Upgraded connections (WebSocket) begun.
    pub tunnels_opened: Counter,
    /// Upgraded connections ended.
    pub tunnels_closed: Counter,
}

impl WorkerGroup for ConnectionMetrics {
    const TITLE: &'static str = "Connections";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        scrape.counters(
            copies,
            &[
                ("connections_opened", "Connections from clients that were served.", |c| &c.opened),
                ("connections_closed", "Connections from clients that were served and are closed.", |c| {
                    &c.closed
                }),
            ],
        );
        scrape.gauge("connections_open", "Connections from clients that are open.", open(copies) as f64);
        let help = "Connections beyond a bound: only refused to, or closed.";
        scrape.counter_set("connections_refused", help, copies, |c| &c.refused);
        let help = "Connections from clients that failed.";
        scrape.counter_set("connections_failed", help, copies, |c| &c.failed);
        let help = "Ends of connections by clients, of one half or both, while an answer was owed.";
        scrape.counters(copies, &[("connections_half_closed", help, |c| &c.half_closed)]);
        let opened = sum(copies, |c| &c.tunnels_opened);
        scrape.counter("tunnels_opened", "Upgraded connections (WebSocket) begun.", opened);
        let tunnels = difference(copies, |c| &c.tunnels_closed, |c| &c.tunnels_opened);
        scrape.gauge("tunnels_open", "Upgraded connections that are open.", tunnels as f64);
        scrape.counters(
            copies,
            &[
                ("received_bytes", "Bytes read from clients.", |c| &c.received_bytes),
                ("sent_bytes", "Bytes written to clients.", |c| &c.sent_bytes),
            ],
        );
    }
}

/// Connections from clients that are open.
fn open(copies: &[&ConnectionMetrics]) -> u64 {
    difference(copies, |c| &c.closed, |c| &c.opened)
}

type Which = fn(&ConnectionMetrics) -> &Counter;

/// Number opened and not closed yet.
fn difference(copies: &[&ConnectionMetrics], closed: Which, opened: Which) -> u64 {
    // Closed before opened: read the other way round, one closing in between would go negative.
    let closed = sum(copies, closed);
    sum(copies, opened).saturating_sub(closed)
}

labels! {
    /// Kind of a failure of a client's connection.
    ConnectionFailure, "kind" {
        /// No usable header of the PROXY protocol on a connection from `listen.proxy_protocol_from`, or none
        /// within `bounds.header_read_timeout`.
        ProxyHeader => "proxy_header",
        /// The TLS handshake failed.
        Tls => "tls",
        /// No TLS handshake within `bounds.tls_handshake_timeout`.
        TlsTimeout => "tls_timeout",
        /// The client took no byte for `bounds.write_stall_timeout`.
        WriteStall => "write_stall",
        /// The client took less than 512 bytes a second of a response that was ready, for twice
        /// `bounds.write_stall_timeout`.
        SlowReader => "slow_reader",
        /// The client sent more HTTP/2 frames that carry no work than a connection may (RFC 9113 §10.5).
        FrameFlood => "frame_flood",
        /// The client broke the HTTP protocol after a good start.
        Protocol => "protocol",
        /// The connection was lost.
        Io => "io",
        /// `accept` itself failed (out of files, for one).
        Accept => "accept",
    }
}
