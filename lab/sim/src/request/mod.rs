//! A service at the level of requests: people, a gate, a server.
//!
//! People are those of `flashweir load`: the same schedule, habits and seed bring the very same crowd. The
//! gate is the gateway's own, with the planner that drives it. The server is a model: see [`ServerModel`].
//! The network between people and gate is a delay, or links with packets: see [`NetworkModel`].
//!
//! A try goes: person → (network) → gate → server → (network) → person. A client that gives up hangs up; the
//! gate hears of it a way through the network later. A run ends when the schedule is over and all people have
//! left.
//!
//! ```
//! use flashweir_core::Duration;
//! use flashweir_sim::request::{self, ClassModel, FlashCrowdPolicy, Policy, Scenario, ServerModel, Work};
//! use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};
//!
//! // Three times the capacity of 200 a second comes after ten seconds, and NEWS stands before the server.
//! let (start, length) = (Duration::from_secs(10), Duration::from_secs(30));
//! let crowd = RateProfile::step(90.0, 600.0, start, length)?;
//! let schedule = Schedule::one(ArrivalProcess::Poisson(crowd), 7);
//! let class = ClassModel::new("all", Work::Constant(Duration::from_millis(5)));
//! let scenario = Scenario {
//!     policy: Policy::flash_crowd(FlashCrowdPolicy::default()),
//!     ..Scenario::new(schedule, class, ServerModel::first_come(1, 1))
//! };
//! let outcome = request::run(&scenario)?;
//! assert!(outcome.began_within(15..30).goodput > 15 * 160);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod books;
pub mod calm;
mod checks;
mod client_side;
mod clients;
mod event;
mod fault;
mod gate;
mod outcome;
mod packet_side;
mod packets;
mod scenario;
pub mod senders;
mod server;
mod server_side;
mod signs;
mod simulation;
mod slab;
mod starvation;
mod transport;
mod work;
mod world;

pub use books::Counts;
pub use calm::CalmReport;
pub use fault::{Fault, FaultKind};
pub use gate::{
    FlashCrowdPolicy, GateCounts, LimitTaken, PipelinePolicy, PlanTaken, Policy, SentryPolicy, ShedReason,
};
pub use outcome::{ClassOutcome, MeanLevel, RunOutcome};
pub use packets::{
    ClassPath, ClientGroup, ConnectionBin, DatagramBin, DatagramOutcome, DatagramSource, LinkBin,
    NetworkModel, PacketNetwork, PacketOutcome, RouterOutcome, RouterPlace, Transfer, TransferOutcome, Wire,
    WireOutcome,
};
pub use scenario::{ClassModel, Scenario, ScenarioError, WarmUp};
pub use server::{Departed, Discipline, Level, Memory, Overflow, ServerCounts, ServerModel};
pub use signs::{Demotions, SignModel};
pub use simulation::{Simulation, run, run_checking_calm};
pub use work::Work;
pub use world::RunError;
