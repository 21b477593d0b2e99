//! What an admitted request owes at its end, and when that is.
//!
//! There are two ends. The *origin's*: its last byte has come, it failed, or the rest of the response is no work for it
//! (a tunnel, an event stream, a client that does not take more); then the sentry's place is free. And the *request's*:
//! the client has been handed everything, or is gone; that is what the counters of requests tell.

use crate::bounds::Taken;
use crate::sentry::Place;
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
    /// What the origin says that the request took, microseconds.
    measured_us: Option<u32>,
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
        Self { worker, served, _place: place, times, at_origin, measured_us: None, told: false }
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

    /// The origin has said what the request took it, microseconds.
    pub(crate) fn measured(&mut self, took_us: u32) {
        self.measured_us = Some(took_us);
    }

    /// The origin is done, or the rest is no work: the place there is free for the next.
    pub(crate) fn leave_origin(&mut self) {
        let ending = self.ending(true);
        self.end_at_origin(ending);
    }

    /// The place at the origin, for who can tell better when it is free; and what to tell the sentry then.
    pub(crate) fn take_place(&mut self) -> Option<(Place, Ending)> {
        let ending = self.ending(true);
        self.at_origin.take().map(|place| (place, ending))
    }

    /// How a request with this status ends for the sentry: an error that came quickly must not look like a fast service.
    pub(crate) fn ending_with(&self, status: StatusCode) -> Ending {
        self.ending(!status.is_server_error())
    }

    /// The upstream answered in full; an answer of 5xx finishes too, but not without error.
    pub(crate) fn completed(mut self, status: StatusCode) {
        self.told = true;
        let ending = self.ending_with(status);
        self.end_at_origin(ending);
        self.worker.metrics.requests.completed.increment();
        if !status.is_server_error() {
            self.worker.gatekeeper.borrow_mut().completed();
        }
    }

    /// Answered without the upstream: nothing can be learned of it from this.
    pub(crate) fn answered_here(mut self, status: StatusCode) {
        self.end_at_origin(Ending::default());
        self.completed(status);
    }

    fn ending(&self, completed: bool) -> Ending {
        Ending { completed, measured_us: self.measured_us }
    }

    fn end_at_origin(&mut self, ending: Ending) {
        if let Some(place) = self.at_origin.take() {
            place.end(ending);
        }
    }

    /// The upstream failed it.
    pub(crate) fn failed(mut self) {
        self.told = true;
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
