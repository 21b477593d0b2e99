//! The rule that is chosen, by one face.

use super::limit::LimitRule;
use super::look::Look;
use super::measured::Measured;
use super::model::{ModelRule, Seen};
use super::plan::Rule;
use alloc::boxed::Box;
use alloc::vec::Vec;
use flashweir_measure::Histogram;

/// How the limit is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Learner {
    /// Each move is an experiment that is judged (see `limit`): what the product does.
    Experiments,
    /// A distribution over origins, from all traffic (see `model`): to compare with.
    #[default]
    Model,
}

/// Learns the limit.
#[derive(Debug)]
pub(super) enum LimitLearner {
    Experiments(Box<LimitRule>),
    Model(Box<ModelRule>),
}

/// What a rule knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    pub(super) limit: u32,
    pub(super) knee: Option<f64>,
    /// What a unit of work takes when it is alone, seconds.
    pub(super) alone_s: Option<f64>,
    /// How many times more than it did the origin may do, as far as known: 1 once a limit was found that is not to be raised, infinite
    /// while nothing is known.
    pub(super) headroom: f64,
    pub(super) target_infeasible: bool,
    /// Since the limit last moved and settled, or was last looked at.
    pub(super) window: Measured,
    /// What is measured now still belongs to the limit before.
    pub(super) is_settling: bool,
}

impl LimitLearner {
    pub(super) fn new(learner: Learner) -> Self {
        match learner {
            Learner::Experiments => Self::Experiments(Box::new(LimitRule::new())),
            Learner::Model => Self::Model(Box::new(ModelRule::new())),
        }
    }

    /// Whether the limit is so near the knee that most of a burst waits at the gate, and not at the origin.
    pub(super) fn holds_bursts(&self) -> bool {
        matches!(self, Self::Model(_))
    }

    /// Goes on from what another planner of the same origin found.
    pub(super) fn resume(&mut self, limit: u32, knee: Option<f64>) {
        match self {
            Self::Experiments(rule) => rule.resume(limit, knee),
            Self::Model(rule) => rule.resume(limit, knee),
        }
    }

    /// Takes a look, with the look's traffic by number in flight; which rule fired.
    pub(super) fn look(
        &mut self,
        look: &Look,
        seen: impl FnOnce() -> Vec<Seen>,
        latency_us: &Histogram,
        age_us: &Histogram,
    ) -> Rule {
        match self {
            Self::Experiments(rule) => rule.look(look),
            Self::Model(rule) => rule.look(look, &seen(), latency_us, age_us),
        }
    }

    pub(super) fn learned(&self) -> Learned {
        match self {
            Self::Experiments(rule) => Learned {
                limit: rule.limit,
                knee: rule.knee,
                alone_s: rule.alone_s,
                headroom: if rule.is_known { 1.0 } else { f64::INFINITY },
                target_infeasible: rule.target_infeasible,
                window: rule.window,
                is_settling: rule.is_settling(),
            },
            Self::Model(rule) => rule.learned(),
        }
    }
}
