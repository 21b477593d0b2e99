//! An open-loop load generator with a ledger that adds up.
//!
//! The moments at which people come are fixed before the run ([`Schedule`](flashweir_workload::Schedule)); a
//! slow answer delays no other request, latency counts from the intended moment, and whether the generator
//! itself kept up is part of the result. Every try is accounted for: completed, refused, timed out, abandoned
//! or failed with a kind.
//!
//! A run: [`run()`] gives each thread (`sender`) its part of the schedule; each person (`person`) goes
//! through their session and their tries over a `transport`, writing into the thread's `ledger`; five times a
//! second `books` puts the ledgers together, and at the end concludes a [`LoadResult`].
//!
//! [`command`] is the program `flashweir-load`, which `flashweir load` becomes: it makes a [`LoadPlan`] of
//! options and files, shows the run while it lasts, and hands the result over. [`report`] draws pages with
//! charts, of runs and of all that the laboratory measures; [`trials`] judges what the
//! benches of `flashweir-cli` measured with this.

mod alarm;
mod books;
mod capacity;
pub mod command;
mod counts;
mod crowd_window;
mod descriptors;
mod distribution;
mod error;
mod ledger;
mod merge;
mod paths;
mod person;
mod plan;
mod progress;
pub mod recovery;
pub mod report;
mod result;
mod run;
mod sender;
mod series;
mod shared;
mod sources;
mod tally;
mod target;
#[cfg(test)]
mod tests;
mod transport;
pub mod trials;
mod waiting;

pub use books::FORMAT as RESULT_FORMAT;
pub use capacity::measure_capacity;
pub use counts::{Counts, ErrorKind, TryOutcome};
pub use crowd_window::CrowdWindow;
pub use error::{LoadError, MergeError};
pub use merge::merge;
pub use paths::{Paths, Template};
pub use plan::{ClassPlan, LoadPlan, StopFlag};
pub use progress::Progress;
pub use result::{
    ClassFacts, Histograms, HurstFigure, LoadResult, Percentiles, Recovery, RunFacts, Second, Tally,
};
pub use run::run;
pub use sources::Sources;
pub use target::LoadTarget;
pub use transport::{ConnectionCounts, Prepared, Protocol, TlsOptions, TransportOptions};
