//! Duties of an admitted request at its end, and when that end is.
//!
//! There are two ends. The *origin's*: its last byte has come, it failed, or the rest of the response is no
//! work for it (a tunnel, an event stream, a client that does not take more); then its slot is free. And the
//! *request's*: the client has been handed everything, or is gone; that is what the counters of requests
//! tell.

use super::host::PipelineHost;
use super::share_guard::ShareGuard;
use super::slow_clients::Yielding;
use super::worker_pipeline::WorkerPipeline;
use crate::load_report::LoadReport;
use flashweir_admission::pipeline::{
    self, AdmissionRequest, Asking, Delivery, FailureSource, Judged, OriginReport, RequestOutcome,
};
use flashweir_core::Instant;
use flashweir_telemetry::{Counter, RequestMetrics, Unmeasured};
use http::StatusCode;
use std::rc::Rc;

/// An admitted request's accounting: it ends as completed or failed, and as abandoned when simply dropped;
/// there is no fourth way, so no request can be lost.
#[derive(Debug)]
pub(crate) struct Permit {
    host: Rc<PipelineHost>,
    /// None once it has ended.
    permit: Option<pipeline::Permit>,
    times: Times,
    /// The share at the origin, until the origin is done.
    at_origin: Option<ShareGuard>,
    /// The same once its client may hold it up.
    yielding: Option<Rc<Yielding>>,
    /// The origin's report on the request and on itself.
    report: OriginReport,
    /// A client sent it: it is counted among the requests.
    is_clients: bool,
}

/// A request's beginnings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Time at which it was received.
    pub(crate) received: Instant,
    /// Time at which it was sent to the origin: later, if it had to wait.
    pub(crate) sent: Instant,
}

impl Permit {
    /// A request that goes to the origin now.
    pub(super) fn new(
        host: Rc<PipelineHost>,
        inner: &WorkerPipeline,
        mut permit: pipeline::Permit,
        request: &AdmissionRequest,
        times: Times,
    ) -> Box<Self> {
        let is_clients = request.asking != Asking::Refresh;
        if is_clients {
            host.metrics.requests.admitted.increment();
            inner.count_class(request.service, request.class, |class| class.admitted.increment());
        }
        let at_origin = permit.take_origin_share().map(|share| ShareGuard::new(host.inner.clone(), share));
        let report = OriginReport::default();
        // It goes through many hands, and into the response's body.
        Box::new(Self { host, permit: Some(permit), times, at_origin, yielding: None, report, is_clients })
    }

    /// Time at which the request was received.
    pub(crate) fn received(&self) -> Instant {
        self.times.received
    }

    /// Time at which it was sent to the origin: after waiting, if it had to. Its wait here says nothing about
    /// the service.
    pub(crate) fn sent(&self) -> Instant {
        self.times.sent
    }

    /// Part of its response's time that is judged as the flash-crowd stage's.
    pub(crate) fn judged(&self) -> Judged {
        let inner = self.host.inner.borrow();
        self.permit.as_ref().map_or(Judged::Whole, |permit| inner.pipeline.judged(permit.service()))
    }

    /// Factor by which responses of its service may now take longer than usual.
    pub(crate) fn target_stretch(&self) -> f32 {
        let inner = self.host.inner.borrow();
        self.permit.as_ref().map_or(1.0, |permit| inner.pipeline.target_stretch(permit.service()))
    }

    /// The origin has said something, before the body or behind it.
    pub(crate) fn origin_reported(&mut self, report: LoadReport) {
        self.report = OriginReport { measured_us: report.took_us.or(self.report.measured_us) };
    }

    /// The origin is done, or the rest is no work: the slot there is free for the next.
    pub(crate) fn leave_origin(&mut self) {
        self.end_at_origin(RequestOutcome::Completed(self.report));
    }

    /// The share at the origin, which follows the client's progress: others get its slot while the client is
    /// waited for. None where there is no share, or no longer one.
    pub(crate) fn watch_client(&mut self) -> Option<&Rc<Yielding>> {
        if let Some(share_guard) = self.at_origin.take() {
            let yielding = Yielding::new(share_guard);
            self.host.watch(&yielding);
            self.yielding = Some(yielding);
        }
        self.yielding.as_ref()
    }

    /// Returns whether the client sent its request's body so slowly that the response's latency is not the
    /// service's.
    pub(crate) fn is_client_slow(&self) -> bool {
        self.yielding.as_ref().is_some_and(|yielding| yielding.is_slow())
    }

    /// The origin has begun to answer.
    pub(crate) fn answered(&self, now: Instant) {
        self.yielding.iter().for_each(|yielding| yielding.answered(now));
    }

    /// The client was handed a part of the response that is not the last: it is its turn.
    pub(crate) fn handed_part(&mut self, now: Instant) {
        let outcome = RequestOutcome::Completed(self.report);
        self.watch_client().into_iter().for_each(|yielding| yielding.handed(now, outcome));
    }

    /// The client wants the next part.
    pub(crate) fn asked_for_more(&self) {
        self.yielding.iter().for_each(|yielding| yielding.asked());
    }

    /// The upstream answered in full, and whether the client gets that is not followed.
    pub(crate) fn completed(self: Box<Self>, status: StatusCode) {
        let host = self.host.clone();
        let delivery = self.handed_over(host.shared.clock.now(), status);
        delivery.into_iter().for_each(|delivery| host.deliver(delivery, true));
    }

    /// The upstream answered in full, and the client gets it from here; an answer of 5xx finishes too, but
    /// not without error: an error that came quickly must not look like a fast service.
    pub(crate) fn handed_over(mut self: Box<Self>, now: Instant, status: StatusCode) -> Option<Delivery> {
        self.count(|requests| &requests.completed);
        self.finish(
            now,
            match status.is_server_error() {
                true => RequestOutcome::Failed(FailureSource::Origin),
                false => RequestOutcome::Completed(self.report),
            },
        )
    }

    /// Answered without the upstream: nothing can be learned of the origin from this.
    pub(crate) fn answered_here(mut self: Box<Self>, status: StatusCode) {
        self.end_at_origin(RequestOutcome::Withdrawn);
        self.completed(status);
    }

    /// It failed, and whose doing that was.
    pub(crate) fn failed(mut self: Box<Self>, source: FailureSource) {
        self.count(|requests| &requests.failed);
        let delivery = self.finish(self.host.shared.clock.now(), RequestOutcome::Failed(source));
        debug_assert!(delivery.is_none(), "what failed is not delivered");
    }

    fn count(&self, counter: impl FnOnce(&RequestMetrics) -> &Counter) {
        if self.is_clients {
            counter(&self.host.metrics.requests).increment();
        }
    }

    fn end_at_origin(&mut self, outcome: RequestOutcome) {
        if let Some(share_guard) = self.at_origin.take() {
            share_guard.end(outcome);
        }
        if let Some(yielding) = self.yielding.take() {
            yielding.end(outcome);
        }
    }

    fn finish(&mut self, now: Instant, outcome: RequestOutcome) -> Option<Delivery> {
        if let Some(share_guard) = self.at_origin.take() {
            share_guard.end_at(now, outcome);
        }
        self.end_at_origin(outcome);
        let permit = self.permit.take()?;
        self.host.inner.borrow_mut().pipeline.finish(now, permit, outcome)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.permit.is_some() {
            self.count(|requests| &requests.abandoned);
            self.host.metrics.measurement.unmeasured.increment(Unmeasured::Cancelled);
            let delivery = self.finish(self.host.shared.clock.now(), RequestOutcome::Abandoned);
            debug_assert!(delivery.is_none(), "what was abandoned is not delivered");
        }
    }
}
