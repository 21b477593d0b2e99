//! Fetching a response that others may get: the exchange with the upstream, the judgement, and what becomes
//! of it.

use super::collect::{Begun, Collected, collect};
use super::flight::Landed;
use super::leader::Leader;
use super::lookup::Miss;
use super::refusal_of;
use super::worker::WorkerCache;
use crate::body::Body;
use crate::current::CurrentConfig;
use crate::forward::{answer_failure, answer_unasked_switch, answer_unfit, is_event_stream};
use crate::load_report;
use crate::pipeline::{OfferedRequest, Permit};
use crate::replication::Hops;
use crate::responses::Responses;
use crate::upload::UploadBody;
use crate::upstream_error::{count_failure, count_sends};
use bytes::Bytes;
use flashweir_admission::pipeline::FailureSource;
use flashweir_cache::{
    CacheStatus, Exchange, Judgement, Lifetime, Mark, NotStored, Parts, Received, Stored, judge,
    judge_validated,
};
use flashweir_classify::Classified;
use flashweir_core::Instant;
use flashweir_http::fields::prepare_response;
use flashweir_http::head::Answer;
use flashweir_http::upstream::{SendOptions, UpstreamBody, UpstreamError};
use flashweir_runtime::unix_seconds_now;
use flashweir_telemetry::Unmeasured;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Response, StatusCode, Version, request, response};
use std::rc::Rc;
use std::sync::Arc;

/// A fetch from the origin: its request, its subscriber and its permit.
pub(crate) struct Job {
    pub(crate) responses: Rc<Responses>,
    pub(crate) cache: Rc<WorkerCache>,
    pub(crate) current: Rc<CurrentConfig>,
    pub(crate) permit: Box<Permit>,
    /// Fit to be sent, for the whole document.
    pub(crate) head: request::Parts,
    /// The request's fields as the client sent them.
    pub(crate) fields: HeaderMap,
    pub(crate) miss: Miss,
    pub(crate) classified: Classified,
    pub(crate) offered: OfferedRequest,
    /// Hash of the client.
    pub(crate) subscriber: u64,
    /// The stored response that the request asks about, or that may stand in for a failure.
    pub(crate) stale: Option<Arc<Stored>>,
    /// The request asks whether that is still right.
    pub(crate) is_conditional: bool,
    /// The leader of the flight, if this fetch is one.
    pub(crate) leader: Option<Leader>,
    /// Count of invalidations at the beginning of a fetch that is no flight.
    pub(crate) purge_mark: u64,
}

/// Result of the fetch for the request that caused it.
pub(crate) enum FetchedResponse {
    /// A stored response, and how it came.
    Stored(Arc<Stored>, CacheStatus),
    /// A whole response that is not stored. Its request has been counted to its end.
    Whole(Response<Bytes>),
    /// A response for this request alone, of which a part may have been read.
    Alone(Box<Permit>, response::Parts, Begun),
    /// No response worth passing on; holds the answer for the client.
    Failed(Box<Answer<Body>>),
    /// Nothing of use: the request is to go by itself, with the permit that it has.
    GoAlone(Box<Permit>),
}

impl Job {
    /// The exchange. Dropped, its request counts as abandoned and its flight as not sent.
    pub(crate) async fn run(mut self) -> FetchedResponse {
        self.responses.metrics.cache.fetches.increment();
        let sent_at = self.responses.now();
        let upstreams = &self.current.upstreams[self.classified.service];
        let mut head = self.head.clone();
        Hops::pass_on(&mut head);
        head.extensions.clear();
        self.current.sign(&self.responses.pipeline, &self.classified, &mut head.headers);
        // A stored response that may stand in is at hand now.
        let waits = self.stand_in().is_none();
        let options = SendOptions { client: Some(self.subscriber), waits, ..SendOptions::default() };
        let sent = upstreams.send_head(options, head.into(), UploadBody::none()).await;
        count_sends(&self.responses.metrics, upstreams);
        let Answer { mut head, body, .. } = match sent {
            Ok(answer) => answer,
            Err(error) => return self.fail(&error),
        };
        // What may come from the cache is no gRPC call: its trailers say nothing of a quota.
        let (pipeline, service) = (&self.responses.pipeline, self.classified.service);
        let _ = self.current.hear_upstream(pipeline, service, &mut head, body.upstream());
        let mut head = head.into_parts();
        let is_delimited = is_delimited(&head);
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            let Self { responses, permit, head, leader, .. } = self;
            drop(leader);
            return FetchedResponse::Failed(Box::new(
                answer_unasked_switch(&responses, permit, &head.method).into(),
            ));
        }
        if let Err(error) = prepare_response(&mut head) {
            self.land(None, Landed::Failed);
            return match self.stand_in() {
                Some(stored) => {
                    self.permit.failed(FailureSource::Origin);
                    FetchedResponse::Stored(stored, CacheStatus::IfError)
                }
                None => FetchedResponse::Failed(Box::new(
                    answer_unfit(&self.responses, self.permit, error, &self.head.method).into(),
                )),
            };
        }
        head.version = Version::HTTP_11;
        self.permit.origin_reported(load_report::take(&mut head.headers, &self.responses.metrics.upstream));
        let received = Received { at: self.responses.now(), unix_s: unix_seconds_now() };
        self.receive(head, body, (sent_at, received, is_delimited)).await
    }

    async fn receive(
        mut self,
        head: response::Parts,
        body: UpstreamBody<UploadBody>,
        (sent_at, received, is_delimited): (Instant, Received, bool),
    ) -> FetchedResponse {
        if head.status == StatusCode::NOT_MODIFIED && self.is_conditional {
            return self.not_modified(&head, sent_at, received);
        }
        if is_error(head.status)
            && let Some(stored) = self.stand_in()
        {
            self.land(None, Landed::Failed);
            self.permit.failed(FailureSource::Origin);
            return FetchedResponse::Stored(stored, CacheStatus::IfError);
        }
        let exchange = self.exchange(&head, sent_at, received, is_delimited);
        let (lifetime, is_http) = match judge(&exchange, &self.responses.shared.hasher) {
            Judgement::Store(lifetime) => (lifetime, true),
            Judgement::Grace(_) if self.miss.keeps_copy() => {
                (Lifetime { may_have_grace: true, ..Lifetime::default() }, false)
            }
            Judgement::Grace(why) | Judgement::Never(why) => {
                self.not_stored(why);
                return self.alone(head, Begun { first: Default::default(), rest: Box::pin(body) });
            }
        };
        if is_event_stream((&head.headers).into()) {
            self.not_stored(NotStored::TooLarge);
            self.permit.leave_origin();
            return self.alone(head, Begun { first: Default::default(), rest: Box::pin(body) });
        }
        let bytes_max = self.current.live.config.cache.object_bytes_max;
        match collect(body, bytes_max).await {
            Collected::Whole(body) => self.store(head, body, received, lifetime, is_http),
            Collected::Begun(begun) => {
                self.not_stored(NotStored::TooLarge);
                self.alone(head, begun)
            }
            Collected::Failed(error) => {
                self.responses.metrics.cache.not_stored.increment(refusal_of(NotStored::Incomplete));
                self.fail(&error)
            }
        }
    }

    fn exchange<'a>(
        &'a self,
        head: &'a response::Parts,
        sent_at: Instant,
        received: Received,
        is_delimited: bool,
    ) -> Exchange<'a> {
        Exchange {
            part: self.miss.part,
            request: (&self.fields).into(),
            harmless: &self.current.live.config.cache.request_fields,
            sent_at,
            status: head.status,
            response: &head.headers,
            received,
            is_delimited,
        }
    }

    /// The origin says that what is stored is still right.
    fn not_modified(
        mut self,
        head: &response::Parts,
        sent_at: Instant,
        received: Received,
    ) -> FetchedResponse {
        let stale = self.stale.take();
        let freshened = stale.as_ref().and_then(|stale| {
            let new = stale.freshened(&head.headers)?;
            // The body came whole the first time.
            let exchange = self.exchange(&new, sent_at, received, true);
            let stored = judge_validated(&exchange, &self.responses.shared.hasher).and_then(|lifetime| {
                let stored = self.make(&new, stale.body().clone(), received, lifetime, true)?;
                Ok((stored, lifetime.is_fresh_on_arrival()))
            });
            stored.map_err(|why| self.count_not_stored(why)).ok()
        });
        let Some((stored, is_fresh)) = freshened else {
            // Another version, or no longer for all: no request gets the old one, and each is sent.
            stale.iter().for_each(|stale| stale.invalidate());
            self.land(None, Landed::NotSent);
            return FetchedResponse::GoAlone(self.permit);
        };
        // What is stale again was validated for this request alone (§4.3.3): each of the others asks for
        // itself.
        let landed = if is_fresh { Landed::Stored(stored.clone()) } else { Landed::NotSent };
        self.keep(&stored, landed);
        self.permit.completed(StatusCode::OK);
        FetchedResponse::Stored(stored, CacheStatus::Revalidated)
    }

    /// The response has come whole and may be kept.
    fn store(
        mut self,
        head: response::Parts,
        body: Bytes,
        received: Received,
        lifetime: Lifetime,
        is_http: bool,
    ) -> FetchedResponse {
        let status = head.status;
        let stored = match self.make(&head, body.clone(), received, lifetime, is_http) {
            Ok(stored) => stored,
            Err(why) => {
                self.not_stored(why);
                self.permit.completed(status);
                let mut response = Response::from_parts(head, body);
                let length = response.body().len();
                response.headers_mut().insert(CONTENT_LENGTH, length.into());
                return FetchedResponse::Whole(response);
            }
        };
        let landed = match is_http {
            true => Landed::Stored(stored.clone()),
            // It is for its own request, and for those who would be refused.
            false => self.mark(Mark::Alone),
        };
        self.keep(&stored, landed);
        self.permit.completed(status);
        FetchedResponse::Stored(stored, CacheStatus::Fetched)
    }

    fn make(
        &self,
        head: &response::Parts,
        body: Bytes,
        received: Received,
        lifetime: Lifetime,
        is_http: bool,
    ) -> Result<Arc<Stored>, NotStored> {
        let parts = Parts {
            key: self.miss.key(),
            service: self.miss.service,
            host_key: self.classified.host_key,
            request: (&self.fields).into(),
            head,
            body,
            received,
            lifetime,
            is_http,
        };
        let reserved = self.cache.reserve(parts.bytes()).ok_or(NotStored::NoRoom)?;
        let stored = Stored::new(parts, &self.responses.shared.hasher, reserved);
        stored.map(Arc::new).ok_or(NotStored::Vary)
    }

    /// Makes it known to all workers, unless it was purged meanwhile.
    fn keep(&mut self, stored: &Arc<Stored>, landed: Landed) {
        // A host that was closed meanwhile keeps nothing.
        let is_in_use = self.cache.is_in_use(self.classified.host_key);
        let is_kept = match self.leader.take() {
            Some(leader) if is_in_use => leader.land(Some(stored), landed),
            Some(leader) => leader.land(None, landed),
            None => {
                let directory = &self.responses.shared.cache.directory;
                is_in_use && directory.publish(self.miss.hash, self.purge_mark, stored)
            }
        };
        if is_kept && is_in_use && self.cache.insert(self.miss.hash, stored.clone()) {
            self.responses.metrics.cache.stored.increment();
        } else {
            stored.invalidate();
            if is_in_use {
                self.count_not_stored(NotStored::Purged);
            }
        }
    }

    /// Keeps the response for its request alone. Waiting requests learn this now, before the body has
    /// arrived.
    fn alone(mut self, head: response::Parts, begun: Begun) -> FetchedResponse {
        self.land(None, Landed::Alone(None));
        FetchedResponse::Alone(self.permit, head, begun)
    }

    fn fail(mut self, error: &UpstreamError) -> FetchedResponse {
        self.land(None, Landed::Failed);
        if let Some(stored) = self.stand_in() {
            count_failure(&self.responses.shared, &self.responses.metrics, error);
            self.responses.metrics.measurement.unmeasured.increment(Unmeasured::Error);
            self.permit.failed(FailureSource::Origin);
            return FetchedResponse::Stored(stored, CacheStatus::IfError);
        }
        let Self { responses, permit, head, offered, .. } = self;
        FetchedResponse::Failed(Box::new(answer_failure(&responses, permit, error, &head.method, &offered)))
    }

    /// The stored response that may stand in for a failure.
    fn stand_in(&self) -> Option<Arc<Stored>> {
        let now = self.responses.now();
        self.stale.clone().filter(|stale| stale.may_serve_error(now))
    }

    /// Counts why the response is not stored, and passes the mark to remember to the waiting requests.
    fn not_stored(&mut self, why: NotStored) {
        self.count_not_stored(why);
        // What was stored of it is no longer for all either.
        let is_about_it = !matches!(
            why,
            NotStored::Cookie
                | NotStored::RequestFields
                | NotStored::NoRoom
                | NotStored::Purged
                | NotStored::Status
        );
        self.stale.take().filter(|_| is_about_it).into_iter().for_each(|stale| stale.invalidate());
        let landed = match why {
            NotStored::Cookie => self.mark(Mark::AloneWithCookie),
            // The next one may fit.
            NotStored::NoRoom | NotStored::Purged => Landed::Alone(None),
            _ => self.mark(Mark::Alone),
        };
        self.land(None, landed);
    }

    fn count_not_stored(&self, why: NotStored) {
        self.responses.metrics.cache.not_stored.increment(refusal_of(why));
    }

    /// Remembers here, and has those remember who wait.
    fn mark(&self, mark: Mark) -> Landed {
        self.cache.put_mark(self.responses.now(), self.miss.mark_key(), mark);
        Landed::Alone(Some(mark))
    }

    fn land(&mut self, stored: Option<&Arc<Stored>>, landed: Landed) {
        self.leader.take().into_iter().for_each(|leader| {
            leader.land(stored, landed.clone());
        });
    }
}

/// RFC 5861 §4.
fn is_error(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Returns whether the response says where it ends.
fn is_delimited(head: &response::Parts) -> bool {
    let fields = &head.headers;
    head.version == Version::HTTP_2
        || fields.contains_key(CONTENT_LENGTH)
        || fields.contains_key(TRANSFER_ENCODING)
        || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}
