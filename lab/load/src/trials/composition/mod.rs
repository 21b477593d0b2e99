//! The gateway's composition before other bottlenecks than a crowded origin (`make bench-composition`): what
//! is run, how it is judged, and the tables.
//!
//! - [`link`]: a narrow link to the clients, beside the best rate limit that a search finds.
//! - [`calm`]: stretches of real days that fit into the origin, on which nothing may happen.
//! - [`connections`]: thousands of new connections a second.
//! - [`nodes`]: a crowd through a sidecar, of which the gateway asks less.
//! - [`surge`]: surges of real days at a multiple of the capacity.
//! - [`traces`]: the real days.

pub mod calm;
pub mod connections;
pub mod link;
pub mod nodes;
pub mod surge;
pub mod traces;
