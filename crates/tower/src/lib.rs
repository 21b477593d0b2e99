//! Overload control inside a service, as a [tower] layer.
//!
//! [`AdmissionLayer`] learns how many requests at once the service behind it answers within a target, admits
//! those, lets short bursts wait, and refuses the rest at once with `503` and `Retry-After`. The only thing
//! to set is the target.
//!
//! ```
//! use axum::{Router, routing::get};
//! use flashweir_tower::AdmissionLayer;
//! use std::time::Duration;
//!
//! # fn app() -> Router {
//! Router::new()
//!     .route("/", get(|| async { "hello" }))
//!     .layer(AdmissionLayer::new(Duration::from_secs(1)).answering())
//! # }
//! ```
//!
//! *Refusals.* [`Admission`] fails with [`AdmissionError::Refused`], for services that have their own form
//! for errors. [`Answering`] answers refusals itself, as routers with infallible services need it.
//!
//! *Classes.* [`Settings`] lists classes by what an answer in time is worth, [`AdmissionLayer::classify`]
//! says which request is of which. The more valuable go first where there is not room for all.
//!
//! *Deadlines.* A request that says how long its answer is of use (`Flashweir-Deadline`, `grpc-timeout`, or
//! [`Ask::deadline`]) waits no longer than that.
//!
//! *Rules.* The gate and its learned limit are those of the gateway: see [`flashweir_admission::sentry`]. One
//! mutex guards the gate; a request locks it when it arrives and when its response has ended, and twice more
//! if it was queued. A task plans every 20 ms and ends when no request has come for ten seconds.
//!
//! *Callers.* `client` is the other half, for programs that call such a service (the feature of this name).
//!
//! [tower]: https://docs.rs/tower

mod answering;
mod ask;
mod body;
#[cfg(feature = "client")]
pub mod client;
mod gatekeeper;
mod layer;
mod refused;
mod settings;
mod status;

pub use answering::{Answering, AnsweringLayer};
pub use ask::{Ask, Head};
pub use body::AdmittedBody;
pub use layer::{Admission, AdmissionLayer};
pub use refused::{AdmissionError, Refused};
pub use settings::{Class, Settings, SettingsError};
pub use status::Status;

// Examples name the crate as users do, and tests include one.
#[cfg(test)]
extern crate self as flashweir_tower;
#[cfg(test)]
mod tests;
