//! Task of a flow, and its record.

use super::packet::FlowId;
use super::topology::RouteId;
use flashweir_core::{Duration, Instant};

/// A set of TCP settings of a network; flows name one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TcpId(pub(super) u16);

/// One request and its response over a separate connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSettings {
    /// From the client to the server and back.
    pub route: RouteId,
    /// The TCP of both ends.
    pub tcp: TcpId,
    /// Bytes up, without headers; at least one is sent.
    pub request_bytes: u64,
    /// Bytes down.
    pub response: Response,
    /// The owner's own name for it, given back with its record.
    pub token: u64,
}

/// Length of the server's answer, without headers; at least one byte is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// This number of bytes, at once. [`u64::MAX`]: without end.
    Bytes(u64),
    /// The owner is notified of the request and decides the size and the time of the response.
    Decided,
}

/// End of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEnd {
    /// The client has the whole response.
    Completed,
    /// No SYN was answered.
    NotConnected,
    /// One end gave up after repeating the same segment without an acknowledgement. (The simulator notifies
    /// the owner at once, for either end.)
    GivenUp,
    /// The owner took the client away.
    Abandoned,
    /// The server took its end away, and the client has heard of it.
    Reset,
}

/// Record of a flow. Times are those of the client unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The flow.
    pub flow: FlowId,
    /// The owner's own name for it.
    pub token: u64,
    /// Time at which the first SYN was due.
    pub opened: Instant,
    /// Arrival of the SYN-ACK.
    pub established: Option<Instant>,
    /// Time at which the server had the whole request.
    pub request_received: Option<Instant>,
    /// Time at which the server began to answer.
    pub responded: Option<Instant>,
    /// Arrival of the first segment of the response.
    pub first_byte: Option<Instant>,
    /// Time at which the server had the acknowledgement of the whole response.
    pub acknowledged: Option<Instant>,
    /// Time of its end, of any kind.
    pub ended: Option<Instant>,
    /// Its end; none while it goes on.
    pub end: Option<FlowEnd>,
    /// Bytes of the response that the client has, in order and without headers.
    pub response_bytes: u64,
    /// Segments sent again by either end.
    pub retransmissions: u32,
    /// SYNs sent.
    pub syn_tries: u32,
}

impl FlowRecord {
    /// Nothing has happened yet.
    pub(super) fn new(flow: FlowId, token: u64, opened: Instant) -> Self {
        Self {
            flow,
            token,
            opened,
            established: None,
            request_received: None,
            responded: None,
            first_byte: None,
            acknowledged: None,
            ended: None,
            end: None,
            response_bytes: 0,
            retransmissions: 0,
            syn_tries: 0,
        }
    }

    /// From the first SYN to the end.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        Some(self.ended?.saturating_since(self.opened))
    }
}
