//! A request that waits for its turn.

use super::host::{Inner, PipelineHost};
use super::permit::{Permit, Times};
use crate::classify::Classified;
use crate::refusal::Refusal;
use flashweir_admission::pipeline::{self, AdmissionRequest, Outcome, Released, Ticket};
use flashweir_core::Instant;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::time::{Sleep, sleep};

/// Resolves when the request is let in or refused. Dropped before (the client has gone), it leaves the queue at once.
#[derive(Debug)]
pub(crate) struct Wait {
    host: Rc<PipelineHost>,
    /// Its slot; none once it is over.
    slot: Option<usize>,
    received: Instant,
    /// Ends when its caller can use no answer any more, where it said so.
    expiry: Option<Pin<Box<Sleep>>>,
}

/// What is kept of a request that waits.
pub(super) enum Waiting {
    /// For its turn.
    ForTurn { asked: Classified, request: AdmissionRequest, ticket: Ticket, waker: Option<Waker> },
    /// For its handler to take notice.
    ForHandler { asked: Classified, request: AdmissionRequest, decided: Result<pipeline::Permit, Refusal> },
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
}

impl Future for Wait {
    type Output = Result<Box<Permit>, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(slot) = self.slot else { return Poll::Pending };
        let mut decided = self.host.inner.borrow_mut().outcome(slot, cx.waker());
        let is_over = |expiry: &mut Pin<Box<Sleep>>| expiry.as_mut().poll(cx).is_ready();
        if decided.is_none() && self.expiry.as_mut().is_some_and(is_over) {
            decided = self.host.expire(slot).map(Err);
        }
        let Some(decided) = decided else { return Poll::Pending };
        self.slot = None;
        let times = Times { received: self.received, sent: self.host.shared.clock.now() };
        Poll::Ready(decided.map(|permit| Permit::new(self.host.clone(), permit, times)))
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
    /// The deadline of the request in this slot is over; none where it no longer waits, which its next poll finds out.
    fn expire(&self, slot: usize) -> Option<Refusal> {
        let now = self.shared.clock.now();
        let inner = &mut *self.inner.borrow_mut();
        let Waiting::ForTurn { asked, request, ticket, .. } = &inner.waiting[slot] else { return None };
        let (asked, request) = (*asked, *request);
        let (_, refusal) = inner.pipeline.expire(now, *ticket)?;
        inner.waiting.remove(slot);
        let cost_us = inner.pipeline.cost_us(&request);
        Some(inner.shed(now, request.service, &asked, &refusal, cost_us))
    }

    /// The client of the request in this slot has gone.
    fn leave(&self, slot: usize) {
        let now = self.shared.clock.now();
        let mut inner = self.inner.borrow_mut();
        let (asked, request, permit) = match inner.waiting.remove(slot) {
            Waiting::ForTurn { asked, request, ticket, .. } => {
                inner.pipeline.leave(now, ticket);
                (asked, request, None)
            }
            Waiting::ForHandler { asked, request, decided: Ok(permit) } => (asked, request, Some(permit)),
            // It has been counted as refused.
            Waiting::ForHandler { decided: Err(_), .. } => return,
        };
        self.metrics.requests.left.increment();
        let cost_us = inner.pipeline.cost_us(&request);
        inner.count_class(request.service, asked.class, |class| {
            class.left.increment();
            class.unmet_us.add(cost_us.into());
        });
        if let Some(permit) = permit {
            let delivery = inner.pipeline.finish(now, permit, Outcome::Withdrawn);
            debug_assert!(delivery.is_none(), "nothing was answered");
            drop(inner);
            self.release(now, request.service);
        }
    }
}

impl Inner {
    /// What became of the request in this slot; until something did, `waker` is told when it does.
    fn outcome(&mut self, slot: usize, waker: &Waker) -> Option<Result<pipeline::Permit, Refusal>> {
        match &mut self.waiting[slot] {
            Waiting::ForTurn { waker: Some(known), .. } if known.will_wake(waker) => None,
            Waiting::ForTurn { waker: known, .. } => {
                *known = Some(waker.clone());
                None
            }
            Waiting::ForHandler { .. } => match self.waiting.remove(slot) {
                Waiting::ForHandler { asked, request, decided } => {
                    if decided.is_ok() {
                        self.count_class(request.service, asked.class, |class| class.admitted.increment());
                    }
                    Some(decided)
                }
                Waiting::ForTurn { .. } => None,
            },
        }
    }

    /// A request that waited, waits no longer.
    pub(super) fn release(&mut self, now: Instant, released: Released<usize>) {
        match released {
            Released::Admitted(slot, permit, shadow) => {
                if let (Some(refusal), Waiting::ForTurn { asked, request, .. }) =
                    (shadow, &self.waiting[slot])
                {
                    let (asked, key) = (*asked, request.service);
                    self.shed_in_shadow(now, key, &asked, &refusal);
                }
                self.decide(slot, Ok(permit));
            }
            Released::Refused(slot, refusal) => self.refuse_waiting(now, slot, &refusal),
        }
    }

    /// Refuses a request that waits.
    pub(super) fn refuse_waiting(&mut self, now: Instant, slot: usize, refusal: &pipeline::Refusal) {
        if let Waiting::ForTurn { asked, request, .. } = &self.waiting[slot] {
            let (asked, request) = (*asked, *request);
            let cost_us = self.pipeline.cost_us(&request);
            let refusal = self.shed(now, request.service, &asked, refusal, cost_us);
            self.decide(slot, Err(refusal));
        }
    }

    fn decide(&mut self, slot: usize, decided: Result<pipeline::Permit, Refusal>) {
        let Waiting::ForTurn { asked, request, .. } = &self.waiting[slot] else { return };
        let decided = Waiting::ForHandler { asked: *asked, request: *request, decided };
        if let Waiting::ForTurn { waker: Some(waker), .. } = mem::replace(&mut self.waiting[slot], decided) {
            waker.wake();
        }
    }
}
