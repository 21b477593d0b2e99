//! A request that finds no room at the origin while the cache is closed: in the moment in which a crowd
//! comes, before the detector has seen it.
//!
//! `cache.mode = "crowd"` stores nothing in calm. But a request that must wait for its turn, or would be
//! refused, does not come in calm. If another one for the same document waits too, one answer is enough for
//! both:
//!
//! * One that waits keeps its turn and takes part in the document's flight. The first to be admitted fetches
//!   for all. Another one whose turn comes meanwhile leaves it to the next in the queue, and when the flight
//!   lands all leave the queue.
//! * One that would be refused waits for that flight, if there is one, for [`PUT_OFF_AT_MOST`]; its refusal
//!   has been charged like any other.
//!
//! Nothing is stored as long as the cache is closed. A response that is not for all is its leader's alone:
//! the others keep their turn or are refused, and for ten seconds requests for that document take no part in
//! this (`Mark`).

use super::decision::Decision;
use super::flight::{Flight, Interest, Landed};
use super::leader::Candidate;
use super::lookup::{Miss, could_share};
use super::passage::{FLIGHTS_TRIED, Traveller, Waiting};
use crate::pipeline::{Admission, Decided, Deferred, Wait};
use crate::shared::Shared;
use flashweir_cache::{CacheStatus, Joined, Lead, Mark, Stored};
use flashweir_core::{Duration, Instant, Reason};
use flashweir_telemetry::Bound;
use http::Method;
use std::sync::Arc;
use tokio::time::timeout_at;

/// A refusal is put off at most this long: beyond that a quick answer is worth more.
const PUT_OFF_AT_MOST: Duration = Duration::from_secs(2);

/// Substitute that a request has for room at the origin.
enum Pending {
    /// Its turn may come.
    Queued(Wait),
    /// It is refused and not yet answered, or has left its turn to others.
    Deferred(Box<Deferred>),
}

impl Pending {
    /// Its place among those that would lead the flight.
    fn candidate(
        &self,
        shared: &Arc<Shared>,
        lead: Option<Lead>,
        flight: &Arc<Flight>,
        may_lead: bool,
    ) -> Option<Candidate> {
        match (self, lead) {
            (_, Some(lead)) => Some(Candidate::first(shared.clone(), lead, flight.clone())),
            (Self::Queued(_), None) if may_lead => Some(Candidate::join(shared.clone(), flight.clone())),
            (_, None) => None,
        }
    }

    /// The end of the flight, or its own turn at the origin if that comes before.
    async fn landing(
        &mut self,
        interest: &Interest,
        flight: &Flight,
        put_off_until: tokio::time::Instant,
    ) -> Result<Landed, Decided> {
        match self {
            Self::Queued(wait) => tokio::select! {
                biased;
                landed = interest.landing() => Ok(landed),
                turn = wait.turn(|| flight.is_fetching()) => Err(turn),
            },
            Self::Deferred(_) => {
                Ok(timeout_at(put_off_until, interest.landing()).await.unwrap_or(Landed::Failed))
            }
        }
    }

    /// There is nothing to share.
    async fn alone(self, now: Instant, full: Option<Reason>) -> Decision {
        match self {
            Self::Queued(wait) => wait.await,
            Self::Deferred(deferred) => deferred.alone(now, full).await,
        }
        .into()
    }
}

impl Traveller<'_> {
    /// Returns whether the request may take part in a flight although the cache is closed; the rest is asked
    /// only where it matters.
    pub(crate) fn may_share(&self, has_body: bool) -> bool {
        !has_body && *self.method == Method::GET && self.cache.opens_in_crowds()
    }

    /// Asks the pipeline; where there is no room at once, asks for an answer that others wait for, too.
    /// None where the fetch of such an answer came to no end.
    pub(crate) async fn admit_or_share(&mut self) -> Option<Decision> {
        let now = self.received;
        let asked = self.heard(now);
        let pending = match self.responses.pipeline.admit_or_defer(now, asked, self.client.full) {
            Admission::Admitted(permit) => return Some(Decision::Admit(permit)),
            Admission::Refused(refusal) => return Some(Decision::Refuse(refusal)),
            Admission::Waits(wait) => Pending::Queued(wait),
            Admission::Substitute(deferred) => Pending::Deferred(deferred),
        };
        // Boxed, or each request would carry the room for a flight.
        Box::pin(self.share(pending)).await
    }

    async fn share(&mut self, mut pending: Pending) -> Option<Decision> {
        let responses = self.responses;
        let now = responses.now();
        let miss = could_share(self.cache, self.current, self.classified, &self.hop, self.head, false);
        let Some(miss) = miss else { return Some(pending.alone(now, self.client.full).await) };
        let Some(_place) = responses.shared.cache.wait() else {
            responses.metrics.bound_hits.increment(Bound::CacheWaiters);
            return Some(pending.alone(now, self.client.full).await);
        };
        // Of no use to a caller whose time is over, either.
        let put_off_until =
            self.offered.request.deadline.unwrap_or(now + PUT_OFF_AT_MOST).min(now + PUT_OFF_AT_MOST);
        let put_off_until = responses.shared.clock.timer_at(put_off_until);
        for _ in 0..FLIGHTS_TRIED {
            let now = responses.now();
            let mark = miss.mark(self.cache, now);
            if mark == Some(Mark::Alone) {
                break;
            }
            let may_lead = matches!(pending, Pending::Queued(_))
                && miss.part.may_lead
                && !(mark == Some(Mark::AloneWithCookie) && miss.part.has_cookie);
            let (flight, lead) = match self.join(&miss, now, may_lead) {
                Joined::Stored(stored) => {
                    return Some(self.answer_pending(pending, &stored, CacheStatus::Hit).await);
                }
                Joined::Absent(_) => break,
                Joined::Full => {
                    responses.metrics.bound_hits.increment(Bound::CacheFlights);
                    break;
                }
                Joined::Waits(flight) => (flight, None),
                Joined::Leads(lead, flight, _) => (flight, Some(lead)),
            };
            // In this order, and ended in the other: a flight that has a candidate has an interest.
            let interest = Interest::new(flight.clone());
            let candidate = pending.candidate(&responses.shared, lead, &flight, may_lead);
            let waiting = Waiting::begin_at_pipeline(&responses.metrics);
            let landed = pending.landing(&interest, &flight, put_off_until).await;
            drop(waiting);
            match landed {
                Ok(Landed::Stored(stored)) if self.is_answered_by(&miss, &stored) => {
                    return Some(self.answer_pending(pending, &stored, CacheStatus::Collapsed).await);
                }
                // A variant for others, or a flight that was not sent: look again.
                Ok(Landed::Stored(_) | Landed::NotSent) => {}
                Ok(Landed::Alone(mark)) => {
                    mark.into_iter().for_each(|mark| self.cache.put_mark(now, miss.mark_key(), mark));
                    break;
                }
                Ok(Landed::Failed) => break,
                Err(Decided::Admitted(permit)) => {
                    return match candidate.as_ref().and_then(Candidate::lead) {
                        Some(leader) => {
                            drop(candidate);
                            self.fly(&miss, permit, (leader, flight, interest), None).await
                        }
                        // It may fetch for itself alone, or another one fetches already: it has its own turn.
                        None => Some(Decision::Admit(permit)),
                    };
                }
                Err(Decided::Refused(refusal)) => return Some(Decision::Refuse(refusal)),
                // Its turn will not come, but an answer may.
                Err(Decided::Deferred(deferred)) => pending = Pending::Deferred(deferred),
            }
            drop(candidate);
        }
        Some(pending.alone(responses.now(), self.client.full).await)
    }

    fn is_answered_by(&self, miss: &Miss, stored: &Stored) -> bool {
        stored.selects(&miss.key(), miss.service, self.head.fields())
    }

    /// A stored response is its answer.
    async fn answer_pending(
        &mut self,
        mut pending: Pending,
        stored: &Arc<Stored>,
        how: CacheStatus,
    ) -> Decision {
        let now = self.responses.now();
        let permit = match &mut pending {
            Pending::Queued(wait) => wait.answer(now),
            Pending::Deferred(_) => None,
        };
        let permit = match (permit, pending) {
            (Some(permit), _) => permit,
            (None, Pending::Deferred(deferred)) => match deferred.answer(now) {
                Ok(permit) => permit,
                Err(deferred) => {
                    return Pending::Deferred(deferred).alone(now, self.client.full).await;
                }
            },
            (None, pending) => return pending.alone(now, self.client.full).await,
        };
        Decision::Answer(self.asker().answer(stored, how, Some(permit)))
    }
}
