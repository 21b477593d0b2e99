//! One sender of a run: its trace, its gapping, and what it knows of the node.

use super::scenario::{Obedience, SenderModel};
use crate::request::slab::Id;
use flashweir_admission::gapping::{GappedTarget, Restriction};
use flashweir_core::{Duration, Instant, Rate, Rng};
use flashweir_feedback::{Intake, KeyRing, Limit};

/// Keys are of no interest in here: the field goes without a tag.
pub(super) type NoMac = fn(&[&[u8]]) -> [u8; 32];

/// One sender.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) target: GappedTarget<Id>,
    pub(super) intake: Intake<NoMac>,
    /// Its arrivals, in order.
    moments: Vec<Duration>,
    next: usize,
    /// Delay of the rest of the trace, because the sender made pauses.
    pub(super) behind: Duration,
    /// The earliest pending wake.
    pub(super) wakes_at: Option<Instant>,
    /// Requests that arrived, averaged over a second.
    offered_rps: f64,
    offered_at: Instant,
    /// Severity in the latest edge message.
    pub(super) edge_severity: u8,
}

impl Sender {
    pub(super) fn new(model: &SenderModel, seed: u64, random: Rng) -> Self {
        let settings =
            if let Obedience::Gaps(settings) = model.obedience { settings } else { Default::default() };
        let start = model.present.start;
        Self {
            target: GappedTarget::new(settings, random),
            intake: Intake::new(KeyRing::empty(), b""),
            moments: model.arrivals.moments(seed).map(|moment| start + moment).collect(),
            next: 0,
            behind: Duration::ZERO,
            wakes_at: None,
            offered_rps: 0.0,
            offered_at: Instant::ZERO,
            edge_severity: 0,
        }
    }

    /// Time at which the next request of the trace is due, with all pauses so far.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let moment = self.moments.get(self.next)?;
        Some(Instant::from_duration(*moment + self.behind))
    }

    pub(super) fn advance(&mut self) {
        self.next += 1;
    }

    pub(super) fn observe_offered(&mut self, now: Instant) {
        self.offered_rps = self.offered_rps_at(now) + 1.0;
        self.offered_at = now;
    }

    /// Rate of arrivals now, before any limit: an exponential average over a second.
    pub(super) fn offered(&self, now: Instant) -> Rate {
        Rate::from_per_second(self.offered_rps_at(now))
    }

    fn offered_rps_at(&self, now: Instant) -> f64 {
        let age_s = now.saturating_since(self.offered_at).as_secs_f64();
        self.offered_rps * libm::exp(-age_s)
    }

    /// The severity by which the paper's clients pause; a limit that was not renewed counts no more.
    pub(super) fn severity(&self, now: Instant) -> u8 {
        let limit = self.intake.limit().limit(now).filter(|limit| !limit.is_expired);
        limit.map_or(self.edge_severity, |limit| limit.severity.max(self.edge_severity))
    }

    /// Hands the limit over to gapping.
    pub(super) fn restrict(&mut self, now: Instant) {
        let restriction = self
            .intake
            .limit()
            .limit(now)
            .map(|Limit { from_rank, severity, rate, .. }| Restriction { from_rank, severity, rate });
        if restriction.as_ref() != self.target.restriction() {
            self.target.restrict(now, restriction);
        }
    }
}
