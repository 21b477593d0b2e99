//! A pool of servers over hours and weeks: applications, demand, servers that take time to start, and the
//! scaler that orders them.
//!
//! A **fluid** model in steps of [`Scenario::tick`]: requests are counted, not followed, because a month of a
//! busy service has a billion of them and nothing here depends on a single one. Drawn: how many requests of
//! each class arrive in a step (Poisson around the profile), how much work they are, how long a server takes
//! to start. Exact: servers, orders, refusals, backlog. The **admission is ideal**: it lets in, the most
//! important class first, what is answered within the target by the servers that are up, and refuses the rest
//! at once. So what a run loses, it loses by the number of servers, and by nothing else; what a real sentry
//! adds is measured at the level of requests ([`crate::request`]), whose server may be given this run's
//! servers as faults. Refused requests do not come again: gateways fold retries, and planners are given
//! unique demand.
//!
//! A [`Scaler`] orders servers: the planner of capacity, unchanged; an autoscaler on processor utilisation,
//! as Kubernetes' default is; an oracle that knows the profile; or a fixed number.
//!
//! ```
//! use flashweir_core::Duration;
//! use flashweir_provisioning::{ApplicationPolicy, Policy};
//! use flashweir_sim::pool::{ApplicationModel, Scaler, Scenario, run};
//! use flashweir_workload::RateProfile;
//!
//! // Four times the demand after five minutes.
//! let (at, length) = (Duration::from_secs(300), Duration::from_secs(900));
//! let crowd = RateProfile::step(200.0, 800.0, at, length)?;
//! let policy = Policy::new(40, vec![ApplicationPolicy::single(Duration::from_secs(1))]);
//! let scenario = Scenario::new(policy, vec![ApplicationModel::new(crowd, 4)], Scaler::Planner);
//! let outcome = run(&scenario)?;
//! assert!(outcome.applications[0].served_share(300..900) > 0.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod autoscaler;
mod draw;
mod fleet;
mod oracle;
mod outcome;
mod scenario;
mod traffic;
mod world;

pub use autoscaler::AutoscalerSettings;
pub use outcome::{ApplicationOutcome, Bin, Order, PoolOutcome};
pub use scenario::{ApplicationModel, ClassLoad, PoolError, Scaler, Scenario, SentryModel, StartUp};
pub use world::run;
