//! Several gateways before one service (docs/several-gateways.md): its limit is shared, not multiplied.
//!
//! The rules are `flashweir_provisioning::shares`. Each gateway collects what its sentries measure
//! ([`Cluster::observe`]), reports it ten times a second to the leader, and carries out its part of the
//! leader's plan ([`Cluster::plan`]). Messages are sealed with a key that all gateways have (`seal`,
//! `message`). The leader is a gateway, too (`leader`): with the local engine the one that the operator names
//! (`local`), otherwise the one that holds a lease (`elected`): of NATS (`nats`), or by a link whose carrier
//! is another crate, as in Kubernetes (`linked`). All of it is on the control thread; a request's path sees a
//! plan, as without a cluster.
//!
//! *Failure modes*: without the leader each gateway keeps its share, then goes to an equal one; a gateway
//! that starts and hears of no leader acts by its own plan. A leader that is slow costs freshness; one that
//! lies has the key.

mod elected;
mod engine;
mod figures;
mod leader;
mod linked;
mod local;
mod message;
#[cfg(feature = "nats")]
mod nats;
mod received;
mod seal;
mod status;

pub(crate) use engine::{Means, leave, run};

use crate::sentry::Sentry;
use flashweir_admission::sentry::{Plan, Policy, Sample};
use flashweir_config::Engine;
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_provisioning::shares::{ServiceMember, ShareState};
use flashweir_runtime::UrlKey;
use flashweir_telemetry::BroadcastOutcome;
use leader::Planned;
use message::{Broadcast, OfService, Report};
use seal::Keys;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Between two reports: the share's smoothing and silences are in these units
/// (`flashweir_provisioning::shares`).
const REPORT_EVERY: Duration = Duration::from_millis(100);
/// Between two looks of the leader whether a round has ended.
const STEP_EVERY: Duration = Duration::from_millis(20);

/// This gateway as one of several.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Drawn at start: a gateway that restarts is another one.
    gateway: u64,
    name: String,
    keys: Keys,
    workers: usize,
    /// Used by the control thread alone.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    members: BTreeMap<String, Membership>,
    /// The newest term that is known, and who leads in it.
    term: u64,
    leader: String,
    is_leader: bool,
    sequence: u64,
    /// At the leader: gateways that report, and since when each is silent.
    gateways: Vec<(String, Instant)>,
}

#[derive(Debug)]
struct Membership {
    policy: Arc<Policy>,
    fingerprint: u64,
    member: ServiceMember,
    /// As it was last logged.
    share_state: ShareState,
}

impl Cluster {
    /// As configured; none where this gateway shares no limit.
    pub(crate) fn new(config: &flashweir_config::Config, gateway: u64, workers: usize) -> Option<Arc<Self>> {
        config.cluster.engine.as_ref()?;
        Some(Arc::new(Self {
            gateway,
            name: config.cluster.name.clone().unwrap_or_else(|| name_of(config)),
            keys: Keys::new(config.cluster.keys.iter()),
            workers,
            state: Mutex::default(),
        }))
    }

    /// The key of URL classes, the same in all gateways of the cluster: what is learned of a class is learned
    /// by all.
    pub(crate) fn url_key(config: &flashweir_config::Config) -> Option<UrlKey> {
        config.cluster.engine.as_ref()?;
        Keys::new(config.cluster.keys.iter()).derive(b"flashweir url classes")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is of one value: what a writer that panicked left is older, not wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a worker's gate of a service measured.
    pub(crate) fn observe(&self, now: Instant, sentry: &Sentry, worker: usize, sample: &Sample) {
        let mut state = self.state();
        state.membership(self, now, sentry).member.observe(worker, sample);
    }

    /// The plan to carry out instead of this gateway's own.
    pub(crate) fn plan(&self, now: Instant, sentry: &Sentry, own: &Plan) -> Plan {
        let mut state = self.state();
        let member = &mut state.membership(self, now, sentry).member;
        let plan = member.plan(now, own, sentry.common.in_flight());
        let (in_flight, knee_milli) = member.elsewhere(now);
        sentry.common.set_elsewhere(in_flight, knee_milli);
        plan
    }

    /// The newest term that is known.
    fn term(&self) -> u64 {
        self.state().term
    }

    /// There is a leader of this term.
    fn learn_term(&self, term: u64) {
        let mut state = self.state();
        state.term = state.term.max(term);
    }

    /// The next report, for a leader of the term that is known.
    fn report(&self, now: Instant) -> Report {
        let mut state = self.state();
        state.sequence += 1;
        let service = |(name, known): (&String, &mut Membership)| OfService {
            name: name.clone(),
            policy: known.fingerprint,
            value: known.member.report(now),
        };
        Report {
            gateway: self.gateway,
            name: self.name.clone(),
            sequence: state.sequence,
            term: state.term,
            services: state.members.iter_mut().map(service).collect(),
        }
    }

    /// Takes what the leader says. Older than what is known, it changes nothing.
    fn apply(&self, now: Instant, broadcast: &Broadcast) -> BroadcastOutcome {
        let mut state = self.state();
        if broadcast.term < state.term {
            return BroadcastOutcome::Stale;
        }
        state.term = broadcast.term;
        state.leader.clone_from(&broadcast.leader);
        let mut is_stale = !broadcast.services.is_empty();
        for OfService { name, policy, value } in &broadcast.services {
            if let Some(known) = state.members.get_mut(name).filter(|known| known.fingerprint == *policy) {
                is_stale &= !known.member.apply(now, value);
            }
        }
        // The same broadcast answers two reports where a round took longer.
        if is_stale { BroadcastOutcome::Repeated } else { BroadcastOutcome::New }
    }

    /// The services to plan where this gateway leads.
    fn planned(&self) -> Vec<Planned> {
        let of =
            |(name, known): (&String, &Membership)| (name.clone(), known.fingerprint, known.policy.clone());
        self.state().members.iter().map(of).collect()
    }

    fn set_leader(&self, is_leader: bool, gateways: Vec<(String, Instant)>) {
        let mut state = self.state();
        (state.is_leader, state.gateways) = (is_leader, gateways);
    }
}

impl State {
    /// The membership of a service; with another policy it begins again.
    fn membership(&mut self, cluster: &Cluster, now: Instant, sentry: &Sentry) -> &mut Membership {
        let is_known = |known: &Membership| Arc::ptr_eq(&known.policy, &sentry.policy);
        if !self.members.get(&sentry.names.service).is_some_and(is_known) {
            let fingerprint = fingerprint(&sentry.policy);
            let kept =
                self.members.remove(&sentry.names.service).filter(|kept| kept.fingerprint == fingerprint);
            let member = match kept {
                Some(kept) => kept.member,
                None => ServiceMember::new(now, cluster.gateway, cluster.workers),
            };
            let share_state = member.share_state(now);
            let known = Membership { policy: sentry.policy.clone(), fingerprint, member, share_state };
            self.members.insert(sentry.names.service.clone(), known);
        }
        self.members.get_mut(&sentry.names.service).expect("it was put there")
    }
}

/// The gateway's name, or its listen address where it has no configured name.
fn name_of(config: &flashweir_config::Config) -> String {
    match &config.cluster.engine {
        Some(Engine::Kubernetes(kubernetes)) => kubernetes.listen.to_string(),
        _ => config.gateway.name.clone(),
    }
}

/// Fingerprint of a policy, the same in every gateway of one build.
fn fingerprint(policy: &Policy) -> u64 {
    Hasher64::new(0, 0).hash(&[format!("{policy:?}").as_bytes()])
}

impl Cluster {
    /// Document of the cluster for `/status`.
    pub(crate) fn status(&self, now: Instant) -> serde_json::Value {
        status::status(self.gateway, &self.name, &self.state(), now)
    }
}
