//! First phase of a request: its head is judged, and service, class, client and sender are found. No
//! controller has been asked yet.

use crate::bad_request::{
    answer_misdirected, answer_no_websocket, answer_unfit, answer_unsent, answer_violation,
};
use crate::classify::Classified;
use crate::connection::{Body, Client};
use crate::context::{Current, WorkerContext};
use crate::deadline;
use crate::feedback::Sender;
use crate::forward::Upload;
use crate::replication::{ChosenTarget, Route};
use crate::upload::PartialBody;
use crate::websocket::{NoWebSocket, WebSocketStream};
use flashweir_admission::pipeline::ServiceKey;
use flashweir_config::Protocol;
use flashweir_core::Instant;
use flashweir_http::client::subscriber;
use flashweir_http::fields::{ClientScheme, FieldsError, Hop, Prepared, prepare_next_request};
use flashweir_http::rules::judge_http2;
use flashweir_http::serve::{Connection, IncomingBody};
use flashweir_telemetry::HttpVersion;
use http::header::EXPECT;
use http::{HeaderValue, Method, Response, Version, request};
use std::net::IpAddr;
use std::rc::Rc;

/// A request with a right head, and everything that its head and its connection show.
pub(crate) struct Arrival<'a> {
    worker: &'a Rc<WorkerContext>,
    current: &'a Rc<Current>,
    client: &'a Client,
    pub(crate) hop: Hop,
    address: IpAddr,
    pub(crate) head: request::Parts,
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Its client waits for 100 (Continue) before it sends the body.
    pub(crate) expects_continue: bool,
    /// Its stream is to be a WebSocket.
    pub(crate) websocket: Option<WebSocketStream>,
    /// Result of making the head fit to be sent on, where that was done first because it might have failed.
    prepared: Option<Prepared>,
    pub(crate) sender: Sender<'a>,
    pub(crate) subscriber: u64,
    /// Complete from [`route`](Self::route) on.
    pub(crate) classified: Classified,
}

impl<'a> Arrival<'a> {
    /// Judges and classifies; `sender_name` is where the name of a node in front is kept. Fails with the
    /// answer to a request that cannot be taken.
    pub(crate) fn of_head(
        (worker, current, client): (&'a Rc<WorkerContext>, &'a Rc<Current>, &'a Client),
        mut head: request::Parts,
        now: Instant,
        sender_name: &'a mut Option<HeaderValue>,
    ) -> Result<Self, Box<Response<Body>>> {
        let metrics = &worker.metrics;
        let trusted = &current.live.trusted_proxies;
        let hop = Hop {
            peer: client.peer.ip(),
            is_peer_trusted: trusted.trusts(client.peer.ip()),
            scheme: if client.is_tls { ClientScheme::Https } else { ClientScheme::Http },
        };
        let address = trusted.client_address(client.peer.ip(), &head.headers);
        let config = &current.live.config;
        let version = head.version;
        let mut websocket = None;
        if version == Version::HTTP_2 {
            if let Err(violation) = judge_http2(&head, config.bounds.max_fields) {
                return Err(Box::new(answer_violation(&worker.shared, metrics, violation, &head.method)));
            }
            if head.method == Method::CONNECT {
                match WebSocketStream::of_head(&mut head) {
                    Ok(stream) => websocket = Some(stream),
                    Err(NoWebSocket::OtherProtocol) => {
                        return Err(Box::new(answer_no_websocket(metrics, &head.method)));
                    }
                    Err(NoWebSocket::Plain) => {}
                }
            }
        }
        let method = head.method.clone();
        let expects_continue = head.headers.contains_key(EXPECT);
        // Before preparing takes them out.
        let deadline = match config.feedback.is_enabled {
            true => deadline::of_head(metrics, &head.headers, now),
            false => None,
        };
        *sender_name = current.senders.name_in(&head.headers);
        // Preparing costs as much as a refusal, so ordinary requests are prepared only once admitted.
        let mut prepared = None;
        if may_be_unfit(&head) {
            match prepare_next_request(&mut head, &hop, &client.forwarded) {
                Ok(fit) => prepared = Some(fit),
                Err(error) => return Err(Box::new(answer_unfit(metrics, error, &method))),
            }
        }
        let sender = current.senders.recognise(client.peer.ip(), sender_name.as_ref());
        let Some(mut classified) = current.classifier.classify(&head, address, sender.name()) else {
            return Err(Box::new(answer_misdirected(metrics, &method)));
        };
        if websocket.is_some() && config.services[classified.service].upstream.protocol == Protocol::Http2 {
            return Err(Box::new(answer_no_websocket(metrics, &method)));
        }
        classified.deadline = deadline.or_else(|| deadline::of_class(metrics, config, &classified, now));
        Ok(Self {
            worker,
            current,
            client,
            hop,
            address,
            head,
            method,
            version,
            expects_continue,
            websocket,
            prepared,
            sender,
            subscriber: subscriber(address),
            classified,
        })
    }

    /// The connection is one too many, or the gateway is draining.
    pub(crate) fn is_refused_anyway(&self) -> bool {
        self.client.full.is_some() || self.worker.shared.is_draining()
    }

    /// Waits for the body, where that is worth it before the request is admitted. Fails with the answer where
    /// it does not come.
    pub(crate) async fn gather(
        &self,
        connection: &Connection,
        body: IncomingBody,
    ) -> Result<PartialBody, Box<Response<Body>>> {
        // Reading would invite a client that asks first to send what may be refused.
        if self.expects_continue || self.is_refused_anyway() {
            return Ok(PartialBody::untouched(body));
        }
        self.gather_rest(connection, body, false).await
    }

    /// Waits for a body that its client sends, or was asked for.
    pub(crate) async fn gather_rest(
        &self,
        connection: &Connection,
        body: IncomingBody,
        is_admitted: bool,
    ) -> Result<PartialBody, Box<Response<Body>>> {
        let upload = Upload::new(self.worker, self.current, self.classified.service, self.subscriber);
        upload.gather(body, is_admitted).await.map_err(|error| {
            let metrics = &self.worker.metrics;
            Box::new(answer_unsent(metrics, self.client, connection, error, self.version, &self.method))
        })
    }

    /// Counts the request as offered, finds where it is to go, and completes the classification.
    pub(crate) fn route(&mut self, now: Instant, has_body: bool) -> Route {
        let requests = &self.worker.metrics.requests;
        requests.offered.increment();
        requests.by_protocol.increment(if self.version == Version::HTTP_2 {
            HttpVersion::Http2
        } else {
            HttpVersion::Http1
        });
        let route = self.worker.replication.route(now, &self.head, has_body);
        if let Route::Target(target) = route {
            // The service of the targets is behind all others, with the classes of the first.
            self.classified.service = self.current.services.len() - 1;
            self.classified.candidate = None;
            self.head.extensions.insert(ChosenTarget(target));
        }
        // What a proxy's handshake shows, all of its clients show.
        let tls_fingerprint = self.client.tls_fingerprint.get().filter(|_| !self.hop.is_peer_trusted);
        let compares = self.worker.pipeline.compares_clients(now, self.key());
        self.classified.signs =
            self.current.classifier.signs(&self.head, self.address, tls_fingerprint, compares);
        self.classified.source = self.current.source(&self.classified, self.client, &self.hop, self.sender);
        route
    }

    /// The pipeline's key of its service.
    pub(crate) fn key(&self) -> ServiceKey {
        self.current.services[self.classified.service]
    }

    /// The node in front that sent it, and its service.
    pub(crate) fn node(&self) -> Option<(ServiceKey, u64)> {
        if let Sender::Node(node) = self.sender { Some((self.key(), node.key)) } else { None }
    }

    /// Whether the head has been made fit to be sent already.
    pub(crate) fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// Makes the head fit to be sent on.
    pub(crate) fn prepare(&mut self) -> Result<Prepared, FieldsError> {
        let prepared = self.prepared.take();
        prepared.map_or_else(|| prepare_next_request(&mut self.head, &self.hop, &self.client.forwarded), Ok)
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
