//! A request's second half: to an upstream and back.

use crate::body::Body;
use crate::client::Client;
use crate::current::CurrentConfig;
use crate::feedback::TrailerQuota;
use crate::finish::{Begun, ForwardedBody, Source};
use crate::load_report;
use crate::pipeline::{OfferedRequest, Permit};
use crate::refusal::count_refusal;
use crate::replication::ChosenTarget;
use crate::responses::Responses;
use crate::settings::upstream_capacity;
use crate::upload::{
    Expectation, GatherError, GatherOptions, HoldOptions, PartialBody, UploadBody, UploadRoom, Watchers,
    gather,
};
use crate::upstream_error::{count_failure, count_sends, plain, respond, slow_upload};
use crate::websocket::WebSocketStream;
use bytes::Bytes;
use flashweir_admission::pipeline::FailureSource;
use flashweir_classify::{Classified, of_response};
use flashweir_config::{Protocol, Upstream as UpstreamConfig};
use flashweir_http::fields::{Prepared, ResponseError, prepare_response};
use flashweir_http::head::{Answer, AnswerHead, ReceivedHead};
use flashweir_http::interim::{InterimCounts, Interims};
use flashweir_http::serve::{Connection, IncomingBody, StreamCut};
use flashweir_http::tunnel::{PendingTunnel, TunnelEnd};
use flashweir_http::upstream::{ErrorSource, SendOptions, UpstreamBody, UpstreamError, UpstreamErrorKind};
use flashweir_http1::head::{FieldsView, KnownField};
use flashweir_runtime::Clock;
use flashweir_telemetry::{Happening, InterimOutcome, Unmeasured, UploadCut, UpstreamFailure, WorkerMetrics};
use http::header::{ALLOW, CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version};
use http_body::Body as _;
use std::cell::Cell;
use std::pin::pin;
use std::rc::{Rc, Weak};

/// An admitted request, ready to be sent to the origin.
pub(crate) struct AdmittedRequest<'a> {
    /// Its head, fit to be sent.
    pub(crate) head: ReceivedHead,
    pub(crate) body: PartialBody,
    pub(crate) method: &'a Method,
    pub(crate) version: Version,
    pub(crate) prepared: Prepared,
    pub(crate) classified: &'a Classified,
    pub(crate) offered: &'a OfferedRequest,
    /// Hash of the client: see [`subscriber`](flashweir_http::client::subscriber).
    pub(crate) subscriber: u64,
    /// Ends its stream, if it came in one.
    pub(crate) stream: Option<StreamCut>,
    /// Its body waits until the origin wants it.
    pub(crate) asks_origin: bool,
    /// Its stream is to be a WebSocket.
    pub(crate) websocket: Option<WebSocketStream>,
}

/// Sends the request on and returns what the client gets. Dropped half-way (the client is gone), it cancels
/// the exchange, and the permit counts the request as abandoned.
pub(crate) async fn forward(
    responses: &Rc<Responses>,
    upload: &Upload<'_>,
    client: &Client,
    connection: &Connection,
    mut permit: Box<Permit>,
    admitted: AdmittedRequest<'_>,
) -> Answer<Body> {
    let AdmittedRequest {
        mut head,
        body,
        method,
        version,
        prepared,
        classified,
        offered,
        subscriber,
        stream,
        asks_origin,
        websocket,
    } = admitted;
    if prepared.is_last_hop {
        permit.answered_here(StatusCode::OK);
        return answer_last_hop().into();
    }
    let current = upload.current;
    let upstreams = &current.upstreams[classified.service];
    // A client of HTTP/1.0 is sent none (RFC 9110 §15.2).
    let interims = (version >= Version::HTTP_11).then(|| connection.interims());
    let expectation = interims.filter(|_| asks_origin).map(|interims| upload.expectation(interims));
    let mut cut = None;
    let body = if body.is_none() {
        UploadBody::none()
    } else {
        let cut = cut.insert(Rc::default());
        upload.body(&mut permit, body, expectation, cut)
    };
    if current.signs() {
        current.sign(&responses.pipeline, classified, &mut head.parts_mut().headers);
    }
    let first = ChosenTarget::take(&mut head);
    let options = SendOptions { first, client: Some(subscriber), interims, waits: true };
    let answer = pin!(upstreams.send_head(options, head, body));
    let sent = match interims {
        None => answer.await,
        Some(interims) => interims.during(answer).await,
    };
    interims.into_iter().for_each(|interims| count_interims(&responses.metrics, interims));
    count_sends(&responses.metrics, upstreams);
    let mut answer = match sent {
        Ok(answer) => answer,
        Err(_) if cut.is_some_and(|cut| cut.get().is_some()) => {
            drop(permit);
            return answer_slow_upload(responses, client, version, method).into();
        }
        Err(error) => return answer_failure(responses, permit, &error, method, offered),
    };
    let upstream = answer.body.upstream();
    let quota = current.hear_upstream(&responses.pipeline, classified.service, &mut answer.head, upstream);
    let status = answer.head.status();
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let wanted =
            prepared.wants_upgrade.then_some(&current.live.config.services[classified.service].upstream);
        return switch(responses, connection, permit, answer.into(), (wanted, websocket), method).into();
    }
    if websocket.is_some() && status.is_success() {
        return answer_no_switch(permit, status, method).into();
    }
    let onward = Onward { client, current, version, classified, stream, quota };
    relay(responses, permit, answer, onward, method)
}

fn count_interims(metrics: &WorkerMetrics, interims: &Interims) {
    if let Some(InterimCounts { passed_on, dropped }) = interims.take_counts() {
        metrics.responses.interims.add(InterimOutcome::PassedOn, passed_on);
        metrics.responses.interims.add(InterimOutcome::Dropped, dropped);
    }
}

/// A response of the upstream that belongs to this request alone, as its client gets it.
fn relay(
    responses: &Rc<Responses>,
    mut permit: Box<Permit>,
    answer: Answer<UpstreamBody<UploadBody>>,
    onward: Onward<'_>,
    method: &Method,
) -> Answer<Body> {
    let Answer { mut head, body, .. } = answer;
    if let Err(error) = head.prepare() {
        return answer_unfit(responses, permit, error, method).into();
    }
    let report = load_report::take_of(&mut head, &responses.metrics.upstream);
    if let Some(utilisation_milli) = report.utilisation_milli {
        let upstreams = &onward.current.upstreams[onward.classified.service];
        upstreams.shared().record_utilisation(body.upstream(), utilisation_milli);
    }
    permit.origin_reported(report);
    if is_event_stream(head.fields()) {
        permit.leave_origin();
    }
    pass_on(responses, permit, head, Source::Upstream { body }, onward)
}

/// To whom a response goes.
pub(crate) struct Onward<'a> {
    pub(crate) client: &'a Client,
    pub(crate) current: &'a CurrentConfig,
    pub(crate) version: Version,
    pub(crate) classified: &'a Classified,
    pub(crate) stream: Option<StreamCut>,
    /// Hears of the quota in its trailers.
    pub(crate) quota: Option<TrailerQuota>,
}

/// An upstream's response, fit to be passed on, as its client gets it.
pub(crate) fn pass_on(
    responses: &Rc<Responses>,
    permit: Box<Permit>,
    head: AnswerHead,
    body: Source,
    onward: Onward<'_>,
) -> Answer<Body> {
    let Onward { client, current, version, classified, stream, quota } = onward;
    let slow_upload = permit.is_client_slow().then_some(Unmeasured::Paused);
    let begun = Begun {
        responses: responses.clone(),
        permit,
        wire: client.wire.clone(),
        client_version: version,
        status: head.status(),
        url_class: classified.url_class,
        unmeasured: classified.unmeasured.or_else(|| of_response(head.status())).or(slow_upload),
        stream,
        quota,
        write_stall_timeout: current.live.config.bounds.write_stall_timeout,
    };
    let is_moved = body.is_moved();
    let answer = Answer::new(head, Body::Forwarded { body: ForwardedBody::new(begun, body) });
    if is_moved { answer.in_pipes() } else { answer }
}

/// Worker and service state that the body of one request uses.
#[derive(Clone, Copy)]
pub(crate) struct Upload<'a> {
    room: &'a Rc<UploadRoom>,
    clock: Clock,
    current: &'a CurrentConfig,
    service: usize,
    client: u64,
    pool: HoldOptions,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(
        (room, clock): (&'a Rc<UploadRoom>, Clock),
        current: &'a CurrentConfig,
        service: usize,
        client: u64,
    ) -> Self {
        let capacity = upstream_capacity(current.upstreams[service].shared().settings());
        let pool = HoldOptions { pool: service, capacity };
        Self { room, clock, current, service, client, pool }
    }

    /// Waits for enough of the body to be here.
    pub(crate) async fn gather(
        &self,
        body: IncomingBody,
        is_admitted: bool,
    ) -> Result<PartialBody, GatherError> {
        if body.is_end_stream() {
            return Ok(PartialBody::untouched(body));
        }
        let config = &self.current.live.config;
        let upstream = &config.services[self.service].upstream;
        let options = GatherOptions {
            client: self.client,
            within: upstream.response_header_timeout,
            pool: self.pool,
            is_admitted,
            may_converse: upstream.protocol == Protocol::Http2,
            trailers_max: config.bounds.max_fields,
        };
        // Boxed, or each request without a body would carry the room for gathering one.
        Box::pin(gather(self.room, self.clock, body, options)).await
    }

    /// The origin is asked whether it wants the body.
    fn expectation(&self, interims: &Interims) -> Expectation {
        let config = &self.current.live.config.services[self.service].upstream;
        Expectation::new(interims, self.clock.now(), config.response_header_timeout)
    }

    /// The body as the upstream gets it. Whether its client is slow is of interest where a part of it is
    /// still to come.
    fn body(
        &self,
        permit: &mut Permit,
        body: PartialBody,
        expectation: Option<Expectation>,
        cut: &Rc<Cell<Option<UploadCut>>>,
    ) -> UploadBody {
        let clock = self.clock;
        let place = if body.is_partial() { permit.watch_client() } else { None };
        if body.is_short() {
            place.iter().for_each(|place| place.owes_already(clock.now()));
        }
        let watchers = Watchers {
            place: place.map_or_else(Weak::new, Rc::downgrade),
            room: self.room.clone(),
            client: self.client,
            pool: self.pool,
            cut: cut.clone(),
        };
        UploadBody::new(body, clock, watchers, expectation, self.current.live.config.bounds.max_fields)
    }
}

/// Returns whether the response goes on for as long as the client likes, mostly in silence.
pub(crate) fn is_event_stream(fields: FieldsView<'_>) -> bool {
    const EVENT_STREAM: &[u8] = b"text/event-stream";
    let named = fields.get(KnownField::ContentType).unwrap_or_default();
    named.get(..EVENT_STREAM.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM))
}

/// `Max-Forwards` ran out here (RFC 9110 §7.6.2): OPTIONS is about this hop.
fn answer_last_hop() -> Response<Body> {
    let mut response = Response::new(Body::own(Bytes::new()));
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("OPTIONS"));
    response.headers_mut().insert(CONTENT_LENGTH, 0.into());
    response
}

/// The upload was cut because it was too slow.
fn answer_slow_upload(
    responses: &Responses,
    client: &Client,
    version: Version,
    method: &Method,
) -> Response<Body> {
    client.left_body_unread.set(version < Version::HTTP_2);
    let mut response = slow_upload(&responses.metrics, method);
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.map(Body::own)
}

pub(crate) fn answer_failure(
    responses: &Responses,
    permit: Box<Permit>,
    error: &UpstreamError,
    method: &Method,
    offered: &OfferedRequest,
) -> Answer<Body> {
    count_failure(&responses.shared, &responses.metrics, error);
    responses.metrics.measurement.unmeasured.increment(Unmeasured::Error);
    let since = permit.received();
    match (error.kind, error.kind.source()) {
        // The client's own body failed it: as good as gone.
        (_, ErrorSource::Client) => drop(permit),
        // A bound of ours: the origin has not seen the request, so it says nothing of the origin.
        (UpstreamErrorKind::Full, _) => permit.failed(FailureSource::Gateway),
        (_, ErrorSource::Upstream | ErrorSource::Internal) => permit.failed(FailureSource::Origin),
    }
    if error.kind == UpstreamErrorKind::Full {
        let refusal = responses.pipeline.refuse_admitted(responses.now(), offered);
        let answer = refusal.respond(method, &HeaderMap::new(), false);
        count_refusal(&responses.metrics, refusal.status(), responses.now().saturating_since(since));
        return answer.map(Body::own);
    }
    respond(error, method).map(Body::own).into()
}

/// The upstream's response cannot be passed on; its connection ends with the unread body.
pub(crate) fn answer_unfit(
    responses: &Responses,
    permit: Box<Permit>,
    error: ResponseError,
    method: &Method,
) -> Response<Body> {
    let (failure, kind) = match error {
        ResponseError::TransferCoding | ResponseError::Length => {
            (UpstreamFailure::Malformed, UpstreamErrorKind::Malformed)
        }
    };
    responses.metrics.upstream.failures.increment(failure);
    responses.metrics.measurement.unmeasured.increment(Unmeasured::Error);
    responses.shared.warn(Happening::UpstreamFailed, format_args!("{error}"));
    permit.failed(FailureSource::Origin);
    let text = "The service's answer cannot be passed on.\n";
    plain(kind.status(), kind.as_str(), text, method).map(Body::own)
}

/// The upstream changed to another protocol unasked.
pub(crate) fn answer_unasked_switch(
    responses: &Responses,
    permit: Box<Permit>,
    method: &Method,
) -> Response<Body> {
    responses.metrics.upstream.failures.increment(UpstreamFailure::Malformed);
    permit.failed(FailureSource::Origin);
    let text = "The service changed the protocol without being asked.\n";
    plain(StatusCode::BAD_GATEWAY, UpstreamErrorKind::Malformed.as_str(), text, method).map(Body::own)
}

/// The upstream answered the request for a WebSocket as any other. To the client of a stream, 200 would say
/// that it is open.
fn answer_no_switch(permit: Box<Permit>, status: StatusCode, method: &Method) -> Response<Body> {
    permit.completed(status);
    let text = "The service did not open a WebSocket.\n";
    plain(StatusCode::BAD_GATEWAY, "no_websocket", text, method).map(Body::own)
}

/// The upstream agreed to another protocol: once the client has the 101, bytes go both ways until either side
/// ends. The permit lives as long as the tunnel, so the tunnel counts as a request in flight.
fn switch(
    responses: &Responses,
    connection: &Connection,
    mut permit: Box<Permit>,
    response: Response<UpstreamBody<UploadBody>>,
    (wanted, websocket): (Option<&UpstreamConfig>, Option<WebSocketStream>),
    method: &Method,
) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let (Some(upstream), Some(stream)) = (wanted, body.into_stream()) else {
        return answer_unasked_switch(responses, permit, method);
    };
    if let Err(error) = prepare_response(&mut head) {
        return answer_unfit(responses, permit, error, method);
    }
    if websocket.as_ref().is_some_and(|websocket| !websocket.open(&mut head)) {
        responses.metrics.upstream.failures.increment(UpstreamFailure::Malformed);
        permit.failed(FailureSource::Origin);
        let text = "The service's answer does not fit the WebSocket's key.\n";
        return plain(StatusCode::BAD_GATEWAY, UpstreamErrorKind::Malformed.as_str(), text, method)
            .map(Body::own);
    }
    responses.metrics.measurement.unmeasured.increment(Unmeasured::Tunnel);
    responses.metrics.connections.tunnels_opened.increment();
    permit.leave_origin();
    let metrics = responses.metrics.clone();
    let idle_timeout = upstream.body_idle_timeout;
    let tunnel = PendingTunnel::new(stream, idle_timeout, move |report| {
        metrics.connections.tunnels_closed.increment();
        match report.end {
            TunnelEnd::ClientClosed | TunnelEnd::UpstreamClosed | TunnelEnd::Idle => {
                permit.completed(StatusCode::SWITCHING_PROTOCOLS);
            }
            TunnelEnd::Failed => permit.failed(FailureSource::Origin),
            TunnelEnd::NeverOpened | TunnelEnd::Dropped => drop(permit),
        }
    });
    connection.hand_over(tunnel);
    head.version = Version::HTTP_11;
    Response::from_parts(head, Body::own(Bytes::new()))
}
