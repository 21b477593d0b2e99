//! Several gateways before one service, by the real binary on loopback (docs/several-gateways.md).

mod local;
#[cfg(feature = "nats")]
mod nats;
mod numbers;
mod relay;
mod scene;
pub(crate) mod shared_limit;
mod start_errors;
