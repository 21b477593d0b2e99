//! Flash crowds packet by packet, with NEWS at the router: the paper's simulations (Chen and Heidemann, §7).
//!
//! A thousand clients, each behind its own access link, ask one pool of servers for small pages through a
//! bottleneck. The router on the servers' side sees both directions: it measures the rate of every response
//! by time sliding windows, skipping handshakes, and lets new connections in or drops their SYNs by the very
//! same gate and planner that run in the gateway. A dropped client tries again, as TCP does. It is a run of
//! the request level ([`crate::request`]) over packets: what is here are the paper's setting and its words.
//!
//! Parameters that the paper does not give are settings here, and the experiments say how each was chosen:
//! the bottleneck's rate and buffer, the distributions of link rates and delays (only their ends are given)
//! and of page sizes.
//!
//! ```
//! use flashweir_sim::news::{Scenario, run};
//! use flashweir_workload::RateProfile;
//! use std::time::Duration;
//!
//! let arrivals = RateProfile::constant(20.0, Duration::from_secs(10))?;
//! let outcome = run(&Scenario { seed: 3, arrivals, ..Scenario::default() })?;
//! assert!((150..250).contains(&outcome.people.unique_offered));
//! assert_eq!(outcome.gate.shed, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod described;
mod outcome;
mod run;
mod scenario;

pub use crate::request::RunError as NewsError;
pub use outcome::{Bin, NewsOutcome, People};
pub use run::run;
pub use scenario::{BulkTransfer, Links, Scenario, Server};
