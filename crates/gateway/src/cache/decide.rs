//! The decision about a request: an answer from the cache, a refusal, or a permit for the origin.

use super::grace::AtPipeline;
use super::lookup::{Lookup, Miss, look_up};
use super::passage::{Passed, Traveller, through_flights};
use super::refresh::REFRESH_EVERY;
use crate::connection::{Body, Client};
use crate::pipeline::Permit;
use crate::refusal::Refusal;
use crate::replication::{Route, redirect};
use flashweir_cache::CacheStatus;
use http::Response;
use std::rc::Rc;

/// Decision about a request.
#[expect(clippy::large_enum_variant, reason = "moved once; a box would be an allocation for each answer")]
pub(crate) enum Decision {
    /// It is answered, and counted.
    Answered(Response<Body>),
    /// The pipeline refused it.
    Refused(Refusal),
    /// It goes to the origin; with the place in the cache that its response may take, where it was looked up.
    Admitted(Box<Permit>, Option<Box<Miss>>),
}

/// Outcome of a request at the cache.
#[expect(clippy::large_enum_variant, reason = "moved once; a box would be an allocation for each answer")]
enum AtCache {
    /// It has nothing to do with it.
    Nothing,
    /// It is closed for the host, and the request may be one of many for its document.
    Closed,
    /// It has no answer.
    Missed(Box<Miss>),
    /// It answered.
    Answered(Response<Body>),
    /// It has no answer, and the request was admitted when it was to fetch one.
    Admitted(Box<Permit>),
    /// The pipeline refused the fetch of what it wants.
    Refused(Refusal),
}

impl Traveller<'_> {
    /// Looks the request up where the cache `may_answer` it, and asks the pipeline about what is left.
    pub(crate) async fn decide(
        &mut self,
        client: &Rc<Client>,
        route: Route,
        (may_answer, has_body): (bool, bool),
    ) -> Decision {
        let at_cache = match route {
            Route::Redirect(status, location) => match self.admit_copy(self.received) {
                Some(permit) => {
                    let response = redirect(status, location);
                    return Decision::Answered(self.asker().whole(response, Some(permit)));
                }
                // The pipeline says why.
                None => AtCache::Nothing,
            },
            Route::Origin if may_answer => self.ask(client, has_body).await,
            Route::Origin | Route::Target(_) => AtCache::Nothing,
        };
        let admitted = match at_cache {
            AtCache::Answered(response) => return Decision::Answered(response),
            AtCache::Refused(refusal) => return Decision::Refused(refusal),
            AtCache::Admitted(permit) => return Decision::Admitted(permit, None),
            AtCache::Missed(miss) => {
                return match self.admit(&miss).await {
                    AtPipeline::Admitted(permit) => Decision::Admitted(permit, Some(miss)),
                    AtPipeline::Refused(refusal) => Decision::Refused(refusal),
                    AtPipeline::Answered(response) => Decision::Answered(response),
                };
            }
            AtCache::Closed => match self.admit_or_share().await {
                Passed::Answer(response) => return Decision::Answered(response),
                Passed::Refused(refusal) => return Decision::Refused(refusal),
                Passed::Admitted(permit) => return Decision::Admitted(permit, None),
                // Its fetch came to no end.
                Passed::Alone => self.admit_alone(self.worker.shared.clock.now()).await,
            },
            AtCache::Nothing => self.admit_alone(self.received).await,
        };
        match admitted {
            Ok(permit) => Decision::Admitted(permit, None),
            Err(refusal) => Decision::Refused(refusal),
        }
    }

    /// Asks the cache: this worker's store at once, then the others' and those who are fetching.
    async fn ask(&mut self, client: &Rc<Client>, has_body: bool) -> AtCache {
        let (worker, classified) = (self.worker, self.classified);
        let (asked, now) = ((self.head, has_body), self.received);
        match look_up(worker, self.current, classified, &self.hop, asked, now) {
            Lookup::Bypass if self.may_share(has_body) => AtCache::Closed,
            Lookup::Bypass => AtCache::Nothing,
            Lookup::Fresh(stored) => match self.admit_copy(now) {
                Some(permit) => {
                    AtCache::Answered(self.asker().answer(&stored, CacheStatus::Hit, Some(permit)))
                }
                None => AtCache::Nothing,
            },
            Lookup::Stale(stored, miss) => match self.admit_copy(now) {
                Some(permit) => {
                    self.refresh(client, miss, &stored, REFRESH_EVERY);
                    let how = CacheStatus::WhileRevalidate;
                    AtCache::Answered(self.asker().answer(&stored, how, Some(permit)))
                }
                None => AtCache::Nothing,
            },
            // Boxed, or each request would carry the room for a flight.
            Lookup::Missed(miss) => {
                if let Some(answer) = self.answer_in_crowd(client, &miss) {
                    return AtCache::Answered(answer);
                }
                match Box::pin(through_flights(self, &miss)).await {
                    Passed::Answer(response) => AtCache::Answered(response),
                    Passed::Refused(refusal) => AtCache::Refused(refusal),
                    Passed::Alone => AtCache::Missed(miss),
                    Passed::Admitted(permit) => AtCache::Admitted(permit),
                }
            }
        }
    }
}
