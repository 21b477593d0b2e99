//! A candidate of the flash-crowd stage in the gateway: asked about every request that comes to the stage,
//! obeyed by none.
//!
//! The rules are `flashweir_admission::flash_crowd` (its `candidate` says what the numbers mean). Here is
//! what all threads share, [`FlashCrowdCandidate`]; what a worker keeps of it (`follower`); and its planner
//! (`planner_task`), which takes part in the rounds of the planner of NEWS. A reload that changes the
//! candidate, or the policy that it is compared with, makes another one: plans and samples of the one before
//! it are known by their owner and ignored.

mod follower;
mod planner_task;

pub(crate) use follower::CandidateFollower;
pub(crate) use planner_task::PlannedCandidate;

use arc_swap::ArcSwap;
use flashweir_admission::flash_crowd::{Agreement, HostCount, Plan, Sample};
use flashweir_config::{Config, FlashCrowd};
use flashweir_runtime::plan_json;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};

/// State of the candidate that all threads share.
#[derive(Debug)]
pub(crate) struct FlashCrowdCandidate {
    /// The configured policy.
    configured: FlashCrowd,
    /// The policy in force with which it is compared.
    live: FlashCrowd,
    /// The plan that would be in force.
    pub(crate) plan: Arc<ArcSwap<Plan>>,
    /// Since it was put beside the policy in force. The control thread alone uses it.
    agreement: Mutex<Agreement>,
}

/// Measurements of one worker's flash-crowd stage.
#[derive(Debug)]
pub(crate) struct FlashCrowdSample {
    pub(crate) live: Sample,
    /// Requests that the cache answered, by host: no stage saw them.
    pub(crate) cached: Vec<HostCount>,
    /// Requests that a copy spared a refusal or a wait.
    pub(crate) spared: u64,
    /// And what its candidate did.
    pub(crate) candidate: Option<Box<CandidateSample>>,
}

/// Measurements of one worker's gate of a candidate, and how often it agreed with the live one.
#[derive(Debug)]
pub(crate) struct CandidateSample {
    pub(crate) candidate: Arc<FlashCrowdCandidate>,
    pub(crate) sample: Sample,
    pub(crate) agreement: Agreement,
}

impl FlashCrowdCandidate {
    /// That of a configuration, if it has one; `before` where nothing has changed, with all that was
    /// compared.
    pub(crate) fn of(config: &Config, workers: usize, before: Option<&Arc<Self>>) -> Option<Arc<Self>> {
        let configured = config.flash_crowd_candidate.as_ref()?;
        let is_same =
            |known: &&Arc<Self>| known.configured == *configured && known.live == config.flash_crowd;
        let new = || {
            Arc::new(Self {
                configured: configured.clone(),
                live: config.flash_crowd.clone(),
                plan: Arc::new(ArcSwap::from_pointee(Plan::open(workers))),
                agreement: Mutex::default(),
            })
        };
        Some(before.filter(is_same).cloned().unwrap_or_else(new))
    }

    /// Document of the candidate for `/status`.
    pub(crate) fn status(&self) -> Value {
        let FlashCrowd { mode, interval, margin, hot_spots, .. } = &self.configured;
        let plan = self.plan.load();
        let Agreement { both, only_live, only_candidate, neither } = self.agreement();
        json!({
            "means": "what this ceiling would have let pass of the requests that came; it is judged by the responses of what the \
                      policy in force admitted",
            "mode": mode.as_str(),
            "interval_s": interval.as_secs_f64(),
            "margin": margin,
            "hot_spots": hot_spots,
            "verdict": plan.explanation.cause.as_str(),
            "ceiling_rps": plan.explanation.ceiling_rps,
            "passed_by": {
                "both": both, "live": only_live, "candidate": only_candidate, "neither": neither,
            },
            "plan": plan_json(&plan),
        })
    }

    fn agreement(&self) -> Agreement {
        *self.agreement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_agreement(&self, agreement: &Agreement) {
        // Plain numbers: a writer that panicked leaves some that are older.
        self.agreement.lock().unwrap_or_else(PoisonError::into_inner).add(agreement);
    }
}
