//! A gateway of a cluster with an elected leader: it reports, and leads while it holds a lease. Acquiring the
//! lease and carrying messages is the task of an engine (`nats`, `linked`).
//!
//! **Never two plans in force.** A gateway leads in one term, larger than every one that it knows; what a
//! former leader still says is of an older term, and dropped by those who have heard of the new one. Services
//! that a reload has changed are led from the start, in a new term.

use super::Cluster;
use super::leader::Leader;
use super::message::{Broadcast, MessageError, Report};
use super::received::{count_report, refuse, refuse_report};
use crate::shared::Shared;
use flashweir_core::Instant;
use flashweir_telemetry::BroadcastOutcome;
use std::cell::RefCell;
use std::sync::Arc;

/// A gateway that leads or follows. Used by the control thread alone.
pub(super) struct Elected {
    pub(super) shared: Arc<Shared>,
    pub(super) cluster: Arc<Cluster>,
    /// While this gateway leads.
    leader: RefCell<Option<Leader>>,
}

impl Elected {
    pub(super) fn new(shared: &Arc<Shared>, cluster: &Arc<Cluster>) -> Self {
        Self { shared: shared.clone(), cluster: cluster.clone(), leader: RefCell::default() }
    }

    pub(super) fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// The term in which it leads; none while it does not.
    pub(super) fn term(&self) -> Option<u64> {
        self.leader.borrow().as_ref().map(Leader::term)
    }

    /// The next report, and what goes with each.
    pub(super) fn report(&self, now: Instant) -> Report {
        self.cluster.publish(&self.shared);
        self.follow_configuration();
        self.cluster.report(now)
    }

    fn follow_configuration(&self) {
        let mut leader = self.leader.borrow_mut();
        if leader.as_ref().is_some_and(|leader| !leader.leads(&self.cluster.planned())) {
            *leader = None;
        }
        let gateways = leader.iter().flat_map(Leader::gateways).map(|(name, at)| (name.to_owned(), at));
        self.cluster.set_leader(leader.is_some(), gateways.collect());
    }

    /// The new broadcast for all gateways; none where a round goes on, or another gateway leads.
    pub(super) fn step(&self, now: Instant) -> Option<Broadcast> {
        let mut leader = self.leader.borrow_mut();
        let leader = leader.as_mut()?;
        leader.step(now).then(|| leader.broadcast((0, 0)))
    }

    /// Takes a report that arrived; a gateway that does not lead opens it all the same.
    ///
    /// # Errors
    /// It is no report of this cluster; that is counted.
    pub(super) fn take_report(&self, sealed: &[u8]) -> Result<Report, MessageError> {
        let report = Report::open(&self.cluster.keys, sealed);
        let report = report.inspect_err(|error| refuse_report(&self.shared, error))?;
        self.observe(&report);
        Ok(report)
    }

    /// Counts a report where this gateway leads.
    pub(super) fn observe(&self, report: &Report) {
        let mut leader = self.leader.borrow_mut();
        let Some(led) = leader.as_mut() else { return };
        if led.term() < report.term {
            // Another gateway leads already, or led in a term that this one did not know.
            self.cluster.learn_term(report.term);
            *leader = None;
            return;
        }
        let outcome = led.observe(self.now(), report);
        count_report(&self.shared, outcome, &report.name);
    }

    /// The sealed answer to a report; none where another gateway leads.
    pub(super) fn answer(&self, report: &Report) -> Option<Vec<u8>> {
        let leader = self.leader.borrow();
        let broadcast = leader.as_ref()?.broadcast((report.gateway, report.sequence));
        Some(broadcast.seal(&self.cluster.keys))
    }

    /// Takes what a leader says, if it is what this gateway expects, and counts it.
    pub(super) fn take_share(&self, sealed: &[u8], is_expected: impl FnOnce(&Broadcast) -> bool) {
        let outcome = match Broadcast::open(&self.cluster.keys, sealed) {
            Ok(broadcast) if is_expected(&broadcast) => self.cluster.apply(self.now(), &broadcast),
            Ok(_) => {
                refuse(&self.shared, format_args!("a share was refused: it answers another report"));
                BroadcastOutcome::Forged
            }
            Err(error) => {
                refuse(&self.shared, format_args!("a share was refused: {error}"));
                BroadcastOutcome::Forged
            }
        };
        self.shared.telemetry.control().cluster_broadcasts.increment(outcome);
    }

    /// Leads from now on. What all gateways are to hear, so that their reports count.
    pub(super) fn begin_term(&self, term: u64) -> Broadcast {
        let leader = Leader::new(self.now(), term, self.cluster.name.clone(), &self.cluster.planned());
        tracing::info!(term, "this gateway divides the limits of its cluster");
        let hello = leader.broadcast((0, 0));
        self.cluster.apply(self.now(), &hello);
        *self.leader.borrow_mut() = Some(leader);
        hello
    }

    pub(super) fn step_down(&self) {
        tracing::warn!(
            "the lease is lost or given up: this gateway divides the limits of its cluster no longer"
        );
        *self.leader.borrow_mut() = None;
    }
}
