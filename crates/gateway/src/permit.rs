//! What an admitted request owes at its end, and when that is.
//!
//! There are two ends. The *origin's*: its last byte has come, it failed, or the rest of the response is no work for it
//! (a tunnel, an event stream, a client that does not take more); then the sentry's place is free. And the *request's*:
//! the client has been handed everything, or is gone; that is what the counters of requests tell.

use crate::bounds::Taken;
use crate::load_report::Told;
use crate::sentry::{Place, Yielding};
use crate::worker::{Served, Worker};
use flashweir_admission::sentry::Ending;
use flashweir_core::Instant;
use flashweir_telemetry::Unmeasured;
use http::StatusCode;
use std::rc::Rc;

/// An admitted request's accounting: it ends as completed or failed, and as abandoned when simply dropped; there is
/// no fourth way, so no request can be lost.
#[derive(Debug)]
pub(crate) struct Permit {
    worker: Rc<Worker>,
    served: Rc<Served>,
    /// The place among the requests in flight, given back on drop.
    _place: Taken,
    times: Times,
    /// The place at the origin, until the origin is done.
    at_origin: Option<Place>,
    /// The same once its client may hold it up.
    yielding: Option<Rc<Yielding>>,
    /// What the origin says of the request and of itself.
    told_by_origin: Told,
    told: bool,
}

/// A request's beginnings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// When it was received.
    pub(crate) received: Instant,
    /// When it was sent to the origin: later, if it had to wait.
    pub(crate) sent: Instant,
}

impl Permit {
    /// A request that goes to the origin now.
    pub(crate) fn new(
        worker: Rc<Worker>,
        served: Rc<Served>,
        place: Taken,
        times: Times,
        at_origin: Option<Place>,
    ) -> Self {
        worker.metrics.requests.admitted.increment();
        worker.requests_open.set(worker.requests_open.get() + 1);
        served.requests_open.set(served.requests_open.get() + 1);
        Self {
            worker,
            served,
            _place: place,
            times,
            at_origin,
            yielding: None,
            told_by_origin: Told::default(),
            told: false,
        }
    }

    /// The worker it belongs to.
    pub(crate) fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }

    /// When the request was received.
    pub(crate) fn received(&self) -> Instant {
        self.times.received
    }

    /// When it was sent to the origin: after waiting, if it had to. What it waited here says nothing about the service.
    pub(crate) fn sent(&self) -> Instant {
        self.times.sent
    }

    /// The origin has said something, before the body or behind it.
    pub(crate) fn origin_told(&mut self, told: Told) {
        let before = self.told_by_origin;
        self.told_by_origin = Told {
            took_us: told.took_us.or(before.took_us),
            utilisation_milli: told.utilisation_milli.or(before.utilisation_milli),
        };
    }

    /// The origin is done, or the rest is no work: the place there is free for the next.
    pub(crate) fn leave_origin(&mut self) {
        let ending = self.ending(true);
        self.end_at_origin(ending);
    }

    /// The place at the origin, to be told of the client's doings: others get it while the client is waited for. None
    /// where there is none, or none any more.
    pub(crate) fn watch_client(&mut self) -> Option<&Rc<Yielding>> {
        if let Some(place) = self.at_origin.take() {
            let yielding = Yielding::new(place);
            self.worker.slow_clients.borrow_mut().watch(&yielding);
            self.worker.sweep_wanted.notify_one();
            self.yielding = Some(yielding);
        }
        self.yielding.as_ref()
    }

    /// Whether the client sent its request's body so slowly that the response's latency is not the service's.
    pub(crate) fn is_client_slow(&self) -> bool {
        self.yielding.as_ref().is_some_and(|yielding| yielding.is_slow())
    }

    /// The origin has begun to answer.
    pub(crate) fn answered(&self, now: Instant) {
        self.yielding.iter().for_each(|yielding| yielding.answered(now));
    }

    /// The client was handed a part of the response that is not the last: it is its turn.
    pub(crate) fn handed_part(&mut self, now: Instant) {
        let ending = self.ending(true);
        self.watch_client().into_iter().for_each(|yielding| yielding.handed(now, ending));
    }

    /// The client wants the next part.
    pub(crate) fn asked_for_more(&self) {
        self.yielding.iter().for_each(|yielding| yielding.asked());
    }

    /// The upstream answered in full; an answer of 5xx finishes too, but not without error: an error that came quickly
    /// must not look like a fast service.
    pub(crate) fn completed(mut self, status: StatusCode) {
        self.told = true;
        let ending = self.ending(!status.is_server_error());
        self.end_at_origin(ending);
        self.worker.metrics.requests.completed.increment();
        if !status.is_server_error() {
            self.worker.gatekeeper.borrow_mut().completed();
        }
    }

    /// Answered without the upstream: nothing can be learned of it from this.
    pub(crate) fn answered_here(mut self, status: StatusCode) {
        self.end_at_origin(Ending::WITHDRAWN);
        self.completed(status);
    }

    fn ending(&self, completed: bool) -> Ending {
        let Told { took_us, utilisation_milli } = self.told_by_origin;
        Ending { completed, withdrawn: false, measured_us: took_us, utilisation_milli }
    }

    fn end_at_origin(&mut self, ending: Ending) {
        if let Some(place) = self.at_origin.take() {
            place.end(ending);
        }
        if let Some(yielding) = self.yielding.take() {
            yielding.end(ending);
        }
    }

    /// The upstream failed it.
    pub(crate) fn failed(mut self) {
        self.told = true;
        let ending = self.ending(false);
        self.end_at_origin(ending);
        self.worker.metrics.requests.failed.increment();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.worker.requests_open.set(self.worker.requests_open.get() - 1);
        self.served.requests_open.set(self.served.requests_open.get() - 1);
        if !self.told {
            self.worker.metrics.requests.abandoned.increment();
            self.worker.metrics.measurement.unmeasured.increment(Unmeasured::Cancelled);
        }
    }
}
