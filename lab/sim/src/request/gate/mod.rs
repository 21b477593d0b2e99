//! Admission: the gateway's own pipeline and planners, driven as the gateway drives them.
//!
//! Refusing takes no time and no processor of the
//! server: the gate stands on its own machine.

mod counts;
mod demoted;
mod flash_crowd;
mod reason;
mod sentry;
mod simulated_request;
mod stage;
mod witness;
mod worker;

pub use counts::GateCounts;
pub use flash_crowd::FlashCrowdPolicy;
pub use reason::ShedReason;
pub use sentry::{LimitTaken, SentryPolicy};

pub(super) use reason::Refusal;
pub(super) use simulated_request::{Acknowledged, Decided, ReleasedTry, SimulatedRequest, Ticked};
pub(super) use stage::{GateStage, host_key};

use flashweir_admission::flash_crowd::Explanation;
use flashweir_core::{Instant, Rate};

/// Rules by which the gate admits requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Policy {
    /// None: every request is admitted.
    #[default]
    None,
    /// The gateway's pipeline, with all stages or with some.
    Pipeline(PipelinePolicy),
    /// A token bucket that was set by hand, as the papers' comparisons have it.
    StaticRate {
        /// The rate.
        rate: Rate,
        /// The most that are let in at once after a lull.
        burst: u64,
    },
}

/// The stages of the pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PipelinePolicy {
    /// NEWS, in any of its modes.
    pub flash_crowd: Option<FlashCrowdPolicy>,
    /// The sentry, with its classes.
    pub sentry: Option<SentryPolicy>,
}

impl Policy {
    /// NEWS alone.
    #[must_use]
    pub fn flash_crowd(policy: FlashCrowdPolicy) -> Self {
        Self::Pipeline(PipelinePolicy { flash_crowd: Some(policy), sentry: None })
    }

    /// The sentry alone.
    #[must_use]
    pub fn sentry(policy: SentryPolicy) -> Self {
        Self::Pipeline(PipelinePolicy { flash_crowd: None, sentry: Some(policy) })
    }

    /// NEWS and the sentry, as in the gateway.
    #[must_use]
    pub fn default_composition(flash_crowd: FlashCrowdPolicy, sentry: SentryPolicy) -> Self {
        Self::Pipeline(PipelinePolicy { flash_crowd: Some(flash_crowd), sentry: Some(sentry) })
    }

    /// NEWS, if it is among the stages.
    #[must_use]
    pub fn flash_crowd_policy(&self) -> Option<&FlashCrowdPolicy> {
        if let Self::Pipeline(policy) = self { policy.flash_crowd.as_ref() } else { None }
    }

    /// The sentry, if it is among the stages.
    #[must_use]
    pub fn sentry_policy(&self) -> Option<&SentryPolicy> {
        if let Self::Pipeline(policy) = self { policy.sentry.as_ref() } else { None }
    }

    /// Workers, each with its own pipeline: the sentry's word counts, because its workers pass requests on.
    pub(in crate::request) fn workers(&self) -> usize {
        let gates = self.flash_crowd_policy().map_or(1, |policy| policy.settings.gates.max(1));
        self.sentry_policy().map_or(gates, |policy| policy.workers)
    }
}

/// A plan of the policy, as it explains itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanTaken {
    /// Time at which it was made.
    pub at: Instant,
    /// Its inputs and the rule that fired.
    pub explanation: Explanation,
}
