//! What all workers know of the upstreams: settings, requests in flight, health.

use super::balance;
use super::connect::Target;
use super::error::UpstreamErrorKind;
use super::health::{Health, HealthSettings};
use crate::guarded::Protocol;
use flashweir_core::limits::UPSTREAM_ADDRESSES;
use flashweir_core::{Instant, Rng};
use http::Uri;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The upstreams of one service and how to speak with them.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSettings {
    /// `http://host[:port]` or `https://host[:port]` each; a path is refused.
    pub addresses: Vec<Uri>,
    /// HTTP/2 means prior knowledge for `http://` and ALPN for `https://`.
    pub protocol: Protocol,
    /// Connections (for HTTP/2: requests) at once to one address from one worker. This is the concurrency limit
    /// towards the upstream; beyond it requests are refused, never queued.
    pub connections_max: usize,
    /// TCP and TLS handshakes together.
    pub connect_timeout: Duration,
    /// From the request handed over to the response head.
    pub response_header_timeout: Duration,
    /// Between two frames of a response body.
    pub body_idle_timeout: Duration,
    /// An unused connection is closed after this long. Keep it below the upstream's own keep-alive timeout.
    pub pool_idle_timeout: Duration,
    /// PEM file with the certificates that sign the upstreams'; `None` trusts the system's.
    pub ca_file: Option<PathBuf>,
    /// When an upstream counts as unhealthy.
    pub health: HealthSettings,
}

/// Why upstream settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamSettingsError {
    /// There is no address, or there are too many.
    #[error("{count} upstream addresses given; from 1 to {UPSTREAM_ADDRESSES} are possible")]
    AddressCount {
        /// How many there were.
        count: usize,
    },
    /// An address is not `http://host[:port]` or `https://host[:port]`.
    #[error("upstream address `{address}` {problem}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The bound on connections is zero.
    #[error("connections_max is 0, so no request could ever be forwarded; set it to 1 or more")]
    NoConnections,
    /// Certificates could not be read.
    #[error(transparent)]
    Certificates(#[from] crate::tls::TlsError),
}

/// State of the upstreams shared by every worker; keep it across a reload which does not change the settings.
#[derive(Debug)]
pub struct UpstreamShared {
    settings: UpstreamSettings,
    targets: Box<[Target]>,
    states: Box<[UpstreamState]>,
    origin: std::time::Instant,
}

/// What an operator wants to know of one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    /// As configured.
    pub address: String,
    /// Requests and tunnels under way, of all workers.
    pub in_flight: usize,
    /// Whether the balancer prefers it.
    pub is_available: bool,
}

#[derive(Debug)]
struct UpstreamState {
    in_flight: AtomicUsize,
    /// `Health::available_at` in nanoseconds, readable without the lock.
    available_at: AtomicU64,
    is_suspect: AtomicBool,
    health: Mutex<Health>,
}

/// Counts one request as in flight at one upstream until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight {
    shared: Arc<UpstreamShared>,
    index: usize,
}

impl UpstreamShared {
    /// Checks the settings and reads the certificates `https` upstreams need.
    ///
    /// # Errors
    /// [`UpstreamSettingsError`] naming what cannot be used.
    pub fn new(settings: UpstreamSettings) -> Result<Arc<Self>, UpstreamSettingsError> {
        Self::with_pinned(settings, None)
    }

    /// The same for one of several servers behind one name: all connections go to this address, and the name is kept for `Host` and
    /// TLS.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn pinned(
        settings: UpstreamSettings,
        address: SocketAddr,
    ) -> Result<Arc<Self>, UpstreamSettingsError> {
        Self::with_pinned(settings, Some(address))
    }

    fn with_pinned(
        settings: UpstreamSettings,
        address: Option<SocketAddr>,
    ) -> Result<Arc<Self>, UpstreamSettingsError> {
        let count = settings.addresses.len();
        if count == 0 || count > UPSTREAM_ADDRESSES {
            return Err(UpstreamSettingsError::AddressCount { count });
        }
        if settings.connections_max == 0 {
            return Err(UpstreamSettingsError::NoConnections);
        }
        let mut targets = Target::all(&settings)?;
        if let Some(address) = address {
            targets.iter_mut().for_each(|target| target.pin(address));
        }
        let states = targets.iter().map(|_| UpstreamState::new(settings.health)).collect();
        Ok(Arc::new(Self { settings, targets, states, origin: std::time::Instant::now() }))
    }

    /// The settings it was made from.
    #[must_use]
    pub fn settings(&self) -> &UpstreamSettings {
        &self.settings
    }

    /// Each upstream's state, in the order of the settings.
    #[must_use]
    pub fn statuses(&self) -> Vec<UpstreamStatus> {
        let now = self.now();
        let status = |(target, state): (&Target, &UpstreamState)| UpstreamStatus {
            address: target.address().to_owned(),
            in_flight: state.in_flight.load(Relaxed),
            is_available: state.is_available(now),
        };
        self.targets.iter().zip(&self.states).map(status).collect()
    }

    /// Requests in flight at all upstreams, of all workers.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.states.iter().map(|state| state.in_flight.load(Relaxed)).sum()
    }

    /// Takes note of an active probe's outcome (see [`probe`](super::probe)); an index beyond the addresses is
    /// ignored.
    pub fn record_probe(&self, index: usize, passed: bool) {
        if let Some(state) = self.states.get(index) {
            state.update(|health| health.probed(passed));
        }
    }

    pub(crate) fn target(&self, index: usize) -> &Target {
        &self.targets[index]
    }

    /// Chooses an upstream that is not in `tried`.
    pub(crate) fn choose(&self, tried: u64, rng: &mut Rng) -> Option<usize> {
        let all = u64::MAX >> (64 - self.states.len());
        if all == 1 {
            return (tried == 0).then_some(0);
        }
        let now = self.now();
        let usable = (0..self.states.len())
            .filter(|&index| self.states[index].is_available(now))
            .fold(0, |usable, index| usable | 1 << index);
        balance::pick(all, usable, tried, |index| self.states[index].in_flight.load(Relaxed), rng)
    }

    /// Takes note of an error before a response's head; only those that speak of the upstream count.
    /// A reset may be what the upstream makes of one client's request, so it is counted with that client.
    pub(crate) fn record_failure(&self, index: usize, kind: UpstreamErrorKind, client: Option<u64>) {
        use UpstreamErrorKind::{Connect, ConnectTimeout, Reset};
        let client = match kind {
            Connect | ConnectTimeout => None,
            Reset => client,
            _ => return,
        };
        let now = self.now();
        self.states[index].update(|health| health.failed(now, client));
    }

    /// Takes note of a response's head. One relaxed load unless failures preceded it.
    pub(crate) fn record_success(&self, index: usize) {
        let state = &self.states[index];
        if state.is_suspect.load(Relaxed) {
            let now = self.now();
            state.update(|health| health.succeeded(now));
        }
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.origin.elapsed())
    }
}

impl UpstreamState {
    fn new(settings: HealthSettings) -> Self {
        Self {
            in_flight: AtomicUsize::new(0),
            available_at: AtomicU64::new(0),
            is_suspect: AtomicBool::new(false),
            health: Mutex::new(Health::new(settings)),
        }
    }

    fn is_available(&self, now: Instant) -> bool {
        now.as_nanos() >= self.available_at.load(Relaxed)
    }

    fn update(&self, change: impl FnOnce(&mut Health)) {
        // `Health` is plain numbers, valid after any partial update: a poisoned lock changes nothing.
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut health);
        self.available_at.store(health.available_at().as_nanos(), Relaxed);
        self.is_suspect.store(health.is_suspect(), Relaxed);
    }
}

impl InFlight {
    pub(crate) fn begin(shared: &Arc<UpstreamShared>, index: usize) -> Self {
        shared.states[index].in_flight.fetch_add(1, Relaxed);
        Self { shared: Arc::clone(shared), index }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.shared.states[self.index].in_flight.fetch_sub(1, Relaxed);
    }
}
