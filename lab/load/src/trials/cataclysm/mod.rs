//! Figure 3 of Cataclysm (Urgaonkar and Shenoy, "Cataclysm: Policing Extreme Overloads in Internet
//! Applications") on three real servers: who is let in when more and more come.
//!
//! A [`Crowd`] is the paper's, scaled in time and to what the servers can do; a [`Finding`] judges a run by
//! conditions fixed here, and is `docs/reproduction-real.md`.

mod crowd;
mod finding;
mod page;

pub use crowd::Crowd;
pub use finding::{Condition, Facts, Finding, Value};
