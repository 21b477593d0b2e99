//! A request that the pipeline refused, or that gave its turn back, while another answer for it may be on its way.
//!
//! The pipeline has charged the refusal, so that detector and verdict see the shortage as it is. What the client gets is open: a copy of
//! the response that another request fetches, or the refusal after all. Until then the request holds no place in the gateway; its
//! caller bounds how many there are (`CACHE_WAITERS`).

use super::copies::CopyPermit;
use super::host::PipelineHost;
use super::wait::{Decided, Wait};
use crate::classify::Classified;
use crate::refusal::Refusal;
use flashweir_admission::pipeline::{self, AdmissionRequest};
use flashweir_core::{Instant, Reason};
use std::future::poll_fn;
use std::rc::Rc;

/// What may answer a request in place of the origin, where it would be refused or have to wait.
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

/// What becomes of one for which there is no other answer.
pub(crate) enum Ended {
    /// It is refused.
    Refused(Refusal),
    /// It is to ask the pipeline once more, as another request: this one has been counted as one that left.
    AsksAgain,
}

/// Only a refusal for want of room at the origin or on the way there: a door that is closed stays closed.
pub(super) fn may_defer(refusal: &pipeline::Refusal) -> bool {
    !matches!(
        refusal.shed.reason,
        Reason::Draining
            | Reason::CallerDeadline
            | Reason::Connections
            | Reason::ConnectionsPerClient
            | Reason::RequestsInFlight
    )
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

    /// There is no other answer.
    pub(crate) fn end(mut self, now: Instant) -> Ended {
        let Some(Why::Refused(refusal)) = self.why.take_if(|why| matches!(why, Why::Refused(_))) else {
            return Ended::AsksAgain;
        };
        let inner = &mut *self.host.inner.borrow_mut();
        let cost_us = inner.pipeline.cost_us(&self.request);
        Ended::Refused(inner.shed(now, self.request.service, &self.asked, &refusal, cost_us))
    }

    /// A copy answers it, where the gateway has a place for it.
    pub(crate) fn answer(mut self, now: Instant) -> Result<CopyPermit, Ended> {
        let permit = CopyPermit::take(&self.host, &mut self.host.inner.borrow_mut(), now, &self.request);
        match permit {
            Some(permit) => {
                self.why = None;
                Ok(permit)
            }
            None => Err(self.end(now)),
        }
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if self.why.is_some() {
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
    /// The request's turn, or that it will have none: a refusal that its caller may still put off, or one that it may not. For requests
    /// that something else may answer ([`Instead::Flight`]); the others await the wait itself. One that `gives_way` when its turn has
    /// come leaves it to the next.
    pub(crate) async fn turn(&mut self, gives_way: impl Fn() -> bool) -> Decided {
        poll_fn(|cx| self.poll_decided(cx, &gives_way)).await
    }
}
