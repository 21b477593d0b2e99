//! A request that the pipeline refused, or that gave its turn back, while another answer for it may be on its
//! way.
//!
//! The pipeline has charged the refusal, so that detector and verdict see the shortage as it is. What the
//! client gets is open: a copy of the response that another request fetches, or the refusal after all. Until
//! then the request holds no place in the gateway; its caller bounds how many there are (`CACHE_WAITERS`).

use super::admit::Admission;
use super::copies::CopyPermit;
use super::host::PipelineHost;
use super::permit::Permit;
use super::wait::{Decided, Wait};
use crate::classify::Classified;
use crate::refusal::Refusal;
use flashweir_admission::pipeline::{self, AdmissionRequest, Asking};
use flashweir_core::{Instant, Reason};
use std::future::poll_fn;
use std::rc::Rc;

/// Source that may answer a request in place of the origin, where it would be refused or have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// Nothing.
    Nothing,
    /// A stored response that its caller has.
    Copy,
    /// The response that another request fetches, or is about to.
    Flight,
}

/// A request whose end is open. Dropped, its client has left.
#[derive(Debug)]
pub(crate) struct Deferred {
    host: Rc<PipelineHost>,
    asked: Classified,
    request: AdmissionRequest,
    /// None once it is decided.
    why: Option<Why>,
}

#[derive(Debug)]
pub(super) enum Why {
    /// It is refused, and its client has no answer yet.
    Refused(pipeline::Refusal),
    /// Its turn came while its document was being fetched: the slot is another's.
    GaveWay,
}

/// Only a refusal for want of room at the origin or on the way there: a door that is closed stays closed.
/// That of a request that no client sent has no owner.
pub(super) fn may_defer(request: &AdmissionRequest, refusal: &pipeline::Refusal) -> bool {
    let is_for_room = !matches!(
        refusal.shed.reason,
        Reason::Draining
            | Reason::CallerDeadline
            | Reason::Connections
            | Reason::ConnectionsPerClient
            | Reason::RequestsInFlight
    );
    is_for_room || request.asking == Asking::Refresh
}

impl Deferred {
    pub(super) fn new(
        host: Rc<PipelineHost>,
        asked: Classified,
        request: AdmissionRequest,
        why: Why,
    ) -> Box<Self> {
        // It is rare, and larger than what else becomes of a request.
        Box::new(Self { host, asked, request, why: Some(why) })
    }

    /// There is no other answer: it is refused, or asks the pipeline once more where it had a turn.
    pub(crate) async fn alone(
        self: Box<Self>,
        now: Instant,
        full: Option<Reason>,
    ) -> Result<Box<Permit>, Refusal> {
        let mut deferred = self;
        // Twice at most: one that asks again keeps its turn.
        loop {
            deferred = match deferred.refuse(now) {
                Ok(refusal) => return Err(refusal),
                Err(deferred) => match deferred.ask_again(now, full).decided().await {
                    Decided::Admitted(permit) => return Ok(permit),
                    Decided::Refused(refusal) => return Err(refusal),
                    Decided::Deferred(deferred) => deferred,
                },
            };
        }
    }

    /// The refusal, counted now; none where it was not refused.
    pub(super) fn refuse(mut self: Box<Self>, now: Instant) -> Result<Refusal, Box<Self>> {
        let Some(Why::Refused(refusal)) = self.why.take_if(|why| matches!(why, Why::Refused(_))) else {
            return Err(self);
        };
        let inner = &mut *self.host.inner.borrow_mut();
        let cost_us = inner.pipeline.cost_us(&self.request);
        Ok(inner.shed(now, self.request.service, &self.asked, &refusal, cost_us))
    }

    /// Asks the pipeline once more, for the room that there may be now. The request's demand and its refusal
    /// have been counted, and are not counted again; nor are those of this try.
    pub(crate) fn ask_again(mut self: Box<Self>, now: Instant, full: Option<Reason>) -> Admission {
        self.why = None;
        let closed = self.host.closed(full);
        let request = AdmissionRequest { asking: Asking::Again, candidate: None, closed, ..self.request };
        self.host.ask(now, &self.asked, request, Instead::Flight)
    }

    /// A copy answers it; none, and it is as it was, where the gateway has no place for that.
    pub(crate) fn answer(mut self: Box<Self>, now: Instant) -> Result<CopyPermit, Box<Self>> {
        let permit = CopyPermit::take(&self.host, &mut self.host.inner.borrow_mut(), now, &self.request);
        match permit {
            Some(permit) => {
                self.why = None;
                Ok(permit)
            }
            None => Err(self),
        }
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if self.why.is_some() && self.request.asking != Asking::Refresh {
            let inner = self.host.inner.borrow();
            self.host.metrics.requests.left.increment();
            let cost_us = inner.pipeline.cost_us(&self.request);
            inner.count_class(self.request.service, self.asked.class, |class| {
                class.left.increment();
                class.unmet_us.add(cost_us.into());
            });
        }
    }
}

impl Wait {
    /// The request's turn, or that it will have none: a refusal that its caller may still put off, or one
    /// that it may not. For requests that something else may answer ([`Instead::Flight`]); the others await
    /// the wait itself. One that `gives_way` when its turn has come leaves it to the next.
    pub(crate) async fn turn(&mut self, gives_way: impl Fn() -> bool) -> Decided {
        poll_fn(|cx| self.poll_decided(cx, &gives_way)).await
    }
}
