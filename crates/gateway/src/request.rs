//! A request's first half: from its head to an answer of the cache, or the decision whether it is let in.

use crate::bad_request::{
    answer_misdirected, answer_no_websocket, answer_unfit, answer_unsent, answer_violation,
};
use crate::body::Body;
use crate::cache::{
    AtPipeline, Invalidation, Lookup, Miss, Passed, REFRESH_EVERY, Traveller, look_up, through_flights,
};
use crate::client::Client;
use crate::context::WorkerContext;
use crate::current::Current;
use crate::deadline;
use crate::feedback::{OVERLOAD, Sender};
use crate::forward::{AdmittedRequest, Upload, forward};
use crate::pipeline::Permit;
use crate::refusal::Refusal;
use crate::refuse::{Refused, refuse};
use crate::replication::{ChosenTarget, Route, redirect};
use crate::upload::PartialBody;
use crate::websocket::{NoWebSocket, WebSocketStream};
use flashweir_admission::pipeline::{FailureSource, ServiceKey};
use flashweir_cache::CacheStatus;
use flashweir_config::Protocol;
use flashweir_core::Instant;
use flashweir_http::client::subscriber;
use flashweir_http::fields::{ClientScheme, Hop, prepare_next_request};
use flashweir_http::interim::ExpectationEnd;
use flashweir_http::rules::judge_http2;
use flashweir_http::serve::{Connection, IncomingBody};
use flashweir_telemetry::{HttpVersion, StatusClass};
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, request};
use std::convert::Infallible;
use std::rc::Rc;

/// Answers one request. Never fails: every error has an answer.
pub(crate) async fn handle(
    worker: Rc<WorkerContext>,
    client: Rc<Client>,
    connection: Connection,
    mut request: Request<IncomingBody>,
) -> Result<Response<Body>, Infallible> {
    let now = worker.shared.clock.now();
    client.count_bytes(&worker.metrics);
    if let Err(circle) = worker.replication.arrive(&mut request) {
        worker.metrics.responses.by_class.increment(StatusClass::ServerError);
        return Ok(circle.map(Body::own));
    }
    let (head, body) = request.into_parts();
    let counted = worker.replication.begin(&head);
    let response = answer(worker, client, connection, (head, body), now).await;
    if let (Some(counted), Ok(response)) = (counted, &response) {
        counted.answered(response);
    }
    response
}

async fn answer(
    worker: Rc<WorkerContext>,
    client: Rc<Client>,
    connection: Connection,
    (mut head, body): (request::Parts, IncomingBody),
    now: Instant,
) -> Result<Response<Body>, Infallible> {
    let stream = connection.stream_cut();
    let current = worker.current();
    let trusted = &current.live.trusted_proxies;
    let hop = Hop {
        peer: client.peer.ip(),
        is_peer_trusted: trusted.trusts(client.peer.ip()),
        scheme: if client.is_tls { ClientScheme::Https } else { ClientScheme::Http },
    };
    let address = trusted.client_address(client.peer.ip(), &head.headers);
    let version = head.version;
    let mut websocket = None;
    if version == Version::HTTP_2 {
        if let Err(violation) = judge_http2(&head, current.live.config.bounds.max_fields) {
            return Ok(answer_violation(&worker.shared, &worker.metrics, violation, &head.method));
        }
        if head.method == Method::CONNECT {
            match WebSocketStream::of_head(&mut head) {
                Ok(stream) => websocket = Some(stream),
                Err(NoWebSocket::OtherProtocol) => {
                    return Ok(answer_no_websocket(&worker.metrics, &head.method));
                }
                Err(NoWebSocket::Plain) => {}
            }
        }
    }
    let method = head.method.clone();
    let expects_continue = head.headers.contains_key(EXPECT);
    // Before preparing takes them out.
    let deadline = match current.live.config.feedback.is_enabled {
        true => deadline::of_head(&worker.metrics, &head.headers, now),
        false => None,
    };
    let sender_name = current.senders.name_in(&head.headers);
    // Preparing costs as much as a refusal, so ordinary requests are prepared only once admitted.
    let mut prepared = None;
    if may_be_unfit(&head) {
        match prepare_next_request(&mut head, &hop, &client.forwarded) {
            Ok(fit) => prepared = Some(fit),
            Err(error) => return Ok(answer_unfit(&worker.metrics, error, &method)),
        }
    }
    let sender = current.senders.recognise(client.peer.ip(), sender_name.as_ref());
    let Some(mut classified) = current.classifier.classify(&head, address, sender.name()) else {
        return Ok(answer_misdirected(&worker.metrics, &method));
    };
    let config = &current.live.config;
    if websocket.is_some() && config.services[classified.service].upstream.protocol == Protocol::Http2 {
        return Ok(answer_no_websocket(&worker.metrics, &method));
    }
    classified.deadline = deadline.or_else(|| deadline::of_class(&worker.metrics, config, &classified, now));
    let subscriber = subscriber(address);
    let upload_of =
        |service| Upload::new((&worker.uploads, worker.shared.clock), &current, service, subscriber);
    let upload = upload_of(classified.service);
    let is_refused_anyway = client.full.is_some() || worker.shared.is_draining();
    // Reading would invite a client that asks first to send what may be refused.
    let gathered = match expects_continue || is_refused_anyway {
        true => Ok(PartialBody::untouched(body)),
        false => upload.gather(body, false).await,
    };
    let mut body = match gathered {
        Ok(body) => body,
        Err(error) => {
            return Ok(answer_unsent(&worker.metrics, &client, &connection, error, version, &method));
        }
    };
    // The time until now was the client's own.
    let now = if body.was_waited_for() { worker.shared.clock.now() } else { now };
    let requests = &worker.metrics.requests;
    requests.offered.increment();
    requests.by_protocol.increment(if version == Version::HTTP_2 {
        HttpVersion::Http2
    } else {
        HttpVersion::Http1
    });
    let route = worker.replication.route(now, &head, !body.is_none());
    if let Route::Target(target) = route {
        // The service of the targets is behind all others, with the classes of the first.
        classified.service = current.services.len() - 1;
        classified.candidate = None;
        head.extensions.insert(ChosenTarget(target));
    }
    let key = current.services[classified.service];
    // What a proxy's handshake shows, all of its clients show.
    let tls_fingerprint = client.tls_fingerprint.get().filter(|_| !hop.is_peer_trusted);
    let compares = worker.pipeline.compares_clients(now, key);
    classified.signs = current.classifier.signs(&head, address, tls_fingerprint, compares);
    classified.source = current.source(&classified, &client, &hop, sender);
    let node = if let Sender::Node(node) = sender { Some((key, node.key)) } else { None };
    let mut traveller = Traveller {
        responses: &worker.responses,
        cache: &worker.cache,
        current: &current,
        client: &client,
        hop,
        head: &head,
        is_prepared: prepared.is_some(),
        classified: &classified,
        sender,
        is_beyond_sender_share: false,
        key,
        subscriber,
        received: now,
        version,
        stream,
    };
    let at_cache = match route {
        Route::Redirect(status, location) => match traveller.admit_copy(now) {
            Some(permit) => {
                let response = redirect(status, location);
                return Ok(traveller.asker().whole(response, Some(permit)));
            }
            // The pipeline says why.
            None => AtCache::Nothing,
        },
        Route::Origin if worker.cache.is_on() && !is_refused_anyway => {
            ask(&mut traveller, &client, !body.is_none()).await
        }
        Route::Origin | Route::Target(_) => AtCache::Nothing,
    };
    let (permit, miss) = match at_cache {
        AtCache::Answered(response) => return Ok(response),
        AtCache::Refused(refusal) => (Err(refusal), None),
        AtCache::Admitted(permit) => (Ok(permit), None),
        AtCache::Closed => match traveller.admit_or_share().await {
            Passed::Answer(response) => return Ok(response),
            Passed::Refused(refusal) => (Err(refusal), None),
            Passed::Admitted(permit) => (Ok(permit), None),
            // Its fetch came to no end.
            Passed::Alone => (traveller.admit_alone(worker.shared.clock.now()).await, None),
        },
        AtCache::Nothing => (traveller.admit_alone(now).await, None),
        AtCache::Missed(miss) => match traveller.admit(&miss).await {
            AtPipeline::Admitted(permit) => (Ok(permit), Some(miss)),
            AtPipeline::Refused(refusal) => (Err(refusal), None),
            AtPipeline::Answered(response) => return Ok(response),
        },
    };
    let mut permit = match permit {
        Ok(permit) => permit,
        Err(refusal) => {
            let refused = Refused { head: &head, method: &method, version, expects_continue, since: now };
            let response =
                refuse((&worker.shared, &worker.metrics), &client, &refusal, &refused, body.take_rest());
            return Ok(tell_overload(&worker, node, response));
        }
    };
    if let Some(miss) = miss.filter(|miss| traveller.renews_copy(miss)) {
        return Ok(Box::pin(traveller.fetch_copy(permit, &miss)).await);
    }
    let stream = traveller.stream.take();
    let invalidation = match worker.cache.is_on() {
        true => Invalidation::of(&worker.cache, &classified, &hop, &head),
        false => None,
    };
    let prepared = match prepared.map_or_else(|| prepare_next_request(&mut head, &hop, &client.forwarded), Ok)
    {
        Ok(prepared) => prepared,
        Err(error) => {
            permit.answered_here(error.status());
            return Ok(answer_unfit(&worker.metrics, error, &method));
        }
    };
    let service = classified.service;
    let asks_origin = expects_continue
        && version == Version::HTTP_11
        && body.is_partial()
        && !prepared.is_last_hop
        && is_asked(&current, service, now);
    if asks_origin {
        head.headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    } else if expects_continue && let Some(rest) = body.take_rest() {
        // Admitted before it is here, its share at the origin is others' until it is.
        if let Some(place) = permit.watch_client() {
            place.owes_already(now);
        }
        body = match upload.gather(rest, true).await {
            Ok(body) => body,
            Err(error) => {
                return Ok(answer_unsent(&worker.metrics, &client, &connection, error, version, &method));
            }
        };
        if let Some(place) = permit.watch_client() {
            place.sent(worker.shared.clock.now());
        }
    }
    let left = worker.shared.clock.now();
    if !deadline::pass_on(&mut head.headers, left, classified.deadline) {
        // Its body took the time that there was.
        let refusal = worker.pipeline.refuse_late(left, &classified);
        permit.failed(FailureSource::Gateway);
        let refused = Refused { head: &head, method: &method, version, expects_continue, since: now };
        let response =
            refuse((&worker.shared, &worker.metrics), &client, &refusal, &refused, body.take_rest());
        return Ok(tell_overload(&worker, node, response));
    }
    let admitted = AdmittedRequest {
        head,
        body,
        method,
        version,
        prepared,
        classified,
        subscriber,
        stream,
        asks_origin,
        websocket,
    };
    let upload = upload_of(service);
    let mut response = forward(&worker.responses, &upload, &client, &connection, permit, admitted).await;
    if asks_origin {
        match connection.interims().end_expectation() {
            ExpectationEnd::Agreed => {}
            ExpectationEnd::Silence => current.silent_origins.add(service, left),
            ExpectationEnd::Answered => {
                // The client may send the body all the same, and it is not read (RFC 9110 §10.1.1).
                client.left_body_unread.set(true);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
    }
    if let Some(invalidation) = invalidation.filter(|_| response.status() < StatusCode::BAD_REQUEST) {
        invalidation.apply(&worker.cache, response.headers());
    }
    worker.metrics.responses.by_class.increment(StatusClass::of(response.status().as_u16()));
    Ok(tell_overload(&worker, node, response))
}

/// Returns whether an origin is asked before a body is sent to it: of HTTP/2 no interim response is heard.
fn is_asked(current: &Current, service: usize, now: Instant) -> bool {
    current.live.config.services[service].upstream.protocol == Protocol::Http1
        && current.silent_origins.are_asked(service, now)
}

/// Adds the overload field for a node in front to every response to it.
fn tell_overload(
    worker: &WorkerContext,
    node: Option<(ServiceKey, u64)>,
    mut response: Response<Body>,
) -> Response<Body> {
    if let Some((service, sender)) = node
        && let Some(field) = worker.pipeline.overload_field(service, sender)
    {
        response.headers_mut().insert(OVERLOAD, field);
    }
    response
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

/// Returns whether anything about the head is such that preparing it may fail; false for nearly all of
/// HTTP/1.1.
fn may_be_unfit(head: &request::Parts) -> bool {
    head.uri.authority().is_some()
        || !head.uri.path().starts_with('/')
        || matches!(head.method, Method::CONNECT | Method::TRACE)
        || head.headers.contains_key(EXPECT)
}
