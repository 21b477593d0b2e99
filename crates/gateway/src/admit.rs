//! Who is let in: draining first, then the bound on requests in flight, then the gate. Decided before any byte of
//! the body is read.

use crate::bounds::Taken;
use crate::classify::Classified;
use crate::decisions::{Decisions, Explained, PlanInForce, Record};
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::status::ceiling_for;
use crate::worker::Worker;
use arc_swap::{ArcSwap, Cache};
use flashweir_admission::Gate as _;
use flashweir_admission::flash_crowd::{FlashCrowdGate, Plan, RefusedAttempts, Response, Sample};
use flashweir_admission::retry_after::{self, RetryAfter};
use flashweir_core::{DecisionId, Duration, Instant, Reason, Shed, Verdict};
use flashweir_telemetry::{Bound, Unmeasured};
use http::StatusCode;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// A gateway that is stopping is back, or replaced, in about this time.
const RETRY_AFTER_DRAINING: Duration = Duration::from_secs(5);

/// One worker's gate, the plan it follows and the refusals it remembers.
pub(crate) struct Gatekeeper {
    gate: FlashCrowdGate,
    latest: Cache<Arc<ArcSwap<Plan>>, Arc<Plan>>,
    plan: Rc<PlanInForce>,
    decisions: Decisions,
    jitter_seed: u64,
    refused_attempts: Arc<RefusedAttempts>,
    unseen: Unseen,
}

/// Requests that a bound refused before the gate saw them. They were offered all the same: left out, a crowd that
/// fills a bound at once would look to the planner like no crowd at all.
#[derive(Debug, Default)]
struct Unseen {
    offered: u64,
    unique_offered: u64,
}

impl fmt::Debug for Gatekeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gatekeeper").field("plan", &self.plan.0.epoch).finish_non_exhaustive()
    }
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Let in; the permit carries the accounting to the end.
    Admitted(Permit),
    /// Refused, with what the client is told.
    Refused(Refusal),
}

impl Gatekeeper {
    /// The gate of worker `index`.
    pub(crate) fn new(shared: &Shared, index: usize) -> Self {
        let gate = FlashCrowdGate::new(index, shared.seed ^ index as u64, shared.refused_attempts.clone());
        Self {
            gate,
            plan: Rc::new(PlanInForce(shared.plan.load_full())),
            latest: Cache::new(shared.plan.clone()),
            // A worker's number fits eight bits: there are at most `limits::WORKERS` of them.
            decisions: Decisions::new(shared.boot, index as u8),
            jitter_seed: shared.seed,
            refused_attempts: shared.refused_attempts.clone(),
            unseen: Unseen::default(),
        }
    }

    /// Follows the plan in force: one relaxed load and a comparison unless it changed.
    fn follow_plan(&mut self, now: Instant) {
        let latest = self.latest.load();
        if Arc::ptr_eq(latest, &self.plan.0) {
            return;
        }
        if latest.epoch <= self.plan.0.epoch {
            // Another planner's first plans after a reload: numbers that begin anew must not be taken for known ones.
            self.gate.apply(now, &Plan { epoch: u64::MAX, ..Plan::open(1) });
        }
        self.gate.apply(now, latest);
        self.plan = Rc::new(PlanInForce(latest.clone()));
    }

    fn refuse(&mut self, now: Instant, asked: &Classified, shed: Shed, shadow: bool) -> Refusal {
        let Shed { reason, retry_after } = shed;
        let host_key = asked.gate.host_key;
        let retry_after = RetryAfter::new(retry_after, asked.gate.person_key, self.jitter_seed);
        let retry_after_s = retry_after.jittered_s;
        let plan = self.plan.clone();
        let ceiling = (reason == Reason::FlashCrowd).then(|| ceiling_for(&plan.0.limit, host_key)).flatten();
        let id = self.decisions.remember(Record { at: now, reason, shadow, host_key, retry_after_s, plan });
        Refusal { id, reason, retry_after, ceiling }
    }

    /// What was decided under this id.
    pub(crate) fn explain(&self, id: DecisionId) -> Option<Explained> {
        self.decisions.explain(id)
    }

    /// A response is fit to be judged.
    pub(crate) fn observe_response(&mut self, response: Response) {
        self.gate.observe_response(response);
    }

    /// Counts a request that a bound refused, by the gate's own rule for retries.
    fn count_unseen(&mut self, now: Instant, asked: &Classified) {
        self.unseen.offered += 1;
        if !self.refused_attempts.is_retry(now, asked.gate.person_key) {
            self.unseen.unique_offered += 1;
        }
        self.refused_attempts.remember(now, asked.gate.person_key);
    }

    /// What arrived and what became of it since the last time.
    pub(crate) fn drain(&mut self, now: Instant) -> Sample {
        let (mut sample, unseen) = (self.gate.drain(now), std::mem::take(&mut self.unseen));
        sample.offered += unseen.offered;
        sample.unique_offered += unseen.unique_offered;
        sample
    }
}

impl Worker {
    /// Decides one well-formed request; `full` says that its connection is one too many and only gets refusals.
    pub(crate) fn admit(
        self: &Rc<Self>,
        now: Instant,
        asked: &Classified,
        full: Option<Reason>,
    ) -> Admission {
        match self.decide(now, asked, full) {
            Ok(place) => Admission::Admitted(Permit::new(self.clone(), place, now)),
            Err(shed) => {
                self.metrics.requests.shed.increment(shed.reason);
                if let Some(bound) = bound_of(shed.reason) {
                    self.metrics.bound_hits.increment(bound);
                }
                let mut gatekeeper = self.gatekeeper.borrow_mut();
                if shed.reason != Reason::FlashCrowd {
                    gatekeeper.count_unseen(now, asked);
                }
                Admission::Refused(gatekeeper.refuse(now, asked, shed, false))
            }
        }
    }

    fn decide(&self, now: Instant, asked: &Classified, full: Option<Reason>) -> Result<Taken, Shed> {
        let bound = |reason| Shed { reason, retry_after: retry_after::AT_A_BOUND };
        if self.shared.is_draining() {
            return Err(Shed { reason: Reason::Draining, retry_after: RETRY_AFTER_DRAINING });
        }
        if let Some(reason) = full {
            return Err(bound(reason));
        }
        let current = self.current();
        // Known before the gate spends a token on a request that no connection could carry.
        if self.requests_open.get() >= current.upstream_capacity {
            return Err(bound(Reason::UpstreamConnections));
        }
        let most = current.live.config.bounds.max_requests_in_flight;
        let place = self.shared.bounds.take_request(most).ok_or_else(|| bound(Reason::RequestsInFlight))?;
        let mut gatekeeper = self.gatekeeper.borrow_mut();
        gatekeeper.follow_plan(now);
        match gatekeeper.gate.admit(now, &asked.gate) {
            Verdict::Admit => Ok(place),
            Verdict::Shed(shed) if current.live.config.flash_crowd.shadow => {
                gatekeeper.refuse(now, asked, shed, true);
                gatekeeper.gate.admitted_in_shadow(&asked.gate);
                self.metrics.requests.shadow_shed.increment();
                Ok(place)
            }
            Verdict::Shed(shed) => Err(shed),
        }
    }

    /// Refuses a request that was let in but that, after all, no upstream connection could take.
    pub(crate) fn refuse_admitted(&self, now: Instant, asked: &Classified) -> Refusal {
        let shed = Shed { reason: Reason::UpstreamConnections, retry_after: retry_after::AT_A_BOUND };
        self.gatekeeper.borrow_mut().refuse(now, asked, shed, false)
    }
}

/// The bound behind a refusal, where it is one.
fn bound_of(reason: Reason) -> Option<Bound> {
    match reason {
        Reason::RequestsInFlight => Some(Bound::RequestsInFlight),
        Reason::UpstreamConnections => Some(Bound::UpstreamConnections),
        Reason::Connections => Some(Bound::Connections),
        Reason::ConnectionsPerClient => Some(Bound::ConnectionsPerClient),
        Reason::FlashCrowd
        | Reason::Draining
        | Reason::Capacity
        | Reason::Deadline
        | Reason::Reserved
        | Reason::Threshold
        | Reason::Batch
        | Reason::ClientShare => None,
    }
}

/// An admitted request's accounting: it ends as completed or failed, and as abandoned when simply dropped; there is
/// no fourth way, so no request can be lost.
#[derive(Debug)]
pub(crate) struct Permit {
    worker: Rc<Worker>,
    /// The place among the requests in flight, given back on drop.
    _place: Taken,
    started: Instant,
    told: bool,
}

impl Permit {
    fn new(worker: Rc<Worker>, place: Taken, started: Instant) -> Self {
        worker.metrics.requests.admitted.increment();
        worker.requests_open.set(worker.requests_open.get() + 1);
        Self { worker, _place: place, started, told: false }
    }

    /// The worker it belongs to.
    pub(crate) fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }

    /// When the request was received.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The upstream answered in full; an answer of 5xx finishes too, but not without error.
    pub(crate) fn completed(mut self, status: StatusCode) {
        self.told = true;
        self.worker.metrics.requests.completed.increment();
        if !status.is_server_error() {
            self.worker.gatekeeper.borrow_mut().gate.completed();
        }
    }

    /// The upstream failed it.
    pub(crate) fn failed(mut self) {
        self.told = true;
        self.worker.metrics.requests.failed.increment();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.worker.requests_open.set(self.worker.requests_open.get() - 1);
        if !self.told {
            self.worker.metrics.requests.abandoned.increment();
            self.worker.metrics.measurement.unmeasured.increment(Unmeasured::Cancelled);
        }
    }
}

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
