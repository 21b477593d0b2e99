//! Requests that a copy in the gateway answers: they are in the gateway, and no stage that guards the origin
//! hears of them.
//!
//! Such a request takes a place in the gateway (stage `bounds`) for as long as its answer is being handed
//! over, and nothing else: no slot at the origin, no token, no share of its client's time there. It is no
//! part of any stage's flow either, so that no limit is learned from it. The shell counts it as offered,
//! admitted and completed.

use super::{AdmissionRequest, Pipeline};
use crate::sentry::Position;
use flashweir_core::Instant;

/// The place of a request that a copy answers. Goes back to [`Pipeline::finish_copy`].
#[derive(Debug)]
#[must_use = "a place is given back exactly once"]
pub struct CopyPermit {
    /// The request is a person's attempt that was not refused before.
    pub is_unique: bool,
}

impl<T> Pipeline<T> {
    /// Takes a place for a request that a copy can answer; none where the door is closed to it or the gateway
    /// is full, which [`arrive`](Self::arrive) then charges to the stage `bounds`. O(1).
    pub fn admit_copy(&mut self, now: Instant, request: &AdmissionRequest) -> Option<CopyPermit> {
        self.stages.bounds.check(request, Position::Usual).ok()?;
        let is_retry = self.attempts.is_retry(now, request.person_key);
        if is_retry {
            self.attempts.forget(request.person_key);
        }
        Some(CopyPermit { is_unique: !is_retry })
    }

    /// The answer has been handed over, or its client has left.
    pub fn finish_copy(&mut self, permit: CopyPermit) {
        let CopyPermit { is_unique: _ } = permit;
        self.stages.bounds.give_back();
    }
}
