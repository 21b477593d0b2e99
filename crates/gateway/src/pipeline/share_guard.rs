//! Guard of a request's share at the origin.

use super::host::PipelineHost;
use flashweir_admission::pipeline::{OriginShare, RequestOutcome};
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
    host: Rc<PipelineHost>,
    /// None once it is given back.
    share: Option<OriginShare>,
}

impl ShareGuard {
    pub(super) fn new(host: Rc<PipelineHost>, share: OriginShare) -> Self {
        Self { host, share: Some(share) }
    }

    /// The client is waited for: the share is others' until [`resume`](Self::resume).
    pub(super) fn pause(&mut self) {
        let now = self.host.shared.clock.now();
        if let Some(share) = &mut self.share {
            let key = share.service();
            self.host.inner.borrow_mut().pipeline.pause(now, share);
            self.host.release(now, key);
        }
    }

    /// The origin has something to do again.
    pub(super) fn resume(&mut self) {
        let now = self.host.shared.clock.now();
        if let Some(share) = &mut self.share {
            if share.is_paused() {
                self.host.shared.rest.wake();
            }
            self.host.inner.borrow_mut().pipeline.resume(now, share);
        }
    }

    /// The origin is done with it.
    pub(crate) fn end(mut self, outcome: RequestOutcome) {
        self.give_back(outcome);
    }

    fn give_back(&mut self, outcome: RequestOutcome) {
        if let Some(share) = self.share.take() {
            let (now, key) = (self.host.shared.clock.now(), share.service());
            self.host.inner.borrow_mut().pipeline.end_at_origin(now, share, outcome);
            self.host.release(now, key);
        }
    }
}

impl Drop for ShareGuard {
    fn drop(&mut self) {
        self.give_back(RequestOutcome::Withdrawn);
    }
}
