//! The decision about a request: an answer of the cache, or what the pipeline says.

use super::RequestContext;
use super::received::ReceivedRequest;
use crate::body::Body;
use crate::cache::{AtPipeline, Lookup, Miss, Passed, REFRESH_EVERY, Traveller, look_up, through_flights};
use crate::client::Client;
use crate::feedback::Sender;
use crate::pipeline::Permit;
use crate::refusal::Refusal;
use crate::replication::{Route, redirect};
use flashweir_cache::CacheStatus;
use flashweir_core::Instant;
use http::Response;
use std::rc::Rc;

/// The decision about a request.
#[expect(clippy::large_enum_variant, reason = "moved once; a box would be an allocation for each answer")]
pub(super) enum Decision {
    /// It is answered, and counted.
    Answered(Response<Body>),
    /// The pipeline refused it.
    Refused(Refusal),
    /// It goes to the origin.
    Admitted(Box<Permit>),
}

/// Asks the cache where it is in use, and the pipeline about a request that it does not answer.
pub(super) async fn admit(
    at: RequestContext<'_>,
    request: &ReceivedRequest,
    sender: Sender<'_>,
    route: Route,
    now: Instant,
    has_body: bool,
) -> Decision {
    let mut traveller = Traveller {
        responses: &at.worker.responses,
        cache: &at.worker.cache,
        current: at.current,
        client: at.client,
        hop: request.hop,
        head: &request.head,
        is_prepared: request.is_prepared(),
        classified: &request.classified,
        sender,
        is_beyond_sender_share: false,
        key: request.key(at),
        subscriber: request.subscriber,
        received: now,
        version: request.version,
        stream: at.connection.stream_cut(),
    };
    let at_cache = match route {
        Route::Redirect(status, location) => match traveller.admit_copy(now) {
            Some(permit) => {
                let response = redirect(status, location);
                return Decision::Answered(traveller.asker().whole(response, Some(permit)));
            }
            // The pipeline says why.
            None => AtCache::Nothing,
        },
        Route::Origin if at.worker.cache.is_on() && !at.refuses_all() => {
            ask(&mut traveller, at.client, has_body).await
        }
        Route::Origin | Route::Target(_) => AtCache::Nothing,
    };
    let permit = match at_cache {
        AtCache::Answered(response) => return Decision::Answered(response),
        AtCache::Refused(refusal) => Err(refusal),
        AtCache::Admitted(permit) => Ok(permit),
        AtCache::Closed => match traveller.admit_or_share().await {
            Passed::Answer(response) => return Decision::Answered(response),
            Passed::Refused(refusal) => Err(refusal),
            Passed::Admitted(permit) => Ok(permit),
            // Its fetch came to no end.
            Passed::Alone => traveller.admit_alone(at.worker.shared.clock.now()).await,
        },
        AtCache::Nothing => traveller.admit_alone(now).await,
        AtCache::Missed(miss) => match traveller.admit(&miss).await {
            AtPipeline::Admitted(permit) if traveller.renews_copy(&miss) => {
                return Decision::Answered(Box::pin(traveller.fetch_copy(permit, &miss)).await);
            }
            AtPipeline::Admitted(permit) => Ok(permit),
            AtPipeline::Refused(refusal) => Err(refusal),
            AtPipeline::Answered(response) => return Decision::Answered(response),
        },
    };
    permit.map_or_else(Decision::Refused, Decision::Admitted)
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

/// Asks the cache: this worker's store at once, then the others' and those who are fetching.
async fn ask(traveller: &mut Traveller<'_>, client: &Rc<Client>, has_body: bool) -> AtCache {
    let (cache, classified) = (traveller.cache, traveller.classified);
    let (asked, now) = ((traveller.head, has_body), traveller.received);
    match look_up(cache, traveller.current, classified, &traveller.hop, asked, now) {
        Lookup::Bypass if traveller.may_share(has_body) => AtCache::Closed,
        Lookup::Bypass => AtCache::Nothing,
        Lookup::Fresh(stored) => match traveller.admit_copy(now) {
            Some(permit) => {
                AtCache::Answered(traveller.asker().answer(&stored, CacheStatus::Hit, Some(permit)))
            }
            None => AtCache::Nothing,
        },
        Lookup::Stale(stored, miss) => match traveller.admit_copy(now) {
            Some(permit) => {
                traveller.refresh(client, miss, &stored, REFRESH_EVERY);
                let how = CacheStatus::WhileRevalidate;
                AtCache::Answered(traveller.asker().answer(&stored, how, Some(permit)))
            }
            None => AtCache::Nothing,
        },
        // Boxed, or each request would carry the room for a flight.
        Lookup::Missed(miss) => {
            if let Some(answer) = traveller.answer_in_crowd(client, &miss) {
                return AtCache::Answered(answer);
            }
            match Box::pin(through_flights(traveller, &miss)).await {
                Passed::Answer(response) => AtCache::Answered(response),
                Passed::Refused(refusal) => AtCache::Refused(refusal),
                Passed::Alone => AtCache::Missed(miss),
                Passed::Admitted(permit) => AtCache::Admitted(permit),
            }
        }
    }
}
