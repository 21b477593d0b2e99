//! The pipeline before the TCP stack, as a router has it: connections pass one stage, the flash crowd's, and
//! no permit follows them. Whether one has completed is seen from outside.

use super::ledger::FlowMark;
use super::{Ledger, RefusedAttempts, StageName};
use crate::flash_crowd::{CeilingPriority, FlashCrowdGate, Plan, Response, Sample};
use alloc::sync::Arc;
use flashweir_core::{Instant, Verdict};

/// The stage with its ledger.
#[derive(Debug)]
pub struct ConnectionPipeline {
    attempts: Arc<RefusedAttempts>,
    flash_crowd: FlashCrowdGate,
    ledger: Ledger,
    mark: FlowMark,
}

impl ConnectionPipeline {
    /// Number `index` of its siblings, with which it shares `attempts`.
    #[must_use]
    pub fn new(index: usize, attempts: Arc<RefusedAttempts>) -> Self {
        Self {
            attempts,
            flash_crowd: FlashCrowdGate::new(index),
            ledger: Ledger::default(),
            mark: FlowMark::default(),
        }
    }

    /// Takes over a plan; one that is no newer than the one in force changes nothing.
    pub fn apply(&mut self, now: Instant, plan: &Plan) {
        self.flash_crowd.apply(now, plan);
    }

    /// A connection for this host arrives; `person_key` recognises one that was refused and comes again.
    pub fn arrive(
        &mut self,
        now: Instant,
        host_key: u64,
        person_key: u64,
        ceiling_priority: CeilingPriority,
    ) -> Verdict {
        let is_retry = self.attempts.is_retry(now, person_key);
        self.ledger.offered += 1;
        self.ledger.unique_offered += u64::from(!is_retry);
        self.flash_crowd.observe_offered(host_key);
        let verdict = self.flash_crowd.check(now, host_key, ceiling_priority);
        if let Verdict::Shed(_) = verdict {
            self.ledger.refuse(StageName::FlashCrowd);
            let _replaced = self.attempts.remember(now, person_key);
            return verdict;
        }
        self.flash_crowd.commit(host_key, ceiling_priority);
        self.ledger.admitted += 1;
        self.flash_crowd.entered();
        if is_retry {
            self.attempts.forget(person_key);
        }
        verdict
    }

    /// A connection that was let in has completed.
    pub fn completed(&mut self) {
        self.flash_crowd.completed();
    }

    /// A response is fit to be judged.
    pub fn observe_response(&mut self, response: Response) {
        self.flash_crowd.observe_response(response);
    }

    /// A response on a connection that came at `started` had this rate; what its latency should be is not
    /// known here.
    pub fn observe_rate(&mut self, started: Instant, rate_bytes_per_s: f32) {
        self.flash_crowd.observe_rate(started, rate_bytes_per_s);
    }

    /// Drains the measurements since the last time.
    pub fn drain(&mut self, now: Instant) -> Sample {
        let unique_offered = self.ledger.unique_offered - self.mark.unique_offered();
        let flow = self.mark.advance(&self.ledger, StageName::FlashCrowd);
        self.flash_crowd.drain(now, flow, unique_offered)
    }

    /// Outcomes of the connections that arrived.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
