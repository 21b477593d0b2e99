//! What became of connections.

use std::sync::atomic::{AtomicU64, Ordering};

/// Connections of a run, counted by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionCounts {
    /// Connections the target accepted; those whose TLS handshake failed afterwards are among them.
    pub(crate) opened: u64,
    /// Connections the target or the network refused, or this machine had no socket or address for.
    pub(crate) failed: u64,
    /// Connections nobody waited for any longer: patience ended before the target accepted.
    pub(crate) given_up: u64,
    /// Requests over HTTP/1 that went over a connection an earlier one had left idle.
    pub(crate) reused: u64,
    /// Connection requests (SYN) the kernel sent again, for connections opened, failed or given up: the target's
    /// queue was full or the network lost something.
    pub(crate) syn_retransmissions: u64,
}

/// The same while they change: by one thread, and read by another.
#[derive(Debug, Default)]
pub(super) struct LiveCounts {
    pub(super) opened: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) given_up: AtomicU64,
    pub(super) reused: AtomicU64,
    pub(super) syn_retransmissions: AtomicU64,
}

impl LiveCounts {
    pub(super) fn look(&self) -> ConnectionCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ConnectionCounts {
            opened: read(&self.opened),
            failed: read(&self.failed),
            given_up: read(&self.given_up),
            reused: read(&self.reused),
            syn_retransmissions: read(&self.syn_retransmissions),
        }
    }
}

/// Counts one; the counters stand alone, so no order between them matters.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
