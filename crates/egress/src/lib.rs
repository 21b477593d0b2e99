//! `flashweir egress`: the caller's half of overload control as a sidecar, for a process that knows nothing
//! of it.
//!
//! ```text
//!   process ─► listener ─► target ─► node: limit, queue, silence ─► upstream
//!              (address      (by listener     (flashweir-tower)       │
//!               or Host)      or Host)              ▲                 │
//!                                                   └── Flashweir-Overload, with each answer
//! ```
//!
//! A request's life: `request` reads its rank and deadline and finds its target, `exchange` sends it within
//! budgets and limits, and what is not sent is answered by `refusal`. One thread, no lock that is waited for;
//! the admin listener reads the same state.
//!
//! The decisions are in `flashweir_tower::client` (and, pure, in `flashweir_feedback::caller`); this crate
//! has HTTP, names, files and signals.

mod body;
pub mod config;
mod datagrams;
mod error;
mod exchange;
mod metrics;
mod refusal;
mod request;
mod resolve;
mod server;
mod status;
mod target;

pub use config::Config;
pub use error::EgressError;
pub use server::run;
