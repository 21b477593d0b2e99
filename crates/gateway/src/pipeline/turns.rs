//! Turns of the requests that wait: given with the free room of a service, or refused.

use super::waiting::{Denied, Noticed, Waiting, may_defer};
use super::worker_pipeline::WorkerPipeline;
use flashweir_admission::pipeline::{self, Released, ServiceKey};
use flashweir_core::Instant;
use std::mem;
use std::task::Waker;

impl WorkerPipeline {
    /// The outcome of the request in this slot; while there is none, `waker` is woken when there is.
    pub(super) fn outcome(&mut self, slot: usize, waker: &Waker) -> Option<Noticed> {
        match &mut self.waiting[slot] {
            Waiting::ForTurn { waker: Some(known), .. } if known.will_wake(waker) => None,
            Waiting::ForTurn { waker: known, .. } => {
                *known = Some(waker.clone());
                None
            }
            Waiting::ForHandler { .. } => match self.waiting.remove(slot) {
                Waiting::ForHandler { asked, decided } => Some((asked, decided)),
                Waiting::ForTurn { .. } => None,
            },
        }
    }

    /// Gives the free room of a service to those who wait, and refuses those who waited too long.
    pub(super) fn release(&mut self, now: Instant, key: ServiceKey) {
        self.follow_flash_crowd(now);
        self.follow_service(now, key);
        while let Some(released) = self.pipeline.next(now, key) {
            self.released(now, released);
        }
        let Some(hosted) = self.hosted(key).and_then(|hosted| hosted.sentry.as_ref()) else { return };
        if let Some(other) = self.pipeline.who_waits(key) {
            hosted.sentry.ring(other);
        }
        if !self.pipeline.has_service(key) {
            // The attendant notices that there is nothing left to attend to.
            hosted.sentry.ring(self.worker);
        }
    }

    /// A request that waited, waits no longer.
    fn released(&mut self, now: Instant, released: Released<usize>) {
        match released {
            Released::Admitted(slot, permit, shadow) => {
                if let (Some(refusal), Waiting::ForTurn { asked, .. }) = (shadow, &self.waiting[slot]) {
                    let asked = *asked;
                    self.shed_in_shadow(now, &asked, &refusal);
                }
                self.decide(slot, Ok(permit));
            }
            Released::Refused(slot, refusal) => self.refuse_waiting(now, slot, &refusal),
        }
    }

    /// Refuses a request that waits.
    pub(super) fn refuse_waiting(&mut self, now: Instant, slot: usize, refusal: &pipeline::Refusal) {
        if let Waiting::ForTurn { asked, defers, .. } = &self.waiting[slot] {
            let asked = *asked;
            if *defers && may_defer(&asked.request, refusal) {
                self.decide(slot, Err(Denied::Deferred(*refusal)));
                return;
            }
            let cost_us = self.pipeline.cost_us(&asked.request);
            let refusal = self.shed(now, &asked, refusal, cost_us);
            self.decide(slot, Err(Denied::Refused(refusal)));
        }
    }

    fn decide(&mut self, slot: usize, decided: Result<pipeline::Permit, Denied>) {
        let Waiting::ForTurn { asked, .. } = &self.waiting[slot] else { return };
        let decided = Waiting::ForHandler { asked: *asked, decided };
        if let Waiting::ForTurn { waker: Some(waker), .. } = mem::replace(&mut self.waiting[slot], decided) {
            waker.wake();
        }
    }
}
