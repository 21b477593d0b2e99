//! Errors of a gateway that did not start, or did not stop cleanly.

use flashweir_http::listen::ListenError;
use flashweir_http::tls::TlsError;
use flashweir_http::upstream::UpstreamSettingsError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Error of [`run`](crate::run). Each message says what and where.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// A port for clients cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The admin port cannot be had.
    #[error(
        "cannot listen on {address} for admin requests: {source}; --admin or admin.address names another one"
    )]
    AdminListen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The port for datagrams of upstreams cannot be had.
    #[error("cannot take datagrams on {address} (feedback.udp): {source}")]
    Datagrams {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The port for other gateways' reports cannot be had.
    #[error("cannot listen on {address} for reports of other gateways: {source}")]
    ClusterListen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// NATS was asked for and left out of this build.
    #[error(
        "this flashweir was built without NATS; build it with `--features nats`, or use cluster.listen and cluster.leader instead of cluster.nats"
    )]
    WithoutNats,
    /// A cluster of Kubernetes was asked for, and this build or this command has no part in one.
    #[error(
        "this flashweir was built without Kubernetes; build it with `--features kubernetes`, or use cluster.listen and cluster.leader instead of cluster.kubernetes"
    )]
    WithoutKubernetes,
    /// The certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The upstreams cannot be used.
    #[error(transparent)]
    Upstream(#[from] UpstreamSettingsError),
    /// The gate in the kernel cannot be had: too few rights, no such interface, a program of others before
    /// it.
    #[error("cannot refuse connections in the kernel: {0}")]
    Kernel(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It was asked for and left out of this build.
    #[error(
        "this flashweir was built without the gate in the kernel; build it with `--features kernel` (it takes clang and the \
         headers of libbpf, libelf and zlib), or leave out --kernel, --interface and kernel.interface"
    )]
    KernelNotBuilt,
    /// The recording cannot be written.
    #[error("cannot record to {}: {source}", file.display())]
    Record {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The access log cannot be written.
    #[error("cannot write the access log {} (log.access.file): {source}", file.display())]
    AccessLog {
        /// The file.
        file: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The operating system refused a thread, a timer or a signal handler.
    #[error("cannot start: {0}")]
    Start(#[source] io::Error),
    /// A worker could not run; nothing was served by it.
    #[error("a worker stopped: {0}")]
    Worker(String),
    /// The time to drain was over before every request had ended.
    #[error("stopped with {requests} requests cut: they did not end within bounds.drain_timeout")]
    RequestsCut {
        /// Number of cut requests.
        requests: usize,
    },
}

impl GatewayError {
    /// Returns whether what was asked for cannot be had as configured (a port in use, a certificate that is
    /// none): starting again without a change will not help.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Listen(_)
            | Self::AdminListen { .. }
            | Self::Datagrams { .. }
            | Self::ClusterListen { .. }
            | Self::WithoutNats
            | Self::WithoutKubernetes
            | Self::Record { .. }
            | Self::AccessLog { .. }
            | Self::Tls(_)
            | Self::Upstream(_)
            | Self::Kernel(_)
            | Self::KernelNotBuilt => true,
            Self::Start(_) | Self::Worker(_) | Self::RequestsCut { .. } => false,
        }
    }
}
