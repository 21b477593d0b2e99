//! Types that every crate shares: time, rates, ids, verdicts, randomness, hashing, estimators and every named
//! bound.
//!
//! Nothing here reads a clock, allocates on a request's path or knows a socket; time and randomness are
//! arguments everywhere (`no_std` keeps it that way).
#![cfg_attr(not(test), no_std)]
extern crate alloc;

pub mod bit_set;
pub mod duration_text;
pub mod hash;
pub mod id;
pub mod kernel_counts;
pub mod limits;
pub mod measure;
pub mod rng;
pub mod shortage;
#[cfg(test)]
mod tests;
pub mod text_error;
pub mod time;
pub mod units;
pub mod verdict;

pub use bit_set::BitSet;
pub use core::time::Duration;
pub use duration_text::DurationText;
pub use hash::Hasher64;
pub use id::DecisionId;
pub use rng::Rng;
pub use shortage::Shortage;
pub use text_error::TextError;
pub use time::Instant;
pub use units::Rate;
pub use verdict::{Reason, Shed, Verdict};
