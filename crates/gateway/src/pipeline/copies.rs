//! A request that the cache answers: its place in the gateway, and how it is counted.

use super::host::PipelineHost;
use super::offered_request::OfferedRequest;
use super::worker_pipeline::WorkerPipeline;
use flashweir_admission::pipeline::{self, AdmissionRequest};
use flashweir_core::{Instant, Reason};
use flashweir_telemetry::Unmeasured;
use std::rc::Rc;

/// The place of such a request: it ends as completed, and as abandoned when simply dropped.
#[derive(Debug)]
pub(crate) struct CopyPermit {
    host: Rc<PipelineHost>,
    /// None once it has ended.
    permit: Option<pipeline::CopyPermit>,
}

impl PipelineHost {
    /// Takes a place for a request that a stored response answers; none where the door is closed to it, or
    /// the gateway is full.
    pub(crate) fn admit_copy(
        self: &Rc<Self>,
        now: Instant,
        asked: &OfferedRequest,
        full: Option<Reason>,
    ) -> Option<CopyPermit> {
        let OfferedRequest { request, source } = self.at_door(*asked, full);
        let inner = &mut *self.inner.borrow_mut();
        let permit = CopyPermit::take(self, inner, now, &request)?;
        let is_person = inner.pipeline.observe_conduct(now, &request.signs);
        if let Some(source) = source.filter(|_| is_person) {
            self.shared.impatient.saw_person(now, source);
        }
        inner.count_class(request.service, request.class, |class| class.offered.increment());
        // The others are counted when the pipeline's sample is drained.
        let is_unique = permit.permit.as_ref().is_some_and(|permit| permit.is_unique);
        self.metrics.requests.unique_offered.add(u64::from(is_unique));
        Some(permit)
    }
}

impl CopyPermit {
    /// Of a request that has been counted as offered.
    pub(super) fn take(
        host: &Rc<PipelineHost>,
        inner: &mut WorkerPipeline,
        now: Instant,
        request: &AdmissionRequest,
    ) -> Option<Self> {
        let permit = inner.pipeline.admit_copy(now, request)?;
        host.metrics.requests.admitted.increment();
        host.metrics.measurement.unmeasured.increment(Unmeasured::Cached);
        inner.count_class(request.service, request.class, |class| class.admitted.increment());
        Some(Self { host: host.clone(), permit: Some(permit) })
    }

    /// The whole answer has been handed over.
    pub(crate) fn completed(mut self) {
        self.host.metrics.requests.completed.increment();
        self.finish();
    }

    fn finish(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.host.inner.borrow_mut().pipeline.finish_copy(permit);
        }
    }
}

impl Drop for CopyPermit {
    fn drop(&mut self) {
        if self.permit.is_some() {
            self.host.metrics.requests.abandoned.increment();
            self.finish();
        }
    }
}
