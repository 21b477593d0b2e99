//! A candidate policy of the flash-crowd stage: a second ceiling that is asked about the same requests and
//! binds no request.
//!
//! [`GatePair`] stands where the live gate alone would stand. Without a candidate each call is the live
//! gate's and one branch. With one, the candidate's gate counts the same offered requests and the same
//! responses, its planner makes plans from that, and each time the live gate checks a request the candidate's
//! gate checks it too, however the live gate or a later stage decides. The four possible pairs of verdicts
//! are counted ([`Agreement`]).
//!
//! **Tokens.** The candidate pays as it would pay in force. A request that passes its check costs a token
//! when all live stages admit the request. A request that only the live ceiling refuses costs a token at
//! once: no later stage is asked about it, so it counts as admitted. A request that a later stage refuses, or
//! lets wait, costs none, as in the live gate. So a candidate that follows the plans in force agrees with the
//! live gate about every request (`admission/tests/admission/pipeline/unbinding.rs`).
//!
//! **Its sample.** All of it is measured, nothing is estimated. `flow`, `unique_offered`, `hosts`, `entered`,
//! `completed`, `unfinished` and the responses are those of the live pipeline: *admitted* is what the live
//! stages admitted, *completed* is what of that was completed, and *refused by self* is what the live ceiling
//! refused. Only `evidence_from`, which splits the counted responses, is the candidate's own, because it
//! follows the candidate's plan.
//!
//! **What this cannot show.**
//!
//! * The responses are those of what the live policy admitted. Where the live ceiling holds a crowd, responses are good, and a
//!   candidate that would have raised its alarm later never raises it. Where the live policy admits more than the candidate would,
//!   responses stay worse than they would be under the candidate.
//! * A ceiling that binds no request cannot be judged by its effect. So the candidate's planner is made as for a stage in shadow
//!   ([`Settings::shadow`](super::Settings::shadow)): the repaired rules keep a ceiling as they raised it until demand falls below
//!   it. The published rules know no shadow; their ceiling moves up and down by responses that it does not change.
//! * The judged part of a response's time is the live policy's ([`Judged`](crate::pipeline::Judged)). A candidate with published
//!   rules beside live repaired rules and a sentry sees delivery times, where in force it would judge whole responses.
//! * A refused client comes back later. The retries are those that the live policy causes.
//!
//! Cost: as the live gate's, twice; no allocation after construction but for plans and drains. Memory: that
//! of a second gate.

use super::{CeilingPriority, FlashCrowdGate, Plan, Response, Sample};
use crate::Flow;
use alloc::boxed::Box;
use flashweir_core::{Instant, Verdict};

/// Agreement of two ceilings: checks of requests, by which of the two let the request pass. A request that
/// waits for the sentry is checked again when its turn comes, and counts again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Both let the request pass.
    pub both: u64,
    /// Only the live ceiling did.
    pub only_live: u64,
    /// Only the candidate did.
    pub only_candidate: u64,
    /// Neither did.
    pub neither: u64,
}

impl Agreement {
    /// Adds what another gate, or the same one later, counted.
    pub fn add(&mut self, other: &Self) {
        self.both += other.both;
        self.only_live += other.only_live;
        self.only_candidate += other.only_candidate;
        self.neither += other.neither;
    }

    fn count(&mut self, live_passes: bool, candidate_passes: bool) {
        *match (live_passes, candidate_passes) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.only_live,
            (false, true) => &mut self.only_candidate,
            (false, false) => &mut self.neither,
        } += 1;
    }
}

/// The live gate of one worker and, beside it, a candidate's.
#[derive(Debug)]
pub(crate) struct GatePair {
    live: FlashCrowdGate,
    /// In a box, because few gateways have one and it is large.
    candidate: Option<Box<Candidate>>,
}

#[derive(Debug)]
struct Candidate {
    gate: FlashCrowdGate,
    agreement: Agreement,
    /// Its opinion of the request that was checked last.
    passes: bool,
}

impl GatePair {
    /// Gate number `gate` of its siblings, without a candidate.
    pub(crate) fn new(gate: usize) -> Self {
        Self { live: FlashCrowdGate::new(gate), candidate: None }
    }

    /// See [`FlashCrowdGate::apply`].
    pub(crate) fn apply(&mut self, now: Instant, plan: &Plan) {
        self.live.apply(now, plan);
    }

    /// A new candidate that follows `plan` and has measured nothing, in place of the one before it; `None`
    /// for none.
    pub(crate) fn set_candidate(&mut self, gate: usize, now: Instant, plan: Option<&Plan>) {
        self.candidate = plan.map(|plan| {
            let mut gate = FlashCrowdGate::new(gate);
            gate.apply(now, plan);
            // Its first sample begins now.
            gate.drain(now, Flow::default(), 0);
            Box::new(Candidate { gate, agreement: Agreement::default(), passes: false })
        });
    }

    /// Takes over a plan for the candidate, if there is one.
    pub(crate) fn apply_candidate(&mut self, now: Instant, plan: &Plan) {
        if let Some(candidate) = &mut self.candidate {
            candidate.gate.apply(now, plan);
        }
    }

    /// See [`FlashCrowdGate::is_hot`]: the live gate's word.
    pub(crate) fn is_hot(&self, host_key: u64) -> bool {
        self.live.is_hot(host_key)
    }

    /// See [`FlashCrowdGate::observe_offered`].
    pub(crate) fn observe_offered(&mut self, host_key: u64) {
        self.each(|gate| gate.observe_offered(host_key));
    }

    /// The live gate's verdict; the candidate's is compared with it. Takes nothing. [`commit`](Self::commit),
    /// [`refuse`](Self::refuse) or the next check follows.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        host_key: u64,
        ceiling_priority: CeilingPriority,
    ) -> Verdict {
        let verdict = self.live.check(now, host_key, ceiling_priority);
        if let Some(candidate) = &mut self.candidate {
            candidate.passes = candidate.gate.check(now, host_key, ceiling_priority) == Verdict::Admit;
            candidate.agreement.count(verdict == Verdict::Admit, candidate.passes);
        }
        verdict
    }

    /// All live stages admit the request that was checked last. Whether the live gate gives a token is the
    /// caller's to say: it gives none where it is in shadow and would have refused.
    pub(crate) fn commit(&mut self, host_key: u64, ceiling_priority: CeilingPriority, takes_token: bool) {
        if takes_token {
            self.live.commit(host_key, ceiling_priority);
        }
        self.commit_candidate(host_key, ceiling_priority);
    }

    /// The live gate's verdict binds and refuses the request that was checked last: no later stage is asked.
    pub(crate) fn refuse(&mut self, host_key: u64, ceiling_priority: CeilingPriority) {
        self.commit_candidate(host_key, ceiling_priority);
    }

    fn commit_candidate(&mut self, host_key: u64, ceiling_priority: CeilingPriority) {
        if let Some(candidate) = &mut self.candidate
            && candidate.passes
        {
            candidate.gate.commit(host_key, ceiling_priority);
        }
    }

    /// See [`FlashCrowdGate::observe_response`].
    pub(crate) fn observe_response(&mut self, response: Response) {
        self.each(|gate| gate.observe_response(response));
    }

    /// See [`FlashCrowdGate::entered`].
    pub(crate) fn entered(&mut self) {
        self.each(FlashCrowdGate::entered);
    }

    /// See [`FlashCrowdGate::handed_over`].
    pub(crate) fn handed_over(&mut self) {
        self.each(FlashCrowdGate::handed_over);
    }

    /// See [`FlashCrowdGate::completed`].
    pub(crate) fn completed(&mut self) {
        self.each(FlashCrowdGate::completed);
    }

    /// See [`FlashCrowdGate::unfinished`].
    pub(crate) fn unfinished(&mut self) {
        self.each(FlashCrowdGate::unfinished);
    }

    /// See [`FlashCrowdGate::hosts_replaced`].
    pub(crate) fn hosts_replaced(&self) -> u64 {
        self.live.hosts_replaced()
    }

    /// See [`FlashCrowdGate::drain`].
    pub(crate) fn drain(&mut self, now: Instant, flow: Flow, unique_offered: u64) -> Sample {
        self.live.drain(now, flow, unique_offered)
    }

    /// Drains the measurements of the candidate's gate and the comparison since the last time; `None` without
    /// a candidate.
    pub(crate) fn drain_candidate(
        &mut self,
        now: Instant,
        flow: Flow,
        unique_offered: u64,
    ) -> Option<(Sample, Agreement)> {
        let candidate = self.candidate.as_mut()?;
        let agreement = core::mem::take(&mut candidate.agreement);
        Some((candidate.gate.drain(now, flow, unique_offered), agreement))
    }

    fn each(&mut self, mut observe: impl FnMut(&mut FlashCrowdGate)) {
        observe(&mut self.live);
        if let Some(candidate) = &mut self.candidate {
            observe(&mut candidate.gate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash_crowd::Limit;
    use flashweir_core::{Duration, Rate};

    fn ceiling(epoch: u64, rps: f64) -> Plan {
        Plan { epoch, limit: Limit::All(Rate::from_per_second(rps)), ..Plan::open(1) }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Time at which the buckets, which begin empty, are full.
    const FULL: Instant = Instant::from_secs(100);

    /// A live gate and a candidate with these ceilings.
    fn pair(live_rps: Option<f64>, candidate_rps: Option<f64>) -> GatePair {
        let mut pair = GatePair::new(0);
        pair.set_candidate(0, at(0), Some(&Plan::open(1)));
        if let Some(rps) = live_rps {
            pair.apply(at(0), &ceiling(1, rps));
        }
        if let Some(rps) = candidate_rps {
            pair.apply_candidate(at(0), &ceiling(1, rps));
        }
        pair
    }

    /// Thirty requests in one moment; a later stage admits those for which `admits` holds.
    fn crowd(pair: &mut GatePair, admits: impl Fn(usize) -> bool) -> Agreement {
        for n in 0..30 {
            match pair.check(FULL, 7, CeilingPriority::LAST) {
                Verdict::Admit if admits(n) => pair.commit(7, CeilingPriority::LAST, true),
                Verdict::Admit => {}
                Verdict::Shed(_) => pair.refuse(7, CeilingPriority::LAST),
            }
        }
        pair.drain_candidate(FULL, Flow::default(), 0).expect("a candidate").1
    }

    #[test]
    fn a_lower_ceiling_counts_what_only_the_live_one_lets_pass() {
        let expected = Agreement { both: 10, only_live: 20, ..Agreement::default() };
        assert_eq!(crowd(&mut pair(None, Some(1.0)), |_| true), expected);
    }

    #[test]
    fn a_higher_ceiling_pays_for_what_only_it_lets_pass() {
        // Bursts of 10 and of 20: a quarter of a second at 80 requests a second.
        let agreement = crowd(&mut pair(Some(1.0), Some(80.0)), |_| true);
        assert_eq!(agreement, Agreement { both: 10, only_live: 0, only_candidate: 10, neither: 10 });
    }

    #[test]
    fn what_a_later_stage_refuses_costs_the_candidate_no_token() {
        let agreement = crowd(&mut pair(None, Some(1.0)), |n| n >= 20);
        assert_eq!(agreement, Agreement { both: 30, ..Agreement::default() });
    }

    #[test]
    fn a_live_gate_in_shadow_gives_no_token_and_the_candidate_gives_one() {
        let mut pair = pair(Some(1.0), Some(80.0));
        for _ in 0..30 {
            let passes = pair.check(FULL, 7, CeilingPriority::LAST) == Verdict::Admit;
            pair.commit(7, CeilingPriority::LAST, passes);
        }
        let (_, agreement) = pair.drain_candidate(FULL, Flow::default(), 0).expect("a candidate");
        assert_eq!(agreement, Agreement { both: 10, only_live: 0, only_candidate: 10, neither: 10 });
    }

    #[test]
    fn a_new_candidate_has_measured_nothing_and_an_old_plan_changes_nothing() {
        let mut pair = pair(None, None);
        pair.entered();
        crowd(&mut pair, |_| true);
        let since = FULL + Duration::from_secs(1);
        pair.set_candidate(0, since, Some(&ceiling(3, 1.0)));
        pair.apply_candidate(since, &ceiling(3, 1e6));
        pair.apply_candidate(since, &Plan { epoch: 2, ..Plan::open(1) });
        let drained = since + Duration::from_millis(100);
        let (sample, agreement) = pair.drain_candidate(drained, Flow::default(), 0).expect("a candidate");
        assert_eq!((sample.from, sample.to, sample.entered), (since, drained, 0));
        assert_eq!(agreement, Agreement::default());
        let later = since + Duration::from_secs(100);
        let passed = (0..30).filter(|_| {
            pair.check(later, 7, CeilingPriority::LAST);
            pair.commit(7, CeilingPriority::LAST, true);
            pair.candidate.as_ref().is_some_and(|candidate| candidate.passes)
        });
        assert!(passed.count() <= 10, "the ceiling of plan 3 holds");
        pair.set_candidate(0, later, None);
        assert_eq!(pair.drain_candidate(later, Flow::default(), 0), None);
    }
}
