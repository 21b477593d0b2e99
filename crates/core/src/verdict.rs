//! The answer of a gate and its reason: one enum, never strings, for the metric label, the log and the
//! header.

use core::fmt;
use core::time::Duration;

/// A gate's answer to one request or connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it in.
    Admit,
    /// Refuse it.
    Shed(Shed),
}

/// A refusal: why, and when the client may hope for better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shed {
    /// Limit that refused.
    pub reason: Reason,
    /// Estimate of when capacity returns; the shell rounds it up to whole seconds and adds jitter.
    pub retry_after: Duration,
}

/// Every reason Flashweir refuses, each naming the owner of the limit that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// NEWS found a flash crowd and the ceiling it set is spent.
    FlashCrowd,
    /// The bound on requests in flight through this gateway is met.
    RequestsInFlight,
    /// Every connection allowed to the upstreams is busy.
    UpstreamConnections,
    /// The bound on connections from clients is met.
    Connections,
    /// This client (address or network) holds its full share of connections.
    ConnectionsPerClient,
    /// The gateway is shutting down and takes no new work.
    Draining,
    /// The origin has as many requests in flight as it can serve, and as many wait as can still be answered
    /// in time.
    Capacity,
    /// It waited until it could no longer be answered in time.
    Deadline,
    /// The remaining room is kept for more important classes.
    Reserved,
    /// Its class is below the threshold up to which the origin's capacity reaches.
    Threshold,
    /// Its batch would not have been answered in time.
    Batch,
    /// Others of its class wait, and this client has had, or asks for, more than its share.
    ClientShare,
    /// So much work waits for the origin that requests of its rank are discarded until less does.
    Ladder,
    /// The node that sent it was given a share of what the origin can do, and this is beyond it.
    SenderShare,
    /// The upstream asked for fewer requests of its rank than come.
    UpstreamFeedback,
    /// The time for which its caller can use an answer is over, or too short to be met.
    CallerDeadline,
    /// Others wait, and what its client has in common with many, or its person, has more than a fair share.
    FairShare,
}

impl Reason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 17] = [
        Self::FlashCrowd,
        Self::RequestsInFlight,
        Self::UpstreamConnections,
        Self::Connections,
        Self::ConnectionsPerClient,
        Self::Draining,
        Self::Capacity,
        Self::Deadline,
        Self::Reserved,
        Self::Threshold,
        Self::Batch,
        Self::ClientShare,
        Self::Ladder,
        Self::SenderShare,
        Self::UpstreamFeedback,
        Self::CallerDeadline,
        Self::FairShare,
    ];

    /// The one spelling used in metrics, logs and the `Flashweir-Decision` header.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FlashCrowd => "flash_crowd",
            Self::RequestsInFlight => "requests_in_flight",
            Self::UpstreamConnections => "upstream_connections",
            Self::Connections => "connections",
            Self::ConnectionsPerClient => "connections_per_client",
            Self::Draining => "draining",
            Self::Capacity => "capacity",
            Self::Deadline => "deadline",
            Self::Reserved => "reserved",
            Self::Threshold => "threshold",
            Self::Batch => "batch",
            Self::ClientShare => "client_share",
            Self::Ladder => "ladder",
            Self::SenderShare => "sender_share",
            Self::UpstreamFeedback => "upstream_feedback",
            Self::CallerDeadline => "caller_deadline",
            Self::FairShare => "fair_share",
        }
    }

    /// The cause, in words that follow "The request was refused: ".
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::FlashCrowd => "the ceiling of a flash crowd was met",
            Self::RequestsInFlight => "bounds.max_requests_in_flight was met",
            Self::UpstreamConnections => {
                "every connection allowed to the upstreams was busy (upstream.max_connections)"
            }
            Self::Connections => "bounds.max_connections was met",
            Self::ConnectionsPerClient => "its client held client.max_connections_per_client connections",
            Self::Draining => "the gateway was shutting down",
            Self::Capacity => "no more could be answered in time",
            Self::Deadline => "it waited until it could no longer be answered in time",
            Self::Reserved => "what room there was is kept for more important classes",
            Self::Threshold => "its class is below the threshold up to which capacity reaches",
            Self::Batch => "its batch would not have been answered in time",
            Self::ClientShare => "its client had, or asked for, more than its share",
            Self::Ladder => "so much work waited for the service that requests of its rank were not taken",
            Self::SenderShare => "the node that sent it was sending more than its share",
            Self::UpstreamFeedback => "the service behind this gateway asked for fewer requests of its rank",
            Self::CallerDeadline => {
                "its caller could not use an answer any more by the time there would be one"
            }
            Self::FairShare => "clients that behave like its own had, together, more than a fair share",
        }
    }

    /// HTTP status: 503 when the service is short, 429 when this client is over its own share (RFC 6585 §4),
    /// 504 when the time that the caller set is over.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::ConnectionsPerClient | Self::ClientShare | Self::SenderShare => 429,
            Self::CallerDeadline => 504,
            _ => 503,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
