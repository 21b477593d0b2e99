//! Errors that keep `flashweir egress` from running.

use flashweir_http::listen::ListenError;
use flashweir_http::upstream::UpstreamSettingsError;
use flashweir_tower::client::KeysError;

/// Error of the egress.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    Read {
        /// Name of the file.
        file: String,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The file is not what is expected.
    #[error("{file}: {problem}")]
    Config {
        /// Name of the file.
        file: String,
        /// The fault, and the accepted form.
        problem: String,
    },
    /// A target's servers cannot be spoken to as written.
    #[error("{file}: target.{target}: {error}")]
    Upstream {
        /// Name of the file.
        file: String,
        /// Name of the target.
        target: String,
        /// The fault.
        error: Box<UpstreamSettingsError>,
    },
    /// A file of keys cannot be used.
    #[error("{0}")]
    Keys(#[from] KeysError),
    /// A port cannot be had.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// The admin port, or that of datagrams, cannot be had.
    #[error("cannot listen on {address}: {error}")]
    Admin {
        /// Address that was tried.
        address: std::net::SocketAddr,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The runtime or a signal handler cannot be started.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl EgressError {
    /// Returns whether another try with the same configuration fails again.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::Config { .. } | Self::Read { .. } | Self::Upstream { .. } | Self::Keys(_))
    }
}
