//! One request's way through the pipeline: let in, made to wait, or refused. Decided before any byte of the
//! body is read.

use super::admission_request::admission_request;
use super::copies::CopyPermit;
use super::deferred::{Deferred, Instead, Why};
use super::host::PipelineHost;
use super::permit::{Permit, Times};
use super::wait::{Decided, Wait};
use super::waiting::{Waiting, may_defer};
use super::worker_pipeline::WorkerPipeline;
use crate::classify::Classified;
use crate::refusal::Refusal;
use flashweir_admission::fairness::RequestSigns;
use flashweir_admission::flash_crowd::CeilingPriority;
use flashweir_admission::pipeline::{AdmissionRequest, Arrival, Asking, ServiceKey};
use flashweir_admission::retry_after::AT_A_BOUND;
use flashweir_core::{Instant, Reason, Shed};
use flashweir_telemetry::Bound;
use std::rc::Rc;

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Let in; the permit carries the accounting to the end.
    Admitted(Box<Permit>),
    /// Not now, but perhaps soon.
    Waits(Wait),
    /// Refused, with the answer for the client.
    Refused(Refusal),
    /// It would have been refused or have to wait; the stored response that its caller has answers it.
    Copy(CopyPermit),
    /// It would have been refused; its caller may yet have another answer for it.
    Deferred(Box<Deferred>),
}

impl Admission {
    /// The same once it no longer waits. For requests that something else may answer ([`Instead::Flight`]).
    pub(crate) async fn decided(self) -> Decided {
        match self {
            Self::Admitted(permit) => Decided::Admitted(permit),
            Self::Refused(refusal) => Decided::Refused(refusal),
            Self::Deferred(deferred) => Decided::Deferred(deferred),
            Self::Waits(mut wait) => wait.turn(|| false).await,
            Self::Copy(_) => unreachable!("a place for a copy is given where there is one"),
        }
    }
}

impl PipelineHost {
    /// Decides one well-formed request for the service of this key; `full` says that its connection is one
    /// too many and only gets refusals.
    pub(crate) fn admit(
        self: &Rc<Self>,
        now: Instant,
        key: ServiceKey,
        asked: &Classified,
        full: Option<Reason>,
    ) -> Admission {
        self.admit_or(now, key, asked, full, Instead::Nothing)
    }

    /// The same for a request that something else may answer where it would be refused or have to wait.
    pub(crate) fn admit_or(
        self: &Rc<Self>,
        now: Instant,
        key: ServiceKey,
        asked: &Classified,
        full: Option<Reason>,
        instead: Instead,
    ) -> Admission {
        self.ask(now, asked, admission_request(key, asked, self.closed(full)), instead)
    }

    /// The gateway wants a newer copy of a stored response that a request of `asked` was answered with. No
    /// client sent it: it is no demand, no client's share is charged with it, and its refusal is not counted.
    pub(crate) fn admit_refresh(
        self: &Rc<Self>,
        now: Instant,
        key: ServiceKey,
        asked: &Classified,
    ) -> Admission {
        let asked = Classified {
            client_key: 0,
            source: None,
            candidate: None,
            signs: RequestSigns::default(),
            ..*asked
        };
        let request =
            AdmissionRequest { asking: Asking::Refresh, ..admission_request(key, &asked, self.closed(None)) };
        self.ask(now, &asked, request, Instead::Flight)
    }

    /// Reason for which a request is refused before all stages, if it is.
    pub(super) fn closed(&self, full: Option<Reason>) -> Option<Reason> {
        if self.shared.is_draining() { Some(Reason::Draining) } else { full }
    }

    pub(super) fn ask(
        self: &Rc<Self>,
        now: Instant,
        asked: &Classified,
        request: AdmissionRequest,
        instead: Instead,
    ) -> Admission {
        let (key, is_first) = (request.service, request.asking == Asking::First);
        let inner = &mut *self.inner.borrow_mut();
        inner.follow_flash_crowd(now);
        inner.follow_service(now, key);
        let has_planner = inner.hosted(key).is_some_and(|hosted| hosted.sentry.is_some());
        if has_planner && asked.ceiling_priority != CeilingPriority::Exempt {
            self.shared.rest.wake();
        }
        if is_first {
            inner.count_class(key, asked.class, |class| class.offered.increment());
        }
        let slot = inner.waiting.vacant_key();
        let arrival = inner.pipeline.arrive(now, request, slot);
        self.count_arrival(inner, now, asked);
        match arrival {
            Arrival::Admitted(permit, shadow) => {
                if let Some(refusal) = shadow {
                    inner.shed_in_shadow(now, key, asked, &refusal);
                }
                let times = Times { received: now, sent: now };
                Admission::Admitted(Permit::new(self.clone(), inner, permit, (asked.class, &request), times))
            }
            Arrival::Refused(refusal) => {
                let cost_us = match instead {
                    Instead::Copy => {
                        if let Some(permit) = CopyPermit::take(self, inner, now, &request) {
                            return Admission::Copy(permit);
                        }
                        inner.pipeline.cost_us(&request)
                    }
                    Instead::Flight if may_defer(&request, &refusal) => {
                        let why = Why::Refused(refusal);
                        return Admission::Deferred(Deferred::new(self.clone(), *asked, request, why));
                    }
                    Instead::Flight | Instead::Nothing => inner.pipeline.cost_us(&request),
                };
                Admission::Refused(inner.shed(now, key, asked, &refusal, cost_us))
            }
            Arrival::Queued(ticket, displaced) => {
                let copy = match instead {
                    Instead::Copy => CopyPermit::take(self, inner, now, &request),
                    Instead::Flight | Instead::Nothing => None,
                };
                if copy.is_some() {
                    // Its place in the queue is for one without a copy.
                    inner.pipeline.leave(now, ticket);
                } else {
                    let defers = instead == Instead::Flight;
                    let waiting = Waiting::ForTurn { asked: *asked, request, ticket, waker: None, defers };
                    let queued_as = inner.waiting.insert(waiting);
                    debug_assert_eq!(queued_as, slot, "a vacant key is the next one used");
                }
                if let Some((other, refusal)) = displaced {
                    inner.refuse_waiting(now, other, &refusal);
                }
                match copy {
                    Some(permit) => Admission::Copy(permit),
                    None => self.held(inner, now, (key, slot), asked, is_first),
                }
            }
        }
    }

    /// Counts what the pipeline found of a request's client.
    fn count_arrival(&self, inner: &mut WorkerPipeline, now: Instant, asked: &Classified) {
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
        (key, slot): (ServiceKey, usize),
        asked: &Classified,
        is_first: bool,
    ) -> Admission {
        if is_first {
            self.metrics.requests.held.increment();
            inner.count_class(key, asked.class, |class| class.held.increment());
        }
        self.call_attendant(inner, key);
        Admission::Waits(Wait::new(self.clone(), slot, now, asked.deadline))
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
    pub(crate) fn refuse_late(&self, now: Instant, asked: &Classified) -> Refusal {
        let shed = Shed { reason: Reason::CallerDeadline, retry_after: AT_A_BOUND };
        self.inner.borrow_mut().remember(now, asked, shed, None, false)
    }

    /// Refuses a request that was let in but that, after all, no upstream connection could take.
    pub(crate) fn refuse_admitted(&self, now: Instant, asked: &Classified) -> Refusal {
        let shed = Shed { reason: Reason::UpstreamConnections, retry_after: AT_A_BOUND };
        self.inner.borrow_mut().remember(now, asked, shed, None, false)
    }
}
