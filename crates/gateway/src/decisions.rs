//! The refusals a worker remembers, so that `flashweir explain ID` can say why.
//!
//! A worker owns its memory; the admin thread asks for one record over a channel, so remembering takes no
//! lock. Ids of one worker count up without gaps: finding a record is a subtraction.

use crate::sentry::{Basis, CandidateExplanation, Refused};
use flashweir_admission::fairness::Cause;
use flashweir_admission::flash_crowd::Plan;
use flashweir_admission::sentry::VirtualDecision;
use flashweir_core::{DecisionId, Instant, Reason, limits};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// The last [`limits::DECISIONS_REMEMBERED`] refusals of one worker; memory grows with the first of them, to
/// about 1.3 MB.
#[derive(Debug)]
pub(crate) struct Decisions {
    boot: u16,
    worker: u8,
    next_counter: u64,
    remembered: VecDeque<Record>,
}

/// One refusal, as small as it can be: the numbers behind it are in the plan, shared by all refusals under
/// it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Time of the decision.
    pub(crate) at: Instant,
    /// Limit that refused.
    pub(crate) reason: Reason,
    /// Only recorded: in shadow mode the request was admitted all the same.
    pub(crate) shadow: bool,
    /// The attribute that its client shares with others and that was over a fair share, so that the request
    /// came after the others.
    pub(crate) demoted: Option<Cause>,
    /// Hash of service and host: finds the hot-spot's own ceiling in the plan.
    pub(crate) host_key: u64,
    /// Retry-After sent to the client, seconds.
    pub(crate) retry_after_s: u64,
    /// The plan in force.
    pub(crate) plan: Rc<PlanInForce>,
    /// Grounds of the refusal, where the sentry decided.
    pub(crate) sentry: Option<Refused>,
}

/// A plan as one worker holds it. Records share it by the worker's own plain count; the plan's atomic one,
/// which all workers share, is touched once for each plan and not once for each refusal.
#[derive(Debug)]
pub(crate) struct PlanInForce(pub(crate) Arc<Plan>);

/// A record on its way to the admin thread.
#[derive(Clone, Debug)]
pub(crate) struct Explained {
    pub(crate) at: Instant,
    pub(crate) reason: Reason,
    pub(crate) shadow: bool,
    pub(crate) demoted: Option<Cause>,
    pub(crate) host_key: u64,
    pub(crate) retry_after_s: u64,
    pub(crate) plan: Arc<Plan>,
    pub(crate) sentry: Option<ExplainedSentry>,
}

/// Grounds of a refusal by the sentry.
#[derive(Clone, Debug)]
pub(crate) struct ExplainedSentry {
    pub(crate) class: u8,
    pub(crate) in_flight: u32,
    pub(crate) waiting: u32,
    pub(crate) oldest_waiting_us: u32,
    pub(crate) basis: Basis,
    pub(crate) candidate: Option<ExplainedCandidate>,
}

/// Decision of a candidate policy about the request.
#[derive(Clone, Debug)]
pub(crate) struct ExplainedCandidate {
    pub(crate) decision: VirtualDecision,
    pub(crate) class: u8,
    pub(crate) in_flight: u32,
    pub(crate) basis: Basis,
}

impl Decisions {
    /// `boot` separates this run's ids from those of earlier ones.
    pub(crate) fn new(boot: u16, worker: u8) -> Self {
        Self { boot, worker, next_counter: 0, remembered: VecDeque::new() }
    }

    /// The id the next record will get.
    pub(crate) fn next_id(&self) -> DecisionId {
        DecisionId::new(self.boot, self.worker, self.next_counter)
    }

    /// Remembers a refusal, forgetting the oldest when full, and names it.
    pub(crate) fn remember(&mut self, record: Record) -> DecisionId {
        let id = self.next_id();
        if self.remembered.len() == limits::DECISIONS_REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(record);
        self.next_counter += 1;
        id
    }

    /// Number of records that newer ones replaced.
    pub(crate) fn replaced(&self) -> u64 {
        self.next_counter - self.remembered.len() as u64
    }

    /// The record of this id; `None` when it is another run's or worker's, was never given out, or is
    /// forgotten.
    pub(crate) fn explain(&self, id: DecisionId) -> Option<Explained> {
        if (id.boot(), id.worker()) != (self.boot, self.worker) {
            return None;
        }
        let age = self.next_counter.checked_sub(id.counter())?;
        let index = (self.remembered.len() as u64).checked_sub(age)?;
        let record = self.remembered.get(usize::try_from(index).ok()?)?;
        Some(Explained {
            at: record.at,
            reason: record.reason,
            shadow: record.shadow,
            demoted: record.demoted,
            host_key: record.host_key,
            retry_after_s: record.retry_after_s,
            plan: record.plan.0.clone(),
            sentry: record.sentry.as_ref().map(|refused| ExplainedSentry {
                class: refused.class,
                in_flight: refused.in_flight,
                waiting: refused.waiting,
                oldest_waiting_us: refused.oldest_waiting_us,
                basis: Basis::clone(&refused.basis),
                candidate: refused.candidate.as_ref().map(ExplainedCandidate::of),
            }),
        })
    }
}

impl ExplainedCandidate {
    fn of(explanation: &CandidateExplanation) -> Self {
        let CandidateExplanation { decision, class, in_flight, ref basis } = *explanation;
        Self { decision, class, in_flight, basis: Basis::clone(basis) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at_millis: u64) -> Record {
        Record {
            at: Instant::from_millis(at_millis),
            reason: Reason::FlashCrowd,
            shadow: false,
            demoted: None,
            host_key: 1,
            retry_after_s: 2,
            plan: Rc::new(PlanInForce(Arc::new(Plan::open(1)))),
            sentry: None,
        }
    }

    #[test]
    fn what_was_remembered_is_found_by_its_id_and_nothing_else_is() {
        let mut decisions = Decisions::new(0xABCD, 3);
        assert!(decisions.explain(decisions.next_id()).is_none(), "not given out yet");
        let first = decisions.remember(record(10));
        let second = decisions.remember(record(20));
        assert_eq!(decisions.explain(first).expect("first").at, Instant::from_millis(10));
        assert_eq!(decisions.explain(second).expect("second").at, Instant::from_millis(20));
        assert!(decisions.explain(DecisionId::new(0xABCD, 3, 2)).is_none());
        assert!(decisions.explain(DecisionId::new(0xABCD, 4, 0)).is_none());
        assert!(decisions.explain(DecisionId::new(0xABCE, 3, 0)).is_none());
    }

    #[test]
    fn memory_is_as_said() {
        let bytes = size_of::<Record>() * limits::DECISIONS_REMEMBERED;
        assert!((1_100_000..=1_500_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn the_oldest_are_forgotten_when_the_memory_is_full() {
        let mut decisions = Decisions::new(1, 0);
        let first = decisions.remember(record(0));
        let second = decisions.remember(record(1));
        for millis in 2..=limits::DECISIONS_REMEMBERED as u64 {
            decisions.remember(record(millis));
        }
        assert!(decisions.explain(first).is_none());
        assert_eq!(decisions.explain(second).expect("still there").at, Instant::from_millis(1));
        assert_eq!(decisions.remembered.len(), limits::DECISIONS_REMEMBERED);
    }
}
