//! Servers with copies of documents, redirectors that spread requests over them, and placement that moves the
//! copies.
//!
//! ```text
//! arrivals ─► distributor ─► redirector (by the ring) ─► server: its cache, its processors
//!                               ▲  reports, early ones too ──┘        └─ a copy is fetched with its first request
//!                               └─ placement: published (asked by servers) or repaired (planned here)
//! ```
//!
//! The redirectors, the ring, the schedule of reports and both kinds of placement are those of
//! `flashweir-replication`, unchanged. Each redirector sees the requests for its own documents and the
//! servers' reports, nothing else.

mod closed_loop;
mod outcome;
mod scenario;
mod station;
mod world;

pub use closed_loop::{ClosedLoop, closed_loop};
pub use outcome::{CopiesMade, ReplicasOutcome};
pub use scenario::{Front, Phase, PlacementRule, Scenario, Silence, StationModel};
pub use world::{RunError, run};
