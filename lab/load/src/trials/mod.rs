//! Trials with real servers: the crowds they meet, how a run is judged, and the pages that tell.
//!
//! Pure: the benches of `flashweir-cli` start the servers and the crowd, and give this what the load
//! generator found.
//!
//! - [`comparison`]: Flashweir beside other protections (`make compare`).
//! - [`cataclysm`]: a figure of the Cataclysm paper on three real servers (`make cataclysm`).
//! - [`useful`]: how much of an origin's time each composition of the gateway puts to use (`make bench-useful`).
//! - [`composition`]: narrow links, calm stretches of real days and surges through the gateway (`make bench-composition`).
//! - [`origins`]: application servers, a database and a link behind each protection (`make bench-origins`).
//! - [`calm`]: mixtures of requests before an origin that only waits (`make bench-calm`).
//! - [`instructions`]: instructions of a request, by phase and component (`make instructions`).
//! - [`slow`]: origins whose requests differ, such as long polls and exports beside pages (`make bench-slow`).

pub mod calm;
pub mod cataclysm;
pub mod comparison;
pub mod composition;
pub mod instructions;
pub mod origins;
mod percentile;
pub mod slow;
mod spread;
pub mod useful;
