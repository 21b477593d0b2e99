//! Errors of a router that did not start, or stopped.

use crate::places::PROTECTED_MOST;
use flashweir_kernel::LoadError;
use flashweir_kernel::gate::{AttachError, GateError};
use flashweir_kernel::observe::{self, ObserveError};
use flashweir_runtime::kernel::is_configuration;
use std::io;
use std::net::SocketAddr;

/// Error of [`run`](crate::run). Each message says what and where; the network is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// The kernel does not take the programs, or does not tell what they counted.
    #[error(transparent)]
    Kernel(#[from] LoadError),
    /// The gate does not accept an order.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The observer does not accept an order.
    #[error(transparent)]
    Observer(#[from] ObserveError),
    /// An interface does not take the gate.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// An interface does not take the observer.
    #[error(transparent)]
    AttachObserver(#[from] observe::AttachError),
    /// An interface that carries nothing: most often a mistyped name.
    #[error("interface `{0}` is down; start it with `ip link set {0} up`")]
    InterfaceDown(String),
    /// The kernel does not tell which interfaces there are.
    #[error("cannot list the interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// More than there is room for.
    #[error("kernel.protect: {0} addresses, a router protects at most {PROTECTED_MOST}")]
    TooManyProtected(usize),
    /// The admin port cannot be had.
    #[error("cannot listen on {address} for admin requests: {source}")]
    AdminListen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The operating system refused a timer or a signal handler.
    #[error("cannot start: {0}")]
    Start(#[source] io::Error),
}

impl RouterError {
    /// Returns whether what was asked for cannot be had as things are (no such interface, too few rights, a
    /// port in use): starting again without a change will not help.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Attach(error) => is_configuration(error),
            Self::AttachObserver(error) => {
                !matches!(error, observe::AttachError::Refused { .. } | observe::AttachError::Program(_))
            }
            Self::Kernel(error) => error.is_unavailable(),
            Self::InterfaceDown(_) | Self::TooManyProtected(_) | Self::AdminListen { .. } => true,
            Self::Gate(_) | Self::Observer(_) | Self::Interfaces(_) | Self::Start(_) => false,
        }
    }
}
