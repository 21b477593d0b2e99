//! One worker's gate of one service, and the requests that wait at it.
//!
//! Requests that are let in at once cost no allocation; one that waits costs a slot, which is used again. What became
//! of it is put into its slot and its handler woken; a handler that is dropped meanwhile takes it out at once.

use super::candidate::{CandidateSaid, CandidateSample, CandidateStage, Opinion};
use super::place::Place;
use super::rest::Rest;
use super::service::Sentry;
use super::wait::Wait;
use crate::shared::Shared;
use arc_swap::{ArcSwap, Cache};
use flashweir_admission::sentry::{
    Arrived, Asked, ClassPlan, Costs, Ending, Explanation, Paused, Permit, Plan, Released, Sample,
    SentryGate, Ticket,
};
use flashweir_core::{Duration, Instant, Shed};
use flashweir_runtime::Clock;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Waker;
use tokio::sync::mpsc;

/// A timer that is due already waits this long all the same: a mistake must not keep the worker busy with itself.
const PAUSE_LEAST: Duration = Duration::from_millis(1);

/// The gate and those who wait at it; never leaves its worker's thread.
pub(crate) struct Stage {
    sentry: Arc<Sentry>,
    worker: usize,
    clock: Clock,
    rest: Arc<Rest>,
    inner: RefCell<Inner>,
    /// When the attendant looks again by itself.
    looks_at: Cell<Option<Instant>>,
    /// A policy that is compared with this one; a reload may bring another.
    candidate: RefCell<Option<Rc<CandidateStage>>>,
}

struct Inner {
    gate: SentryGate<usize>,
    latest: Cache<Arc<ArcSwap<Plan>>, Arc<Plan>>,
    basis: Rc<Basis>,
    costs: Arc<Costs>,
    waiting: Slab<Waiting>,
}

/// What is kept of a request that waits.
enum Waiting {
    /// For its turn.
    ForTurn { class: u8, ticket: Ticket, waker: Option<Waker> },
    /// For its handler to take notice.
    ForHandler(Result<Permit, Refused>),
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// There is room.
    Admitted(Place),
    /// There is none, but that is only recorded.
    AdmittedInShadow(Place, Refused),
    /// There may be soon.
    Held(Wait),
    /// There is none.
    Refused(Refused),
}

/// A refusal with what it rests on.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) shed: Shed,
    /// Class of the request, by its place in the policy.
    pub(crate) class: u8,
    /// Requests at the origin.
    pub(crate) in_flight: u32,
    /// Requests that wait at this worker.
    pub(crate) waiting: u32,
    /// How long the oldest of its class has waited at this worker, microseconds; 0 if nobody of it waits.
    pub(crate) oldest_waiting_us: u32,
    /// The plan.
    pub(crate) basis: Rc<Basis>,
    /// What a candidate policy made of the request, where there is one.
    pub(crate) candidate: Option<CandidateSaid>,
}

/// The plan as far as a refusal needs it. Refusals of one worker share it by a plain count, and it is small: plans
/// change fifty times a second, and thousands are remembered.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    /// Of which service.
    pub(crate) sentry: Arc<Sentry>,
    /// The plan's number.
    pub(crate) epoch: u64,
    /// Requests in flight at most.
    pub(crate) limit: u32,
    /// By class.
    pub(crate) classes: Box<[ClassPlan]>,
    /// See [`Plan::price`].
    pub(crate) price: f64,
    /// The numbers behind it.
    pub(crate) explanation: Explanation,
}

/// What one worker's gate measured.
#[derive(Debug)]
pub(crate) struct GateSample {
    /// Of which service.
    pub(crate) sentry: Arc<Sentry>,
    pub(crate) worker: usize,
    /// How long the worker has been busy since it started.
    pub(crate) busy: Duration,
    pub(crate) sample: Box<Sample>,
    /// And what its candidate's gate did.
    pub(crate) candidate: Option<Box<CandidateSample>>,
}

impl Stage {
    /// The gate of this worker; its [`attend`](Self::attend) is to be spawned.
    pub(crate) fn new(sentry: Arc<Sentry>, worker: usize, shared: &Shared) -> Rc<Self> {
        let plan = sentry.plan.load_full();
        let inner = Inner {
            gate: SentryGate::new(sentry.common.clone(), worker, &sentry.policy, &plan),
            latest: Cache::new(sentry.plan.clone()),
            basis: Rc::new(Basis::of(&sentry, &plan)),
            costs: plan.costs.clone(),
            waiting: Slab::new(),
        };
        Rc::new(Self {
            sentry,
            worker,
            clock: shared.clock,
            rest: shared.rest.clone(),
            inner: RefCell::new(inner),
            looks_at: Cell::new(None),
            candidate: RefCell::default(),
        })
    }

    /// The policy that is compared with this one, if there is one.
    pub(crate) fn candidate(&self) -> Option<Rc<CandidateStage>> {
        self.candidate.borrow().clone()
    }

    /// From now on this one is.
    pub(crate) fn set_candidate(&self, candidate: Option<Rc<CandidateStage>>) {
        *self.candidate.borrow_mut() = candidate;
    }

    /// What this stage belongs to.
    pub(crate) fn sentry(&self) -> &Arc<Sentry> {
        &self.sentry
    }

    /// A request wants to go to the origin.
    pub(crate) fn ask(self: &Rc<Self>, now: Instant, asked: Asked) -> Answer {
        self.rest.wake();
        let inner = &mut *self.inner.borrow_mut();
        inner.follow_plan();
        if self.sentry.shadow {
            let (permit, shed) = inner.gate.arrive_in_shadow(now, asked);
            let refused = shed.map(|shed| inner.refused(now, asked.class, shed));
            let place = Place::new(self.clone(), permit);
            return match refused {
                Some(refused) => Answer::AdmittedInShadow(place, refused),
                None => Answer::Admitted(place),
            };
        }
        let key = inner.waiting.vacant_key();
        let ticket = match inner.gate.arrive(now, asked, key) {
            Arrived::Admit(_, permit) => return Answer::Admitted(Place::new(self.clone(), permit)),
            Arrived::Shed(_, shed) => return Answer::Refused(inner.refused(now, asked.class, shed)),
            Arrived::Held(ticket) => ticket,
            Arrived::HeldInsteadOf(ticket, other, shed) => {
                inner.refuse(now, other, shed);
                ticket
            }
        };
        let held_as = inner.waiting.insert(Waiting::ForTurn { class: asked.class, ticket, waker: None });
        debug_assert_eq!(held_as, key, "a vacant key is the next one used");
        let next_wake = inner.gate.next_wake();
        if next_wake.is_some_and(|at| self.looks_at.get().is_none_or(|looks_at| at < looks_at)) {
            self.sentry.ring(self.worker);
        }
        Answer::Held(Wait::new(self.clone(), held_as))
    }

    /// Whether one more of this class is within what it is guaranteed, as of the plan that is followed.
    pub(crate) fn is_within_guarantee(&self, now: Instant, class: u8) -> bool {
        let inner = self.inner.borrow();
        let plan = inner.basis.classes.get(usize::from(class));
        plan.is_some_and(|plan| self.sentry.common.is_within_guarantee(now, class, plan))
    }

    /// What a request would take at the origin, microseconds; 0 if nothing is known.
    pub(crate) fn cost_us(&self, asked: &Asked) -> u32 {
        self.inner.borrow().costs.of(asked.url_class, asked.class)
    }

    /// Gives the free room to those who wait, and turns away who waited too long.
    pub(crate) fn release(&self, now: Instant) {
        let inner = &mut *self.inner.borrow_mut();
        inner.follow_plan();
        while let Some(released) = inner.gate.next(now) {
            match released {
                Released::Admit(key, permit) => inner.decide(key, Ok(permit)),
                Released::Shed(key, shed) => inner.refuse(now, key, shed),
            }
        }
        if let Some(other) = inner.gate.who_waits() {
            self.sentry.ring(other);
        }
    }

    /// An admitted request is over, as far as the origin goes.
    pub(super) fn end(&self, permit: Permit, ending: Ending) {
        let now = self.clock.now();
        self.inner.borrow_mut().gate.end(now, permit, ending);
        self.release(now);
    }

    /// The client of an admitted request is waited for: the place is free meanwhile.
    pub(super) fn pause(&self, permit: Permit) -> Paused {
        let now = self.clock.now();
        let paused = self.inner.borrow_mut().gate.pause(now, permit);
        self.release(now);
        paused
    }

    /// It is the origin's turn again.
    pub(super) fn resume(&self, paused: Paused) -> Permit {
        self.rest.wake();
        self.inner.borrow_mut().gate.resume(self.clock.now(), paused)
    }

    /// What became of the one in this slot; until something did, `waker` is told when it does.
    pub(super) fn outcome(self: &Rc<Self>, key: usize, waker: &Waker) -> Option<Result<Place, Refused>> {
        let inner = &mut *self.inner.borrow_mut();
        match &mut inner.waiting[key] {
            Waiting::ForTurn { waker: Some(known), .. } if known.will_wake(waker) => None,
            Waiting::ForTurn { waker: known, .. } => {
                *known = Some(waker.clone());
                None
            }
            Waiting::ForHandler(_) => match inner.waiting.remove(key) {
                Waiting::ForHandler(decided) => Some(decided.map(|permit| Place::new(self.clone(), permit))),
                Waiting::ForTurn { .. } => None,
            },
        }
    }

    /// The client of the one in this slot has gone.
    pub(super) fn leave(&self, key: usize) {
        let now = self.clock.now();
        let mut inner = self.inner.borrow_mut();
        match inner.waiting.remove(key) {
            Waiting::ForTurn { ticket, .. } => {
                inner.gate.leave(now, ticket);
            }
            Waiting::ForHandler(Ok(permit)) => {
                drop(inner);
                self.end(permit, Ending::WITHDRAWN);
            }
            Waiting::ForHandler(Err(_)) => {}
        }
    }

    /// Answers the bell and the clock until the stage is dropped.
    pub(crate) async fn attend(stage: Weak<Self>, samples: mpsc::Sender<GateSample>, full: impl Fn()) {
        let Some((sentry, worker, clock)) = stage.upgrade().map(|stage| stage.identity()) else { return };
        while let Some(due) = stage.upgrade().map(|stage| stage.plan_look()) {
            let rung = sentry.rung(worker);
            match due {
                // Either way there is something to look at.
                Some(at) => drop(tokio::time::timeout_at(clock.timer_at(at), rung).await),
                None => rung.await,
            }
            let Some(stage) = stage.upgrade() else { return };
            if sentry.take_sample_wanted(worker) {
                match samples.try_reserve() {
                    Ok(place) => place.send(stage.drain()),
                    Err(_) => full(),
                }
            }
            stage.release(clock.now());
        }
    }

    fn identity(&self) -> (Arc<Sentry>, usize, Clock) {
        (self.sentry.clone(), self.worker, self.clock)
    }

    /// When to look again though nobody rings.
    fn plan_look(&self) -> Option<Instant> {
        let least = self.clock.now() + PAUSE_LEAST;
        self.looks_at.set(self.inner.borrow().gate.next_wake().map(|at| at.max(least)));
        self.looks_at.get()
    }

    fn drain(&self) -> GateSample {
        let sample = self.inner.borrow_mut().gate.drain(self.clock.now());
        // The worker's runtime has this one thread.
        let busy = tokio::runtime::Handle::current().metrics().worker_total_busy_duration(0);
        let candidate = self.candidate().map(|candidate| Box::new(candidate.drain()));
        let (sentry, worker) = (self.sentry.clone(), self.worker);
        GateSample { sentry, worker, busy, sample: Box::new(sample), candidate }
    }
}

impl Inner {
    /// Follows the plan in force: one relaxed load and a comparison unless it changed.
    fn follow_plan(&mut self) {
        let latest = self.latest.load();
        if latest.epoch != self.basis.epoch {
            self.gate.apply(latest);
            self.basis = Rc::new(Basis::of(&self.basis.sentry, latest));
            self.costs = latest.costs.clone();
        }
    }

    fn refused(&self, now: Instant, class: u8, shed: Shed) -> Refused {
        Refused {
            shed,
            class,
            in_flight: self.gate.in_flight(),
            waiting: self.gate.held() as u32,
            // An hour fits, and nobody waits that long.
            oldest_waiting_us: self.gate.oldest_held(now, class.into()).as_micros() as u32,
            basis: self.basis.clone(),
            candidate: None,
        }
    }

    /// Refuses one that waits.
    fn refuse(&mut self, now: Instant, key: usize, shed: Shed) {
        if let Waiting::ForTurn { class, .. } = self.waiting[key] {
            let refused = self.refused(now, class, shed);
            self.decide(key, Err(refused));
        }
    }

    fn decide(&mut self, key: usize, decided: Result<Permit, Refused>) {
        let before = mem::replace(&mut self.waiting[key], Waiting::ForHandler(decided));
        if let Waiting::ForTurn { waker: Some(waker), .. } = before {
            waker.wake();
        }
    }
}

impl Refused {
    /// With what the candidate policy makes of the same request, if there is one.
    pub(crate) fn beside(self, opinion: Option<&Opinion>) -> Self {
        Self { candidate: opinion.and_then(Opinion::said), ..self }
    }

    /// What its class is called.
    pub(crate) fn class_name(&self) -> &str {
        self.basis.sentry.class_name(self.class)
    }
}

impl Basis {
    pub(super) fn of(sentry: &Arc<Sentry>, plan: &Plan) -> Self {
        Self {
            sentry: sentry.clone(),
            epoch: plan.epoch,
            limit: plan.limit,
            classes: plan.classes.as_slice().into(),
            price: plan.price,
            explanation: plan.explanation,
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // The attendant notices that there is nothing left to attend to.
        self.sentry.ring(self.worker);
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("worker", &self.worker).finish_non_exhaustive()
    }
}
