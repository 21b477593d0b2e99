//! A request for which this worker's store has no answer: another worker has it, a fetch is under way, or
//! this request fetches.

use super::answer::Asker;
use super::collect::Begun;
use super::decision::Decision;
use super::fetch::{FetchedResponse, Job};
use super::flight::{Flight, Interest, Landed};
use super::leader::Leader;
use super::lookup::Miss;
use super::worker::WorkerCache;
use crate::bad_request::answer_unfit;
use crate::client::Client;
use crate::current::CurrentConfig;
use crate::feedback::Sender;
use crate::finish::Source;
use crate::forward::{Onward, pass_on};
use crate::no_store::NO_STORE;
use crate::pipeline::{Admission, CopyPermit, Decided, OfferedRequest, Permit};
use crate::refusal::Refusal;
use crate::responses::Responses;
use bytes::Bytes;
use flashweir_admission::pipeline::AdmissionRequest;
use flashweir_cache::{CacheStatus, Joined, Lead, Mark, State, Stored};
use flashweir_classify::Classified;
use flashweir_core::{Duration, Instant};
use flashweir_http::fields::{FieldsError, Hop, prepare_request};
use flashweir_http::head::ReceivedHead;
use flashweir_http::serve::StreamCut;
use flashweir_telemetry::{Bound, StatusClass, WorkerMetrics};
use http::header::{CONTENT_LENGTH, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::spawn_local;

/// A request that has waited this long goes to the origin by itself, where the pipeline decides about it.
const WAITS_AT_MOST: Duration = Duration::from_secs(10);
/// Flights that one request takes part in: beyond that the document is none that one request can fetch for
/// others.
pub(super) const FLIGHTS_TRIED: u32 = 3;
/// A fetch that was refused is tried again after this time while others wait for it, and so often: a refusal
/// of one request is none of all. No client sends a retry: it is neither demand nor, refused, a refusal.
const RETRIED_AFTER: Duration = Duration::from_millis(20);
const RETRIES_MAX: u32 = 50;

/// A request on its way past the cache.
pub(crate) struct Traveller<'a> {
    pub(crate) responses: &'a Rc<Responses>,
    pub(crate) cache: &'a Rc<WorkerCache>,
    pub(crate) current: &'a Rc<CurrentConfig>,
    pub(crate) client: &'a Client,
    pub(crate) hop: Hop,
    pub(crate) head: &'a ReceivedHead,
    pub(crate) method: &'a Method,
    /// The head has been made fit to be sent already.
    pub(crate) is_prepared: bool,
    pub(crate) classified: &'a Classified,
    pub(crate) offered: &'a OfferedRequest,
    /// The node in front that sent it, until the pipeline has heard of that.
    pub(crate) sender: Sender<'a>,
    /// The pipeline's decision on the sender's share.
    pub(crate) is_beyond_sender_share: bool,
    pub(crate) subscriber: u64,
    pub(crate) received: Instant,
    pub(crate) version: Version,
    pub(crate) stream: Option<StreamCut>,
}

/// Takes part in flights until there is an answer, or none to be had this way: the request goes to the origin
/// by itself, and the pipeline has not been asked about it.
pub(crate) async fn through_flights(traveller: &mut Traveller<'_>, miss: &Miss) -> Option<Decision> {
    for _ in 0..FLIGHTS_TRIED {
        let cache = traveller.cache;
        let now = traveller.responses.now();
        let mark = miss.mark(cache, now);
        if mark == Some(Mark::Alone) || !cache.is_in_use(traveller.classified.host_key) {
            break;
        }
        let may_lead = miss.part.may_lead
            && !miss.part.only_if_cached
            && !(mark == Some(Mark::AloneWithCookie) && miss.part.has_cookie);
        match traveller.join(miss, now, may_lead) {
            Joined::Stored(stored) => return traveller.adopt(miss, &stored, now),
            Joined::Waits(_) if !miss.part.may_wait() || miss.part.only_if_cached => break,
            Joined::Waits(flight) => {
                if let ControlFlow::Break(decision) = traveller.wait(miss, flight).await {
                    return decision;
                }
            }
            Joined::Leads(lead, flight, stale) => return traveller.lead(miss, lead, flight, stale).await,
            Joined::Absent(_) => break,
            Joined::Full => {
                traveller.responses.metrics.bound_hits.increment(Bound::CacheFlights);
                break;
            }
        }
    }
    if miss.part.only_if_cached {
        return Some(Decision::Answer(traveller.asker().whole(not_cached(), None)));
    }
    None
}

impl Traveller<'_> {
    /// The request as the pipeline is asked about it. It counts towards its sender's share from then on,
    /// once: what the cache answers costs the origin nothing.
    pub(crate) fn heard(&mut self, now: Instant) -> OfferedRequest {
        let sender = std::mem::replace(&mut self.sender, Sender::NotAsked);
        let mut asked = *self.offered;
        if !matches!(sender, Sender::NotAsked) {
            let AdmissionRequest { service, class, .. } = asked.request;
            self.is_beyond_sender_share = self.responses.pipeline.hear(now, service, class, sender);
        }
        asked.request.is_beyond_sender_share = self.is_beyond_sender_share;
        asked
    }

    /// The properties that an answer depends on.
    pub(crate) fn asker(&mut self) -> Asker<'_> {
        Asker {
            responses: self.responses,
            cache: self.cache,
            current: self.current,
            client: self.client,
            fields: self.head.fields(),
            is_head: *self.method == Method::HEAD,
            takes_lines: self.version < Version::HTTP_2,
            host_key: self.classified.host_key,
            received: self.received,
            stream: self.stream.take(),
        }
    }

    /// Asks the pipeline about a request that nothing but the origin can answer.
    pub(crate) async fn admit_alone(&mut self, now: Instant) -> Result<Box<Permit>, Refusal> {
        let asked = self.heard(now);
        self.responses.pipeline.admit(now, asked, self.client.full).decided().await
    }

    /// Takes a place in the gateway for an answer from the store.
    pub(crate) fn admit_copy(&self, now: Instant) -> Option<CopyPermit> {
        self.responses.pipeline.admit_copy(now, self.offered, self.client.full)
    }

    pub(super) fn join(&self, miss: &Miss, now: Instant, may_lead: bool) -> Joined<Flight> {
        let asked = (miss.hash, &miss.key(), miss.service, self.head.fields());
        let group = miss.group(self.classified.class);
        self.responses.shared.cache.directory.join(now, asked, group, may_lead, Flight::new)
    }

    /// Another worker's response is this one's, too.
    fn adopt(&mut self, miss: &Miss, stored: &Arc<Stored>, now: Instant) -> Option<Decision> {
        self.cache.insert(miss.hash, stored.clone());
        let how = match stored.state(now) {
            State::Fresh => CacheStatus::Hit,
            State::WhileRevalidate | State::Stale => CacheStatus::WhileRevalidate,
        };
        self.answer_copy(stored, how, now)
    }

    /// None where the door is closed: the pipeline says so.
    fn answer_copy(&mut self, stored: &Stored, how: CacheStatus, now: Instant) -> Option<Decision> {
        let permit = self.admit_copy(now)?;
        Some(Decision::Answer(self.asker().answer(stored, how, Some(permit))))
    }

    /// Waits for a flight; continues where the request is to look again.
    async fn wait(&mut self, miss: &Miss, flight: Arc<Flight>) -> ControlFlow<Option<Decision>> {
        let responses = self.responses;
        let Some(_place) = responses.shared.cache.wait() else {
            responses.metrics.bound_hits.increment(Bound::CacheWaiters);
            return ControlFlow::Break(None);
        };
        let landed = {
            let waiting = Waiting::begin(&responses.metrics);
            let interest = Interest::new(flight);
            let landed = tokio::time::timeout(WAITS_AT_MOST, interest.landing()).await;
            waiting.end();
            landed
        };
        let now = responses.now();
        match landed {
            Ok(Landed::Stored(stored)) if stored.selects(&miss.key(), miss.service, self.head.fields()) => {
                if !stored.is_invalid() {
                    self.cache.insert(miss.hash, stored.clone());
                }
                ControlFlow::Break(self.answer_copy(&stored, CacheStatus::Collapsed, now))
            }
            // A variant for others, or a flight that was not sent: look again.
            Ok(Landed::Stored(_) | Landed::NotSent) => ControlFlow::Continue(()),
            Ok(Landed::Alone(mark)) => {
                mark.into_iter().for_each(|mark| self.cache.put_mark(now, miss.mark_key(), mark));
                let looks_again = mark == Some(Mark::AloneWithCookie) && !miss.part.has_cookie;
                if looks_again { ControlFlow::Continue(()) } else { ControlFlow::Break(None) }
            }
            Ok(Landed::Failed) => {
                let stored = self.cache.find(miss.hash, &miss.key(), miss.service, self.head.fields());
                let stored = stored.filter(|stored| stored.may_serve_error(now));
                ControlFlow::Break(
                    stored.and_then(|stored| self.answer_copy(&stored, CacheStatus::IfError, now)),
                )
            }
            Err(_) => ControlFlow::Break(None),
        }
    }

    /// Fetches for all who wait.
    async fn lead(
        &mut self,
        miss: &Miss,
        lead: Lead,
        flight: Arc<Flight>,
        stale: Option<Arc<Stored>>,
    ) -> Option<Decision> {
        let responses = self.responses;
        // What it may not renew it says nothing about: neither whether that is still right, nor that it is
        // not.
        let stale = stale.filter(|stale| miss.may_renew(stale, self.current, self.head.fields()));
        let leader = Leader::new(responses.shared.clone(), lead, flight.clone());
        let interest = Interest::new(flight.clone());
        let now = responses.now();
        let stand_in =
            stale.as_ref().and_then(|stale| match (stale.may_serve_error(now), miss.may_use(stale, now)) {
                (true, _) => Some((stale.clone(), CacheStatus::IfError)),
                (false, true) => Some((stale.clone(), CacheStatus::Grace)),
                (false, false) => None,
            });
        let permit = match self.admit_lead(&flight, stand_in).await {
            Decision::Admit(permit) => permit,
            decision => return Some(decision),
        };
        self.fly(miss, permit, (leader, flight, interest), stale).await
    }

    /// Asks the pipeline for a fetch, more than once where others wait for it.
    async fn admit_lead(
        &mut self,
        flight: &Flight,
        stand_in: Option<(Arc<Stored>, CacheStatus)>,
    ) -> Decision {
        let responses = self.responses;
        let full = self.client.full;
        let now = responses.now();
        let asked = self.heard(now).without_deadline();
        if let Some((stored, how)) = stand_in {
            return match responses.pipeline.admit_or_copy(now, asked, full) {
                Admission::Admitted(permit) => Decision::Admit(permit),
                Admission::Waits(wait) => wait.await.into(),
                Admission::Refused(refusal) => Decision::Refuse(refusal),
                Admission::Substitute(permit) => {
                    self.cache.count_spared();
                    Decision::Answer(self.asker().answer(&stored, how, Some(permit)))
                }
            };
        }
        let mut asked = responses.pipeline.admit_or_defer(now, asked, full);
        let mut retries = 0;
        loop {
            let deferred = match asked.decided().await {
                Decided::Admitted(permit) => return Decision::Admit(permit),
                Decided::Refused(refusal) => return Decision::Refuse(refusal),
                Decided::Deferred(deferred) => deferred,
            };
            if retries < RETRIES_MAX && flight.is_shared() && !responses.shared.is_draining() {
                retries += 1;
                tokio::time::sleep(RETRIED_AFTER).await;
                responses.metrics.cache.fetch_retries.increment();
                asked = deferred.ask_again(responses.now(), full);
                continue;
            }
            return deferred.alone(responses.now(), full).await.into();
        }
    }

    /// The fetch of an admitted leader. It is its own task: it goes on for those who wait when this client
    /// leaves.
    pub(super) async fn fly(
        &mut self,
        miss: &Miss,
        permit: Box<Permit>,
        (leader, flight, interest): (Leader, Arc<Flight>, Interest),
        stale: Option<Arc<Stored>>,
    ) -> Option<Decision> {
        flight.begin();
        let job = match self.job(permit, miss, stale, Some(leader)) {
            Ok(job) => job,
            Err((permit, error)) => {
                permit.answered_here(error.status());
                let response = answer_unfit(&self.responses.metrics, error, self.method);
                return Some(Decision::Answer(response.into()));
            }
        };
        let (reply, answer) = oneshot::channel();
        spawn_local(async move {
            tokio::select! {
                biased;
                fetched = job.run() => drop(reply.send(fetched)),
                () = flight.abandoned() => {}
            }
        });
        let fetched = answer.await;
        drop(interest);
        match fetched {
            Ok(fetched) => Some(self.deliver(fetched)),
            // Only a panic in it ends the task without an answer, as long as a request waits.
            Err(_) => None,
        }
    }

    /// The exchange for the whole document, with the store's conditions in place of the client's.
    pub(crate) fn job(
        &self,
        permit: Box<Permit>,
        miss: &Miss,
        stale: Option<Arc<Stored>>,
        leader: Option<Leader>,
    ) -> Result<Job, (Box<Permit>, FieldsError)> {
        let responses = self.responses;
        let mut head = self.head.to_parts();
        let fields = head.headers.clone();
        if !self.is_prepared
            && let Err(error) = prepare_request(&mut head, &self.hop)
        {
            return Err((permit, error));
        }
        head.headers.remove(IF_NONE_MATCH);
        head.headers.remove(IF_MODIFIED_SINCE);
        let is_conditional = stale.as_ref().is_some_and(|stale| stale.ask_whether_changed(&mut head.headers));
        Ok(Job {
            responses: responses.clone(),
            cache: self.cache.clone(),
            current: self.current.clone(),
            permit,
            head,
            fields,
            miss: miss.clone(),
            classified: *self.classified,
            offered: *self.offered,
            subscriber: self.subscriber,
            stale,
            is_conditional,
            leader,
            purge_mark: responses.shared.cache.directory.mark(miss.hash),
        })
    }

    /// Turns the fetched response into the answer of this request.
    pub(crate) fn deliver(&mut self, fetched: FetchedResponse) -> Decision {
        let answer = match fetched {
            FetchedResponse::Stored(stored, how) => {
                return Decision::Answer(self.asker().answer(&stored, how, None));
            }
            FetchedResponse::Whole(response) => return Decision::Answer(self.asker().whole(response, None)),
            FetchedResponse::GoAlone(permit) => return Decision::Admit(permit),
            FetchedResponse::Failed(answer) => *answer,
            FetchedResponse::Alone(permit, head, begun) => {
                let Begun { first, rest } = begun;
                let onward = Onward {
                    client: self.client,
                    current: self.current,
                    version: self.version,
                    classified: self.classified,
                    stream: self.stream.take(),
                    // What may come from the cache is no gRPC call.
                    quota: None,
                };
                pass_on(self.responses, permit, head.into(), Source::Begun { first, rest }, onward)
            }
        };
        self.responses.metrics.responses.by_class.increment(StatusClass::of(answer.head.status().as_u16()));
        Decision::Answer(answer)
    }
}

/// A request while it waits: its client may leave.
pub(super) struct Waiting<'a> {
    metrics: &'a WorkerMetrics,
    has_left: bool,
}

impl<'a> Waiting<'a> {
    fn begin(metrics: &'a WorkerMetrics) -> Self {
        let mut waiting = Self::begin_at_pipeline(metrics);
        waiting.has_left = true;
        waiting
    }

    /// The same for a request that the pipeline knows: that notices when its client leaves.
    pub(super) fn begin_at_pipeline(metrics: &'a WorkerMetrics) -> Self {
        metrics.cache.wait_begun.increment();
        Self { metrics, has_left: false }
    }

    fn end(mut self) {
        self.has_left = false;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.metrics.cache.wait_ended.increment();
        if self.has_left {
            self.metrics.requests.left.increment();
        }
    }
}

/// RFC 9111 §5.2.1.7.
fn not_cached() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    let fields = response.headers_mut();
    fields.insert(NO_STORE.0, NO_STORE.1);
    fields.insert(CONTENT_LENGTH, 0.into());
    let status = HeaderValue::from_static("flashweir; detail=only-if-cached");
    fields.insert(HeaderName::from_static("cache-status"), status);
    response
}
