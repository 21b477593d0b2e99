//! The stages of one service at one worker.

use super::ServiceKey;
use super::between_nodes::BetweenNodes;
use super::ledger::{FlowMark, Ledger};
use super::request::Waiter;
use super::shares::Shares;
use crate::fairness::{Fairness, FairnessSettings};
use crate::retry_after::AT_A_BOUND;
use crate::sentry::{CandidateGate, Common, Plan, Policy, SentryGate};
use alloc::sync::Arc;
use flashweir_core::{Reason, Shed};

/// Settings of a service's stages.
#[derive(Debug)]
pub struct ServiceSettings<'a> {
    /// Its sentry, unless there is none: what its gates share, its policy, the plan in force, and whether it
    /// only records.
    pub sentry: Option<(&'a Arc<Common>, &'a Policy, &'a Plan, bool)>,
    /// Requests that its connections can carry at once, at this worker.
    pub upstream_capacity: usize,
}

#[derive(Debug)]
pub(super) struct Service<T> {
    pub(super) key: ServiceKey,
    pub(super) sentry: Option<Sentry<T>>,
    /// With its number, so that requests of one candidate are not reported to the next.
    pub(super) candidate: Option<(CandidateGate, u32)>,
    candidates: u32,
    pub(super) candidate_overflows: u64,
    pub(super) between_nodes: BetweenNodes,
    pub(super) upstream: Upstream,
    pub(super) shares: Shares,
    pub(super) fairness: Fairness,
    pub(super) ledger: Ledger,
    pub(super) mark: FlowMark,
    /// Shares at the origin that have not ended.
    pub(super) origin_shares: u64,
    pub(super) is_retired: bool,
    /// It was retired, and its last request has ended.
    pub(super) is_gone: bool,
}

#[derive(Debug)]
pub(super) struct Sentry<T> {
    pub(super) gate: SentryGate<Waiter<T>>,
    pub(super) is_shadow: bool,
}

/// The service of this key, unless it has gone.
pub(super) fn find<T>(services: &mut [Service<T>], key: ServiceKey) -> Option<&mut Service<T>> {
    services.get_mut(key.place as usize).filter(|service| service.is(key))
}

/// Connections to the upstreams: a count of this worker's own.
#[derive(Debug)]
pub(super) struct Upstream {
    open: usize,
    capacity: usize,
}

impl<T> Service<T> {
    pub(super) fn new(worker: usize, key: ServiceKey, settings: ServiceSettings<'_>) -> Self {
        let sentry = settings.sentry.map(|(common, policy, plan, is_shadow)| Sentry {
            gate: SentryGate::new(common.clone(), worker, policy, plan),
            is_shadow,
        });
        Self {
            key,
            sentry,
            candidate: None,
            candidates: 0,
            candidate_overflows: 0,
            between_nodes: BetweenNodes::new(),
            upstream: Upstream { open: 0, capacity: settings.upstream_capacity },
            shares: Shares::new(),
            fairness: Fairness::new(FairnessSettings::default()),
            ledger: Ledger::default(),
            mark: FlowMark::default(),
            origin_shares: 0,
            is_retired: false,
            is_gone: false,
        }
    }

    pub(super) fn set_candidate(&mut self, candidate: Option<CandidateGate>) {
        self.candidates = self.candidates.wrapping_add(1);
        self.candidate = candidate.map(|candidate| (candidate, self.candidates));
    }

    /// Returns true if it has this key and has not gone.
    pub(super) fn is(&self, key: ServiceKey) -> bool {
        self.key == key && !self.is_gone
    }

    /// Retired, and its last request has ended.
    pub(super) fn is_over(&self) -> bool {
        let waiting = self.sentry.as_ref().map_or(0, |sentry| sentry.gate.held());
        self.is_retired && self.ledger.in_flight() == 0 && self.origin_shares == 0 && waiting == 0
    }
}

impl Upstream {
    pub(super) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    pub(super) fn check(&self) -> Result<(), Shed> {
        match self.open < self.capacity {
            true => Ok(()),
            false => Err(Shed { reason: Reason::UpstreamConnections, retry_after: AT_A_BOUND }),
        }
    }

    pub(super) fn commit(&mut self) {
        self.open += 1;
    }

    pub(super) fn finish(&mut self) {
        self.open -= 1;
    }
}
