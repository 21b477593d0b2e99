//! An open-loop load generator with a ledger that adds up.
//!
//! The moments at which people come are fixed before the run ([`Schedule`]); a slow answer delays nobody else,
//! latency counts from the intended moment, and whether the generator itself kept up is part of the result.
//! Everybody who came is accounted for: completed, refused, timed out or failed with a kind.

mod alarm;
mod capacity;
mod client;
mod connection;
mod counts;
mod descriptors;
mod distribution;
mod error;
mod ledger;
mod plan;
mod progress;
mod report;
mod result;
mod run;
mod schedule;
mod sender;
mod target;

pub use capacity::measure_capacity;
pub use counts::{Counts, ErrorKind, Outcome};
pub use error::LoadError;
pub use plan::{Connections, LoadPlan, StopFlag};
pub use progress::Progress;
pub use result::{LoadResult, Percentiles, Second};
pub use run::run;
pub use schedule::Schedule;
pub use target::Target;
