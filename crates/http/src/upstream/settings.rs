//! Settings of the upstreams of one service.

use crate::guarded::Protocol;
use crate::tls::TlsError;
use flashweir_core::limits::UPSTREAM_ADDRESSES;
use flashweir_replication::{PoolSettings, SettingsError};
use http::Uri;
use std::path::PathBuf;
use std::time::Duration;

/// The upstreams of one service and how to speak with them.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSettings {
    /// `http://host[:port]` or `https://host[:port]` each; a path is refused.
    pub addresses: Vec<Uri>,
    /// HTTP/2 means prior knowledge for `http://` and ALPN for `https://`.
    pub protocol: Protocol,
    /// Connections (for HTTP/2: requests) at once to one address from one worker. This is the concurrency
    /// limit towards the upstream; beyond it requests are refused, never queued.
    pub connections_max: usize,
    /// TCP and TLS handshakes together.
    pub connect_timeout: Duration,
    /// From the request handed over to the response head.
    pub response_header_timeout: Duration,
    /// Fields in the head of one response, and in its trailers; with more the response is
    /// [`HeadTooLarge`](super::UpstreamErrorKind::HeadTooLarge).
    pub response_fields_max: usize,
    /// Between two frames of a response body.
    pub body_idle_timeout: Duration,
    /// An unused connection is closed after this long. Keep it below the upstream's own keep-alive timeout.
    pub pool_idle_timeout: Duration,
    /// PEM file with the certificates that sign the upstreams'; `None` trusts the system's.
    pub ca_file: Option<PathBuf>,
    /// Settings of the pool: ejection of upstreams, their return, and the learning of weights.
    pub pool: PoolSettings,
}

/// Reason for which upstream settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamSettingsError {
    /// There is no address, or there are too many.
    #[error("{count} upstream addresses given; from 1 to {UPSTREAM_ADDRESSES} are possible")]
    AddressCount {
        /// Number of addresses given.
        count: usize,
    },
    /// An address is not `http://host[:port]` or `https://host[:port]`.
    #[error("upstream address `{address}` {problem}")]
    Address {
        /// The address.
        address: String,
        /// Description of the fault.
        problem: &'static str,
    },
    /// The bound on connections is zero.
    #[error("connections_max is 0, so no request could ever be forwarded; set it to 1 or more")]
    NoConnections,
    /// The settings of the pool are out of range.
    #[error(transparent)]
    Pool(#[from] SettingsError),
    /// Certificates could not be read.
    #[error(transparent)]
    Certificates(#[from] TlsError),
}
