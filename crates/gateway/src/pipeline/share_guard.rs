//! Guard of a request's share at the origin.

use super::worker_pipeline::WorkerPipeline;
use flashweir_admission::pipeline::{OriginShare, RequestOutcome};
use flashweir_core::Instant;
use std::cell::RefCell;
use std::rc::Rc;

/// Guard of one request's share at the origin. The share is given back by [`end`](Self::end), and at the
/// latest when the guard is dropped, as withdrawn.
///
/// The limit counts the origin's work. A share is held from the moment the request is sent until the last
/// byte of the response has come from the origin, however long the client then takes for it: the limit is on
/// what the origin does at once, and a share kept for a slow client would be one without work. For the same
/// reason a tunnel (101) and an event stream, which last without being worked on, give theirs back at the
/// head, and a body whose next part the client does not take, or does not send, gives it back soon
/// ([`Yielding`](super::Yielding)).
#[derive(Debug)]
pub(crate) struct ShareGuard {
    inner: Rc<RefCell<WorkerPipeline>>,
    /// None once it is given back.
    share: Option<OriginShare>,
}

impl ShareGuard {
    pub(super) fn new(inner: Rc<RefCell<WorkerPipeline>>, share: OriginShare) -> Self {
        Self { inner, share: Some(share) }
    }

    /// The client is waited for: the share is others' until [`resume`](Self::resume).
    pub(super) fn pause(&mut self) {
        if let Some(share) = &mut self.share {
            let inner = &mut *self.inner.borrow_mut();
            let (now, key) = (inner.shared.clock.now(), share.service());
            inner.pipeline.pause(now, share);
            inner.release(now, key);
        }
    }

    /// The origin has something to do again.
    pub(super) fn resume(&mut self) {
        if let Some(share) = &mut self.share {
            let inner = &mut *self.inner.borrow_mut();
            if share.is_paused() {
                inner.shared.rest.wake();
            }
            inner.pipeline.resume(inner.shared.clock.now(), share);
        }
    }

    /// The origin is done with it.
    pub(crate) fn end(mut self, outcome: RequestOutcome) {
        self.give_back(None, outcome);
    }

    /// The same for a caller that has read the clock.
    pub(super) fn end_at(mut self, now: Instant, outcome: RequestOutcome) {
        self.give_back(Some(now), outcome);
    }

    fn give_back(&mut self, now: Option<Instant>, outcome: RequestOutcome) {
        if let Some(share) = self.share.take() {
            let inner = &mut *self.inner.borrow_mut();
            let (now, key) = (now.unwrap_or_else(|| inner.shared.clock.now()), share.service());
            inner.pipeline.end_at_origin(now, share, outcome);
            inner.release(now, key);
        }
    }
}

impl Drop for ShareGuard {
    fn drop(&mut self) {
        self.give_back(None, RequestOutcome::Withdrawn);
    }
}
