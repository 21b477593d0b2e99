//! A gateway in a cluster of replicas: distributor, redirector or replica.
//!
//! ```text
//! client ─▶ distributor ─ hash of the URL ─▶ redirector ─ two choices among the document's hosts ─▶ replica ─ a miss ─▶ origin
//!                                              ▲   │                                                 │
//!                                              │   └── what cannot be cached, or is too much ──▶ origin
//!                                              └──────────────────── reports ◀───────────────────────┘
//! ```
//!
//! A replica is a gateway that always caches (`crate::cache`: one fetch for all, the rules of RFC 9111, a
//! store with a bound), so a copy is made by its first request. What is here besides: `hops` ends circles,
//! `document` names documents alike on all nodes, `routing` is a worker's half of a distributor or
//! redirector, `counts` is what it counts, `station` decides where copies are (with `flashweir_replication`),
//! `report` is what replicas say, `reporter` says it, `admin` takes it.
//!
//! Routing comes before admission: a request that a replica answers takes no room at the origin. A request
//! that no replica may answer, or that is more than all replicas take, goes on to the origin's pipeline as if
//! there were no replicas.

mod admin;
mod counts;
mod document;
mod hops;
mod report;
mod reporter;
mod routing;
mod shared;
mod station;

pub(crate) use admin::{document, report, status};
pub(crate) use hops::Hops;
pub(crate) use reporter::attend;
pub(crate) use routing::{ChosenTarget, Route, WorkerReplication, redirect, sample};
pub(crate) use shared::ReplicationShared;
