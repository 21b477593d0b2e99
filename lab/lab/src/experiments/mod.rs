//! The papers' tables and figures, run again in the simulator: one small file for each.
//!
//! An [`Experiment`] is a name, what the paper says, and a function that makes a [`Finding`]: rows of the
//! paper's values beside ours for each mode, the conditions that make the *shape* of the result, a
//! [`Verdict`], numbers as CSV and a chart. The rules of the verdict are in the code of each experiment
//! (tolerances, conditions), not in a reader's eye. A value that is missed is shown as missed. A condition
//! holds only if it holds with the worst seed ([`Criterion`]).
//!
//! Results that no simulation can show are listed in [`ELSEWHERE`]; the papers' testbeds on real Linux are in
//! [`testbed`].
//!
//! A [`Laboratory`] runs simulations on a few threads and remembers outcomes, as several figures show the
//! same runs.
//!
//! ```
//! use flashweir_lab::experiments::{find, EXPERIMENTS};
//! assert_eq!(find("news-t1")?.id, "NEWS-T1");
//! assert!(find("NEWS-T9").unwrap_err().to_string().contains("NEWS-F12"));
//! assert!(EXPERIMENTS.len() >= 9);
//! # Ok::<(), flashweir_lab::experiments::ExperimentError>(())
//! ```

mod cataclysm;
mod catalogue;
mod cost;
mod crowd;
mod document;
mod elsewhere;
mod error;
mod experiment;
mod finding;
mod game;
mod intel;
mod laboratory;
mod news;
mod options;
mod plot;
mod purge;
mod radar;
mod seed_values;
mod significant;
mod spread;
mod table_text;
pub mod testbed;
#[cfg(test)]
mod tests;

pub use catalogue::{EXPERIMENTS, find};
pub use cost::cost_s;
pub use crowd::Crowd;
pub use document::{document, revised, revised_testbed};
pub use elsewhere::{ELSEWHERE, Elsewhere};
pub use error::ExperimentError;
pub use experiment::{Experiment, Subject};
pub use finding::{Finding, Row, Rule, Shape, Summary, Verdict};
pub use game::{Game, LogError, OPENING_MATCH, SEMI_FINAL};
pub use laboratory::{Laboratory, Progress};
pub use options::Options;
pub use seed_values::Criterion;
pub use spread::Spread;
pub use table_text::{figures_named, testbed_figures_named, text};
