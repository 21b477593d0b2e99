//! One look at everything, one plan, and what follows from it.
//!
//! Each interval the state of the cluster is read again, and nothing is remembered of it that a later reading
//! would not correct (level-triggered, as Kubernetes' own controllers). For each policy these are five small
//! calls, besides one list of policies and one of autoscalers.

use crate::fetch;
use crate::kubernetes::back_off::BackOff;
use crate::kubernetes::cluster::{ApiError, CALL_WITHIN, Cluster, Event, Scale};
use crate::kubernetes::decide::{Finding, Order, Orders, with_demand};
use crate::kubernetes::demand::{Demand, GatewayReading};
use crate::kubernetes::desired::{DesiredReplicas, DesiredTable};
use crate::kubernetes::leader::Leader;
use crate::kubernetes::objects::{Port, TargetReference, autoscaler_of, ready_endpoints};
use crate::kubernetes::policy::{CheckedPolicy, OverloadPolicySpec, OverloadPolicyStatus};
use crate::kubernetes::pools::{PolicyKey, Pools, Unplanned};
use crate::kubernetes::servers::Servers;
use flashweir_core::limits::GATEWAYS;
use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{ApplicationPlan, ApplicationSample};
use flashweir_telemetry::{KubernetesMetrics, Outcome, PolicyFigures};
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tracing::{info, warn};

/// Policies that are read at the same time, and gateways of one policy: the API server and the network see no
/// burst.
const AT_ONCE: usize = 16;

/// A policy as it was read.
struct Found {
    key: PolicyKey,
    object: Value,
    spec: Result<(OverloadPolicySpec, CheckedPolicy), String>,
}

/// The cluster's state of one policy.
struct Facts {
    scale: Result<Scale, ApiError>,
    ready: Result<usize, ApiError>,
    gateways: Result<Vec<SocketAddr>, ApiError>,
    readings: Vec<(String, GatewayReading)>,
    /// Error of the first gateway that does not answer.
    silent: Option<String>,
    gateways_scale: Option<Result<Scale, ApiError>>,
}

/// State kept of one policy from plan to plan.
#[derive(Debug, Default)]
struct PolicyState {
    demand: Demand,
    servers: Servers,
    orders: Orders,
    gateway_orders: Orders,
}

/// Plans, and does what the plans say.
pub(crate) struct Controller {
    cluster: Rc<Cluster>,
    leader: Rc<Leader>,
    interval: Duration,
    metrics: Arc<KubernetesMetrics>,
    desired: Arc<DesiredTable>,
    pools: Pools,
    states: BTreeMap<PolicyKey, PolicyState>,
    /// The term in which that was learned.
    learned_in: Option<u64>,
    began: tokio::time::Instant,
    back_off: BackOff,
    retry_at: Instant,
    is_beyond_known: bool,
}

impl Controller {
    pub(crate) fn new(
        cluster: Rc<Cluster>,
        leader: Rc<Leader>,
        interval: Duration,
        metrics: Arc<KubernetesMetrics>,
        desired: Arc<DesiredTable>,
        began: tokio::time::Instant,
        seed: u64,
    ) -> Self {
        Self {
            cluster,
            leader,
            interval,
            metrics,
            desired,
            pools: Pools::default(),
            states: BTreeMap::new(),
            learned_in: None,
            began,
            back_off: BackOff::new(seed),
            retry_at: Instant::ZERO,
            is_beyond_known: false,
        }
    }

    fn now(&self) -> Instant {
        Instant::from_duration(self.began.elapsed())
    }

    /// One interval. While the API server does not answer, replicas stay as they are and it is asked ever
    /// more seldom.
    pub(crate) async fn tick(&mut self) {
        let now = self.now();
        self.metrics.set_leading(self.leader.term().is_some());
        if now < self.retry_at {
            return;
        }
        match self.reconcile(now).await {
            Ok(()) => {
                self.metrics.readings.increment(Outcome::Ok);
                if self.back_off.succeeded() {
                    info!("API server heard again; policies are followed");
                }
            }
            Err(error) => {
                self.metrics.readings.increment(Outcome::Failed);
                if !self.back_off.is_failing() {
                    warn!(%error, "policies cannot be followed; replicas stay as they are");
                }
                self.retry_at = self.now() + self.back_off.failed();
            }
        }
    }

    async fn reconcile(&mut self, now: Instant) -> Result<(), ApiError> {
        let (objects, beyond) = self.cluster.policies().await?;
        if beyond > 0 && !std::mem::replace(&mut self.is_beyond_known, true) {
            warn!(beyond, "more policies than are followed; the newest are not");
        }
        let found: Vec<Found> = objects.into_iter().map(found).collect();
        let Some(term) = self.leader.term() else {
            self.follow(&found);
            return Ok(());
        };
        let latest = found.iter().filter_map(|it| status_of(&it.object).term).max();
        if latest.is_some_and(|latest| latest > term) {
            warn!(term, latest, "another leader has a later term; this one writes nothing any more");
            self.leader.step_down();
            return Ok(());
        }
        // Knowledge from this term outlasts an outage of the API server; after another leader's term the
        // orders of that leader are unknown.
        if self.learned_in.replace(term) != Some(term) {
            self.pools = Pools::default();
            self.states.clear();
        }
        let autoscalers = self.cluster.autoscalers().await?;
        let mut facts = self.gather(&found).await;
        claim_gateways(&found, &mut facts, &autoscalers);
        if let Some(error) =
            facts.values().find_map(|it| it.scale.as_ref().err().filter(|error| error.is_of_server()))
        {
            return Err(error.clone());
        }
        let checked =
            found.iter().filter_map(|it| Some((it.key.clone(), it.spec.as_ref().ok()?.1.clone()))).collect();
        let unplanned = self.pools.update(now, self.interval, &checked);
        self.states.retain(|key, _| found.iter().any(|it| it.key == *key));
        let mut samples = BTreeMap::new();
        for it in &found {
            if let Some(sample) = self.sample(now, it, facts.get(&it.key)) {
                samples.insert(it.key.clone(), sample);
            }
        }
        let offered = offered(&samples);
        let plans = self.pools.plan(now, samples);
        let (mut targets, mut figures, mut desired) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        for it in &found {
            let facts = facts.get(&it.key);
            let plan = plans.get(&it.key).and_then(|plan| plan.as_ref().ok()).map(|(_, plan)| plan);
            let why_not = unplanned.get(&it.key).or_else(|| plans.get(&it.key)?.as_ref().err());
            let finding = finding(it, facts, why_not, &autoscalers, &mut targets);
            let offered = offered.get(&it.key).copied().unwrap_or(0);
            let status = self.act(it, facts, plan, finding, offered, term).await;
            desired.insert(it.key.clone(), DesiredReplicas { replicas: status.desired_replicas });
            figures.push(policy_figures(&it.key, &status, facts, plan));
        }
        self.desired.replace(desired);
        self.metrics.replace(figures);
        Ok(())
    }

    /// Another leads: what it has written is published here as well.
    fn follow(&mut self, found: &[Found]) {
        let of = |it: &Found| {
            (it.key.clone(), DesiredReplicas { replicas: status_of(&it.object).desired_replicas })
        };
        self.desired.replace(found.iter().map(of).collect());
        let figures = found.iter().map(|it| policy_figures(&it.key, &status_of(&it.object), None, None));
        self.metrics.replace(figures.collect());
    }

    async fn gather(&self, found: &[Found]) -> BTreeMap<PolicyKey, Facts> {
        let readable = found.iter().filter_map(|it| Some((it.key.clone(), it.spec.as_ref().ok()?.0.clone())));
        let facts = readable.map(|(key, spec)| async move {
            let facts = gather(&self.cluster, &key.0, &spec).await;
            (key, facts)
        });
        stream::iter(facts).buffer_unordered(AT_ONCE).collect().await
    }

    fn sample(&mut self, now: Instant, found: &Found, facts: Option<&Facts>) -> Option<ApplicationSample> {
        let (_, checked) = found.spec.as_ref().ok()?;
        let facts = facts?;
        let (scale, ready) = (facts.scale.as_ref().ok()?, facts.ready.as_ref().ok()?);
        let state = self.states.entry(found.key.clone()).or_default();
        let pool = state.servers.observe(now, scale.replicas, u32::try_from(*ready).unwrap_or(u32::MAX));
        if facts.readings.is_empty() {
            return None;
        }
        let listed = facts.gateways.as_ref().map_or(0, Vec::len);
        state.demand.sample(now, facts.readings.clone(), listed, &checked.classes, pool)
    }

    /// Orders what the plan says, and writes the status where it changes.
    async fn act(
        &mut self,
        found: &Found,
        facts: Option<&Facts>,
        plan: Option<&ApplicationPlan>,
        finding: Finding,
        offered: u64,
        term: u64,
    ) -> OverloadPolicyStatus {
        let before = status_of(&found.object);
        let mut status = OverloadPolicyStatus { term: Some(term), ..before.clone() };
        status.observed_generation = found.object.pointer("/metadata/generation").and_then(Value::as_i64);
        status.ready_replicas = facts
            .and_then(|it| it.ready.as_ref().ok())
            .and_then(|ready| u32::try_from(*ready).ok())
            .or(before.ready_replicas);
        let mut finding = finding;
        if let (Some(plan), Some(facts), Ok((spec, _))) = (plan, facts, &found.spec) {
            let servers = with_demand(plan.servers, offered).min(spec.max_replicas);
            status.desired_replicas = Some(servers);
            status.rule = Some(format!("{:?}", plan.explanation.rule));
            if finding == Finding::Active {
                let taken = self.order(found, &spec.scale_target_ref, facts, servers, Some(plan)).await;
                if let Err(error) = taken {
                    finding = Finding::OrderRefused(error.to_string());
                }
            }
            status.desired_gateways = self.order_gateways(found, spec, facts, plan).await;
        }
        let (conditions, is_new) =
            finding.conditions(&before.conditions, &format!("{:.0}", Timestamp::now()));
        status.conditions = conditions;
        if is_new {
            info!(
                policy = found.key.1,
                namespace = found.key.0,
                reason = finding.reason(),
                "{}",
                finding.message()
            );
            let is_warning = finding.is_warning();
            self.tell(found, "Plan", finding.reason(), finding.message(), is_warning).await;
        }
        if status != before && self.leader.leads_for(CALL_WITHIN) {
            let written = self.cluster.write_status(&found.key.0, &found.key.1, &status).await;
            self.metrics.status_writes.increment(outcome(&written));
        }
        status
    }

    async fn order(
        &mut self,
        found: &Found,
        target: &TargetReference,
        facts: &Facts,
        servers: u32,
        plan: Option<&ApplicationPlan>,
    ) -> Result<(), ApiError> {
        let Ok(scale) = &facts.scale else { return Ok(()) };
        let state = self.states.entry(found.key.clone()).or_default();
        match state.orders.decide(servers, scale.replicas) {
            Order::Keep => Ok(()),
            Order::ChangedElsewhere { replicas } => {
                let note = format!(
                    "{} has {replicas} replicas by another hand, {servers} are planned; they stay until the plan changes",
                    target.name
                );
                warn!(policy = found.key.1, namespace = found.key.0, "{note}");
                self.tell(found, "Scale", "ReplicasChangedElsewhere", note, true).await;
                Ok(())
            }
            Order::Set(replicas) => {
                let taken = self.set(&found.key.0, target, scale, replicas).await;
                self.metrics.orders.increment(outcome(&taken));
                let now = self.now();
                let state = self.states.entry(found.key.clone()).or_default();
                if let Err(error) = taken {
                    state.orders.failed();
                    return Err(error);
                }
                state.servers.ordered(now, replicas);
                let note = scaled(target, scale.replicas, replicas, plan);
                info!(policy = found.key.1, namespace = found.key.0, "{note}");
                self.tell(found, "Scale", "Scaled", note, false).await;
                Ok(())
            }
        }
    }

    /// Sets replicas while this program leads. A conflict by a change of something else than replicas is
    /// tried once more.
    async fn set(
        &self,
        namespace: &str,
        target: &TargetReference,
        read: &Scale,
        replicas: u32,
    ) -> Result<(), ApiError> {
        let mut read = read.clone();
        for is_last in [false, true] {
            if !self.leader.leads_for(CALL_WITHIN) {
                return Err(ApiError::Conflict);
            }
            match self.cluster.set_scale(namespace, target, &read, replicas).await {
                Err(ApiError::Conflict) if !is_last => {
                    let again = self.cluster.scale(namespace, target).await?;
                    if again.replicas != read.replicas {
                        return Err(ApiError::Conflict);
                    }
                    read = again;
                }
                other => return other,
            }
        }
        Err(ApiError::Conflict)
    }

    /// Scales the gateways by how busy they are, where the policy says so and their load is known.
    async fn order_gateways(
        &mut self,
        found: &Found,
        spec: &OverloadPolicySpec,
        facts: &Facts,
        plan: &ApplicationPlan,
    ) -> Option<u32> {
        let target = spec.gateways.scale_target_ref.as_ref()?;
        let scale = facts.gateways_scale.as_ref()?.as_ref().ok()?;
        let is_load_known = facts.readings.iter().any(|(_, reading)| reading.processor_s.is_some());
        if !is_load_known {
            return None;
        }
        let wanted = plan.sentries.clamp(spec.gateways.min_replicas, spec.gateways.max_replicas);
        let state = self.states.entry(found.key.clone()).or_default();
        if let Order::Set(replicas) = state.gateway_orders.decide(wanted, scale.replicas) {
            let taken = self.set(&found.key.0, target, scale, replicas).await;
            self.metrics.orders.increment(outcome(&taken));
            match taken {
                Ok(()) => {
                    let note = scaled(target, scale.replicas, replicas, None);
                    info!(policy = found.key.1, namespace = found.key.0, "{note}");
                    self.tell(found, "Scale", "GatewaysScaled", note, false).await;
                }
                Err(_) => self.states.entry(found.key.clone()).or_default().gateway_orders.failed(),
            }
        }
        Some(wanted)
    }

    async fn tell(&self, found: &Found, action: &str, reason: &str, note: String, is_warning: bool) {
        let event = Event { action, reason, note, is_warning };
        let published = self.cluster.tell(&found.object, &event, &self.leader.identity()).await;
        if let Err(error) = &published {
            warn!(reason, %error, "event not published");
        }
        self.metrics.events.increment(outcome(&published));
    }
}

fn outcome<T>(result: &Result<T, ApiError>) -> Outcome {
    if result.is_ok() { Outcome::Ok } else { Outcome::Failed }
}

fn found(object: Value) -> Found {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let key = (text("/metadata/namespace"), text("/metadata/name"));
    let spec = object.get("spec").cloned().unwrap_or_default();
    let spec = serde_json::from_value::<OverloadPolicySpec>(spec).map_err(|error| format!("spec: {error}"));
    let spec = spec.and_then(|spec| spec.checked().map(|checked| (spec, checked)));
    Found { key, object, spec }
}

/// The status written in the policy; a status that another version wrote counts as none.
fn status_of(object: &Value) -> OverloadPolicyStatus {
    let status = object.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

async fn gather(cluster: &Cluster, namespace: &str, spec: &OverloadPolicySpec) -> Facts {
    let gateways_scale = async {
        match &spec.gateways.scale_target_ref {
            Some(target) => Some(cluster.scale(namespace, target).await),
            None => None,
        }
    };
    let (scale, ready, gateways, gateways_scale) = futures::join!(
        cluster.scale(namespace, &spec.scale_target_ref),
        cluster.slices(namespace, &spec.service),
        cluster.slices(namespace, &spec.gateways.service),
        gateways_scale
    );
    let ready = ready.map(|slices| ready_endpoints(&slices, Port::First).len());
    let port = Port::of(&spec.gateways.admin_port);
    let gateways =
        gateways.map(|slices| ready_endpoints(&slices, port).into_iter().take(GATEWAYS).collect::<Vec<_>>());
    let (mut readings, mut silent) = (Vec::new(), None);
    for (address, reading) in read_all(gateways.as_deref().unwrap_or_default(), spec).await {
        match reading {
            Ok(reading) => readings.push((address.to_string(), reading)),
            Err(why) => silent = silent.or_else(|| Some(format!("gateway {address}: {why}"))),
        }
    }
    Facts { scale, ready, gateways, readings, silent, gateways_scale }
}

async fn read_all(
    gateways: &[SocketAddr],
    spec: &OverloadPolicySpec,
) -> Vec<(SocketAddr, Result<GatewayReading, String>)> {
    let service = spec.gateways.configured_service.as_deref();
    let readings = gateways.iter().map(|address| async move {
        let answer = fetch::get(&address.to_string(), "/status").await.map_err(|error| error.to_string());
        let status = answer
            .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).map_err(|error| error.to_string()));
        (*address, status.and_then(|status| GatewayReading::of(&status, service)))
    });
    stream::iter(readings).buffer_unordered(AT_ONCE).collect().await
}

fn offered(samples: &BTreeMap<PolicyKey, ApplicationSample>) -> BTreeMap<PolicyKey, u64> {
    let sum = |sample: &ApplicationSample| sample.classes.iter().map(|class| class.offered).sum();
    samples.iter().map(|(key, sample)| (key.clone(), sum(sample))).collect()
}

/// Reason for which a policy is followed or not; of several, the one that an operator has to mend first.
fn finding(
    found: &Found,
    facts: Option<&Facts>,
    why_not: Option<&Unplanned>,
    autoscalers: &[Value],
    targets: &mut BTreeMap<(String, TargetReference), String>,
) -> Finding {
    let (spec, facts) = match (&found.spec, facts) {
        (Err(error), _) => return Finding::Invalid(error.clone()),
        (Ok((spec, _)), Some(facts)) => (spec, facts),
        (Ok(_), None) => return Finding::Measuring,
    };
    let target = &spec.scale_target_ref;
    let place = (found.key.0.clone(), target.clone());
    if let Some(older) = targets.get(&place) {
        return Finding::TargetTaken(older.clone());
    }
    targets.insert(place, found.key.1.clone());
    if let Err(error) = &facts.scale {
        return Finding::TargetNotFound(error.to_string());
    }
    if let Err(error) = facts.ready.as_ref().map(drop).and(facts.gateways.as_ref().map(drop)) {
        return Finding::GatewaysSilent(error.to_string());
    }
    if facts.readings.is_empty() {
        let none = || format!("no pod of Service {} is ready", spec.gateways.service);
        return Finding::GatewaysSilent(facts.silent.clone().unwrap_or_else(none));
    }
    match why_not {
        Some(Unplanned::Invalid(why)) => return Finding::Invalid(why.clone()),
        Some(Unplanned::WaitsFor(name)) if *name != found.key.1 => {
            return Finding::PoolIncomplete(name.clone());
        }
        Some(Unplanned::WaitsFor(_)) => return Finding::Measuring,
        None => {}
    }
    autoscaler_of(target, in_namespace(autoscalers, &found.key.0))
        .map_or(Finding::Active, Finding::AutoscalerOwns)
}

fn in_namespace<'a>(objects: &'a [Value], namespace: &'a str) -> impl Iterator<Item = &'a Value> {
    let is_there =
        move |it: &&Value| it.pointer("/metadata/namespace").and_then(Value::as_str) == Some(namespace);
    objects.iter().filter(is_there)
}

/// Gateways have one owner as well: an autoscaler, or the oldest policy that names them. For others their
/// scale is as if it was not there.
fn claim_gateways(found: &[Found], facts: &mut BTreeMap<PolicyKey, Facts>, autoscalers: &[Value]) {
    let mut claimed = BTreeSet::new();
    for it in found {
        let (Ok((spec, _)), Some(facts)) = (&it.spec, facts.get_mut(&it.key)) else { continue };
        let Some(target) = &spec.gateways.scale_target_ref else { continue };
        let is_owned = autoscaler_of(target, in_namespace(autoscalers, &it.key.0)).is_some();
        if is_owned || !claimed.insert((it.key.0.clone(), target.clone())) {
            facts.gateways_scale = None;
        }
    }
}

fn scaled(target: &TargetReference, from: u32, to: u32, plan: Option<&ApplicationPlan>) -> String {
    let moved = format!("{} {} scaled from {from} to {to}", target.kind, target.name);
    let Some(plan) = plan else { return format!("{moved}: processors of the gateways") };
    let why = &plan.explanation;
    format!(
        "{moved}: rule {:?}, {:.1} requests/s offered, {:.1} % of them refused, planned for {:.1}/s",
        why.rule,
        why.offered_rps,
        why.refused_share * 100.0,
        why.forecast_rps
    )
}

fn policy_figures(
    key: &PolicyKey,
    status: &OverloadPolicyStatus,
    facts: Option<&Facts>,
    plan: Option<&ApplicationPlan>,
) -> PolicyFigures {
    let why = plan.map(|plan| plan.explanation);
    PolicyFigures {
        namespace: key.0.clone(),
        policy: key.1.clone(),
        desired: status.desired_replicas,
        ready: status.ready_replicas,
        is_active: status.conditions.iter().any(|condition| condition.status == "True"),
        gateways: facts.map(|facts| facts.readings.len()),
        offered_rps: why.map(|why| why.offered_rps),
        unmet_rps: why.map(|why| why.panic_rps * why.refused_share),
        forecast_rps: why.map(|why| why.forecast_rps),
    }
}
