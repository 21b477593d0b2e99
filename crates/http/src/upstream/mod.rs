//! Sending requests to the upstreams: choice, bounded connections, timeouts, another try where nothing was
//! sent, and one where a used connection ended under a request that may be carried out twice (`repeat.rs`).
//! Where all refuse connections, a request waits for one that restarts (`absence.rs`).
//!
//! The choice is `flashweir-replication`'s: two choices on requests in flight, among the servers that its
//! pool calls usable. [`UpstreamShared`] is one for the process; each worker has its own [`Upstreams`] with
//! its own connections.

mod absence;
mod closing;
mod connect;
mod error;
mod interim_reader;
mod multiplex;
mod pool;
mod probe;
mod record;
mod repeat;
mod repeat_budget;
mod response_body;
mod settings;
mod shared;
mod small_reads;
mod socket;

pub use error::{ErrorSource, UpstreamError, UpstreamErrorKind};
pub use flashweir_replication::servers::{
    EjectionSettings, LearningSettings, OutCause, ProbeOutcome, SHARE_ONE,
};
pub use flashweir_replication::{PoolEvents, PoolSettings};
pub use probe::{ProbeError, probe, probe_outcome};
pub use response_body::UpstreamBody;
pub use settings::{UpstreamSettings, UpstreamSettingsError};
pub use shared::{UpstreamShared, UpstreamStatus};

use crate::guarded::Protocol;
use crate::interim::Interims;
use absence::{FIRST_WAIT, LAST_WAIT};
use connect::ConnectTarget;
use flashweir_core::Rng;
use flashweir_replication::Balancer;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use multiplex::{Http2Pool, Http2Stream};
use pool::{Choice, Http1Connection, Http1Pool};
use record::Record;
use repeat::{HeadTooLong, Kept, Loss, loss_of};
use response_body::Lease;
use shared::InFlight;
use std::cell::{Cell, RefCell};
use std::error::Error as StdError;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout_at};
use tokio_util::either::Either;

/// One worker's connections to the upstreams. `B` is the body type of the requests it sends.
pub struct Upstreams<B> {
    shared: Arc<UpstreamShared>,
    pools: Box<[Pool<B>]>,
    choices: RefCell<Choices>,
    copy: fn(&B) -> Option<B>,
    counts: Cell<Option<SendCounts>>,
}

/// Counts of requests that were sent more than once, or could not be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounts {
    /// Tries after others by which provably nothing had been sent.
    pub retries: u64,
    /// Requests sent once more after a connection that had been used ended under them.
    pub repeats: u64,
    /// Requests that were not, because the upstream's budget of repeats was spent.
    pub over_budget: u64,
    /// Requests that were not, because their head is longer than what is kept of it.
    pub head_too_long: u64,
}

/// Ways in which a request may be sent that differ from the usual one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendOptions<'a> {
    /// First to the upstream of this index, where the caller has chosen one.
    pub first: Option<usize>,
    /// Identifies the client, so that the requests of one of them do not count as an upstream's bad health.
    pub client: Option<u64>,
    /// Takes the interim responses of an HTTP/1.1 upstream.
    pub interims: Option<&'a Interims>,
    /// While every upstream refuses connections, the request waits up to a second: they may restart.
    pub waits: bool,
}

/// The upstreams that were tried at one time.
struct Round {
    tried: u64,
    failed_at: Option<Instant>,
    /// All of them refused a connection.
    all_refused: bool,
}

/// A request on its way to an upstream.
struct Outgoing<'a, B> {
    /// Stays here until it is sent: each move of a request is a copy of half a kilobyte.
    unsent: Option<Request<B>>,
    /// It was sent before, so it goes to a new connection, and is not sent a third time.
    is_repeat: bool,
    /// Takes the interim responses to it, of an HTTP/1.1 upstream.
    interims: Option<&'a Interims>,
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
/// The same while all that were tried refuse connections at once, as absent servers do: each costs some
/// microseconds.
const REFUSED_ATTEMPTS_MAX: u32 = 16;
/// From the first failure, for which those are tried.
const REFUSED_WITHIN: Duration = Duration::from_millis(100);
/// Stale connections one request may meet at one upstream; a server that closes each new one is broken.
const STALE_MAX: u32 = 2;
/// Silence of an HTTP/2 upstream after which it gets a ping.
const HTTP2_PING_AFTER: Duration = Duration::from_secs(20);

impl<B: RequestBody> Upstreams<B> {
    /// Connections for one worker; opens none yet.
    #[must_use]
    pub fn new(shared: Arc<UpstreamShared>, rng: Rng) -> Self {
        let settings = shared.settings();
        let (limit, idle) = (settings.connections_max, settings.pool_idle_timeout);
        let fields_max = settings.response_fields_max;
        let pool = |index| match settings.protocol {
            Protocol::Http1 => Pool::Http1(Http1Pool::new(index, limit, fields_max, idle)),
            Protocol::Http2 => Pool::Http2(Http2Pool::new(index, limit, idle)),
        };
        let pools = (0..settings.addresses.len()).map(pool).collect();
        let choices = Choices { balancer: Balancer::new(settings.addresses.len()), rng };
        let (choices, counts) = (RefCell::new(choices), Cell::new(None));
        Self { shared, pools, choices, copy: |_| None, counts }
    }

    /// The same, with requests sent once more where that is right and `copy` has another body for it: none,
    /// or one held whole. Without this, none is.
    #[must_use]
    pub fn repeating(self, copy: fn(&B) -> Option<B>) -> Self {
        Self { copy, ..self }
    }

    /// The state shared with the other workers.
    #[must_use]
    pub fn shared(&self) -> &Arc<UpstreamShared> {
        &self.shared
    }

    /// Counts since the last call; none while nothing was counted, as nearly always.
    pub fn take_counts(&self) -> Option<SendCounts> {
        self.counts.take()
    }

    fn count(&self, counter: impl FnOnce(&mut SendCounts) -> &mut u64) {
        let mut counts = self.counts.take().unwrap_or_default();
        *counter(&mut counts) += 1;
        self.counts.set(Some(counts));
    }

    /// [`send_for`](Self::send_for) an unknown client.
    ///
    /// # Errors
    /// As there.
    pub async fn send(&self, request: Request<B>) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        self.send_for(None, request).await
    }

    /// Sends a request and waits for the response's head; must run inside a `LocalSet`. `client` identifies
    /// the client, so that the requests of one of them do not count as an upstream's bad health.
    ///
    /// The request has gone through [`fields::prepare_request`](crate::fields::prepare_request): target in
    /// origin-form, `Host` set. It is tried elsewhere when none of it was sent, and sent twice at most, as
    /// [`repeating`](Self::repeating) says. Dropping the future, or the body of the response, cancels the
    /// exchange.
    ///
    /// # Errors
    /// [`UpstreamError`]; no response has begun, so [`UpstreamErrorKind::status`] can be answered.
    pub async fn send_for(
        &self,
        client: Option<u64>,
        request: Request<B>,
    ) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        self.send_with(SendOptions { client, ..SendOptions::default() }, request).await
    }

    /// The same in another way than the usual one.
    ///
    /// # Errors
    /// As [`send_for`](Self::send_for).
    pub async fn send_with(
        &self,
        options: SendOptions<'_>,
        request: Request<B>,
    ) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        let SendOptions { first, client, interims, waits } = options;
        let mut first = first.filter(|index| *index < self.pools.len());
        let mut outgoing = Outgoing { unsent: Some(request), is_repeat: false, interims };
        let mut worst: Option<UpstreamError> = None;
        let mut round = Round::default();
        let mut began: Option<Instant> = None;
        let mut wait = FIRST_WAIT;
        loop {
            let next = if round.may_try(worst.as_ref()) {
                first.take().or_else(|| self.choose(round.tried))
            } else {
                None
            };
            let Some(index) = next else {
                let left = began.filter(|_| waits && round.all_refused);
                let Some(left) = left.and_then(|began| self.shared.wait_max(began.elapsed())) else { break };
                // Boxed, or each request would carry the room for it.
                Box::pin(sleep(wait.min(left))).await;
                (round, wait) = (Round::default(), LAST_WAIT.min(wait * 2));
                continue;
            };
            round.tried |= 1 << index;
            let error = match self.send_to(index, &mut outgoing).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            // That it is absent has been recorded before the first wait.
            if wait == FIRST_WAIT || !error.is_refused() {
                self.shared.record_failure(index, error.kind, client);
            }
            if outgoing.unsent.is_none() {
                return Err(error);
            }
            self.count(|counts| &mut counts.retries);
            round.failed(&error);
            began = began.or(round.failed_at);
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

    /// One attempt, or two; after a failure the request is still in `outgoing` only if none of it was sent
    /// since.
    async fn send_to(
        &self,
        index: usize,
        outgoing: &mut Outgoing<'_, B>,
    ) -> Result<Response<UpstreamBody<B>>, UpstreamError> {
        let mut in_flight = InFlight::begin(&self.shared, index);
        let target = self.shared.target(index);
        let request = outgoing.unsent.as_mut().expect("an attempt begins with a request that was not sent");
        adapt(request, target);
        let asks_upgrade = request.headers().contains_key(UPGRADE);
        let mut kept = if outgoing.is_repeat { None } else { self.keep(request, target.protocol()) };
        let mut stale = 0;
        // One for all rounds: a client waits no longer for being unlucky.
        let mut deadline = None;
        loop {
            let choice = match &kept {
                _ if outgoing.is_repeat => Choice::New,
                Some(_) => Choice::Any,
                None => Choice::Asked,
            };
            let mut exchange = self.check_out(index, target, choice).await?;
            exchange.begin(kept.is_some(), outgoing.interims);
            let since = self.shared.settings().learns_response_times().then(Instant::now);
            let deadline = *deadline.get_or_insert_with(|| {
                tokio::time::Instant::now() + self.shared.settings().response_header_timeout
            });
            let request = outgoing.unsent.take().expect("a round begins with a request that was not sent");
            let mut refused = match timeout_at(deadline, exchange.try_send(request)).await {
                // The upgrade was not requested: the bytes that follow would be read as a response to
                // nothing.
                Ok(Ok(response)) if response.status() == StatusCode::SWITCHING_PROTOCOLS && !asks_upgrade => {
                    return Err(UpstreamError::new(UpstreamErrorKind::Malformed, Some(index)));
                }
                // Of HTTP/1.1 none comes that is longer.
                Ok(Ok(response)) if response.headers().len() > self.shared.settings().response_fields_max => {
                    return Err(UpstreamError::new(UpstreamErrorKind::HeadTooLarge, Some(index)));
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
            outgoing.unsent = refused.take_message();
            let error = refused.into_error();
            if outgoing.unsent.is_some() {
                // A pooled connection the upstream had closed meanwhile. Its contemporaries are suspect too,
                // so the next round dials.
                if !exchange.is_stale() || stale == STALE_MAX {
                    return Err(UpstreamError::from_hyper(error, index));
                }
                stale += 1;
                exchange.close_idle();
                self.count(|counts| &mut counts.retries);
                continue;
            }
            outgoing.unsent = self.repeat(index, &exchange, &error, kept.take());
            if outgoing.unsent.is_none() {
                return Err(UpstreamError::from_hyper(error, index));
            }
            outgoing.is_repeat = true;
        }
    }

    /// Keeps the parts of a request that it needs to be sent once more. For HTTP/1.1 its head goes into the
    /// connection's record, which costs less; HTTP/2 gives an upstream words for "not begun", so any method
    /// may be.
    fn keep(&self, request: &Request<B>, protocol: Protocol) -> Option<Kept<B>> {
        match protocol {
            Protocol::Http1 if !request.method().is_idempotent() => None,
            Protocol::Http1 => (self.copy)(request.body()).map(Kept::Body),
            Protocol::Http2 => {
                let mut copy = Request::new((self.copy)(request.body())?);
                copy.method_mut().clone_from(request.method());
                copy.uri_mut().clone_from(request.uri());
                copy.headers_mut().clone_from(request.headers());
                *copy.version_mut() = request.version();
                Some(Kept::Whole(Box::new(copy)))
            }
        }
    }

    /// The request once more, if it may be; its connection is not used again.
    fn repeat(
        &self,
        index: usize,
        exchange: &Exchange<B>,
        error: &hyper::Error,
        kept: Option<Kept<B>>,
    ) -> Option<Request<B>> {
        let loss = loss_of(exchange, error)?;
        self.lost(index, exchange, loss);
        match kept?.into_request(loss, exchange.record()) {
            Ok(request) => {
                let request = request?;
                let is_granted = self.shared.may_repeat(index);
                self.count(|counts| if is_granted { &mut counts.repeats } else { &mut counts.over_budget });
                is_granted.then_some(request)
            }
            Err(HeadTooLong) => {
                self.count(|counts| &mut counts.head_too_long);
                None
            }
        }
    }

    /// The upstream ended the connection under a request, or refused the request.
    fn lost(&self, index: usize, exchange: &Exchange<B>, loss: Loss) {
        match (exchange, &self.pools[index]) {
            (Exchange::Http1(connection, pool), _) => pool.lost(connection),
            (Exchange::Http2(stream), Pool::Http2(pool)) if loss != Loss::Refused => pool.lost(stream),
            (Exchange::Http2(_), _) => {}
        }
    }

    async fn check_out(
        &self,
        index: usize,
        target: &ConnectTarget,
        choice: Choice,
    ) -> Result<Exchange<B>, UpstreamError> {
        match &self.pools[index] {
            Pool::Http1(pool) => Ok(Exchange::Http1(pool.check_out(target, choice).await?, Rc::clone(pool))),
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
            Exchange::Http2(stream) => {
                stream.answered();
                Lease::Http2 { _stream: stream, in_flight }
            }
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

    /// The request is about to be sent; `is_kept` if it may be sent once more.
    fn begin(&self, is_kept: bool, interims: Option<&Interims>) {
        if let Self::Http1(connection, _) = self {
            connection.begin(is_kept, interims);
        }
    }

    /// A request that was not sent may have met the end of a connection that was good before.
    fn is_stale(&self) -> bool {
        match self {
            Self::Http1(connection, _) => connection.is_reused(),
            // A connection that is going away is left out of the choice the next time.
            Self::Http2(stream) => stream.sender.is_closed(),
        }
    }

    fn close_idle(&self) {
        if let Self::Http1(_, pool) = self {
            pool.close_idle();
        }
    }

    fn record(&self) -> Option<&Record> {
        match self {
            Self::Http1(connection, _) => Some(connection.record()),
            Self::Http2(_) => None,
        }
    }
}

impl Default for Round {
    fn default() -> Self {
        Self { tried: 0, failed_at: None, all_refused: true }
    }
}

impl Round {
    fn failed(&mut self, error: &UpstreamError) {
        self.failed_at = self.failed_at.or_else(|| Some(Instant::now()));
        self.all_refused &= error.is_refused();
    }

    /// Returns whether one more is tried. A request that met absent servers only goes on to more others.
    fn may_try(&self, worst: Option<&UpstreamError>) -> bool {
        let tried = self.tried.count_ones();
        tried < ATTEMPTS_MAX
            || tried < REFUSED_ATTEMPTS_MAX
                && worst.is_some_and(|worst| worst.kind == UpstreamErrorKind::Connect)
                && self.failed_at.is_some_and(|at| at.elapsed() < REFUSED_WITHIN)
    }
}

/// Gives the request the form the upstream's protocol wants. Doing it twice changes nothing.
fn adapt<B: RequestBody>(request: &mut Request<B>, target: &ConnectTarget) {
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
            // hyper takes a GET or HEAD of unknown length for one without a body, and would drop it without a
            // word.
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
