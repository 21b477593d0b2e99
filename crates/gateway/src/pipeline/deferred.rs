//! A request that the pipeline refused, or that gave its turn back, while another answer for it may be on its
//! way.
//!
//! The pipeline has charged the refusal, so that detector and verdict see the shortage as it is. What the
//! client gets is open: a copy of the response that another request fetches, or the refusal after all. Until
//! then the request holds no place in the gateway; its caller bounds how many there are (`CACHE_WAITERS`).

use super::copies::CopyPermit;
use super::host::PipelineHost;
use super::offered_request::OfferedRequest;
use crate::refusal::Refusal;
use flashweir_admission::pipeline::{self, Asking};
use flashweir_core::Instant;
use std::rc::Rc;

/// Source that may answer a request in place of the origin, where it would be refused or have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instead {
    /// Nothing.
    Nothing,
    /// A stored response that its caller has.
    Copy,
    /// The response that another request fetches, or is about to.
    Flight,
}

/// What a request gets in place of a refusal, or of a wait.
#[derive(Debug)]
pub(super) enum Substitute {
    /// A place in the gateway for the stored response that its caller has.
    Copy(CopyPermit),
    /// Time: its caller may yet have another answer for it.
    Deferred(Box<Deferred>),
}

impl Substitute {
    pub(super) fn copy(self) -> CopyPermit {
        match self {
            Self::Copy(permit) => permit,
            Self::Deferred(_) => unreachable!("no flight was said to answer it"),
        }
    }

    pub(super) fn deferred(self) -> Box<Deferred> {
        match self {
            Self::Deferred(deferred) => deferred,
            Self::Copy(_) => unreachable!("no copy was said to answer it"),
        }
    }
}

/// A request whose end is open. Dropped, its client has left.
#[derive(Debug)]
pub(crate) struct Deferred {
    pub(super) host: Rc<PipelineHost>,
    pub(super) asked: OfferedRequest,
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
    pub(super) fn new(host: Rc<PipelineHost>, asked: OfferedRequest, why: Why) -> Box<Self> {
        // It is rare, and larger than what else becomes of a request.
        Box::new(Self { host, asked, why: Some(why) })
    }

    /// The refusal, counted now; none where it was not refused.
    pub(super) fn refuse(mut self: Box<Self>, now: Instant) -> Result<Refusal, Box<Self>> {
        let Some(Why::Refused(refusal)) = self.why.take_if(|why| matches!(why, Why::Refused(_))) else {
            return Err(self);
        };
        let inner = &mut *self.host.inner.borrow_mut();
        let cost_us = inner.pipeline.cost_us(&self.asked.request);
        Ok(inner.shed(now, &self.asked, &refusal, cost_us))
    }

    /// A copy answers it; none, and it is as it was, where the gateway has no place for that.
    pub(crate) fn answer(mut self: Box<Self>, now: Instant) -> Result<CopyPermit, Box<Self>> {
        let permit =
            CopyPermit::take(&self.host, &mut self.host.inner.borrow_mut(), now, &self.asked.request);
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
        if self.why.is_some() && self.asked.request.asking != Asking::Refresh {
            let inner = self.host.inner.borrow();
            self.host.metrics.requests.left.increment();
            let request = &self.asked.request;
            let cost_us = inner.pipeline.cost_us(request);
            inner.count_class(request.service, request.class, |class| {
                class.left.increment();
                class.unmet_us.add(cost_us.into());
            });
        }
    }
}
