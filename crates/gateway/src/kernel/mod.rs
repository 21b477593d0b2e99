//! Refusing new connections in the kernel, before the TCP stack hears of them (`flashweir run --kernel`).
//!
//! The gateway's gates go on deciding about requests; the kernel keeps away the part of a crowd that could
//! only be refused (`ceiling`), and clients that ignore `Retry-After` again and again (`sources`). On the
//! control thread, ten times a second: counters are read (`window`), the ceiling is made again and written,
//! and what the kernel refused is handed to the planner of NEWS as offered. Once a second the gateway sends
//! the kernel a heartbeat; after three seconds without one the kernel admits everything.
//!
//! The gate is loaded and attached before a port opens (`guard`) and gone before the drain begins, so that a
//! stopping gateway refuses by itself, with the reason. A pinned one keeps its last plan through the drain
//! and is then left to the gateway that comes next, which takes it over.

mod ceiling;
mod guard;
mod report;
mod sources;
mod task;
mod window;

use crate::error::GatewayError;
use crate::shared::Shared;
use flashweir_config::Config;
use guard::{Guard, GuardError};
use std::net::SocketAddr;
use std::sync::Arc;
use task::KernelTask;
use tokio_util::sync::CancellationToken;

/// A gate that stands before its interfaces.
#[derive(Debug)]
pub(crate) struct KernelGuard(Guard);

impl KernelGuard {
    /// Puts the gate before the configured interfaces; `None` where there are none. It protects nothing yet.
    pub(crate) fn open(config: &Config) -> Result<Option<Self>, GatewayError> {
        if config.kernel.interfaces.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self(Guard::open(config)?)))
    }

    /// From now on it judges new connections to these addresses.
    pub(crate) fn protect(
        &mut self,
        config: &Config,
        listening_on: &[SocketAddr],
        speaks_tls: bool,
    ) -> Result<(), GatewayError> {
        warn_of_loopback(listening_on, &self.0);
        Ok(self.0.protect(config, listening_on, speaks_tls)?)
    }

    /// Plans and beats until the future is dropped, and the gate with it; or until it is to be left, where it
    /// is pinned.
    pub(crate) async fn run(self, shared: Arc<Shared>, leave: CancellationToken) {
        KernelTask::new(shared, self.0).run(leave).await;
    }
}

impl From<GuardError> for GatewayError {
    fn from(error: GuardError) -> Self {
        Self::Kernel(Box::new(error))
    }
}

/// Nothing comes to a loopback address but over `lo`: a gate elsewhere would never be asked.
fn warn_of_loopback(listening_on: &[SocketAddr], guard: &Guard) {
    let only_loopback = listening_on.iter().all(|at| at.ip().is_loopback());
    if only_loopback && guard.interfaces().all(|interface| interface.name != "lo") {
        tracing::warn!(
            "the gate in the kernel will see nothing: all listen addresses are loopback, its interfaces not"
        );
    }
}
