//! Grounds of a refusal by the sentry.

use super::service::Sentry;
use flashweir_admission::sentry::{ClassPlan, Explanation, Plan, VirtualDecision};
use std::rc::Rc;
use std::sync::Arc;

/// A refusal with what it rests on.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// Class of the request, by its place in the policy.
    pub(crate) class: u8,
    /// Requests at the origin.
    pub(crate) in_flight: u32,
    /// Requests that wait at this worker.
    pub(crate) waiting: u32,
    /// Waiting time of the oldest of its class at this worker, microseconds; 0 if none of it waits.
    pub(crate) oldest_waiting_us: u32,
    /// The plan.
    pub(crate) basis: Rc<Basis>,
    /// A candidate policy's decision about the request, where there is one.
    pub(crate) candidate: Option<CandidateExplanation>,
}

/// The candidate's virtual decision about a refused request and its grounds, for `/explain`.
#[derive(Clone, Debug)]
pub(crate) struct CandidateExplanation {
    pub(crate) decision: VirtualDecision,
    /// Class of the request, by its place in the candidate.
    pub(crate) class: u8,
    /// Virtual requests at the origin.
    pub(crate) in_flight: u32,
    /// The candidate's plan.
    pub(crate) basis: Rc<Basis>,
}

/// The plan as far as a refusal needs it. Refusals of one worker share it by a plain count, and it is small:
/// plans change fifty times a second, and thousands are remembered.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    /// Of which service.
    pub(crate) sentry: Arc<Sentry>,
    /// The plan's number.
    pub(crate) epoch: u64,
    /// Requests in flight at most.
    pub(crate) limit: u32,
    /// By class.
    pub(crate) classes: Box<[ClassPlan]>,
    /// See [`Plan::price`].
    pub(crate) price: f64,
    /// The numbers behind it.
    pub(crate) explanation: Explanation,
}

impl Refused {
    /// Name of its class.
    pub(crate) fn class_name(&self) -> &str {
        self.basis.sentry.class_name(self.class)
    }
}

impl Basis {
    pub(crate) fn of(sentry: &Arc<Sentry>, plan: &Plan) -> Self {
        Self {
            sentry: sentry.clone(),
            epoch: plan.epoch,
            limit: plan.limit,
            classes: plan.classes.as_slice().into(),
            price: plan.price,
            explanation: plan.explanation,
        }
    }
}
