//! A grace: where a request would be refused or have to wait, a copy that is a moment old answers it, if its
//! class allows that.
//!
//! Copies are made of responses to requests of the class itself: those that the pipeline admits go to the
//! origin anyway, and theirs are kept where nothing in them is personal
//! (`flashweir_cache::Judgement::Grace`).
//!
//! *In a crowd* each request for a hot document would find the room that the one before it left, and fill the
//! origin: those who want something else would wait behind it. So there a copy answers all, as long as there
//! is one, and is fetched again when half of its grace is over, by one request that comes after those of
//! clients (`refresh`).

use super::lookup::Miss;
use super::passage::{Passed, Traveller};
use crate::bad_request::answer_unfit;
use crate::body::Body;
use crate::client::Client;
use crate::pipeline::{Admission, Instead, Permit};
use crate::refusal::Refusal;
use crate::upstream_error::plain;
use flashweir_cache::{CacheStatus, Joined, Stored};
use flashweir_core::Instant;
use http::{Response, StatusCode};
use std::rc::Rc;
use std::sync::Arc;

/// A copy is made again when it has this part (1/n) of its grace behind it: collecting a body costs more than
/// passing it on.
const RENEWED_AFTER_PARTS: u32 = 8;

/// In a crowd, when it has this part behind it.
const RENEWED_IN_CROWD_AFTER_PARTS: u32 = 2;
/// If that fails, it is tried again after this part.
const TRIED_AGAIN_AFTER_PARTS: u32 = 4;
const _: () = assert!(
    TRIED_AGAIN_AFTER_PARTS * RENEWED_IN_CROWD_AFTER_PARTS
        > TRIED_AGAIN_AFTER_PARTS + RENEWED_IN_CROWD_AFTER_PARTS,
    "1/renewed + 1/tried again < 1: the second try comes while there is still a copy"
);

/// The pipeline's decision about a request that the cache had no answer for.
#[expect(clippy::large_enum_variant, reason = "moved once; a box would be an allocation for each answer")]
pub(crate) enum AtPipeline {
    Admitted(Box<Permit>),
    Refused(Refusal),
    /// Instead of being refused it got a copy.
    Answered(Response<Body>),
}

impl Traveller<'_> {
    /// The copy that answers the request in a crowd, whether there is room at the origin or not. None where
    /// one fetch for all is allowed anyway: that is as good for the others, and newer.
    pub(crate) fn answer_in_crowd(&mut self, client: &Rc<Client>, miss: &Miss) -> Option<Response<Body>> {
        if miss.grace.is_zero() || !self.cache.is_crowded(self.classified.host_key) {
            return None;
        }
        let now = self.received;
        let is_due =
            |stored: &Stored| stored.since_received(now) >= miss.grace / RENEWED_IN_CROWD_AFTER_PARTS;
        let mut copy = self.copy(miss, now).filter(|stored| !stored.is_reusable())?;
        if is_due(&copy) {
            // Another worker may have fetched a newer one.
            let newer = self.copy_of_others(miss, now);
            copy = newer.filter(|newer| newer.since_received(now) < copy.since_received(now)).unwrap_or(copy);
        }
        let permit = self.admit_copy(now)?;
        if is_due(&copy) {
            self.refresh(client, Box::new(miss.clone()), &copy, miss.grace / TRIED_AGAIN_AFTER_PARTS);
        }
        Some(self.asker().answer(&copy, CacheStatus::Grace, Some(permit)))
    }

    /// Asks the pipeline, with what there is instead of a refusal.
    pub(crate) async fn admit(&mut self, miss: &Miss) -> AtPipeline {
        // It may have waited for a flight.
        let now = self.responses.now();
        let copy = self.copy(miss, now);
        let (key, full, asked) = (self.key, self.client.full, self.heard(now));
        let pipeline = &self.responses.pipeline;
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
                    self.cache.count_spared();
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
        let known = self.cache.find(miss.hash, &miss.key(), miss.service, &self.head.headers);
        known.filter(|stored| miss.may_use(stored, now)).or_else(|| self.copy_of_others(miss, now))
    }

    /// The newest that any worker has.
    fn copy_of_others(&self, miss: &Miss, now: Instant) -> Option<Arc<Stored>> {
        match self.join(miss, now, false) {
            Joined::Absent(Some(stored)) | Joined::Stored(stored) if miss.may_use(&stored, now) => {
                self.cache.insert(miss.hash, stored.clone());
                Some(stored)
            }
            _ => None,
        }
    }

    /// Returns whether the response to this request, which goes to the origin, is to be kept for others who
    /// would be refused.
    pub(crate) fn renews_copy(&self, miss: &Miss) -> bool {
        if !miss.keeps_copy() || !self.cache.is_in_use(self.classified.host_key) {
            return false;
        }
        let now = self.responses.now();
        let known = self.cache.find(miss.hash, &miss.key(), miss.service, &self.head.headers);
        known.is_none_or(|stored| stored.since_received(now) >= miss.grace / RENEWED_AFTER_PARTS)
    }

    /// Sends the request, and keeps a copy of its response.
    pub(crate) async fn fetch_copy(mut self, permit: Box<Permit>, miss: &Miss) -> Response<Body> {
        let job = match self.job(permit, miss, None, None) {
            Ok(job) => job,
            Err((permit, error)) => {
                permit.answered_here(error.status());
                return answer_unfit(&self.responses.metrics, error, &self.head.method);
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
