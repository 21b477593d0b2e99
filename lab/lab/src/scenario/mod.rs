//! Scenario files: what was written, checked into runs of the simulator, and the statistics they are judged
//! by.
//!
//! A file says who comes and what they do, who serves them, who lets them in, what goes wrong, and within
//! which ranges the statistics have to lie. A [`Scenario`] is checked; every fault before that ends in one
//! [`ScenarioError`] that names file, line and key. `docs/simulator.md` is the manual.
//!
//! ```
//! use flashweir_lab::scenario::{Scenario, Settings, Sheet};
//! let text = r#"
//!     duration = "10s"
//!     [workload]
//!     rate = 50
//!     [[class]]
//!     name = "readers"
//!     work = "exp:5ms"
//!     [accept]
//!     goodput_ratio = ">= 0.99"
//! "#;
//! let scenario = Scenario::from_toml(text, "quiet.toml", &Settings::default())?;
//! let runs = [1, 2].map(|seed| flashweir_sim::request::run(&scenario.run(seed)));
//! let outcomes = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
//! assert!(Sheet::of(&scenario, &outcomes).is_accepted());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accept;
mod arrivals;
mod bounds;
mod checked;
mod class;
mod controller;
mod error;
mod fault;
mod file;
mod link;
mod nodes;
mod packet_file;
mod packet_view;
mod packets;
mod problem;
mod quantity;
mod router;
mod scope;
mod sentry;
mod server;
mod settings;
mod sheet;
mod statistic;
mod summary;
mod swarm;
#[cfg(test)]
mod tests;
mod text;
mod work;

pub use accept::Range;
pub use checked::{Scenario, Window};
pub use error::ScenarioError;
pub use link::Link;
pub use scope::{Scope, Within};
pub use settings::Settings;
pub use sheet::{Line, Sheet};
pub use statistic::{Statistic, Unit};
pub use summary::Summary;
pub use swarm::swarm_text;
