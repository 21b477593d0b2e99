//! Hot documents on many servers: which server answers a request, and which servers have a copy of what.
//!
//! Two loops with an owner each. *Routing* ([`distribution`]) chooses among the hosts of a document for each
//! request. *Placement* ([`placement`]) changes the hosts, once a second at most. A [`Redirector`] puts both
//! together for the documents it owns; which those are says the [`Ring`]. docs/algorithms/replication.md has
//! the published rules (RaDaR and ACDN, as measured in Esser's thesis), their faults and the repairs.
//!
//! For servers that all host the same there is no placement: a [`ServerPool`] says which of them are usable
//! and how much of the load each should get, and each worker's [`Balancer`] chooses.
//!
//! Pure: no clock, no I/O, randomness handed in. Planning uses floats; a choice uses integers and allocates
//! nothing.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod balancer;
pub mod distribution;
mod documents;
mod error;
pub mod placement;
mod redirector;
mod report_schedule;
mod ring;
mod routing;
mod server_pool;
pub mod servers;
#[cfg(test)]
mod tests;

pub use balancer::{Balancer, ServerUse};
pub use documents::DocumentTable;
pub use error::SettingsError;
pub use redirector::{Placed, PlacementBy, PlacementRound, Redirector, RedirectorSettings};
pub use report_schedule::ReportSchedule;
pub use ring::Ring;
pub use routing::{Router, RoutingPlan};
pub use server_pool::{PoolEvents, PoolSettings, ServerCounts, ServerPool};
pub use servers::{ServerIndex, ServerReport, ServerSettings, ServerTable};
