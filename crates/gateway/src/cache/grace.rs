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

use super::decision::Decision;
use super::lookup::Miss;
use super::passage::Traveller;
use crate::bad_request::answer_unfit;
use crate::body::Body;
use crate::client::Client;
use crate::pipeline::{Admission, Permit};
use crate::upstream_error::plain;
use flashweir_cache::{CacheStatus, Joined, Stored};
use flashweir_core::Instant;
use flashweir_http::head::Answer;
use http::StatusCode;
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

impl Traveller<'_> {
    /// The copy that answers the request in a crowd, whether there is room at the origin or not. None where
    /// one fetch for all is allowed anyway: that is as good for the others, and newer.
    pub(crate) fn answer_in_crowd(&mut self, client: &Rc<Client>, miss: &Miss) -> Option<Answer<Body>> {
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

    /// Asks the pipeline about a request that the cache has no answer for; a copy stands in for a refusal,
    /// where there is one.
    pub(crate) async fn admit(&mut self, miss: &Miss) -> Decision {
        // It may have waited for a flight.
        let now = self.responses.now();
        let copy = self.copy(miss, now);
        let (full, asked) = (self.client.full, self.heard(now));
        let pipeline = &self.responses.pipeline;
        let Some(stored) = copy else {
            return pipeline.admit(now, asked, full).decided().await.into();
        };
        match pipeline.admit_or_copy(now, asked, full) {
            Admission::Admitted(permit) => Decision::Admit(permit),
            Admission::Waits(wait) => wait.await.into(),
            Admission::Refused(refusal) => Decision::Refuse(refusal),
            Admission::Substitute(permit) => {
                self.cache.count_spared();
                Decision::Answer(self.asker().answer(&stored, CacheStatus::Grace, Some(permit)))
            }
        }
    }

    /// A copy within the class's grace, of this worker or another.
    fn copy(&self, miss: &Miss, now: Instant) -> Option<Arc<Stored>> {
        if miss.grace.is_zero() {
            return None;
        }
        let known = self.cache.find(miss.hash, &miss.key(), miss.service, self.head.fields());
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
        let known = self.cache.find(miss.hash, &miss.key(), miss.service, self.head.fields());
        known.is_none_or(|stored| stored.since_received(now) >= miss.grace / RENEWED_AFTER_PARTS)
    }

    /// Sends the request, and keeps a copy of its response.
    pub(crate) async fn fetch_copy(&mut self, permit: Box<Permit>, miss: &Miss) -> Answer<Body> {
        let job = match self.job(permit, miss, None, None) {
            Ok(job) => job,
            Err((permit, error)) => {
                permit.answered_here(error.status());
                return answer_unfit(&self.responses.metrics, error, self.method).into();
            }
        };
        match self.deliver(job.run().await) {
            Decision::Answer(answer) => answer,
            // Only an answer to a question about a stored response sends a request on its way again.
            Decision::Refuse(_) | Decision::Admit(_) => {
                let text = "The service's answer cannot be passed on.\n";
                plain(StatusCode::BAD_GATEWAY, "malformed", text, self.method).map(Body::own).into()
            }
        }
    }
}
