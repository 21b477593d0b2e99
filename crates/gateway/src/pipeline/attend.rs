//! Answers the bell of a service's sentry, and the clock, for as long as the service is there.

use super::host::PipelineHost;
use crate::sentry::{CandidateSample, GateSample, Sentry};
use flashweir_admission::pipeline::ServiceKey;
use flashweir_core::{Duration, Instant};
use flashweir_telemetry::Bound;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A timer that is due already waits this long all the same: a mistake must not keep the worker busy with
/// itself.
const PAUSE_MIN: Duration = Duration::from_millis(1);

impl PipelineHost {
    /// Answers the bell and the clock until the service has gone.
    pub(crate) async fn attend(host: Weak<Self>, key: ServiceKey) {
        let Some(sentry) = host.upgrade().and_then(|host| host.sentry(key)) else { return };
        while let Some((host, due)) =
            host.upgrade().and_then(|host| Some((Rc::downgrade(&host), host.plan_look(key, &sentry)?)))
        {
            let Some(strong) = host.upgrade() else { return };
            let (clock, worker) = (strong.shared.clock, strong.worker);
            drop(strong);
            let rung = sentry.rung(worker);
            match due {
                // Either way there is something to look at.
                Some(at) => drop(tokio::time::timeout_at(clock.timer_at(at), rung).await),
                None => rung.await,
            }
            let Some(host) = host.upgrade() else { return };
            let now = clock.now();
            if sentry.take_sample_wanted(worker) {
                host.report(now, key, &sentry);
            }
            host.inner.borrow_mut().release(now, key);
        }
    }

    /// The sentry of a service, while that is there.
    fn sentry(&self, key: ServiceKey) -> Option<Arc<Sentry>> {
        let inner = self.inner.borrow();
        let hosted = inner.hosted(key).filter(|_| inner.pipeline.has_service(key))?;
        hosted.sentry.as_ref().map(|hosted| hosted.sentry.clone())
    }

    /// Time of the next look without a wake-up; none once this sentry's service has gone.
    fn plan_look(&self, key: ServiceKey, sentry: &Arc<Sentry>) -> Option<Option<Instant>> {
        let inner = self.inner.borrow();
        let hosted = inner.hosted(key).filter(|_| inner.pipeline.has_service(key))?.sentry.as_ref()?;
        if !Arc::ptr_eq(&hosted.sentry, sentry) {
            return None;
        }
        let soonest = self.shared.clock.now() + PAUSE_MIN;
        hosted.looks_at.set(inner.pipeline.next_wake(key).map(|at| at.max(soonest)));
        Some(hosted.looks_at.get())
    }

    /// Hands a sample to the planners; keeps accumulating while their queue is full.
    fn report(&self, now: Instant, key: ServiceKey, sentry: &Arc<Sentry>) {
        let Ok(place) = self.gate_samples.try_reserve() else {
            self.metrics.bound_hits.increment(Bound::SamplesQueued);
            return;
        };
        let inner = &mut *self.inner.borrow_mut();
        inner.follow_service(now, key);
        let Some(mut sample) = inner.pipeline.drain_sentry(now, key) else { return };
        // The worker's runtime has this one thread.
        let busy = tokio::runtime::Handle::current().metrics().worker_total_busy_duration(0);
        let mut heard = None;
        if let Some(hosted) = inner.hosted_mut(key).and_then(|hosted| hosted.sentry.as_mut()) {
            sample.deciding_milli = hosted.deciding_milli(now, busy);
            heard = hosted.hearing.drain();
            self.metrics.bound_hits.add(Bound::FeedbackSenders, hosted.hearing.take_overflows());
        }
        self.metrics.fairness.set(&inner.fairness(now));
        let compared = inner.pipeline.drain_candidate(now, key);
        let candidate = inner.hosted(key).and_then(|hosted| hosted.candidate.as_ref()).zip(compared);
        place.send(GateSample {
            sentry: sentry.clone(),
            worker: self.worker,
            sample: Box::new(sample),
            heard,
            candidate: candidate.map(|(hosted, (sample, compared))| {
                Box::new(CandidateSample { candidate: hosted.candidate.clone(), sample, compared })
            }),
        });
    }
}
