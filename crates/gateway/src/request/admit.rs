//! The decision about a request: an answer of the cache, or what the pipeline says.

use super::RequestContext;
use super::received::ReceivedRequest;
use crate::cache::{Decision, Lookup, REFRESH_EVERY, Traveller, look_up, through_flights};
use crate::client::Client;
use crate::feedback::Sender;
use crate::pipeline::OfferedRequest;
use crate::replication::{Route, redirect};
use flashweir_cache::CacheStatus;
use flashweir_core::Instant;
use std::rc::Rc;

/// Asks the cache where it is in use, and the pipeline about a request that it does not answer.
pub(super) async fn admit(
    at: RequestContext<'_>,
    request: &ReceivedRequest,
    offered: &OfferedRequest,
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
        method: &request.method,
        is_prepared: request.is_prepared(),
        classified: &request.classified,
        offered,
        sender,
        is_beyond_sender_share: false,
        subscriber: request.subscriber,
        received: now,
        version: request.version,
        stream: at.connection.stream_cut(),
    };
    let decision = match route {
        // Where there is no place for the answer the pipeline says why.
        Route::Redirect(status, location) => traveller.admit_copy(now).map(|permit| {
            Decision::Answer(traveller.asker().whole(redirect(status, location), Some(permit)))
        }),
        Route::Origin if at.worker.cache.is_on() && !at.refuses_all() => {
            ask_cache(&mut traveller, at.client, has_body).await
        }
        Route::Origin | Route::Target(_) => None,
    };
    match decision {
        Some(decision) => decision,
        None => traveller.admit_alone(now).await.into(),
    }
}

/// Asks the cache: this worker's store at once, then the others' and those who are fetching. None where it
/// has nothing to do with the request.
async fn ask_cache(traveller: &mut Traveller<'_>, client: &Rc<Client>, has_body: bool) -> Option<Decision> {
    let (cache, classified) = (traveller.cache, traveller.classified);
    let (asked, now) = ((traveller.head, has_body), traveller.received);
    match look_up(cache, traveller.current, classified, &traveller.hop, asked, now) {
        // Closed for the host, and the request may be one of many for its document.
        Lookup::Bypass if traveller.may_share(has_body) => match traveller.admit_or_share().await {
            Some(decision) => Some(decision),
            None => Some(traveller.admit_alone(traveller.responses.now()).await.into()),
        },
        Lookup::Bypass => None,
        Lookup::Fresh(stored) => {
            let permit = traveller.admit_copy(now)?;
            Some(Decision::Answer(traveller.asker().answer(&stored, CacheStatus::Hit, Some(permit))))
        }
        Lookup::Stale(stored, miss) => {
            let permit = traveller.admit_copy(now)?;
            traveller.refresh(client, miss, &stored, REFRESH_EVERY);
            let how = CacheStatus::WhileRevalidate;
            Some(Decision::Answer(traveller.asker().answer(&stored, how, Some(permit))))
        }
        Lookup::Missed(miss) => {
            if let Some(answer) = traveller.answer_in_crowd(client, &miss) {
                return Some(Decision::Answer(answer));
            }
            // Boxed, or each request would carry the room for a flight.
            if let Some(decision) = Box::pin(through_flights(traveller, &miss)).await {
                return Some(decision);
            }
            Some(match traveller.admit(&miss).await {
                Decision::Admit(permit) if traveller.renews_copy(&miss) => {
                    Decision::Answer(Box::pin(traveller.fetch_copy(permit, &miss)).await)
                }
                decision => decision,
            })
        }
    }
}
