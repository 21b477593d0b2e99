//! A request that the pipeline refused, or that gave its turn back, while another answer for it may be on its
//! way.
//!
//! The pipeline has charged the refusal, so that detector and verdict see the shortage as it is. What the
//! client gets is open: a copy of the response that another request fetches, or the refusal after all. Until
//! then the request holds no place in the gateway; its caller bounds how many there are (`CACHE_WAITERS`).

use super::copies::CopyPermit;
use super::host::PipelineHost;
use crate::classify::Classified;
use crate::refusal::Refusal;
use flashweir_admission::pipeline::{self, AdmissionRequest, Asking};
use flashweir_core::Instant;
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
    pub(super) host: Rc<PipelineHost>,
    pub(super) asked: Classified,
    pub(super) request: AdmissionRequest,
    /// None once it is decided.
    pub(super) why: Option<Why>,
}

#[derive(Debug)]
pub(super) enum Why {
    /// It is refused, and its client has no answer yet.
    Refused(pipeline::Refusal),
    /// Its turn came while its document was being fetched: the slot is another's.
    GaveWay,
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

    /// The refusal, counted now; none where it was not refused.
    pub(super) fn refuse(mut self: Box<Self>, now: Instant) -> Result<Refusal, Box<Self>> {
        let Some(Why::Refused(refusal)) = self.why.take_if(|why| matches!(why, Why::Refused(_))) else {
            return Err(self);
        };
        let inner = &mut *self.host.inner.borrow_mut();
        let cost_us = inner.pipeline.cost_us(&self.request);
        Ok(inner.shed(now, self.request.service, &self.asked, &refusal, cost_us))
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
