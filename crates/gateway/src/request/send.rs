//! An admitted request on its way to the origin: its body, its deadline, and what its answer changes here.

use super::Place;
use super::received::Received;
use crate::bad_request::{answer_unfit, answer_unsent};
use crate::body::Body;
use crate::cache::Invalidation;
use crate::current::Current;
use crate::deadline;
use crate::forward::{AdmittedRequest, forward};
use crate::pipeline::Permit;
use crate::upload::PartialBody;
use flashweir_admission::pipeline::FailureSource;
use flashweir_config::Protocol;
use flashweir_core::Instant;
use flashweir_http::interim::ExpectationEnd;
use flashweir_telemetry::StatusClass;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Response, StatusCode, Version};

/// Sends a request on; returns the answer for its client.
pub(super) async fn send(
    at: Place<'_>,
    mut request: Received,
    mut body: PartialBody,
    mut permit: Box<Permit>,
    received: Instant,
) -> Response<Body> {
    let Place { worker, current, client, connection } = at;
    let invalidation = match worker.cache.is_on() {
        true => Invalidation::of(&worker.cache, &request.classified, &request.hop, &request.head),
        false => None,
    };
    let prepared = match request.prepare(at) {
        Ok(prepared) => prepared,
        Err(error) => {
            permit.answered_here(error.status());
            return answer_unfit(&worker.metrics, error, &request.method);
        }
    };
    let service = request.classified.service;
    let upload = request.upload(at);
    let asks_origin = request.expects_continue
        && request.version == Version::HTTP_11
        && body.is_partial()
        && !prepared.is_last_hop
        && is_asked(current, service, received);
    if asks_origin {
        request.head.headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    } else if request.expects_continue
        && let Some(rest) = body.take_rest()
    {
        // Admitted before it is here, its share at the origin is others' until it is.
        if let Some(place) = permit.watch_client() {
            place.owes_already(received);
        }
        body = match upload.gather(rest, true).await {
            Ok(body) => body,
            Err(error) => {
                let Received { version, method, .. } = &request;
                return answer_unsent(&worker.metrics, client, connection, error, *version, method);
            }
        };
        if let Some(place) = permit.watch_client() {
            place.sent(worker.shared.clock.now());
        }
    }
    let left = worker.shared.clock.now();
    if !deadline::pass_on(&mut request.head.headers, left, request.classified.deadline) {
        // Its body took the time that there was.
        let refusal = worker.pipeline.refuse_late(left, &request.classified);
        permit.failed(FailureSource::Gateway);
        return request.refuse(at, &refusal, received, body.take_rest());
    }
    let Received { head, method, version, classified, subscriber, websocket, .. } = request;
    let stream = connection.stream_cut();
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
    let mut response = forward(&worker.responses, &upload, client, connection, permit, admitted).await;
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
    response
}

/// Returns whether an origin is asked before a body is sent to it: of HTTP/2 no interim response is heard.
fn is_asked(current: &Current, service: usize, now: Instant) -> bool {
    current.live.config.services[service].upstream.protocol == Protocol::Http1
        && current.silent_origins.are_asked(service, now)
}
