//! One target: its servers, and which of them gets a request.

use crate::body::RequestBody;
use crate::config::TargetConfig;
use flashweir_core::Rng;
use flashweir_core::limits::UPSTREAM_ADDRESSES;
use flashweir_http::upstream::{UpstreamSettingsError, UpstreamShared, Upstreams};
use flashweir_runtime::random_u64;
use flashweir_telemetry::EgressCounters;
use flashweir_tower::client::{Caller, Keys, Node, NodeSettings};
use http::Uri;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One configured target: its servers, keys and state. Requests are routed to it.
pub(crate) struct RoutedTarget {
    pub(crate) config: TargetConfig,
    pub(crate) view: Arc<TargetView>,
    sender: String,
    keys: RefCell<Keys>,
    endpoints: RefCell<Vec<Rc<Endpoint>>>,
    rng: RefCell<Rng>,
    is_full_logged: Cell<bool>,
}

/// One server of it.
pub(crate) struct Endpoint {
    pub(crate) server: Server,
    pub(crate) caller: Caller,
    pub(crate) upstreams: Upstreams<RequestBody>,
}

/// Identity of a server: the URL it was configured by, and one of the addresses of that URL's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) url: Uri,
    pub(crate) address: SocketAddr,
}

/// State of a target that the admin listener reads.
#[derive(Debug)]
pub(crate) struct TargetView {
    pub(crate) name: String,
    pub(crate) counters: Arc<EgressCounters>,
    servers: Mutex<Vec<(SocketAddr, Caller)>>,
}

impl RoutedTarget {
    /// Without servers: see [`set_servers`](Self::set_servers).
    pub(crate) fn new(sender: &str, config: TargetConfig, keys: Keys) -> Rc<Self> {
        let name = config.name.clone();
        let view = TargetView { name, counters: Arc::default(), servers: Mutex::default() };
        Rc::new(Self {
            config,
            view: Arc::new(view),
            sender: sender.to_owned(),
            keys: RefCell::new(keys),
            endpoints: RefCell::default(),
            rng: RefCell::new(Rng::new(random_u64())),
            is_full_logged: Cell::new(false),
        })
    }

    /// These servers from now on. Those that stay keep their state; requests under way to those that go are
    /// not cut.
    ///
    /// # Errors
    /// As [`UpstreamShared::pinned`]; nothing is expected, for the settings were checked at the start.
    pub(crate) fn set_servers(&self, mut servers: Vec<Server>) -> Result<(), UpstreamSettingsError> {
        if servers.len() > UPSTREAM_ADDRESSES {
            if !self.is_full_logged.replace(true) {
                let (count, target) = (servers.len(), &self.config.name);
                tracing::warn!(
                    to = target.as_str(),
                    count,
                    "more servers than {UPSTREAM_ADDRESSES}: the rest is left out"
                );
            }
            servers.truncate(UPSTREAM_ADDRESSES);
        }
        let before = self.endpoints.take();
        let (mut after, mut failed) = (Vec::with_capacity(servers.len()), None);
        for server in servers {
            let same = before.iter().find(|endpoint| endpoint.server == server);
            match same.cloned().map_or_else(|| self.endpoint(server, &before), Ok) {
                Ok(endpoint) => after.push(endpoint),
                Err(error) => failed = Some(error),
            }
        }
        let known = after.iter().map(|endpoint| (endpoint.server.address, endpoint.caller.clone()));
        *self.view.servers() = known.collect();
        self.endpoints.replace(after);
        failed.map_or(Ok(()), Err)
    }

    fn endpoint(
        &self,
        server: Server,
        others: &[Rc<Endpoint>],
    ) -> Result<Rc<Endpoint>, UpstreamSettingsError> {
        let label = format!("{}@{}", self.config.name, server.address);
        let (sender, node) = (self.sender.clone(), self.config.node.clone());
        let settings = NodeSettings { sender, node, label, endpoint: self.config.endpoint };
        let node = Node::new(settings, self.keys.borrow().clone());
        let known = self.view.servers().first().map(|(_, caller)| caller.clone());
        // Budget and traces are the target's.
        let caller = match others.first().map(|other| other.caller.clone()).or(known) {
            Some(other) => other.for_node(node),
            None => Caller::with_budget(node, self.config.budget),
        };
        self.view.servers().push((server.address, caller.clone()));
        let settings = self.config.upstream_settings(vec![server.url.clone()]);
        let shared = UpstreamShared::pinned(settings, server.address)?;
        let upstreams = Upstreams::new(shared, self.rng.borrow().fork(random_u64()));
        Ok(Rc::new(Endpoint { server, caller, upstreams }))
    }

    /// Other keys from now on.
    pub(crate) fn set_keys(&self, keys: Keys) {
        self.endpoints.borrow().iter().for_each(|endpoint| endpoint.caller.node().set_keys(&keys));
        self.keys.replace(keys);
    }

    /// The server for a request of this rank, one that was not tried where there is one. First a silent one
    /// whose trial is due, then the less busy of two that would send it at once, then the less busy of two
    /// that would not. None where there are none.
    pub(crate) fn choose(&self, rank: u8, tried: &[SocketAddr]) -> Option<Rc<Endpoint>> {
        let endpoints = self.endpoints.borrow();
        if let [only] = &endpoints[..] {
            return Some(only.clone());
        }
        let untried: Vec<&Rc<Endpoint>> =
            endpoints.iter().filter(|endpoint| !tried.contains(&endpoint.server.address)).collect();
        let candidates = if untried.is_empty() { endpoints.iter().collect() } else { untried };
        if let Some(silent) = candidates.iter().find(|endpoint| endpoint.caller.node().is_trial_due()) {
            return Some(Rc::clone(silent));
        }
        let open: Vec<_> =
            candidates.iter().copied().filter(|endpoint| endpoint.caller.node().is_open(rank)).collect();
        self.less_busy(if open.is_empty() { &candidates } else { &open })
    }

    fn less_busy(&self, candidates: &[&Rc<Endpoint>]) -> Option<Rc<Endpoint>> {
        let mut rng = self.rng.borrow_mut();
        let count = candidates.len() as u64;
        let first = rng.below(count);
        // The second differs from the first where there are two.
        let second = (first + 1 + rng.below(count.saturating_sub(1))) % count.max(1);
        let (one, other) = (candidates.get(first as usize)?, candidates.get(second as usize)?);
        let chosen = if other.caller.node().load() < one.caller.node().load() { other } else { one };
        Some(Rc::clone(chosen))
    }

    /// Returns whether another server is there than these.
    pub(crate) fn has_other(&self, tried: &[SocketAddr]) -> bool {
        self.endpoints.borrow().iter().any(|endpoint| !tried.contains(&endpoint.server.address))
    }

    /// Sees limits that ended with time alone.
    pub(crate) fn refresh(&self) {
        self.endpoints.borrow().iter().for_each(|endpoint| drop(endpoint.caller.node().report()));
    }
}

impl TargetView {
    /// Its servers.
    pub(crate) fn known(&self) -> Vec<(SocketAddr, Caller)> {
        self.servers().clone()
    }

    fn servers(&self) -> MutexGuard<'_, Vec<(SocketAddr, Caller)>> {
        // A list that is replaced whole.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
