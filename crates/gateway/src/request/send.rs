//! An admitted request on its way to the origin: its body, its deadline, and what its answer changes here.

use super::RequestContext;
use super::received::ReceivedRequest;
use crate::bad_request::{answer_unfit, answer_unsent};
use crate::body::Body;
use crate::cache::Invalidation;
use crate::current::CurrentConfig;
use crate::deadline;
use crate::forward::{AdmittedRequest, forward};
use crate::pipeline::{OfferedRequest, Permit};
use crate::upload::PartialBody;
use flashweir_admission::pipeline::FailureSource;
use flashweir_config::Protocol;
use flashweir_core::Instant;
use flashweir_http::head::{Answer, AnswerHead};
use flashweir_http::interim::ExpectationEnd;
use flashweir_http::serve::IncomingBody;
use flashweir_telemetry::StatusClass;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Response, StatusCode, Version};

/// Sends a request on; returns the answer for its client.
pub(super) async fn send(
    at: RequestContext<'_>,
    request: &mut ReceivedRequest,
    offered: &OfferedRequest,
    mut body: PartialBody,
    mut permit: Box<Permit>,
    received: Instant,
) -> Answer<Body> {
    let RequestContext { worker, current, client, connection, .. } = at;
    let invalidation = match worker.cache.is_on() {
        true => Invalidation::of(&worker.cache, &request.classified, &request.hop, &request.head),
        false => None,
    };
    let prepared = match request.prepare(at) {
        Ok(prepared) => prepared,
        Err(error) => {
            permit.answered_here(error.status());
            return answer_unfit(&worker.metrics, error, &request.method).into();
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
        request.head.parts_mut().headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
    } else if request.expects_continue
        && let Some(rest) = body.take_rest()
    {
        // Boxed, or each request would carry the room for gathering one.
        body = match Box::pin(gather(at, request, rest, &mut permit, received)).await {
            Ok(body) => body,
            Err(answer) => return answer.into(),
        };
    }
    // Read only where something depends on it.
    let is_timed = asks_origin || request.deadline.is_some();
    let left = if is_timed { worker.shared.clock.now() } else { received };
    if let Some(deadline) = request.deadline
        && !deadline::pass_on(&mut request.head.parts_mut().headers, left, deadline)
    {
        // Its body took the time that there was.
        let refusal = worker.pipeline.refuse_late(left, offered);
        permit.failed(FailureSource::Gateway);
        return request.refuse(at, &refusal, received, body.take_rest());
    }
    let admitted = AdmittedRequest {
        head: std::mem::take(&mut request.head),
        body,
        method: &request.method,
        version: request.version,
        prepared,
        classified: &request.classified,
        offered,
        subscriber: request.subscriber,
        stream: connection.stream_cut(),
        asks_origin,
        websocket: request.websocket.take(),
    };
    let mut answer = forward(&worker.responses, &upload, client, connection, permit, admitted).await;
    if asks_origin {
        end_expectation(at, service, left, &mut answer.head);
    }
    let status = answer.head.status();
    if let Some(invalidation) = invalidation.filter(|_| status < StatusCode::BAD_REQUEST) {
        invalidation.apply(&worker.cache, &answer.head.parts_mut().headers);
    }
    worker.metrics.responses.by_class.increment(StatusClass::of(status.as_u16()));
    answer
}

/// Waits for the body of a request that was admitted before it was here.
///
/// # Errors
/// The answer to a request whose body did not come.
async fn gather(
    at: RequestContext<'_>,
    request: &ReceivedRequest,
    rest: IncomingBody,
    permit: &mut Permit,
    received: Instant,
) -> Result<PartialBody, Response<Body>> {
    // Its share at the origin is others' until it is here.
    if let Some(place) = permit.watch_client() {
        place.owes_already(received);
    }
    let gathered = request.upload(at).gather(rest, true).await;
    let body = gathered.map_err(|error| {
        let ReceivedRequest { version, method, .. } = request;
        answer_unsent(&at.worker.metrics, at.client, at.connection, error, *version, method)
    })?;
    if let Some(place) = permit.watch_client() {
        place.sent(at.worker.shared.clock.now());
    }
    Ok(body)
}

/// The origin of a request that waited for its 100 has answered.
fn end_expectation(at: RequestContext<'_>, service: usize, left: Instant, answer: &mut AnswerHead) {
    match at.connection.interims().end_expectation() {
        ExpectationEnd::Agreed => {}
        ExpectationEnd::Silence => at.current.silent_origins.add(service, left),
        ExpectationEnd::Answered => {
            // The client may send the body all the same, and it is not read (RFC 9110 §10.1.1).
            at.client.left_body_unread.set(true);
            answer.parts_mut().headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Returns whether an origin is asked before a body is sent to it: of HTTP/2 no interim response is heard.
fn is_asked(current: &CurrentConfig, service: usize, now: Instant) -> bool {
    current.live.config.services[service].upstream.protocol == Protocol::Http1
        && current.silent_origins.are_asked(service, now)
}
