//! A grace: where a request would be refused or have to wait, a copy that is a moment old answers it, if its class allows that.
//!
//! Copies are made of responses to requests of the class itself: those that the pipeline admits go to the origin anyway, and
//! theirs are kept where nothing in them is anybody's own (`flashweir_cache::Judgement::Grace`).

use super::lookup::Miss;
use super::passage::{Passed, Traveller};
use crate::connection::Body;
use crate::pipeline::{Admission, Instead, Permit};
use crate::refusal::Refusal;
use crate::request::answer_unfit;
use crate::upstream_error::plain;
use flashweir_cache::{CacheStatus, Joined, Stored};
use flashweir_core::Instant;
use http::{Response, StatusCode};
use std::sync::Arc;

/// A copy is made again when it has this part (1/n) of its grace behind it: collecting a body costs more than passing it on.
const RENEWED_AFTER_PARTS: u32 = 8;

/// What the pipeline made of a request that the cache had no answer for.
#[expect(clippy::large_enum_variant, reason = "moved once; a box would be an allocation for each answer")]
pub(crate) enum AtPipeline {
    Admitted(Box<Permit>),
    Refused(Refusal),
    /// Instead of being refused it got a copy.
    Answered(Response<Body>),
}

impl Traveller<'_> {
    /// Asks the pipeline, with what there is instead of a refusal.
    pub(crate) async fn admit(&mut self, miss: &Miss) -> AtPipeline {
        // It may have waited for a flight.
        let now = self.worker.shared.clock.now();
        let copy = self.copy(miss, now);
        let (key, full, asked) = (self.key, self.client.full, self.heard(now));
        let pipeline = &self.worker.pipeline;
        let instead = if copy.is_some() { Instead::Copy } else { Instead::Nothing };
        match pipeline.admit_or(now, key, &asked, full, instead) {
            Admission::Admitted(permit) => AtPipeline::Admitted(permit),
            Admission::Waits(wait) => match wait.await {
                Ok(permit) => AtPipeline::Admitted(permit),
                Err(refusal) => AtPipeline::Refused(refusal),
            },
            Admission::Refused(refusal) => AtPipeline::Refused(refusal),
            Admission::Copy(permit) => match copy {
                Some(stored) => {
                    AtPipeline::Answered(self.asker().answer(&stored, CacheStatus::Grace, Some(permit)))
                }
                None => unreachable!("a place for a copy is given where there is one"),
            },
            Admission::Deferred(_) => unreachable!("no flight was said to answer it"),
        }
    }

    /// A copy within the class's grace, of this worker or another.
    fn copy(&self, miss: &Miss, now: Instant) -> Option<Arc<Stored>> {
        if miss.grace.is_zero() {
            return None;
        }
        let cache = &self.worker.cache;
        let fields = &self.head.headers;
        let known = cache.find(miss.hash, &miss.key(), miss.service, fields);
        if let Some(stored) = known.filter(|stored| miss.may_use(stored, now)) {
            return Some(stored);
        }
        match self.join(miss, now, false) {
            Joined::Absent(Some(stored)) | Joined::Stored(stored) if miss.may_use(&stored, now) => {
                cache.insert(miss.hash, stored.clone());
                Some(stored)
            }
            _ => None,
        }
    }

    /// Whether the response to this request, which goes to the origin, is to be kept for others who would be refused.
    pub(crate) fn renews_copy(&self, miss: &Miss) -> bool {
        if !miss.keeps_copy() || !self.worker.cache.is_in_use(self.classified.host_key) {
            return false;
        }
        let now = self.worker.shared.clock.now();
        let known = self.worker.cache.find(miss.hash, &miss.key(), miss.service, &self.head.headers);
        known.is_none_or(|stored| stored.since_received(now) >= miss.grace / RENEWED_AFTER_PARTS)
    }

    /// Sends the request, and keeps a copy of its response.
    pub(crate) async fn fetch_copy(mut self, permit: Box<Permit>, miss: &Miss) -> Response<Body> {
        let job = match self.job(permit, miss, None, None) {
            Ok(job) => job,
            Err((permit, error)) => {
                permit.answered_here(error.status());
                return answer_unfit(self.worker, error, &self.head.method);
            }
        };
        match self.deliver(job.run().await) {
            Passed::Answer(response) => response,
            // Only an answer to a question about a stored response sends a request on its way again.
            Passed::Refused(_) | Passed::Alone | Passed::Admitted(_) => {
                let text = "The service's answer cannot be passed on.\n";
                plain(StatusCode::BAD_GATEWAY, "malformed", text, &self.head.method).map(Body::own)
            }
        }
    }
}
