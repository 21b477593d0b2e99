//! Counts of connections by outcome.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

/// Connections of a run, counted by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionCounts {
    /// Connections the target accepted; those whose TLS handshake failed afterwards are among them.
    #[serde(rename = "connections")]
    pub opened: u64,
    /// Requests that went over a connection which an earlier one had opened.
    #[serde(rename = "connections_reused")]
    pub reused: u64,
    /// Connections the target or the network refused, or this machine had no socket or address for.
    #[serde(rename = "connections_failed")]
    pub failed: u64,
    /// Connections without anyone left to wait for them: timeout or patience ended before the target
    /// accepted.
    #[serde(rename = "connections_given_up")]
    pub given_up: u64,
    /// Connection requests (SYN) the kernel sent again, as far as it reports them, for connections opened,
    /// failed or given up: the target's queue was full or the network lost something.
    pub syn_retransmissions: u64,
}

impl ConnectionCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { opened, reused, failed, given_up, syn_retransmissions } = other;
        self.opened += opened;
        self.reused += reused;
        self.failed += failed;
        self.given_up += given_up;
        self.syn_retransmissions += syn_retransmissions;
    }
}

/// The same while they change: by one thread, and read by another.
#[derive(Debug, Default)]
pub(super) struct LiveCounts {
    pub(super) opened: AtomicU64,
    pub(super) reused: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) given_up: AtomicU64,
    pub(super) syn_retransmissions: AtomicU64,
}

impl LiveCounts {
    pub(super) fn look(&self) -> ConnectionCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ConnectionCounts {
            opened: read(&self.opened),
            reused: read(&self.reused),
            failed: read(&self.failed),
            given_up: read(&self.given_up),
            syn_retransmissions: read(&self.syn_retransmissions),
        }
    }
}

/// Counts one; the counters stand alone, so no order between them matters.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
