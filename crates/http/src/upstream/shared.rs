//! State of the upstreams that all workers share: requests in flight, which of them are usable and how much
//! each should get.
//!
//! The pool of servers (`flashweir-replication`) decides, behind a lock that is taken a few times a second
//! and when something fails. What a choice needs of it is copied to atomics: a bit and a share for each
//! upstream.

use super::absence::Absence;
use super::connect::ConnectTarget;
use super::error::UpstreamErrorKind;
use super::repeat_budget::RepeatBudget;
use super::settings::{UpstreamSettings, UpstreamSettingsError};
use crate::tls::{ClientTls, TlsError};
use flashweir_core::limits::UPSTREAM_ADDRESSES;
use flashweir_core::{Instant, Rng};
use flashweir_replication::servers::{Failure, LearningSource, OutCause, ProbeOutcome};
use flashweir_replication::{Balancer, PoolEvents, ServerCounts, ServerIndex, ServerPool, ServerUse};
use http::StatusCode;
use http::uri::Scheme;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// State of the upstreams shared by every worker; keep it across a reload which does not change the settings.
///
/// Its owner calls [`refresh`](Self::refresh) a few times a second and [probes](super::probe) what
/// [`probes_due`](Self::probes_due) names.
#[derive(Debug)]
pub struct UpstreamShared {
    settings: UpstreamSettings,
    /// Trust in the certificates of `https` upstreams, where there are any.
    tls: Option<Arc<ClientTls>>,
    targets: Box<[ConnectTarget]>,
    states: Box<[UpstreamState]>,
    pool: Mutex<ServerPool>,
    /// [`ServerPool::candidates`].
    candidates: AtomicU64,
    absence: Absence,
    origin: std::time::Instant,
}

/// Status of one upstream for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// As configured.
    pub address: String,
    /// Requests and tunnels under way, of all workers.
    pub in_flight: usize,
    /// Cause for which it is left out; none while it is in service.
    pub out_because: Option<OutCause>,
    /// Share of the load that it should get beside the others, in 1/1024 of an ordinary server's.
    pub share: u32,
}

impl UpstreamStatus {
    /// Returns whether requests are sent to it.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.out_because.is_none()
    }
}

/// One upstream's counts, written by all workers. On separate cache lines: they change with each request.
#[derive(Debug)]
#[repr(align(128))]
struct UpstreamState {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Answers; see [`ServerCounts`].
    answered: AtomicU64,
    /// Requests that ended without an answer.
    unanswered: AtomicU64,
    errors: AtomicU64,
    response_us: AtomicU64,
    utilisations: AtomicU64,
    utilisation_milli: AtomicU64,
    share: AtomicU32,
    /// Asked only when a connection was lost.
    repeats: Mutex<RepeatBudget>,
    /// True if an answer would change anything: lets the common case skip the lock.
    is_doubtful: AtomicBool,
}

/// Counts one request as in flight at one upstream until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    shared: Arc<UpstreamShared>,
    index: usize,
    is_answered: bool,
}

impl UpstreamShared {
    /// Checks the settings and reads the certificates `https` upstreams need.
    ///
    /// # Errors
    /// [`UpstreamSettingsError`] naming what cannot be used.
    pub fn new(settings: UpstreamSettings) -> Result<Arc<Self>, UpstreamSettingsError> {
        Self::open(settings, None, None)
    }

    /// The same in place of `former`, whose knowledge of the servers that stay it takes over: which are left
    /// out, and their shares. A server that is new beside those starts slowly.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn succeeding(settings: UpstreamSettings, former: &Self) -> Result<Arc<Self>, UpstreamSettingsError> {
        Self::open(settings, None, Some(former))
    }

    /// The same for one of several servers behind one name: all connections go to this address, and the name
    /// is kept for `Host` and TLS.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn pinned(
        settings: UpstreamSettings,
        address: SocketAddr,
    ) -> Result<Arc<Self>, UpstreamSettingsError> {
        Self::open(settings, Some(address), None)
    }

    fn open(
        settings: UpstreamSettings,
        address: Option<SocketAddr>,
        former: Option<&Self>,
    ) -> Result<Arc<Self>, UpstreamSettingsError> {
        let count = settings.addresses.len();
        if count == 0 || count > UPSTREAM_ADDRESSES {
            return Err(UpstreamSettingsError::AddressCount { count });
        }
        if settings.connections_max == 0 {
            return Err(UpstreamSettingsError::NoConnections);
        }
        let needs_tls = settings.addresses.iter().any(|uri| uri.scheme() == Some(&Scheme::HTTPS));
        let open_tls = || ClientTls::open(settings.ca_file.as_deref(), settings.protocol).map(Arc::new);
        let tls = needs_tls.then(open_tls).transpose()?;
        let mut targets = ConnectTarget::all(&settings, tls.as_ref())?;
        if let Some(address) = address {
            targets.iter_mut().for_each(|target| target.pin(address));
        }
        let origin = former.map_or_else(std::time::Instant::now, |former| former.origin);
        let now = Instant::from_duration(origin.elapsed());
        let mut pool = ServerPool::new(now, count, settings.pool)?;
        if let Some(former) = former {
            let known_as = |target: &ConnectTarget| {
                let index = former.targets.iter().position(|known| known.address() == target.address())?;
                Some(server(index))
            };
            let known_as: Vec<_> = targets.iter().map(known_as).collect();
            former.with_pool(|former| pool.take_over(now, former, &known_as));
        }
        let states = pool.shares().iter().map(|share| UpstreamState::new(*share)).collect();
        let candidates = AtomicU64::new(pool.candidates(now));
        let (pool, absence) = (Mutex::new(pool), Absence::default());
        Ok(Arc::new(Self { settings, tls, targets, states, pool, candidates, absence, origin }))
    }

    /// The settings it was made from.
    #[must_use]
    pub fn settings(&self) -> &UpstreamSettings {
        &self.settings
    }

    /// Reads the certificates that vouch for `https` upstreams again. New connections trust these alone; open
    /// ones stay.
    ///
    /// # Errors
    /// [`TlsError`]; then the former ones stay in use.
    pub fn reload_trust(&self) -> Result<(), TlsError> {
        self.tls.as_ref().map_or(Ok(()), |tls| tls.reload())
    }

    /// The same if their file changed since it was last read; says whether it did. A change that cannot be
    /// used is reported once.
    ///
    /// # Errors
    /// As [`reload_trust`](Self::reload_trust).
    pub fn reload_trust_if_changed(&self) -> Result<bool, TlsError> {
        self.tls.as_ref().map_or(Ok(false), |tls| tls.reload_if_changed())
    }

    /// Each upstream's state, in the order of the settings.
    #[must_use]
    pub fn statuses(&self) -> Vec<UpstreamStatus> {
        let now = self.now();
        let causes = self.with_pool(|pool| {
            (0..self.states.len()).map(|index| pool.cause(now, index as ServerIndex)).collect::<Vec<_>>()
        });
        let status = |((target, state), out_because): ((&ConnectTarget, &UpstreamState), _)| UpstreamStatus {
            address: target.address().to_owned(),
            in_flight: state.in_flight() as usize,
            out_because,
            share: state.share.load(Relaxed),
        };
        self.targets.iter().zip(&self.states).zip(causes).map(status).collect()
    }

    /// Requests in flight at all upstreams, of all workers.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.states.iter().map(|state| state.in_flight() as usize).sum()
    }

    /// Counts of upstreams left out, and returned.
    #[must_use]
    pub fn events(&self) -> PoolEvents {
        self.with_pool(|pool| pool.events())
    }

    /// Ends what is over by time, compares the upstreams' answers and computes their shares. Says whether
    /// nothing is expected to change soon, so that the next call may come later.
    pub fn refresh(&self) -> bool {
        let now = self.now();
        let counts: Vec<ServerCounts> = self.states.iter().map(UpstreamState::counts).collect();
        self.update(now, |pool| {
            pool.refresh(now, &counts);
            for (state, share) in self.states.iter().zip(pool.shares()) {
                state.share.store(*share, Relaxed);
            }
            pool.is_settled(now)
        })
    }

    /// Upstreams to be probed now, at most `count_max`. The outcome of each is owed to
    /// [`record_probe`](Self::record_probe).
    #[must_use]
    pub fn probes_due(&self, count_max: usize) -> Vec<usize> {
        let due = self.with_pool(|pool| pool.probes_due(self.now(), count_max));
        due.into_iter().map(usize::from).collect()
    }

    /// Takes a probe's outcome; an index beyond the addresses is ignored.
    pub fn record_probe(&self, index: usize, outcome: ProbeOutcome) {
        let now = self.now();
        self.update(now, |pool| pool.probed(now, server(index), outcome));
    }

    /// Takes what an upstream reported of its utilisation, thousandths; an index beyond the addresses is
    /// ignored.
    pub fn record_utilisation(&self, index: usize, utilisation_milli: u32) {
        if let Some(state) = self.states.get(index) {
            state.utilisation_milli.fetch_add(utilisation_milli.into(), Relaxed);
            state.utilisations.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn target(&self, index: usize) -> &ConnectTarget {
        &self.targets[index]
    }

    /// Chooses an upstream that is not in `tried`: one of the candidates, or, when all of those were tried,
    /// any other.
    pub(crate) fn choose(&self, tried: u64, balancer: &mut Balancer, rng: &mut Rng) -> Option<usize> {
        let all = u64::MAX >> (64 - self.states.len());
        if all == 1 {
            return (tried == 0).then_some(0);
        }
        let candidates = match self.candidates.load(Relaxed) & !tried {
            0 => all & !tried,
            candidates => candidates,
        };
        let load = |server: ServerIndex| {
            let state = &self.states[usize::from(server)];
            ServerUse { in_flight: state.in_flight(), share: state.share.load(Relaxed) }
        };
        balancer.choose(self.now(), candidates, load, rng).map(usize::from)
    }

    /// Records an error before a response's head; only those that speak of the upstream count.
    /// A reset may be what the upstream makes of one client's request, so it is counted with that client.
    pub(crate) fn record_failure(&self, index: usize, kind: UpstreamErrorKind, client: Option<u64>) {
        use UpstreamErrorKind::{Connect, ConnectTimeout, Reset};
        let (failure, client) = match kind {
            Connect | ConnectTimeout => (Failure::Unreachable, None),
            Reset => (Failure::Reset, client),
            _ => return,
        };
        let now = self.now();
        self.update(now, |pool| pool.failed(now, server(index), failure, client));
    }

    /// Every upstream that a request has tried refused a connection, the first of them this long ago. For how
    /// long the request may wait for one of them.
    pub(crate) fn wait_max(&self, ago: Duration) -> Option<Duration> {
        let now = self.now();
        self.absence.wait_max(now - ago, now)
    }

    /// Returns whether the upstream's budget has room for one more request that is sent once more.
    pub(crate) fn may_repeat(&self, index: usize) -> bool {
        let state = &self.states[index];
        let mut budget = state.repeats.lock().unwrap_or_else(PoisonError::into_inner);
        budget.take(self.now(), state.begun.load(Relaxed))
    }

    fn with_pool<T>(&self, read: impl FnOnce(&mut ServerPool) -> T) -> T {
        // A pool is plain numbers, valid after any partial update: a poisoned lock changes nothing.
        read(&mut self.pool.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the pool and publishes what choices need of it.
    fn update<T>(&self, now: Instant, change: impl FnOnce(&mut ServerPool) -> T) -> T {
        self.with_pool(|pool| {
            let result = change(pool);
            self.candidates.store(pool.candidates(now), Relaxed);
            for (index, state) in self.states.iter().enumerate() {
                state.is_doubtful.store(pool.is_doubtful(server(index)), Relaxed);
            }
            result
        })
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.origin.elapsed())
    }
}

/// An index beyond any upstream's stays one.
fn server(index: usize) -> ServerIndex {
    ServerIndex::try_from(index).unwrap_or(ServerIndex::MAX)
}

impl UpstreamState {
    fn new(share: u32) -> Self {
        Self {
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            response_us: AtomicU64::new(0),
            utilisations: AtomicU64::new(0),
            utilisation_milli: AtomicU64::new(0),
            share: AtomicU32::new(share),
            repeats: Mutex::default(),
            // The first answer finds out.
            is_doubtful: AtomicBool::new(true),
        }
    }

    fn in_flight(&self) -> u32 {
        // Read in this order, and relaxed: a request that ends meanwhile must not make the difference
        // negative.
        let ended = self.ended.load(Relaxed);
        self.begun.load(Relaxed).saturating_sub(ended).try_into().unwrap_or(u32::MAX)
    }

    fn counts(&self) -> ServerCounts {
        let (answered, unanswered) = (self.answered.load(Relaxed), self.unanswered.load(Relaxed));
        let waiting = self.begun.load(Relaxed).saturating_sub(answered + unanswered);
        ServerCounts {
            answered,
            errors: self.errors.load(Relaxed),
            waiting: waiting.try_into().unwrap_or(u32::MAX),
            response_us: self.response_us.load(Relaxed),
            utilisations: self.utilisations.load(Relaxed),
            utilisation_milli: self.utilisation_milli.load(Relaxed),
        }
    }
}

impl InFlight {
    pub(crate) fn begin(shared: &Arc<UpstreamShared>, index: usize) -> Self {
        shared.states[index].begun.fetch_add(1, Relaxed);
        Self { shared: Arc::clone(shared), index, is_answered: false }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The head of a response came; `since` is when it was asked for, where that is of interest.
    pub(crate) fn answered(&mut self, status: StatusCode, since: Option<tokio::time::Instant>) {
        self.is_answered = true;
        let state = &self.shared.states[self.index];
        state.answered.fetch_add(1, Relaxed);
        if is_error(status) {
            state.errors.fetch_add(1, Relaxed);
        }
        if let Some(since) = since {
            let us = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
            state.response_us.fetch_add(us, Relaxed);
        }
        if state.is_doubtful.load(Relaxed) {
            let now = self.shared.now();
            self.shared.absence.end();
            self.shared.update(now, |pool| pool.succeeded(now, server(self.index)));
        }
    }

    /// No head came in time: an error, by which a server that hangs differs from the others.
    pub(crate) fn timed_out(&mut self) {
        self.is_answered = true;
        let state = &self.shared.states[self.index];
        state.answered.fetch_add(1, Relaxed);
        state.errors.fetch_add(1, Relaxed);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let state = &self.shared.states[self.index];
        if !self.is_answered {
            state.unanswered.fetch_add(1, Relaxed);
        }
        state.ended.fetch_add(1, Relaxed);
    }
}

/// Returns whether a status speaks of the server rather than of the request.
fn is_error(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

impl UpstreamSettings {
    /// Returns whether weights are learned from response times.
    pub(super) fn learns_response_times(&self) -> bool {
        self.pool.learning.is_some_and(|learning| learning.source == LearningSource::ResponseTime)
    }
}
