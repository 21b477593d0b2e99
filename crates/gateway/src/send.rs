//! Last phase before the origin: an admitted request is made fit to be sent, its body is asked for, its
//! deadline looked at; then it is forwarded, and its response completed.

use crate::arrival::Arrival;
use crate::bad_request::answer_unfit;
use crate::cache::Invalidation;
use crate::connection::{Body, Client};
use crate::context::{Current, WorkerContext};
use crate::deadline;
use crate::forward::{Asked, forward};
use crate::pipeline::Permit;
use crate::refuse::refuse;
use crate::upload::PartialBody;
use flashweir_admission::pipeline::FailureSource;
use flashweir_config::Protocol;
use flashweir_core::Instant;
use flashweir_http::interim::ExpectationEnd;
use flashweir_http::serve::{Connection, StreamCut};
use flashweir_telemetry::StatusClass;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Response, StatusCode, Version};
use std::rc::Rc;

/// Sends an admitted request and returns what its client gets. `since` is when it was received.
pub(crate) async fn send(
    (worker, current, client): (&Rc<WorkerContext>, &Rc<Current>, &Rc<Client>),
    connection: &Connection,
    mut arrival: Arrival<'_>,
    mut body: PartialBody,
    (mut permit, stream): (Box<Permit>, Option<StreamCut>),
    since: Instant,
) -> Response<Body> {
    let service = arrival.classified.service;
    let invalidation = match worker.cache.is_on() {
        true => Invalidation::of(worker, &arrival.classified, &arrival.hop, &arrival.head),
        false => None,
    };
    let prepared = match arrival.prepare() {
        Ok(prepared) => prepared,
        Err(error) => {
            permit.answered_here(error.status());
            return answer_unfit(&worker.metrics, error, &arrival.method);
        }
    };
    let asks_origin = arrival.expects_continue
        && arrival.version == Version::HTTP_11
        && body.is_partial()
        && !prepared.is_last_hop
        && is_asked(current, service, since);
    if asks_origin {
        arrival.head.headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    } else if arrival.expects_continue
        && let Some(rest) = body.take_rest()
    {
        // Admitted before it is here, its share at the origin is others' until it is.
        if let Some(place) = permit.watch_client() {
            place.owes_already(since);
        }
        body = match arrival.gather_rest(connection, rest, true).await {
            Ok(body) => body,
            Err(response) => return *response,
        };
        if let Some(place) = permit.watch_client() {
            place.sent(worker.shared.clock.now());
        }
    }
    let left = worker.shared.clock.now();
    if !deadline::pass_on(&mut arrival.head.headers, left, arrival.classified.deadline) {
        // Its body took the time that there was.
        let refusal = worker.pipeline.refuse_late(left, &arrival.classified);
        permit.failed(FailureSource::Gateway);
        return refuse(
            (&worker.shared, &worker.metrics),
            client,
            &refusal,
            &arrival,
            since,
            body.take_rest(),
        );
    }
    let Arrival { head, method, version, websocket, classified, subscriber, .. } = arrival;
    let asked = Asked {
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
    let mut response = forward(worker, current, client, connection, permit, asked).await;
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
        invalidation.apply(worker, response.headers());
    }
    worker.metrics.responses.by_class.increment(StatusClass::of(response.status().as_u16()));
    response
}

/// Returns whether an origin is asked before a body is sent to it: of HTTP/2 no interim response is heard.
fn is_asked(current: &Current, service: usize, now: Instant) -> bool {
    current.live.config.services[service].upstream.protocol == Protocol::Http1
        && current.silent_origins.are_asked(service, now)
}
