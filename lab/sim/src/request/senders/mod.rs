//! Senders before an overloaded node: gapping here, ladder and sentry there, feedback between them that gets
//! lost and comes late.
//!
//! ```text
//! arrivals ─► sender: gapping ─► (delay) ─► node: ladder ─► sentry ─► server
//!                 ▲                            │
//!                 └──── feedback (delay, loss, reordering) ◄┘
//! ```
//!
//! Both ends are those that a shell would run: [`gapping::GappedTarget`], [`flashweir_feedback::Intake`] and
//! the field's own bytes at a sender; [`flashweir_feedback::Advertiser`], [`ladder::LadderPlanner`],
//! [`ladder::LadderGate`] and the gateway's pipeline with its sentry at the node. The paper's clients, its
//! network interface that drops connections, and its messages for on and off are there to compare: see
//! [`Obedience::Stretches`], [`LadderModel::Published`] and [`Transport::Edges`].
//!
//! A *user request* needs one or more calls to the node, one after the other, and is completed when all of
//! them are. Pure: a run is a function of its scenario and its seed.
//!
//! [`gapping::GappedTarget`]: flashweir_admission::gapping::GappedTarget
//! [`ladder::LadderPlanner`]: flashweir_admission::ladder::LadderPlanner
//! [`ladder::LadderGate`]: flashweir_admission::ladder::LadderGate

mod node;
mod outcome;
mod scenario;
mod sender;
mod world;

pub use outcome::{NodeBin, SenderOutcome, SendersOutcome};
pub use scenario::{
    FeedbackModel, LadderModel, NodeModel, Obedience, Scenario, ScenarioError, SenderModel, Transport,
};
pub use world::{RunError, run};
