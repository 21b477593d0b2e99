//! A request that waits for room at the origin: let in, refused, or left by its client.

use super::UPSTREAMS_BUSY;
use crate::bounds::Taken;
use crate::classify::Classified;
use crate::permit::{Permit, Times};
use crate::refusal::Refusal;
use crate::sentry::{Opinion, Place, Wait};
use crate::worker::{Served, Worker};
use flashweir_core::Instant;
use std::rc::Rc;

/// A request that waits for its turn. Dropped, its client has gone.
#[derive(Debug)]
pub(crate) struct Waiting {
    wait: Wait,
    received: Instant,
    taken: Taken,
    inside: Inside,
}

/// A request between the two gates: the first has let it in, the second has not decided.
#[derive(Debug)]
struct Inside {
    worker: Rc<Worker>,
    served: Rc<Served>,
    asked: Classified,
    /// What the candidate policy makes of it.
    opinion: Option<Opinion>,
    is_over: bool,
}

impl Waiting {
    /// A request received at `received`, with its place among the gateway's own.
    pub(super) fn new(
        worker: Rc<Worker>,
        served: Rc<Served>,
        asked: &Classified,
        taken: Taken,
        (wait, opinion): (Wait, Option<Opinion>),
        received: Instant,
    ) -> Self {
        let inside = Inside { worker, served, asked: *asked, opinion, is_over: false };
        Self { wait, received, taken, inside }
    }

    /// Waits for the decision.
    pub(crate) async fn decided(self) -> Result<Permit, Refusal> {
        let Self { wait, received, taken, mut inside } = self;
        let decided = wait.await;
        inside.is_over = true;
        let opinion = inside.opinion.take();
        let (worker, served, asked) = (&inside.worker, &inside.served, &inside.asked);
        let times = Times { received, sent: worker.shared.clock.now() };
        match decided {
            Ok(place) if served.requests_open.get() < served.upstream_capacity => {
                let place = Place::compared(times.sent, Some(place), opinion);
                Ok(worker.let_in(asked, served.clone(), taken, times, place))
            }
            // There was room at the origin, but there is no connection left to it.
            Ok(_place) => {
                worker.gatekeeper.borrow_mut().gate.withdraw(times.sent, &asked.gate, true);
                Err(worker.shed(times.sent, asked, UPSTREAMS_BUSY, None))
            }
            Err(refused) => {
                let refused = refused.beside(opinion.as_ref());
                Err(worker.refuse_by_sentry(times.sent, asked, &refused))
            }
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if !self.is_over {
            let (worker, asked) = (&self.worker, &self.asked);
            let now = worker.shared.clock.now();
            worker.metrics.requests.left.increment();
            let cost_us = worker.cost_us(asked);
            worker.count_class(asked, |class| {
                class.left.increment();
                class.unmet_us.add(cost_us.into());
            });
            worker.gatekeeper.borrow_mut().gate.withdraw(now, &asked.gate, false);
            if let Some(opinion) = self.opinion.take() {
                opinion.live_left(now);
            }
        }
    }
}
