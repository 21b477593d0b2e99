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
mod leader;
mod linked;
mod local;
mod message;
#[cfg(feature = "nats")]
mod nats;
mod seal;
mod status;

use crate::error::GatewayError;
use crate::sentry::Sentry;
use crate::shared::Shared;
use flashweir_admission::sentry::{Plan, Policy, Sample};
use flashweir_config::Engine;
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_provisioning::shares::{ServiceMember, ShareState};
use flashweir_runtime::{ClusterLink, HeldLease, UrlKey};
use flashweir_telemetry::{BroadcastOutcome, ClusterFigures, Happening, ReportOutcome};
use leader::{Planned, ReportError};
use message::{Broadcast, MessageError, OfService, Report};
use seal::Keys;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::timeout;

use local::LeaderListener;

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

    /// Forgets services that are gone, publishes numbers and logs what changed. For each report.
    fn publish(&self, shared: &Shared) {
        let now = shared.clock.now();
        let live = shared.live.load();
        let mut state = self.state();
        let sentries = || live.sentries.iter().flatten();
        state.members.retain(|name, _| sentries().any(|sentry| sentry.names.service == *name));
        for sentry in sentries() {
            state.membership(self, now, sentry);
        }
        let (is_leader, leader) = (state.is_leader, state.leader.clone());
        let mut figures = Vec::new();
        for (service, known) in &mut state.members {
            let of_member = known.member.figures(now);
            known.log(service, &leader, of_member.share_state);
            figures.push(ClusterFigures {
                service: service.clone(),
                limit: of_member.limit,
                share: of_member.share,
                elsewhere: of_member.elsewhere,
                gateways: of_member.gateways,
                silence_s: of_member.silence.map(|silence| silence.as_secs_f64()),
                standing: of_member.share_state.as_str(),
            });
        }
        shared.telemetry.control().publish_cluster(is_leader, figures);
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

impl Membership {
    /// Says once when the gateway goes on by another plan.
    fn log(&mut self, service: &str, leader: &str, share_state: ShareState) {
        if share_state == self.share_state {
            return;
        }
        self.share_state = share_state;
        match share_state {
            ShareState::Joining => {}
            ShareState::Sharing => tracing::info!(service, leader, "the limit is shared with other gateways"),
            ShareState::Holding => {
                tracing::warn!(service, leader, "the leader is silent: the last share is kept")
            }
            ShareState::Equal => {
                tracing::warn!(service, leader, "the leader is still silent: the share goes to an equal one");
            }
            ShareState::Alone => {
                tracing::warn!(service, "no leader was heard since the start: the limit is not shared");
            }
        }
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

/// Resources that this gateway's engine needs from the start on.
#[derive(Debug)]
pub(crate) enum Means {
    /// Nothing.
    None,
    /// The port at which the others report.
    Listener(LeaderListener),
    /// Carrier of the messages.
    Link(ClusterLink),
}

impl Means {
    /// As configured.
    pub(crate) fn open(
        config: &flashweir_config::Cluster,
        link: Option<ClusterLink>,
    ) -> Result<Self, GatewayError> {
        match (&config.engine, link) {
            (&Some(Engine::Leader(address)), _) => {
                let taken = LeaderListener::bind(address);
                taken.map(Self::Listener).map_err(|source| GatewayError::ClusterListen { address, source })
            }
            (Some(Engine::Nats(_)), _) if cfg!(not(feature = "nats")) => Err(GatewayError::WithoutNats),
            (Some(Engine::Kubernetes(_)), None) => Err(GatewayError::WithoutKubernetes),
            (Some(Engine::Kubernetes(_)), Some(link)) => Ok(Self::Link(link)),
            _ => Ok(Self::None),
        }
    }

    /// The lease, where this gateway may hold one that it has to give up.
    pub(crate) fn lease(&self) -> Option<watch::Receiver<Option<HeldLease>>> {
        match self {
            Self::Link(link) => Some(link.lease.clone()),
            _ => None,
        }
    }
}

/// Reports, leads and follows, as configured, until the future is dropped.
pub(crate) async fn run(shared: Arc<Shared>, means: Means) {
    let Some(cluster) = shared.cluster.clone() else { return };
    let engine = shared.live.load().config.cluster.engine.clone();
    match (engine, means) {
        (Some(Engine::Leader(_)), Means::Listener(listener)) => local::lead(shared, cluster, listener).await,
        (Some(Engine::Follower(leader)), _) => local::follow(shared, cluster, leader).await,
        #[cfg(feature = "nats")]
        (Some(Engine::Nats(nats)), _) => nats::run(shared, cluster, nats).await,
        (Some(Engine::Kubernetes(_)), Means::Link(link)) => linked::run(shared, cluster, link).await,
        _ => {}
    }
}

/// Waits until a gateway that stops has given its lease up, so that another need not wait for its end; not
/// for long.
pub(crate) async fn leave(lease: Option<watch::Receiver<Option<HeldLease>>>) {
    if let Some(mut lease) = lease {
        // One that is not given up ends by itself.
        let _ended_anyway = timeout(LEAVES_WITHIN, lease.wait_for(Option::is_none)).await;
    }
}

/// Two calls of the API server, on an idle machine some milliseconds.
const LEAVES_WITHIN: Duration = Duration::from_secs(1);

/// Counts a message that was not taken and logs it, not too often.
fn refuse(shared: &Shared, why: std::fmt::Arguments<'_>) {
    shared.warn(Happening::Cluster, why);
}

/// Counts a message that is no report of this cluster.
fn refuse_report(shared: &Shared, error: &MessageError) {
    let is_forged = matches!(error, MessageError::Seal(_));
    let outcome = if is_forged { ReportOutcome::Forged } else { ReportOutcome::Malformed };
    shared.telemetry.control().cluster_reports.increment(outcome);
    refuse(shared, format_args!("a report was refused: {error}"));
}

/// Counts a report at the leader, and logs why it was not taken.
fn count_report(shared: &Shared, outcome: Result<(), ReportError>, gateway: &str) {
    let counted = match &outcome {
        Ok(()) => ReportOutcome::Counted,
        Err(ReportError::Repeated) => ReportOutcome::Stale,
        Err(_) => ReportOutcome::Refused,
    };
    shared.telemetry.control().cluster_reports.increment(counted);
    if let Err(error) = outcome {
        refuse(shared, format_args!("a report of gateway {gateway} was not counted: {error}"));
    }
}

impl Cluster {
    /// Document of the cluster for `/status`.
    pub(crate) fn status(&self, now: Instant) -> serde_json::Value {
        status::status(self.gateway, &self.name, &self.state(), now)
    }
}
