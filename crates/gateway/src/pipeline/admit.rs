//! One request's way through the pipeline: let in, made to wait, or refused. Decided before any byte of the
//! body is read.

use super::copies::CopyPermit;
use super::deferred::{Deferred, Instead, Substitute, Why};
use super::host::PipelineHost;
use super::offered_request::OfferedRequest;
use super::permit::{Permit, Times};
use super::wait::{Decided, Wait};
use super::waiting::{Waiting, may_defer};
use super::worker_pipeline::WorkerPipeline;
use crate::refusal::Refusal;
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_admission::pipeline::{AdmissionRequest, Arrival, Asking, ServiceKey};
use flashweir_admission::retry_after::AT_A_BOUND;
use flashweir_core::{Instant, Reason, Shed};
use flashweir_telemetry::Bound;
use std::convert::Infallible;
use std::rc::Rc;

/// The pipeline's answer to a request; `S` is what a request gets that something else may answer.
#[derive(Debug)]
pub(crate) enum Admission<S = Infallible> {
    /// Let in; the permit carries the accounting to the end.
    Admitted(Box<Permit>),
    /// Not now, but perhaps soon.
    Waits(Wait),
    /// Refused, with the answer for the client.
    Refused(Refusal),
    /// It would have been refused, or have to wait.
    Substitute(S),
}

impl<S> Admission<S> {
    fn map<T>(self, substitute: impl FnOnce(S) -> T) -> Admission<T> {
        match self {
            Self::Admitted(permit) => Admission::Admitted(permit),
            Self::Waits(wait) => Admission::Waits(wait),
            Self::Refused(refusal) => Admission::Refused(refusal),
            Self::Substitute(other) => Admission::Substitute(substitute(other)),
        }
    }
}

impl Admission {
    /// The same once it no longer waits.
    pub(crate) async fn decided(self) -> Result<Box<Permit>, Refusal> {
        match self {
            Self::Admitted(permit) => Ok(permit),
            Self::Refused(refusal) => Err(refusal),
            Self::Waits(wait) => wait.await,
        }
    }
}

impl Admission<Box<Deferred>> {
    /// The same once it no longer waits.
    pub(crate) async fn decided(self) -> Decided {
        match self {
            Self::Admitted(permit) => Decided::Admitted(permit),
            Self::Refused(refusal) => Decided::Refused(refusal),
            Self::Substitute(deferred) => Decided::Deferred(deferred),
            Self::Waits(mut wait) => wait.turn(|| false).await,
        }
    }
}

impl PipelineHost {
    /// Decides one well-formed request; `full` says that its connection is one too many and only gets
    /// refusals.
    pub(crate) fn admit(
        self: &Rc<Self>,
        now: Instant,
        asked: OfferedRequest,
        full: Option<Reason>,
    ) -> Admission {
        self.ask(now, self.at_door(asked, full), Instead::Nothing)
            .map(|_| unreachable!("nothing was said to answer in place of the origin"))
    }

    /// The same for a request whose caller has a stored response: where it would be refused or have to wait,
    /// it gets a place in the gateway for that.
    pub(crate) fn admit_or_copy(
        self: &Rc<Self>,
        now: Instant,
        asked: OfferedRequest,
        full: Option<Reason>,
    ) -> Admission<CopyPermit> {
        self.ask(now, self.at_door(asked, full), Instead::Copy).map(Substitute::copy)
    }

    /// The same for a request that the response to another one may answer: where it would be refused, its end
    /// is open.
    pub(crate) fn admit_or_defer(
        self: &Rc<Self>,
        now: Instant,
        asked: OfferedRequest,
        full: Option<Reason>,
    ) -> Admission<Box<Deferred>> {
        self.ask(now, self.at_door(asked, full), Instead::Flight).map(Substitute::deferred)
    }

    /// The gateway wants a newer copy of a stored response that the request `asked` was answered with.
    pub(crate) fn admit_refresh(
        self: &Rc<Self>,
        now: Instant,
        asked: OfferedRequest,
    ) -> Admission<Box<Deferred>> {
        self.admit_or_defer(now, asked.refresh(), None)
    }

    /// The request as it finds the door.
    pub(super) fn at_door(&self, mut asked: OfferedRequest, full: Option<Reason>) -> OfferedRequest {
        asked.request.closed = self.closed(full);
        asked
    }

    /// Reason for which a request is refused before all stages, if it is.
    fn closed(&self, full: Option<Reason>) -> Option<Reason> {
        if self.shared.refuses_new_work() { Some(Reason::Draining) } else { full }
    }

    fn ask(self: &Rc<Self>, now: Instant, asked: OfferedRequest, instead: Instead) -> Admission<Substitute> {
        let request = &asked.request;
        let (key, is_first) = (request.service, request.asking == Asking::First);
        let inner = &mut *self.inner.borrow_mut();
        inner.follow_flash_crowd(now);
        inner.follow_service(now, key);
        let has_planner = inner.hosted(key).is_some_and(|hosted| hosted.sentry.is_some());
        if has_planner && request.ceiling_priority != CeilingPriority::Exempt {
            self.shared.rest.wake();
        }
        if is_first {
            inner.count_class(key, request.class, |class| class.offered.increment());
        }
        let slot = inner.waiting.vacant_key();
        let arrival = inner.pipeline.arrive(now, *request, slot);
        self.count_arrival(inner, now, &asked);
        match arrival {
            Arrival::Admitted(permit, shadow) => {
                if let Some(refusal) = shadow {
                    inner.shed_in_shadow(now, &asked, &refusal);
                }
                let times = Times { received: now, sent: now };
                Admission::Admitted(Permit::new(self.clone(), inner, permit, request, times))
            }
            Arrival::Refused(refusal) => {
                let cost_us = match instead {
                    Instead::Copy => {
                        if let Some(permit) = CopyPermit::take(self, inner, now, request) {
                            return Admission::Substitute(Substitute::Copy(permit));
                        }
                        inner.pipeline.cost_us(request)
                    }
                    Instead::Flight if may_defer(request, &refusal) => {
                        let why = Why::Refused(refusal);
                        let deferred = Deferred::new(self.clone(), asked, why);
                        return Admission::Substitute(Substitute::Deferred(deferred));
                    }
                    Instead::Flight | Instead::Nothing => inner.pipeline.cost_us(request),
                };
                Admission::Refused(inner.shed(now, &asked, &refusal, cost_us))
            }
            Arrival::Queued(ticket, displaced) => {
                let copy = match instead {
                    Instead::Copy => CopyPermit::take(self, inner, now, request),
                    Instead::Flight | Instead::Nothing => None,
                };
                if copy.is_some() {
                    // Its place in the queue is for one without a copy.
                    inner.pipeline.leave(now, ticket);
                } else {
                    let defers = instead == Instead::Flight;
                    let waiting = Waiting::ForTurn { asked, ticket, waker: None, defers };
                    let queued_as = inner.waiting.insert(waiting);
                    debug_assert_eq!(queued_as, slot, "a vacant key is the next one used");
                }
                if let Some((other, refusal)) = displaced {
                    inner.refuse_waiting(now, other, &refusal);
                }
                match copy {
                    Some(permit) => Admission::Substitute(Substitute::Copy(permit)),
                    None => Admission::Waits(self.held(inner, now, slot, request)),
                }
            }
        }
    }

    /// Counts what the pipeline found of a request's client.
    fn count_arrival(&self, inner: &mut WorkerPipeline, now: Instant, asked: &OfferedRequest) {
        if let Some(cause) = inner.pipeline.demoted() {
            self.metrics.fairness.demoted.increment(cause);
        }
        if let Some(source) = asked.source.filter(|_| inner.pipeline.was_person()) {
            self.shared.impatient.saw_person(now, source);
        }
        self.metrics.bound_hits.add(Bound::CandidateRequests, inner.pipeline.take_candidate_overflows());
    }

    /// A request that waits for its turn in the place `slot`.
    fn held(
        self: &Rc<Self>,
        inner: &mut WorkerPipeline,
        now: Instant,
        slot: usize,
        request: &AdmissionRequest,
    ) -> Wait {
        if request.asking == Asking::First {
            self.metrics.requests.held.increment();
            inner.count_class(request.service, request.class, |class| class.held.increment());
        }
        self.call_attendant(inner, request.service);
        Wait::new(self.clone(), slot, now, request.deadline)
    }

    /// The attendant is to look earlier than it would by itself, if that is so.
    fn call_attendant(&self, inner: &WorkerPipeline, key: ServiceKey) {
        let Some(hosted) = inner.hosted(key).and_then(|hosted| hosted.sentry.as_ref()) else { return };
        let next_wake = inner.pipeline.next_wake(key);
        if next_wake.is_some_and(|at| hosted.looks_at.get().is_none_or(|looks_at| at < looks_at)) {
            hosted.sentry.ring(self.worker);
        }
    }

    /// Refuses a request that was let in, but whose caller can use no answer any more.
    pub(crate) fn refuse_late(&self, now: Instant, asked: &OfferedRequest) -> Refusal {
        let shed = Shed { reason: Reason::CallerDeadline, retry_after: AT_A_BOUND };
        self.inner.borrow_mut().remember(now, asked, shed, None, false)
    }

    /// Refuses a request that was let in but that, after all, no upstream connection could take.
    pub(crate) fn refuse_admitted(&self, now: Instant, asked: &OfferedRequest) -> Refusal {
        let shed = Shed { reason: Reason::UpstreamConnections, retry_after: AT_A_BOUND };
        self.inner.borrow_mut().remember(now, asked, shed, None, false)
    }
}
