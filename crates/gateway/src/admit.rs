//! Who is let in: draining first, then the bound on requests in flight, then the ceiling on crowds, then the sentry,
//! which may let a request wait. Decided before any byte of the body is read.
//!
//! Ceiling and sentry combine by minimum. What the ceiling let in and the sentry refused never reached the service: its
//! token goes back, and the ceiling's planner is told, which leaves a ceiling alone that does not bind.

mod waiting;

pub(crate) use waiting::Waiting;

use crate::bounds::Taken;
use crate::classify::Classified;
use crate::decisions::{Decisions, Explained, PlanInForce, Record};
use crate::permit::{Permit, Times};
use crate::refusal::Refusal;
use crate::sentry::{Answer, Opinion, Place, Refused, Stage};
use crate::shared::Shared;
use crate::status::ceiling_for;
use crate::worker::{Served, Worker};
use arc_swap::{ArcSwap, Cache};
use flashweir_admission::Gate as _;
use flashweir_admission::flash_crowd::{FlashCrowdGate, Plan, RefusedAttempts, Response, Sample, Standing};
use flashweir_admission::retry_after::{self, RetryAfter};
use flashweir_admission::sentry;
use flashweir_core::{DecisionId, Duration, Instant, Reason, Shed, Verdict};
use flashweir_telemetry::{Bound, ClassMetrics};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// What a request without a connection to an upstream gets.
const UPSTREAMS_BUSY: Shed =
    Shed { reason: Reason::UpstreamConnections, retry_after: retry_after::AT_A_BOUND };
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
    /// Not now, but perhaps soon.
    Waits(Waiting),
    /// Refused, with what the client is told.
    Refused(Refusal),
}

impl Gatekeeper {
    /// The gate of worker `index`.
    pub(crate) fn new(shared: &Shared, index: usize) -> Self {
        let gate = FlashCrowdGate::new(index, shared.refused_attempts.clone());
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

    fn refuse(
        &mut self,
        now: Instant,
        asked: &Classified,
        shed: Shed,
        by_sentry: Option<&Refused>,
        shadow: bool,
    ) -> Refusal {
        let Shed { reason, retry_after } = shed;
        let host_key = asked.gate.host_key;
        let retry_after = RetryAfter::new(retry_after, asked.gate.person_key, self.jitter_seed);
        let retry_after_s = retry_after.jittered_s;
        let plan = self.plan.clone();
        let ceiling = (reason == Reason::FlashCrowd).then(|| ceiling_for(&plan.0.limit, host_key)).flatten();
        let id = self.decisions.remember(Record {
            at: now,
            reason,
            shadow,
            host_key,
            retry_after_s,
            plan,
            sentry: by_sentry.cloned(),
        });
        Refusal { id, reason, retry_after, ceiling, by_sentry: by_sentry.cloned() }
    }

    /// What was decided under this id.
    pub(crate) fn explain(&self, id: DecisionId) -> Option<Explained> {
        self.decisions.explain(id)
    }

    /// A request that was let in finished without error.
    pub(crate) fn completed(&mut self) {
        self.gate.completed();
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
        sample.refused_earlier += unseen.offered;
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
        self.count_class(asked, |class| class.offered.increment());
        match self.decide(now, asked, full) {
            Ok(taken) => self.ask_sentry(now, asked, taken),
            Err(shed) => {
                let refusal = self.shed(now, asked, shed, None);
                if shed.reason != Reason::FlashCrowd {
                    self.gatekeeper.borrow_mut().count_unseen(now, asked);
                }
                Admission::Refused(refusal)
            }
        }
    }

    fn ask_sentry(self: &Rc<Self>, now: Instant, asked: &Classified, taken: Taken) -> Admission {
        let current = self.current();
        let served = current.served[asked.service].clone();
        let stage = current.stages[asked.service].as_ref();
        let opinion = stage.and_then(|stage| self.ask_candidate(now, asked, stage));
        let answer = stage
            .filter(|_| asked.standing != Standing::Exempt)
            .map(|stage| stage.ask(now, asked.for_sentry()));
        let times = Times { received: now, sent: now };
        let place = match answer {
            None => None,
            Some(Answer::Admitted(place)) => Some(place),
            Some(Answer::AdmittedInShadow(place, refused)) => {
                self.metrics.requests.shadow_shed.increment();
                self.count_class(asked, |class| class.shadow_shed.increment());
                let refused = refused.beside(opinion.as_ref());
                self.gatekeeper.borrow_mut().refuse(now, asked, refused.shed, Some(&refused), true);
                Some(place)
            }
            Some(Answer::Held(wait)) => {
                self.metrics.requests.held.increment();
                self.count_class(asked, |class| class.held.increment());
                if let Some(opinion) = &opinion {
                    opinion.live_holds(now);
                }
                return Admission::Waits(Waiting::new(
                    self.clone(),
                    served,
                    asked,
                    taken,
                    (wait, opinion),
                    now,
                ));
            }
            Some(Answer::Refused(refused)) => {
                let refused = refused.beside(opinion.as_ref());
                return Admission::Refused(self.refuse_by_sentry(now, asked, &refused));
            }
        };
        let place = Place::compared(now, place, opinion);
        Admission::Admitted(self.let_in(asked, served, taken, times, place))
    }

    /// What the candidate policy makes of it, where there is one that would count it.
    fn ask_candidate(&self, now: Instant, asked: &Classified, stage: &Stage) -> Option<Opinion> {
        let class = asked.candidate.filter(|class| !class.is_exempt)?;
        let candidate = stage.candidate()?;
        let in_candidate =
            sentry::Asked { class: class.class, url_class: asked.url_class, client_key: class.client_key };
        let opinion = candidate.ask(now, in_candidate);
        if opinion.is_none() {
            self.metrics.bound_hits.increment(Bound::CandidateRequests);
        }
        opinion
    }

    fn let_in(
        self: &Rc<Self>,
        asked: &Classified,
        served: Rc<Served>,
        taken: Taken,
        times: Times,
        place: Option<Place>,
    ) -> Permit {
        self.count_class(asked, |class| class.admitted.increment());
        Permit::new(self.clone(), served, taken, times, place)
    }

    /// Counts for the request's class.
    fn count_class(&self, asked: &Classified, count: impl FnOnce(&ClassMetrics)) {
        // After a reload a request that waited may be of a class that is gone.
        let current = self.current();
        let slot = current.slots.get(asked.service).and_then(|slots| slots.get(usize::from(asked.class)));
        if let Some(&slot) = slot {
            count(self.metrics.classes.of(slot));
        }
    }

    /// What the request would take at the origin, microseconds; 0 if unknown.
    fn cost_us(&self, asked: &Classified) -> u32 {
        let current = self.current();
        let stage = current.stages.get(asked.service).and_then(Option::as_ref);
        stage.map_or(0, |stage| stage.cost_us(&asked.for_sentry()))
    }

    fn refuse_by_sentry(&self, now: Instant, asked: &Classified, refused: &Refused) -> Refusal {
        self.gatekeeper.borrow_mut().gate.withdraw(now, &asked.gate, true);
        self.shed(now, asked, refused.shed, Some(refused))
    }

    /// Counts and remembers a refusal.
    fn shed(&self, now: Instant, asked: &Classified, shed: Shed, by_sentry: Option<&Refused>) -> Refusal {
        self.metrics.requests.shed.increment(shed.reason);
        if let Some(bound) = bound_of(shed.reason) {
            self.metrics.bound_hits.increment(bound);
        }
        let cost_us = self.cost_us(asked);
        self.count_class(asked, |class| {
            class.shed.increment(shed.reason);
            class.unmet_us.add(cost_us.into());
        });
        self.gatekeeper.borrow_mut().refuse(now, asked, shed, by_sentry, false)
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
        let served = &current.served[asked.service];
        // Known before the gate spends a token on a request that no connection could carry.
        if served.requests_open.get() >= served.upstream_capacity {
            return Err(UPSTREAMS_BUSY);
        }
        let most = current.live.config.bounds.max_requests_in_flight;
        let place = self.shared.bounds.take_request(most).ok_or_else(|| bound(Reason::RequestsInFlight))?;
        let mut gatekeeper = self.gatekeeper.borrow_mut();
        gatekeeper.follow_plan(now);
        // What a class is guaranteed comes before what others are worth.
        let is_guaranteed = || {
            let stage = current.stages[asked.service].as_ref();
            stage.is_some_and(|stage| stage.is_within_guarantee(now, asked.class))
        };
        let standing = match asked.standing {
            Standing::Credit { .. } if is_guaranteed() => Standing::FIRST,
            standing => standing,
        };
        match gatekeeper.gate.admit_standing(now, &asked.gate, standing) {
            Verdict::Admit => Ok(place),
            Verdict::Shed(shed) if current.live.config.flash_crowd.shadow => {
                gatekeeper.refuse(now, asked, shed, None, true);
                gatekeeper.gate.admitted_in_shadow(&asked.gate);
                self.metrics.requests.shadow_shed.increment();
                Ok(place)
            }
            Verdict::Shed(shed) => Err(shed),
        }
    }

    /// Refuses a request that was let in but that, after all, no upstream connection could take.
    pub(crate) fn refuse_admitted(&self, now: Instant, asked: &Classified) -> Refusal {
        self.gatekeeper.borrow_mut().refuse(now, asked, UPSTREAMS_BUSY, None, false)
    }
}

impl Classified {
    fn for_sentry(&self) -> sentry::Asked {
        sentry::Asked { class: self.class, url_class: self.url_class, client_key: self.client_key }
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

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
