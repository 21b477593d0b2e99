//! In place of `kernel` where the feature of that name was left out: there is never a gate, and asking for
//! one is an error.

use crate::error::GatewayError;
use crate::shared::Shared;
use flashweir_config::Config;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// There is none.
#[derive(Debug)]
pub(crate) struct KernelGuard(Infallible);

impl KernelGuard {
    /// `None` where no interface is configured, and an error else.
    pub(crate) fn open(config: &Config) -> Result<Option<Self>, GatewayError> {
        if config.kernel.interfaces.is_empty() { Ok(None) } else { Err(GatewayError::KernelNotBuilt) }
    }

    /// Never called.
    pub(crate) fn protect(&mut self, _: &Config, _: &[SocketAddr], _: bool) -> Result<(), GatewayError> {
        match self.0 {}
    }

    /// Never called.
    pub(crate) async fn run(self, _: Arc<Shared>, _: CancellationToken) {
        match self.0 {}
    }
}
