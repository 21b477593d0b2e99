//! A request that waits for its turn.

use super::copies::CopyPermit;
use super::deferred::{Deferred, Why};
use super::host::PipelineHost;
use super::offered_request::OfferedRequest;
use super::permit::{Permit, Times};
use super::waiting::{Denied, Noticed, Waiting};
use crate::refusal::Refusal;
use flashweir_admission::pipeline::{self, AdmissionRequest, Asking, RequestOutcome};
use flashweir_core::Instant;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::time::{Sleep, sleep};

/// Resolves when the request is let in or refused. Dropped before (the client has gone), it leaves the queue
/// at once.
#[derive(Debug)]
pub(crate) struct Wait {
    host: Rc<PipelineHost>,
    /// Its slot; none once it is over.
    slot: Option<usize>,
    received: Instant,
    /// Ends when its caller can use no answer any more, where it said so.
    expiry: Option<Pin<Box<Sleep>>>,
}

/// Outcome of a queued request.
pub(crate) enum Decided {
    Admitted(Box<Permit>),
    Refused(Refusal),
    Deferred(Box<Deferred>),
}

impl Wait {
    pub(super) fn new(
        host: Rc<PipelineHost>,
        slot: usize,
        received: Instant,
        deadline: Option<Instant>,
    ) -> Self {
        let expiry = deadline.map(|deadline| Box::pin(sleep(deadline.saturating_since(received))));
        Self { host, slot: Some(slot), received, expiry }
    }

    /// Returns whether something became of it. Where its turn has come, `gives_way` says whether it leaves
    /// that to the next.
    fn poll_decided(&mut self, cx: &mut Context<'_>, gives_way: &dyn Fn() -> bool) -> Poll<Decided> {
        let Some(slot) = self.slot else { return Poll::Pending };
        let mut decided = self.host.inner.borrow_mut().outcome(slot, cx.waker());
        let is_over = |expiry: &mut Pin<Box<Sleep>>| expiry.as_mut().poll(cx).is_ready();
        if decided.is_none() && self.expiry.as_mut().is_some_and(is_over) {
            decided = self.host.expire(slot);
        }
        let Some((asked, decided)) = decided else { return Poll::Pending };
        self.slot = None;
        let (host, now) = (self.host.clone(), self.host.shared.clock.now());
        Poll::Ready(match decided {
            Ok(permit) if gives_way() => {
                host.withdraw(now, &asked.request, permit);
                Decided::Deferred(Deferred::new(host, asked, Why::GaveWay))
            }
            Ok(permit) => {
                let times = Times { received: self.received, sent: now };
                let inner = &*host.inner.borrow();
                Decided::Admitted(Permit::new(host.clone(), inner, permit, &asked.request, times))
            }
            Err(Denied::Refused(refusal)) => Decided::Refused(refusal),
            Err(Denied::Deferred(refusal)) => {
                Decided::Deferred(Deferred::new(host, asked, Why::Refused(refusal)))
            }
        })
    }

    /// The request's turn, or that it will have none: a refusal that its caller may still put off, or one
    /// that it may not. For requests that something else may answer; the others await the wait itself. One
    /// that `gives_way` when its turn has come leaves it to the next.
    pub(crate) async fn turn(&mut self, gives_way: impl Fn() -> bool) -> Decided {
        poll_fn(|cx| self.poll_decided(cx, &gives_way)).await
    }

    /// A stored response answers it: it leaves the queue. None, and it waits on, where the gateway has no
    /// place for that.
    pub(crate) fn answer(&mut self, now: Instant) -> Option<CopyPermit> {
        let slot = self.slot?;
        let host = self.host.clone();
        let mut inner = host.inner.borrow_mut();
        if matches!(inner.waiting[slot], Waiting::ForHandler { decided: Err(Denied::Refused(_)), .. }) {
            return None;
        }
        let request = *inner.waiting[slot].request();
        let copy = CopyPermit::take(&host, &mut inner, now, &request)?;
        self.slot = None;
        match inner.waiting.remove(slot) {
            Waiting::ForTurn { ticket, .. } => drop(inner.pipeline.leave(now, ticket)),
            // Its turn came just now: it is another's.
            Waiting::ForHandler { decided: Ok(permit), .. } => {
                drop(inner);
                host.withdraw(now, &request, permit);
            }
            Waiting::ForHandler { decided: Err(_), .. } => {}
        }
        Some(copy)
    }
}

impl Future for Wait {
    type Output = Result<Box<Permit>, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_decided(cx, &|| false).map(|decided| match decided {
            Decided::Admitted(permit) => Ok(permit),
            Decided::Refused(refusal) => Err(refusal),
            Decided::Deferred(deferred) => match deferred.refuse(self.host.shared.clock.now()) {
                Ok(refusal) => Err(refusal),
                Err(_) => unreachable!("it does not give way"),
            },
        })
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.host.leave(slot);
        }
    }
}

impl PipelineHost {
    /// The deadline of the request in this slot is over; none where it no longer waits, which its next poll
    /// finds out.
    fn expire(&self, slot: usize) -> Option<Noticed> {
        let now = self.shared.clock.now();
        let inner = &mut *self.inner.borrow_mut();
        let Waiting::ForTurn { asked, ticket, .. } = &inner.waiting[slot] else { return None };
        let asked = *asked;
        let (_, refusal) = inner.pipeline.expire(now, *ticket)?;
        inner.waiting.remove(slot);
        let cost_us = inner.pipeline.cost_us(&asked.request);
        let refusal = inner.shed(now, &asked, &refusal, cost_us);
        Some((asked, Err(Denied::Refused(refusal))))
    }

    /// The client of the request in this slot has gone.
    fn leave(&self, slot: usize) {
        let now = self.shared.clock.now();
        let mut inner = self.inner.borrow_mut();
        let (OfferedRequest { request, .. }, permit) = match inner.waiting.remove(slot) {
            Waiting::ForTurn { asked, ticket, .. } => {
                inner.pipeline.leave(now, ticket);
                (asked, None)
            }
            Waiting::ForHandler { asked, decided: Ok(permit) } => (asked, Some(permit)),
            // It has been counted as refused.
            Waiting::ForHandler { decided: Err(Denied::Refused(_)), .. } => return,
            Waiting::ForHandler { asked, decided: Err(Denied::Deferred(_)) } => (asked, None),
        };
        if request.asking != Asking::Refresh {
            self.metrics.requests.left.increment();
            let cost_us = inner.pipeline.cost_us(&request);
            inner.count_class(request.service, request.class, |class| {
                class.left.increment();
                class.unmet_us.add(cost_us.into());
            });
        }
        drop(inner);
        if let Some(permit) = permit {
            self.withdraw(now, &request, permit);
        }
    }

    /// A request that was admitted needs nothing of the origin: its slot is another's.
    fn withdraw(&self, now: Instant, request: &AdmissionRequest, permit: pipeline::Permit) {
        let delivery = self.inner.borrow_mut().pipeline.finish(now, permit, RequestOutcome::Withdrawn);
        debug_assert!(delivery.is_none(), "nothing was answered");
        self.inner.borrow_mut().release(now, request.service);
    }
}
