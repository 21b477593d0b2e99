//! Sending requests to the upstreams: choice, bounded connections, timeouts, and retry only where nothing was sent.
//!
//! The choice is `flashweir-replication`'s: two choices on requests in flight, among the servers that its pool calls usable.
//! [`UpstreamShared`] is one for the process; each worker has its own [`Upstreams`] with its own connections.

mod connect;
mod error;
mod multiplex;
mod pool;
mod probe;
mod response_body;
mod shared;
mod small_reads;

pub use error::{ErrorSource, UpstreamError, UpstreamErrorKind};
pub use flashweir_replication::servers::{
    EjectionSettings, LearningSettings, OutCause, ProbeOutcome, SHARE_ONE,
};
pub use flashweir_replication::{PoolEvents, PoolSettings};
pub use probe::{ProbeError, probe, probe_outcome};
pub use response_body::UpstreamBody;
pub use shared::{UpstreamSettings, UpstreamSettingsError, UpstreamShared, UpstreamStatus};

use crate::guarded::Protocol;
use connect::Target;
use flashweir_core::Rng;
use flashweir_replication::Balancer;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use multiplex::{Http2Pool, Http2Stream};
use pool::{Http1Connection, Http1Pool};
use response_body::Lease;
use shared::InFlight;
use std::cell::{Cell, RefCell};
use std::error::Error as StdError;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::either::Either;

/// One worker's connections to the upstreams. `B` is the body type of the requests it sends.
pub struct Upstreams<B> {
    shared: Arc<UpstreamShared>,
    pools: Box<[Pool<B>]>,
    choices: RefCell<Choices>,
    retries: Cell<u64>,
}

/// State with which one worker chooses upstreams.
struct Choices {
    balancer: Balancer,
    rng: Rng,
}

enum Pool<B> {
    Http1(Rc<Http1Pool<B>>),
    Http2(Http2Pool<B>),
}

enum Exchange<B> {
    Http1(Http1Connection<B>, Rc<Http1Pool<B>>),
    Http2(Http2Stream<B>),
}

/// Requirements on a request's body: `Unpin` because HTTP/2 sends from where the body lies.
pub trait RequestBody:
    Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Unpin + 'static
{
}

impl<B> RequestBody for B where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Unpin + 'static
{
}

/// Upstreams tried for one request: beyond three the client is better served by a quick answer.
const ATTEMPTS_MAX: u32 = 3;
/// The same while all that were tried refuse connections at once, as absent servers do: each costs some microseconds.
const REFUSED_ATTEMPTS_MAX: u32 = 16;
/// From the first failure, for which those are tried.
const REFUSED_WITHIN: Duration = Duration::from_millis(100);
/// Stale connections one request may meet at one upstream; a server that closes each new one is broken.
const STALE_MAX: u32 = 2;
/// How long an HTTP/2 upstream may be silent before it is asked whether it is still there.
const HTTP2_PING_AFTER: Duration = Duration::from_secs(20);

impl<B: RequestBody> Upstreams<B> {
    /// Connections for one worker; opens none yet.
    #[must_use]
    pub fn new(shared: Arc<UpstreamShared>, rng: Rng) -> Self {
        let settings = shared.settings();
        let (limit, idle) = (settings.connections_max, settings.pool_idle_timeout);
        let pool = |index| match settings.protocol {
            Protocol::Http1 => Pool::Http1(Http1Pool::new(index, limit, idle)),
            Protocol::Http2 => Pool::Http2(Http2Pool::new(index, limit, idle)),
        };
        let pools = (0..settings.addresses.len()).map(pool).collect();
        let choices = Choices { balancer: Balancer::new(settings.addresses.len()), rng };
        Self { shared, pools, choices: RefCell::new(choices), retries: Cell::new(0) }
    }

    /// The state shared with the other workers.
    #[must_use]
    pub fn shared(&self) -> &Arc<UpstreamShared> {
        &self.shared
    }

    /// How often since the last call a request was tried again because none of it had been sent.
    pub fn take_retries(&self) -> u64 {
        self.retries.take()
    }

    /// [`send_for`](Self::send_for) an unknown client.
    ///
    /// # Errors
    /// As there.
    pub async fn send(&self, request: Request<B>) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        self.send_for(None, request).await
    }

    /// Sends a request and waits for the response's head; must run inside a `LocalSet`. `client` identifies the client, so
    /// that the requests of one of them do not count as an upstream's bad health.
    ///
    /// The request has gone through [`fields::prepare_request`](crate::fields::prepare_request): target in
    /// origin-form, `Host` set. It is tried elsewhere only when none of it was sent. Dropping the future, or
    /// the body of the response, cancels the exchange.
    ///
    /// # Errors
    /// [`UpstreamError`]; no response has begun, so [`UpstreamErrorKind::status`] can be answered.
    pub async fn send_for(
        &self,
        client: Option<u64>,
        request: Request<B>,
    ) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        self.send_first_to(None, client, request).await
    }

    /// The same, first to the upstream of this index, where its caller has chosen one.
    ///
    /// # Errors
    /// As [`send_for`](Self::send_for).
    pub async fn send_first_to(
        &self,
        first: Option<usize>,
        client: Option<u64>,
        request: Request<B>,
    ) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        let mut first = first.filter(|index| *index < self.pools.len());
        // Stays here until it is sent: each move of a request is a copy of half a kilobyte.
        let mut unsent = Some(request);
        let mut tried = 0u64;
        let mut worst: Option<UpstreamError> = None;
        let mut failed_at: Option<Instant> = None;
        while tried.count_ones() < ATTEMPTS_MAX || may_try_more(tried, worst.as_ref(), failed_at) {
            let Some(index) = first.take().or_else(|| self.choose(tried)) else { break };
            tried |= 1 << index;
            let error = match self.send_to(index, &mut unsent).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            self.shared.record_failure(index, error.kind, client);
            if unsent.is_none() {
                return Err(error);
            }
            self.retries.set(self.retries.get() + 1);
            failed_at = failed_at.or_else(|| Some(Instant::now()));
            // "All busy" is the more useful answer than "one of them is down".
            if worst.as_ref().is_none_or(|worst| worst.kind != UpstreamErrorKind::Full) {
                worst = Some(error);
            }
        }
        Err(worst.unwrap_or_else(|| UpstreamError::new(UpstreamErrorKind::NoUpstream, None)))
    }

    /// An upstream that is not in `tried`.
    fn choose(&self, tried: u64) -> Option<usize> {
        let Choices { balancer, rng } = &mut *self.choices.borrow_mut();
        self.shared.choose(tried, balancer, rng)
    }

    /// One attempt; after a failure the request is still in `unsent` only if none of it was sent.
    async fn send_to(
        &self,
        index: usize,
        unsent: &mut Option<Request<B>>,
    ) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        let mut in_flight = InFlight::begin(&self.shared, index);
        let target = self.shared.target(index);
        let asks_upgrade = unsent.as_mut().is_some_and(|request| {
            adapt(request, target);
            request.headers().contains_key(UPGRADE)
        });
        let mut stale = 0;
        loop {
            let mut exchange = self.check_out(index, target).await?;
            let head_timeout = self.shared.settings().response_header_timeout;
            let since = self.shared.settings().learns_response_times().then(Instant::now);
            let request = unsent.take().expect("an attempt begins with a request that was not sent");
            let mut refused = match timeout(head_timeout, exchange.try_send(request)).await {
                // The upgrade was not requested: the bytes that follow would be read as a response to nothing.
                Ok(Ok(response)) if response.status() == StatusCode::SWITCHING_PROTOCOLS && !asks_upgrade => {
                    return Err(UpstreamError::new(UpstreamErrorKind::Malformed, Some(index)));
                }
                Ok(Ok(response)) => {
                    in_flight.answered(response.status(), since);
                    return Ok(self.respond(response, exchange, in_flight));
                }
                Ok(Err(refused)) => refused,
                Err(_) => {
                    in_flight.timed_out();
                    return Err(UpstreamError::new(UpstreamErrorKind::HeaderTimeout, Some(index)));
                }
            };
            *unsent = refused.take_message();
            // A pooled connection the upstream had closed meanwhile. Its contemporaries are suspect too, so the next round
            // dials.
            if unsent.is_none() || !exchange.is_reused() || stale == STALE_MAX {
                return Err(UpstreamError::from_hyper(refused.into_error(), index));
            }
            stale += 1;
            exchange.close_idle();
            self.retries.set(self.retries.get() + 1);
        }
    }

    async fn check_out(&self, index: usize, target: &Target) -> Result<Exchange<B>, UpstreamError> {
        match &self.pools[index] {
            Pool::Http1(pool) => Ok(Exchange::Http1(pool.check_out(target).await?, Rc::clone(pool))),
            Pool::Http2(pool) => Ok(Exchange::Http2(pool.check_out(target, HTTP2_PING_AFTER).await?)),
        }
    }

    fn respond(
        &self,
        response: Response<Incoming>,
        exchange: Exchange<B>,
        in_flight: InFlight,
    ) -> Response<UpstreamBody<B>> {
        let is_switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let lease = match exchange {
            Exchange::Http1(connection, pool) => Lease::Http1 { connection, pool, in_flight },
            Exchange::Http2(stream) => Lease::Http2 { _stream: stream, in_flight },
        };
        let idle_timeout = self.shared.settings().body_idle_timeout;
        response.map(|incoming| UpstreamBody::new(incoming, lease, is_switching, idle_timeout))
    }
}

impl<B> std::fmt::Debug for Upstreams<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstreams").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl<B: RequestBody> Exchange<B> {
    /// Hands the request to hyper at once; what is awaited is the response.
    fn try_send(
        &mut self,
        request: Request<B>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<B>>>> + use<B> {
        match self {
            Self::Http1(connection, _) => Either::Left(connection.sender.try_send_request(request)),
            Self::Http2(stream) => Either::Right(stream.sender.try_send_request(request)),
        }
    }

    fn is_reused(&self) -> bool {
        match self {
            Self::Http1(connection, _) => connection.is_reused,
            // A connection that is going away is left out of the choice the next time.
            Self::Http2(stream) => stream.sender.is_closed(),
        }
    }

    fn close_idle(&self) {
        if let Self::Http1(_, pool) = self {
            pool.close_idle();
        }
    }
}

/// Whether a request that met absent servers only goes on to others.
fn may_try_more(tried: u64, worst: Option<&UpstreamError>, failed_at: Option<Instant>) -> bool {
    tried.count_ones() < REFUSED_ATTEMPTS_MAX
        && worst.is_some_and(|worst| worst.kind == UpstreamErrorKind::Connect)
        && failed_at.is_some_and(|at| at.elapsed() < REFUSED_WITHIN)
}

/// Gives the request the form the upstream's protocol wants. Doing it twice changes nothing.
fn adapt<B: RequestBody>(request: &mut Request<B>, target: &Target) {
    let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let host = request.headers().get(HOST).filter(|host| !host.is_empty());
    match target.protocol() {
        Protocol::Http1 => {
            if host.is_none() {
                let authority = request.uri().authority().unwrap_or_else(|| target.authority());
                // An authority has no byte a field value cannot hold.
                if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
                    request.headers_mut().insert(HOST, host);
                }
            }
            if request.uri().authority().is_some() {
                *request.uri_mut() = Uri::from(path);
            }
            // hyper takes a GET or HEAD of unknown length for one without a body, and would drop it without a word.
            let body = request.body();
            let is_unknown = !body.is_end_stream() && body.size_hint().exact().is_none();
            if is_unknown && !request.headers().contains_key(CONTENT_LENGTH) {
                request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            *request.version_mut() = Version::HTTP_11;
        }
        Protocol::Http2 => {
            let authority = host
                .and_then(|host| Authority::try_from(host.as_bytes()).ok())
                .or_else(|| request.uri().authority().cloned())
                .unwrap_or_else(|| target.authority().clone());
            let mut parts = http::uri::Parts::default();
            parts.scheme = Some(target.scheme().clone());
            parts.authority = Some(authority);
            parts.path_and_query = Some(path);
            if let Ok(uri) = Uri::from_parts(parts) {
                *request.uri_mut() = uri;
            }
            for name in [HOST, CONNECTION, UPGRADE] {
                request.headers_mut().remove(name);
            }
            *request.version_mut() = Version::HTTP_2;
        }
    }
}
