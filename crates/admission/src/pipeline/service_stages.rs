//! The stages of one service: their checks of a request, and the shares that it takes.

use super::request::CandidateKey;
use super::service::{Sentry, Service};
use super::{AdmissionRequest, SentryFigures, ShadowRefusal, StageName};
use crate::fairness::{Cause, Evidence};
use crate::flash_crowd::CeilingPriority;
use crate::sentry::{CandidateGate, Check, Position, SentryGate, SentryRequest, Slot};
use flashweir_core::{Instant, Shed};

/// Fairness verdict on a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judgement {
    /// Its client behaves like a person.
    pub(super) is_person: bool,
    /// Reason why it comes after the others, if so.
    pub(super) demoted: Option<Cause>,
}

impl<T> Service<T> {
    /// The ladder and gapping; of one that has waited, only gapping. Exempt classes have no rank, and are
    /// none of theirs; nor does a sentry give ranks that only records.
    pub(super) fn check_between_nodes(
        &mut self,
        now: Instant,
        request: &AdmissionRequest,
        has_waited: bool,
    ) -> Result<(), Shed> {
        let Some(rank) = self.rank(request) else { return Ok(()) };
        if !has_waited {
            self.between_nodes.check_ladder(rank, request.is_beyond_sender_share)?;
        }
        self.between_nodes.check_upstream(now, rank)
    }

    pub(super) fn commit_between_nodes(&mut self, now: Instant, request: &AdmissionRequest) {
        if let Some(rank) = self.rank(request) {
            self.between_nodes.commit(now, rank);
        }
    }

    fn rank(&mut self, request: &AdmissionRequest) -> Option<u8> {
        let sentry = self.sentry_for(request).filter(|sentry| !sentry.is_shadow);
        sentry.map(|sentry| sentry.gate.rank(request.class))
    }

    pub(super) fn check_sentry(
        &mut self,
        now: Instant,
        request: &AdmissionRequest,
        position: Position,
        slot: Option<Slot>,
        shadow: &mut Option<ShadowRefusal>,
    ) -> Check<Option<Slot>> {
        if slot.is_some() {
            return Check::Pass(slot);
        }
        let Some(sentry) = self.sentry_for(request) else { return Check::Pass(None) };
        let asked = SentryRequest { position, ..request.for_sentry() };
        if sentry.is_shadow {
            let (slot, shed) = sentry.gate.check_in_shadow(now, asked);
            if let (Some(shed), None) = (shed, &shadow) {
                let sentry = Some(figures(&sentry.gate, now, request.class));
                *shadow = Some(ShadowRefusal { stage: StageName::Sentry, shed, sentry });
            }
            return Check::Pass(Some(slot));
        }
        match sentry.gate.check(now, asked) {
            Check::Pass(slot) => Check::Pass(Some(slot)),
            Check::Wait => Check::Wait,
            Check::Shed(shed) => Check::Shed(shed),
        }
    }

    /// The sentry, as far as this request goes: exempt classes are none of its.
    pub(super) fn sentry_for(&mut self, request: &AdmissionRequest) -> Option<&mut Sentry<T>> {
        self.sentry.as_mut().filter(|_| request.ceiling_priority != CeilingPriority::Exempt)
    }

    /// Priority of the request under a ceiling: requests within their class's guarantee come before the
    /// others, those of a client over its share after them. A sentry in shadow guarantees nothing.
    pub(super) fn ceiling_priority(
        &self,
        now: Instant,
        request: &AdmissionRequest,
        position: Position,
    ) -> CeilingPriority {
        match (request.ceiling_priority, &self.sentry) {
            (CeilingPriority::Credit { .. }, Some(sentry))
                if !sentry.is_shadow && sentry.gate.is_within_guarantee(now, request.class) =>
            {
                CeilingPriority::FIRST
            }
            (CeilingPriority::Credit { .. }, _) if position == Position::OverShare => CeilingPriority::Spare,
            (ceiling_priority, _) => ceiling_priority,
        }
    }

    /// Gathers evidence of people; while the service is short, counts the request once, and says why its
    /// client is over a fair share, if so.
    pub(super) fn judge_fairly(
        &mut self,
        now: Instant,
        request: &AdmissionRequest,
        evidence: &Evidence,
    ) -> Judgement {
        let signs = &request.signs;
        if signs.person_key == 0 || request.closed.is_some() || !request.is_counted() {
            return Judgement::default();
        }
        let known = evidence.observe(now, signs.person_key, signs.conduct);
        if !self.is_judged_fairly(now, request) {
            return Judgement { is_person: known.is_person, demoted: None };
        }
        let asked = request.for_sentry();
        let cost_us = self.sentry.as_ref().map_or(0, |sentry| sentry.gate.cost_us(&asked));
        let over_share = self.fairness.offer(now, signs, known, cost_us);
        let demoted = over_share.filter(|_| self.fairness.is_refusing(now));
        Judgement { is_person: known.is_person, demoted }
    }

    /// Returns true if the service is short and the request shows signs of its client.
    pub(super) fn is_judged_fairly(&self, now: Instant, request: &AdmissionRequest) -> bool {
        let is_known = request.signs.person_key != 0 && request.ceiling_priority != CeilingPriority::Exempt;
        is_known && self.is_short(now)
    }

    /// Returns true if it is short, for all or for those who come last.
    pub(super) fn is_short(&self, now: Instant) -> bool {
        self.shares.is_short(now) || self.fairness.is_refusing(now)
    }

    /// Another stage refuses the request for which this slot was reserved.
    pub(super) fn cancel(&mut self, slot: Option<Slot>) {
        if let (Some(slot), Some(sentry)) = (slot, &mut self.sentry) {
            sentry.gate.cancel(slot);
        }
    }

    pub(super) fn ask_candidate(
        &mut self,
        now: Instant,
        request: &AdmissionRequest,
        position: Position,
    ) -> Option<CandidateKey> {
        let ((policy, number), asked) = (self.candidate.as_mut()?, request.candidate?);
        let Some(key) = policy.arrive(now, SentryRequest { position, ..asked }) else {
            self.candidate_overflows += 1;
            return None;
        };
        Some(CandidateKey { candidate: *number, key, class: asked.class })
    }

    /// The candidate that was asked, if it still is the service's.
    pub(super) fn candidate_of(
        &mut self,
        asked: Option<CandidateKey>,
    ) -> Option<(&mut CandidateGate, usize)> {
        let ((policy, number), asked) = (self.candidate.as_mut()?, asked?);
        (*number == asked.candidate).then_some((policy, asked.key))
    }
}

pub(super) fn figures<T>(gate: &SentryGate<T>, now: Instant, class: u8) -> SentryFigures {
    SentryFigures {
        class,
        in_flight: gate.in_flight(),
        // At most REQUESTS_HELD.
        waiting: gate.held() as u32,
        // An hour fits, and no request waits that long.
        oldest_waiting_us: gate.oldest_held(now, class.into()).as_micros() as u32,
    }
}
