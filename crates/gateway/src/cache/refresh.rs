//! A stale document is fetched again while it is in use (RFC 5861 §3), by a flight that no client leads.

use super::fetch::FetchedResponse;
use super::flight::{Flight, Interest};
use super::leader::Leader;
use super::lookup::Miss;
use super::passage::Traveller;
use crate::client::Client;
use crate::feedback::Sender;
use crate::pipeline::Decided;
use crate::responses::Responses;
use flashweir_cache::{Joined, Stored};
use flashweir_core::Duration;
use flashweir_http::head::ReceivedHead;
use http::StatusCode;
use std::rc::Rc;
use tokio::task::spawn_local;

/// A stale document is fetched again at most once in this time by one worker, however often it is used.
pub(crate) const REFRESH_EVERY: Duration = Duration::from_secs(1);

impl Traveller<'_> {
    /// Begins to fetch the document again, unless that was done within this time (at most [`REFRESH_EVERY`]).
    /// The fetch waits behind what clients send, and is counted as none of theirs; refused, it is tried again
    /// at a later use. A request whose response could not take the place of `stored` begins nothing.
    pub(crate) fn refresh(
        &self,
        client: &Rc<Client>,
        miss: Box<Miss>,
        stored: &Stored,
        not_within: Duration,
    ) {
        let now = self.responses.now();
        let not_within = not_within.min(REFRESH_EVERY);
        let may_renew = miss.part.may_lead && miss.may_renew(stored, self.current, self.head.fields());
        if !may_renew || !self.cache.is_refresh_due(now, miss.hash, not_within) {
            return;
        }
        let (responses, cache) = (self.responses.clone(), self.cache.clone());
        let (current, client) = (self.current.clone(), client.clone());
        // No caller waits for it, and no node in front is charged with it.
        let head = ReceivedHead::from(self.head.to_parts());
        let (method, classified) = (self.method.clone(), *self.classified);
        let offered = self.offered.without_deadline();
        let (hop, is_prepared) = (self.hop, self.is_prepared);
        let (subscriber, received, version) = (self.subscriber, self.received, self.version);
        spawn_local(async move {
            let traveller = Traveller {
                responses: &responses,
                cache: &cache,
                current: &current,
                client: &client,
                hop,
                head: &head,
                method: &method,
                is_prepared,
                classified: &classified,
                offered: &offered,
                sender: Sender::NotAsked,
                is_beyond_sender_share: false,
                subscriber,
                received,
                version,
                stream: None,
            };
            traveller.fetch_again(&miss).await;
        });
    }

    async fn fetch_again(&self, miss: &Miss) {
        let Responses { shared, metrics, pipeline, .. } = &**self.responses;
        let now = shared.clock.now();
        let asked = (miss.hash, &miss.key(), miss.service, self.head.fields());
        let group = miss.group(self.classified.class);
        let joined = shared.cache.directory.join(now, asked, group, true, Flight::new);
        let Joined::Leads(lead, flight, stale) = joined else { return };
        let stale = stale.filter(|stale| miss.may_renew(stale, self.current, self.head.fields()));
        let leader = Leader::new(shared.clone(), lead, flight.clone());
        let _interest = Interest::new(flight);
        metrics.cache.refreshes.increment();
        let asked = pipeline.admit_refresh(now, *self.offered);
        let Decided::Admitted(permit) = asked.decided().await else { return };
        match self.job(permit, miss, stale, Some(leader)) {
            Ok(job) => {
                match job.run().await {
                    // A response that is for one request alone is for none here: its exchange is cut.
                    FetchedResponse::Alone(permit, ..) => drop(permit),
                    FetchedResponse::GoAlone(permit) => permit.completed(StatusCode::OK),
                    _ => {}
                }
            }
            Err((permit, error)) => permit.answered_here(error.status()),
        }
    }
}
