//! The papers' testbeds on real Linux: what is built and who comes, and how what was measured is judged.
//!
//! Pure. A [`Trial`] is a figure: a list of [`TestbedRun`]s, and a function that makes a
//! [`Finding`](crate::experiments::Finding) of their [`Record`]s, by conditions that are fixed here.
//! `flashweir reproduce --testbed` makes the networks, carries the runs out and hands the records in. Figures
//! share runs; each is made once.
//!
//! One scale for all of NEWS ([`scale`]): five times the paper's rates, a sixteenth of its times.

pub(crate) mod best_static;
pub(crate) mod bulk_bystander;
pub(crate) mod cost;
mod detection;
pub(crate) mod dropping;
pub(crate) mod fastest_tenth;
mod interval;
mod memory;
pub(crate) mod network_limited;
mod peak;
mod record;
mod response_rates;
mod results;
pub mod scale;
mod scene;
mod scope;
mod trial;
mod trials;
mod web_bystander;

pub use record::{Decision, Fastest, People, PhaseCost, Record, RouterCost, Second};
pub use response_rates::ResponseRates;
pub use results::Results;
pub use scene::{Beside, Bottleneck, Protection, Scene, Server, TestbedRun};
pub use scope::Scope;
pub use trial::Trial;
pub use trials::{TRIALS, find_trial};
