//! A request from its head: for which service and class it is, from whom, and what it asks of this hop.

use super::RequestContext;
use crate::bad_request::{answer_misdirected, answer_no_websocket, answer_unfit, answer_violation};
use crate::body::Body;
use crate::current::CurrentConfig;
use crate::deadline;
use crate::feedback::Sender;
use crate::forward::Upload;
use crate::pipeline::OfferedRequest;
use crate::refusal::Refusal;
use crate::refuse::{Refused, refuse};
use crate::replication::{ChosenTarget, Route};
use crate::websocket::{NoWebSocket, WebSocketStream};
use flashweir_admission::pipeline::ServiceKey;
use flashweir_classify::Classified;
use flashweir_config::Protocol;
use flashweir_core::Instant;
use flashweir_http::client::subscriber;
use flashweir_http::fields::{ClientScheme, FieldsError, Hop, Prepared, prepare_head};
use flashweir_http::head::{Answer, ReceivedHead};
use flashweir_http::rules::judge_http2;
use flashweir_http::serve::IncomingBody;
use flashweir_http1::head::{KnownField, RequestView};
use flashweir_telemetry::HttpVersion;
use http::{HeaderValue, Method, Response, Version, request};
use std::net::IpAddr;

/// A request whose head has been read.
pub(super) struct ReceivedRequest {
    pub(super) head: ReceivedHead,
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) hop: Hop,
    /// Address of the client.
    address: IpAddr,
    /// Its hash.
    pub(super) subscriber: u64,
    /// Its stream is to be a WebSocket.
    pub(super) websocket: Option<WebSocketStream>,
    pub(super) expects_continue: bool,
    /// The name that a node in front gives itself.
    pub(super) sender_name: Option<HeaderValue>,
    /// The head is fit to be sent already.
    prepared: Option<Prepared>,
    pub(super) classified: Classified,
    /// From then on its caller cannot use an answer, where it says so.
    pub(super) deadline: Option<Instant>,
}

impl ReceivedRequest {
    /// Reads a head that arrived at `now`.
    ///
    /// # Errors
    /// The answer to a request that cannot be taken.
    #[expect(clippy::result_large_err, reason = "moved once; a box would be an allocation for each answer")]
    pub(super) fn of(
        at: RequestContext<'_>,
        mut head: ReceivedHead,
        now: Instant,
    ) -> Result<Self, Response<Body>> {
        let RequestContext { worker, current, client, .. } = at;
        let trusted = &current.live.trusted_proxies;
        let hop = Hop {
            peer: client.peer.ip(),
            is_peer_trusted: trusted.trusts(client.peer.ip()),
            scheme: if client.is_tls { ClientScheme::Https } else { ClientScheme::Http },
        };
        let address = match hop.is_peer_trusted {
            true => trusted.client_address(hop.peer, &head.parts_mut().headers),
            false => hop.peer.to_canonical(),
        };
        let version = head.version();
        let websocket = match version {
            Version::HTTP_2 => judge_stream(at, head.parts_mut())?,
            _ => None,
        };
        let method = head.method();
        let expects_continue = head.fields().has(KnownField::Expect);
        // Before preparing takes them out.
        let deadline = match current.live.config.feedback.is_enabled {
            true => deadline::of_head(&worker.metrics, head.fields(), now),
            false => None,
        };
        let sender_name = current.senders.name_in(head.fields());
        // Preparing costs as much as a refusal, so ordinary requests are prepared only once admitted.
        let mut prepared = None;
        if may_be_unfit(head.view(), &method) {
            match prepare_head(&mut head, &hop, &client.forwarded) {
                Ok(fit) => prepared = Some(fit),
                Err(error) => return Err(answer_unfit(&worker.metrics, error, &method)),
            }
        }
        let sender = current.senders.recognise(client.peer.ip(), sender_name.as_ref());
        let Some(classified) = current.classifier.classify(&head, address, sender.name()) else {
            return Err(answer_misdirected(&worker.metrics, &method));
        };
        let config = &current.live.config;
        if websocket.is_some() && config.services[classified.service].upstream.protocol == Protocol::Http2 {
            return Err(answer_no_websocket(&worker.metrics, &method));
        }
        if let Some(entry) = at.entry {
            entry.found(address, current, &classified);
        }
        let deadline = deadline.or_else(|| deadline::of_class(&worker.metrics, config, &classified, now));
        let subscriber = subscriber(address);
        Ok(Self {
            head,
            method,
            version,
            hop,
            address,
            subscriber,
            websocket,
            expects_continue,
            sender_name,
            prepared,
            classified,
            deadline,
        })
    }

    /// Its body's way to the origin.
    pub(super) fn upload<'a>(&self, at: RequestContext<'a>) -> Upload<'a> {
        let room = (&at.worker.uploads, at.worker.shared.clock);
        Upload::new(room, at.current, self.classified.service, self.subscriber)
    }

    /// Counts it as offered; finds its route, and what the pipeline is asked about it.
    pub(super) fn offer(
        &mut self,
        at: RequestContext<'_>,
        sender: Sender<'_>,
        now: Instant,
        has_body: bool,
    ) -> (Route, OfferedRequest) {
        let RequestContext { worker, current, client, .. } = at;
        let requests = &worker.metrics.requests;
        requests.offered.increment();
        requests.by_protocol.increment(match self.version {
            Version::HTTP_2 => HttpVersion::Http2,
            _ => HttpVersion::Http1,
        });
        let route = worker.replication.route(now, &self.head, has_body);
        if let Route::Target(target) = route {
            // The service of the targets is behind all others, with the classes of the first.
            self.classified = self.classified.at_service(current.services.len() - 1);
            self.head.parts_mut().extensions.insert(ChosenTarget(target));
        }
        // What a proxy's handshake shows, all of its clients show.
        let tls_fingerprint = client.tls_fingerprint.get().filter(|_| !self.hop.is_peer_trusted);
        let key = self.key(at);
        let compares = worker.pipeline.compares_clients(now, key);
        let signs = current.classifier.signs(&self.head, self.address, tls_fingerprint, compares);
        let source = current.source(&self.classified, &signs, client, &self.hop, sender);
        (route, OfferedRequest::new(key, &self.classified, self.deadline, signs, source))
    }

    /// The pipeline's key of its service.
    pub(super) fn key(&self, at: RequestContext<'_>) -> ServiceKey {
        at.current.services[self.classified.service]
    }

    /// True if the head has been made fit to be sent already.
    pub(super) fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// Makes the head fit to be sent.
    ///
    /// # Errors
    /// The reason for which it cannot be.
    pub(super) fn prepare(&mut self, at: RequestContext<'_>) -> Result<Prepared, FieldsError> {
        match self.prepared.take() {
            Some(prepared) => Ok(prepared),
            None => {
                if self.changes_more(at.current) {
                    self.head.parts_mut();
                }
                prepare_head(&mut self.head, &self.hop, &at.client.forwarded)
            }
        }
    }

    /// Returns whether this gateway has more to say in the head than of the client.
    fn changes_more(&self, current: &CurrentConfig) -> bool {
        let upstream = &current.live.config.services[self.classified.service].upstream;
        self.deadline.is_some() || current.signs() || upstream.protocol == Protocol::Http2
    }

    /// The answer that says no.
    pub(super) fn refuse(
        &self,
        at: RequestContext<'_>,
        refusal: &Refusal,
        since: Instant,
        body: Option<IncomingBody>,
    ) -> Answer<Body> {
        if let Some(entry) = at.entry {
            entry.refused(refusal.id, refusal.reason);
        }
        let Self { head, method, version, expects_continue, .. } = self;
        let (version, expects_continue) = (*version, *expects_continue);
        let refused = Refused { fields: head.fields(), method, version, expects_continue, since };
        refuse((&at.worker.shared, &at.worker.metrics), at.client, refusal, &refused, body)
    }
}

/// Judges a head of HTTP/2, which no guard has read. Returns the stream of one that wants a WebSocket.
#[expect(clippy::result_large_err, reason = "moved once; a box would be an allocation for each answer")]
fn judge_stream(
    at: RequestContext<'_>,
    head: &mut request::Parts,
) -> Result<Option<WebSocketStream>, Response<Body>> {
    let worker = at.worker;
    if let Err(violation) = judge_http2(head, at.current.live.config.bounds.max_fields) {
        return Err(answer_violation(&worker.shared, &worker.metrics, violation, &head.method));
    }
    if head.method != Method::CONNECT {
        return Ok(None);
    }
    match WebSocketStream::of_head(head) {
        Ok(stream) => Ok(Some(stream)),
        Err(NoWebSocket::OtherProtocol) => Err(answer_no_websocket(&worker.metrics, &head.method)),
        Err(NoWebSocket::Plain) => Ok(None),
    }
}

/// Returns whether anything about the head is such that preparing it may fail; false for nearly all of
/// HTTP/1.1.
fn may_be_unfit(head: RequestView<'_>, method: &Method) -> bool {
    head.target_authority().is_some()
        || !head.path().starts_with(b"/")
        || matches!(*method, Method::CONNECT | Method::TRACE)
        || head.fields().has(KnownField::Expect)
}
