//! Gatekeeper: the gate, its planner and its queue behind one mutex, driven by a task.

use crate::ask::Ask;
use crate::refused::Refused;
use crate::status::{Status, Totals};
use flashweir_admission::PlannerDriver;
use flashweir_admission::retry_after::RetryAfter;
use flashweir_admission::sentry::{
    Check, Common, Ending, Enqueued, Paused, Permit, Policy, Position, Released, SentryGate, SentryPlanner,
    SentryRequest, Ticket,
};
use flashweir_core::{Instant, Reason, Shed};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time;

/// The planner's task ends this long after the last request; the next one starts another.
const IDLE_AFTER: Duration = Duration::from_secs(10);

const COMPLETED: Ending = Ending { completed: true, withdrawn: false, measured_us: None };
const FAILED: Ending = Ending { completed: false, withdrawn: false, measured_us: None };

/// Admission to one service.
#[derive(Debug)]
pub(crate) struct Gatekeeper {
    state: Mutex<State>,
    began: time::Instant,
}

#[derive(Debug)]
struct State {
    gate: SentryGate<Queued>,
    planner: PlannerDriver<SentryPlanner>,
    totals: Totals,
    /// A task plans.
    is_driven: bool,
    /// Since when there has been no request.
    idle_since: Option<Instant>,
}

/// The place in the queue that is answered once.
type Queued = oneshot::Sender<Answer>;

#[derive(Debug)]
enum Answer {
    Admitted(Permit),
    Refused(Shed),
}

/// An admitted request. Dropped, it was taken back.
#[derive(Debug)]
pub(crate) struct Admitted {
    gatekeeper: Arc<Gatekeeper>,
    place: PermitState,
}

#[derive(Debug)]
enum PermitState {
    Held(Permit),
    /// The client is waited for; others have the place.
    Paused(Paused),
    Free,
}

/// A request in the queue. Dropped without an answer, it leaves.
struct Waiting {
    gatekeeper: Arc<Gatekeeper>,
    ticket: Ticket,
    answer: oneshot::Receiver<Answer>,
    is_answered: bool,
}

/// A planner's task. Dropped while it plans, because its runtime ends, it leaves the next request to start
/// another.
struct Driver(Weak<Gatekeeper>);

enum Arrival {
    Admitted(Permit),
    Queued(Ticket, oneshot::Receiver<Answer>),
    Refused(Shed),
}

impl Gatekeeper {
    pub(crate) fn new(policy: Policy) -> Arc<Self> {
        let planner = SentryPlanner::new(Arc::new(policy.clone()));
        let gate = SentryGate::new(Arc::new(Common::new(1)), 0, &policy, planner.current());
        let state = State {
            gate,
            planner: PlannerDriver::new(planner, Instant::ZERO),
            totals: Totals::default(),
            is_driven: false,
            idle_since: None,
        };
        Arc::new(Self { state: Mutex::new(state), began: time::Instant::now() })
    }

    /// To be read under the lock, so that time never goes back between two calls of the gate.
    fn now(&self) -> Instant {
        Instant::from_duration(self.began.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counts that a panic left half done are corrected by nothing; a poisoned gate must not refuse all
        // the same.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place if need be, at most until the deadline of the request.
    pub(crate) async fn admit(self: &Arc<Self>, ask: Ask, url_class: u32) -> Result<Admitted, Refused> {
        let request = SentryRequest {
            class: ask.class,
            url_class,
            client_key: ask.client_key,
            position: Position::Usual,
            is_uncounted: false,
        };
        let arrived = time::Instant::now();
        match self.arrive(request, ask.deadline) {
            Arrival::Admitted(permit) => Ok(self.admitted(permit)),
            Arrival::Refused(shed) => Err(self.refused(shed)),
            Arrival::Queued(ticket, answer) => {
                let mut waiting = Waiting { gatekeeper: self.clone(), ticket, answer, is_answered: false };
                let Some(deadline) = ask.deadline else { return waiting.turn().await };
                let turn = time::timeout_at(arrived + deadline, waiting.turn());
                match turn.await {
                    Ok(turn) => turn,
                    Err(_) => Err(waiting.expire(request)),
                }
            }
        }
    }

    fn arrive(self: &Arc<Self>, request: SentryRequest, deadline: Option<Duration>) -> Arrival {
        let mut state = self.lock();
        let now = self.now();
        let was_driven = state.is_driven;
        if !was_driven {
            state.is_driven = true;
            // The idle time is a separate sample.
            state.plan(now);
        }
        let arrival = state.arrive(now, request, deadline);
        drop(state);
        if !was_driven {
            // Not under the lock: a runtime that ends drops the task at once.
            tokio::spawn(Driver(Arc::downgrade(self)).run());
        }
        arrival
    }

    fn admitted(self: &Arc<Self>, permit: Permit) -> Admitted {
        Admitted { gatekeeper: self.clone(), place: PermitState::Held(permit) }
    }

    fn refused(&self, shed: Shed) -> Refused {
        let draw = self.lock().totals.shed;
        let retry_after = RetryAfter::new(shed.retry_after, draw, 0);
        Refused { reason: shed.reason, retry_after_s: retry_after.jittered_s }
    }

    /// Plans if that is due, lets queued requests go, and says when to come again; `None` where no request
    /// has come for long.
    fn tick(&self) -> Option<time::Instant> {
        let mut state = self.lock();
        let now = self.now();
        if now >= state.planner.next_plan_at() {
            state.plan(now);
        }
        state.release(now);
        if state.idle_since.is_some_and(|since| now.saturating_since(since) >= IDLE_AFTER) {
            (state.is_driven, state.idle_since) = (false, None);
            return None;
        }
        let next = state.planner.next_plan_at();
        let next = state.gate.next_wake().map_or(next, |wake| wake.min(next)).max(now);
        Some(self.began + next.saturating_since(Instant::ZERO))
    }

    /// Returns whether a task plans.
    #[cfg(test)]
    pub(crate) fn is_driven(&self) -> bool {
        self.lock().is_driven
    }

    pub(crate) fn status(&self) -> Status {
        let state = self.lock();
        Status::new(
            state.planner.planner().current(),
            state.totals,
            state.gate.in_flight(),
            state.gate.held(),
        )
    }
}

impl Driver {
    /// Plans until the gatekeeper has been idle for long, or is gone.
    async fn run(mut self) {
        while let Some(next) = self.0.upgrade().and_then(|gatekeeper| gatekeeper.tick()) {
            time::sleep_until(next).await;
        }
        // The last tick has said that no task plans any more.
        self.0 = Weak::new();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(gatekeeper) = self.0.upgrade() {
            gatekeeper.lock().is_driven = false;
        }
    }
}

impl State {
    fn arrive(&mut self, now: Instant, request: SentryRequest, deadline: Option<Duration>) -> Arrival {
        self.totals.offered += 1;
        self.gate.observe_offered(request, false);
        let cost = Duration::from_micros(self.gate.cost_us(&request).into());
        if deadline.is_some_and(|left| left.is_zero() || left < self.gate.shortest_wait(now, &request) + cost)
        {
            return Arrival::Refused(self.refuse_for_caller(request));
        }
        match self.gate.check(now, request) {
            Check::Pass(slot) => {
                self.totals.admitted += 1;
                Arrival::Admitted(self.gate.commit(now, now, request, slot))
            }
            Check::Shed(shed) => Arrival::Refused(self.refuse(shed)),
            Check::Wait => self.enqueue(now, request),
        }
    }

    fn enqueue(&mut self, now: Instant, request: SentryRequest) -> Arrival {
        let (answer, receiver) = oneshot::channel();
        match self.gate.enqueue(now, request, answer) {
            Enqueued::Queued(ticket) => Arrival::Queued(ticket, receiver),
            Enqueued::QueuedInsteadOf(ticket, other, shed) => {
                self.answer_refused(other, shed);
                Arrival::Queued(ticket, receiver)
            }
            Enqueued::Turn(_, slot) => {
                self.totals.admitted += 1;
                Arrival::Admitted(self.gate.commit(now, now, request, slot))
            }
            Enqueued::Shed(_, shed) => Arrival::Refused(self.refuse(shed)),
        }
    }

    fn refuse(&mut self, shed: Shed) -> Shed {
        self.totals.shed += 1;
        shed
    }

    fn refuse_for_caller(&mut self, request: SentryRequest) -> Shed {
        self.gate.observe_refused_elsewhere(request);
        let classes = &self.planner.planner().current().classes;
        let class = &classes[usize::from(request.class).min(classes.len() - 1)];
        let retry_after = class.retry_after;
        self.refuse(Shed { reason: Reason::CallerDeadline, retry_after })
    }

    fn answer_refused(&mut self, queued: Queued, shed: Shed) {
        self.totals.shed += 1;
        // One that has left meanwhile needs no answer.
        let _ = queued.send(Answer::Refused(shed));
    }

    /// Lets queued requests go while there is room for them, and refuses those that have waited too long.
    fn release(&mut self, now: Instant) {
        while let Some(released) = self.gate.next(now) {
            match released {
                Released::Shed(queued, shed) => self.answer_refused(queued, shed),
                Released::Admit(queued, permit) => {
                    if queued.send(Answer::Admitted(permit)).is_ok() {
                        self.totals.admitted += 1;
                    } else {
                        self.gate.end(now, permit, Ending::WITHDRAWN);
                    }
                }
            }
        }
    }

    fn plan(&mut self, now: Instant) {
        let sample = self.gate.drain(now);
        let is_idle = sample.offered == 0 && self.gate.in_flight() == 0 && self.gate.held() == 0;
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(now));
        self.planner.observe(now, &sample);
        let plan = self.planner.plan(now);
        self.gate.apply(&plan);
    }

    fn end(&mut self, now: Instant, permit: Permit, ending: Ending) {
        self.totals.completed += u64::from(ending.completed);
        self.gate.end(now, permit, ending);
        self.release(now);
    }
}

impl Admitted {
    /// The response ended.
    pub(crate) fn complete(self) {
        self.end(COMPLETED);
    }

    /// The service failed.
    pub(crate) fn fail(self) {
        self.end(FAILED);
    }

    fn end(mut self, ending: Ending) {
        self.resume();
        if let PermitState::Held(permit) = mem::replace(&mut self.place, PermitState::Free) {
            self.gatekeeper.lock().end(self.gatekeeper.now(), permit, ending);
        }
    }

    /// The client has a part to take; others have the place until the next part is asked for.
    pub(crate) fn pause(&mut self) {
        if let PermitState::Held(permit) = self.place {
            let mut state = self.gatekeeper.lock();
            let now = self.gatekeeper.now();
            self.place = PermitState::Paused(state.gate.pause(now, permit));
            state.release(now);
        }
    }

    /// The client asks for the next part.
    pub(crate) fn resume(&mut self) {
        if let PermitState::Paused(paused) = self.place {
            let mut state = self.gatekeeper.lock();
            self.place = PermitState::Held(state.gate.resume(self.gatekeeper.now(), paused));
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let PermitState::Held(permit) = self.place {
            self.gatekeeper.lock().end(self.gatekeeper.now(), permit, Ending::WITHDRAWN);
        }
    }
}

impl Waiting {
    async fn turn(&mut self) -> Result<Admitted, Refused> {
        let answer = (&mut self.answer).await;
        self.is_answered = true;
        match answer {
            Ok(Answer::Admitted(permit)) => Ok(self.gatekeeper.admitted(permit)),
            Ok(Answer::Refused(shed)) => Err(self.gatekeeper.refused(shed)),
            // The gate answers before it forgets a place; a place that is gone without an answer is refused.
            Err(_) => {
                let shed = Shed { reason: Reason::Capacity, retry_after: Duration::from_secs(1) };
                Err(self.gatekeeper.refused(shed))
            }
        }
    }

    /// The deadline of the request has passed in the queue.
    fn expire(mut self, request: SentryRequest) -> Refused {
        let mut state = self.gatekeeper.lock();
        let now = self.gatekeeper.now();
        let shed = match state.gate.withdraw(now, self.ticket) {
            Some(_) => {
                self.is_answered = true;
                state.refuse_for_caller(request)
            }
            // A turn that came at the same moment is given back when this is dropped.
            None => Shed { reason: Reason::CallerDeadline, retry_after: Duration::from_secs(1) },
        };
        drop(state);
        self.gatekeeper.refused(shed)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let mut state = self.gatekeeper.lock();
        let now = self.gatekeeper.now();
        if state.gate.leave(now, self.ticket).is_some() {
            state.totals.left += 1;
        } else if let Ok(Answer::Admitted(permit)) = self.answer.try_recv() {
            state.end(now, permit, Ending::WITHDRAWN);
        }
    }
}
