//! Active queue management: a link's price, the number of active flows, and flows cut to a fair share.
//!
//! Source: Abbas, Nagar, Tawfik and Goulermas, *Pricing and unresponsive flows purging for global rate
//! enhancement* (2010), with REM (Athuraliya et al., 2001), BLACK (Chatranon et al., 2003) and MINCOUNT
//! (Giroire, 2009) in it. The paper's rules, its errors P-1 to P-10 and their repairs are in
//! `docs/algorithms/purge.md`; the simulator has the published rule and its predecessor, for comparison.
//!
//! | module | what | paper |
//! |---|---|---|
//! | [`rem`] | the price and the probability of a mark | eq. (1) |
//! | [`min_sketch`], [`distinct_window`] | the number of distinct flows, from 12 KB | §3.2 |
//! | [`purge`] | the repaired rule: arrival rates, a drop of `1 − f/r` before the queue | – |
//!
//! All types are plain values: the time, the queue and the random source are arguments. They allocate when
//! they are built and never afterwards.
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod distinct_window;
mod error;
mod fate;
pub mod flow_key;
pub mod heavy_flows;
pub mod min_sketch;
pub mod purge;
pub mod rem;
#[cfg(test)]
mod tests;

pub use distinct_window::DistinctWindow;
pub use error::SettingError;
pub use fate::{Arrival, Fate};
pub use flow_key::{FlowHasher, FlowIdentity, PacketHeader};
pub use heavy_flows::HeavyFlows;
pub use min_sketch::MinSketch;
pub use purge::{CountedPeriod, Purge, PurgeSettings};
pub use rem::{Rem, RemPrice, SurplusUnit};
