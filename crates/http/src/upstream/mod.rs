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
mod connection;
mod deadline;
mod early_answer;
mod error;
mod multiplex;
mod pool;
mod probe;
mod repeat;
mod repeat_budget;
mod request_head;
mod response_body;
mod send_http1;
mod send_http2;
mod settings;
mod shared;
mod slot;
mod socket;
mod stream;

pub use error::{ErrorSource, UpstreamError, UpstreamErrorKind};
pub use flashweir_replication::servers::{
    EjectionSettings, LearningSettings, OutCause, ProbeOutcome, SHARE_ONE,
};
pub use flashweir_replication::{PoolEvents, PoolSettings};
pub use probe::{ProbeError, probe, probe_outcome};
pub use response_body::UpstreamBody;
pub use settings::{UpstreamSettings, UpstreamSettingsError};
pub use shared::{UpstreamShared, UpstreamStatus};
pub use stream::UpstreamStream;

use crate::guarded::Protocol;
use crate::head::{Answer, ReceivedHead};
use crate::interim::Interims;
use absence::{FIRST_WAIT, LAST_WAIT};
use flashweir_core::Rng;
use flashweir_replication::Balancer;
use http::{Request, Response};
use http_body::Body;
use multiplex::Http2Pool;
use pool::Http1Pool;
use shared::InFlight;
use std::cell::{Cell, RefCell};
use std::error::Error as StdError;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

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
    /// Stays here: each move of a head is a copy of a quarter of a kilobyte.
    head: ReceivedHead,
    /// Its body, until it is sent.
    unsent: Option<B>,
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

    /// Sends a request and waits for the response's head; must run inside a `LocalSet` or a
    /// `LocalRuntime`. `client` identifies the client, so that the requests of one of them do not count
    /// as an upstream's bad health.
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
        let (parts, body) = request.into_parts();
        Ok(self.send_head(options, parts.into(), body).await?.into())
    }

    /// The same for a head of either kind, which has gone through
    /// [`fields::prepare_head`](crate::fields::prepare_head). Upstreams of HTTP/2 cost least with the types
    /// of the crate `http`, others with spans.
    ///
    /// # Errors
    /// As [`send_for`](Self::send_for).
    pub async fn send_head(
        &self,
        options: SendOptions<'_>,
        head: ReceivedHead,
        body: B,
    ) -> Result<Answer<UpstreamBody<B>>, UpstreamError> {
        let SendOptions { first, client, interims, waits } = options;
        let mut first = first.filter(|index| *index < self.pools.len());
        let mut outgoing = Outgoing { head, unsent: Some(body), is_repeat: false, interims };
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

    /// One attempt, or two; after a failure the request's body is still in `outgoing` only if nothing was
    /// sent since.
    async fn send_to(
        &self,
        index: usize,
        outgoing: &mut Outgoing<'_, B>,
    ) -> Result<Answer<UpstreamBody<B>>, UpstreamError> {
        let in_flight = InFlight::begin(&self.shared, index);
        match &self.pools[index] {
            Pool::Http1(pool) => self.send_http1(pool, outgoing, in_flight).await,
            // Boxed, or each request would carry the room for it.
            Pool::Http2(pool) => Ok(Box::pin(self.send_http2(pool, outgoing, in_flight)).await?.into()),
        }
    }

    /// Returns whether the upstream's budget grants a request that is sent once more, and counts it.
    fn grants_repeat(&self, index: usize) -> bool {
        let is_granted = self.shared.may_repeat(index);
        self.count(|counts| if is_granted { &mut counts.repeats } else { &mut counts.over_budget });
        is_granted
    }
}

impl<B> std::fmt::Debug for Upstreams<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstreams").field("shared", &self.shared).finish_non_exhaustive()
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
