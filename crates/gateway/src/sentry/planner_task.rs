//! Surroundings of the planners of the sentries: the workers' samples, each service's plan in force, its
//! candidate, the metrics. One station for all services, so that they share a timer; a loop for each. Rests
//! while there is nothing to decide (`rest`).

use super::candidate::Candidate;
use super::candidate_planner::PlannedCandidate;
use super::sample::GateSample;
use super::service::Sentry;
use crate::feedback::outbox::Outbox;
use crate::feedback::{FieldReport, NodePlanner};
use crate::recording::{self, MadeFrom};
use crate::shared::Shared;
use flashweir_admission::sentry::{ClassCounts, Plan, Sample, SentryPlanner};
use flashweir_core::{Duration, Instant};
use flashweir_feedback::{FieldError, Taken};
use flashweir_runtime::planner_loop::{
    LoopEvent, Outlet, PlannerLoop, SlotDecay, Station, Unattended, put_in_force,
};
use flashweir_runtime::{Clock, unix_seconds_now};
use flashweir_telemetry::{ClassNews, ClassSlot, ControlMetrics, EgressDatagram, FieldOutcome, Happening};
use flashweir_wire::Recorder;
use flashweir_wire::recording::Planned;
use std::convert::Infallible;
use std::mem;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Short against the time in which anything about a service changes, long against what a round costs.
const INTERVAL: Duration = Duration::from_millis(20);
/// While no request comes: nothing changes but what fades, over seconds.
const INTERVAL_AT_REST: Duration = Duration::from_secs(1);
/// No request comes for this long before the rest begins: a move of the limit is judged by then, and not by
/// samples of a second.
const IDLE_BEFORE_REST: Duration = Duration::from_secs(10);
/// A service's plan is put off for this long: what only some gates measured is not what happened.
const PLAN_PUT_OFF_MOST: Duration = Duration::from_millis(100);

/// The loops of all services. Lives on the control thread.
pub(crate) struct SentryStation {
    shared: Arc<Shared>,
    samples: mpsc::Receiver<GateSample>,
    services: Vec<Service>,
    recorder: Option<Arc<Recorder>>,
    /// Since when no sample has shown any request.
    idle_since: Option<Instant>,
    due: Instant,
    /// True if the rest that goes on began before this round's samples were asked for.
    had_begun_rest: bool,
    /// Every worker has reported in time once.
    had_all_reports: bool,
}

/// One service.
struct Service {
    planner_loop: PlannerLoop<SentryPlanner>,
    outlet: ServiceOutlet,
    /// Workers that have reported since the last plan.
    heard: Vec<bool>,
    /// True if the samples since the last plan showed any request that arrived, is at the origin or is
    /// queued.
    has_seen_any: bool,
    /// Since when a plan has been due that some gates have no part in yet.
    put_off_since: Option<Instant>,
}

/// Publishes a service's plans and builds its planner.
struct ServiceOutlet {
    shared: Arc<Shared>,
    sentry: Arc<Sentry>,
    /// Slots of the counters of its classes.
    slots: Vec<ClassSlot>,
    /// A policy that is compared with this one.
    candidate: Option<PlannedCandidate>,
    /// Feedback from and to nodes in front and upstreams; none where the sentry only records.
    nodes: Option<NodePlanner>,
    datagrams_out: Outbox,
    /// Counts of each class since the last plan.
    counts: Vec<ClassCounts>,
    /// Workers at which requests wait.
    waiting_at: Vec<usize>,
}

impl SentryStation {
    /// Nothing is known yet.
    pub(crate) fn new(
        shared: Arc<Shared>,
        samples: mpsc::Receiver<GateSample>,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        Self {
            due: shared.clock.now(),
            shared,
            samples,
            services: Vec::new(),
            recorder,
            idle_since: None,
            had_begun_rest: false,
            had_all_reports: false,
        }
    }

    /// A reload may have brought other services, or other policies for them.
    fn take_over_services(&mut self) {
        let live = self.shared.live.load();
        let sentries = || live.sentries.iter().flatten();
        let wanted = || {
            let both = live.sentries.iter().zip(&live.candidates);
            both.filter_map(|(sentry, candidate)| Some((sentry.as_ref()?, candidate.as_ref())))
        };
        let is_known = |(sentry, candidate)| {
            let known = self.services.iter().find(|known| known.is_of(sentry));
            known.is_some_and(|known| known.outlet.has_candidate(candidate))
        };
        if wanted().count() == self.services.len() && wanted().all(is_known) {
            return;
        }
        let metrics = self.shared.telemetry.control();
        let mut known = mem::take(&mut self.services);
        let services = wanted().map(|(sentry, candidate)| {
            let at = known.iter().position(|known| known.is_of(sentry));
            let new = || Service::new(&self.shared, sentry.clone(), self.recorder.as_ref());
            let mut service = at.map_or_else(new, |at| known.swap_remove(at));
            if !service.outlet.has_candidate(candidate) {
                service.outlet.candidate =
                    candidate.map(|candidate| PlannedCandidate::new(candidate.clone(), &metrics));
            }
            service
        });
        self.services = services.collect();
        metrics.keep_sentries(|name| sentries().any(|sentry| sentry.names.service == name));
    }

    /// Returns whether the planners may rest: as long as they may, the first request wakes them.
    fn rests(&mut self, now: Instant, has_seen_any: bool, is_complete: bool) -> bool {
        if has_seen_any {
            self.idle_since = None;
            self.shared.rest.end();
        }
        if has_seen_any || !is_complete {
            return false;
        }
        let idle_since = *self.idle_since.get_or_insert(now);
        if self.had_begun_rest || now.saturating_since(idle_since) < IDLE_BEFORE_REST {
            return self.shared.rest.goes_on();
        }
        // Requests that came before this, while the samples were gathered, are in the next ones.
        self.shared.rest.begin();
        false
    }
}

impl Station for SentryStation {
    /// The other services' plans do not wait longer for a worker that is busy.
    const SAMPLES_AWAITED: Duration = Duration::from_millis(10);

    fn clock(&self) -> Clock {
        self.shared.clock
    }

    fn due(&self, now: Instant) -> Instant {
        self.due.max(now)
    }

    async fn woken(&self) {
        self.shared.rest.woken().await;
    }

    fn ask(&mut self) -> usize {
        self.take_over_services();
        self.had_begun_rest = self.shared.rest.goes_on();
        let mut awaited = 0;
        for service in &self.services {
            let sentry = &service.outlet.sentry;
            (0..sentry.workers()).for_each(|worker| sentry.want_sample(worker));
            awaited += sentry.workers();
        }
        awaited
    }

    async fn receive(&mut self) -> Option<bool> {
        let sample = self.samples.recv().await?;
        let of = self.services.iter_mut().find(|service| service.is_of(&sample.sentry));
        // One of a service that is gone is of no use.
        let Some(service) = of else { return Some(false) };
        service.take(self.shared.clock.now(), sample);
        Some(true)
    }

    fn evaluate(&mut self, missing: usize) {
        // Until every worker runs, a missing report says nothing.
        self.had_all_reports |= missing == 0;
        if missing > 0 && self.had_all_reports && !self.shared.is_draining() {
            let message = format_args!("{missing} reports of workers to the limit's planner are late");
            self.shared.warn(Happening::PlannerLate, message);
        }
        let now = self.shared.clock.now();
        let has_seen_any = self.services.iter().any(|service| service.has_seen_any);
        let is_complete = self.services.iter().all(Service::is_complete);
        self.services.iter_mut().for_each(|service| service.evaluate(now));
        let interval = if self.rests(now, has_seen_any, is_complete) { INTERVAL_AT_REST } else { INTERVAL };
        // Late rounds don't pile up. A planner that is asked before its time keeps its samples, and then adds
        // up two moments of one gate.
        self.due = self.shared.clock.now() + interval;
    }
}

impl Service {
    fn new(shared: &Arc<Shared>, sentry: Arc<Sentry>, recorder: Option<&Arc<Recorder>>) -> Self {
        let names = &sentry.names;
        let metrics = shared.telemetry.control();
        let workers = sentry.workers();
        let mut outlet = ServiceOutlet {
            slots: names.classes.iter().map(|class| metrics.class_slot(&names.service, class)).collect(),
            counts: vec![ClassCounts::default(); names.classes.len()],
            waiting_at: Vec::new(),
            candidate: None,
            nodes: nodes(shared, &sentry),
            datagrams_out: Outbox::default(),
            shared: shared.clone(),
            sentry,
        };
        let in_force = Plan::clone(&outlet.sentry.plan.load());
        let mut planner_loop = PlannerLoop::new(&mut outlet, in_force);
        let made_from = MadeFrom::default();
        made_from.set(Some(Planned::Sentry((*outlet.sentry.policy).clone())));
        recording::record(&mut planner_loop, recorder, &outlet.sentry.names.service, &made_from);
        Self { planner_loop, outlet, heard: vec![false; workers], has_seen_any: false, put_off_since: None }
    }

    fn is_of(&self, sentry: &Arc<Sentry>) -> bool {
        Arc::ptr_eq(&self.outlet.sentry, sentry)
    }

    fn take(&mut self, now: Instant, from: GateSample) {
        let GateSample { worker, sample, heard, candidate, .. } = from;
        if let Some(cluster) = &self.outlet.shared.cluster {
            cluster.observe(now, &self.outlet.sentry, worker, &sample);
        }
        self.planner_loop.observe(&mut self.outlet, now, &sample);
        let outlet = &mut self.outlet;
        if let Some(nodes) = &mut outlet.nodes {
            let shared = &outlet.shared;
            nodes.take(now, worker, &sample, heard.as_deref(), &outlet.sentry.plan.load(), |report| {
                count_fields(shared, now, report);
            });
        }
        self.heard[worker] = true;
        self.has_seen_any |= has_any(&sample);
        outlet.counts.iter_mut().zip(&sample.classes).for_each(|(all, one)| all.add(one));
        if sample.held > 0 && !outlet.waiting_at.contains(&worker) {
            outlet.waiting_at.push(worker);
        }
        if let Some((planned, of_candidate)) = outlet.candidate.as_mut().zip(candidate) {
            planned.take(&sample, &of_candidate, &outlet.shared.telemetry.control());
        }
    }

    /// Every gate has reported since the last plan.
    fn is_complete(&self) -> bool {
        self.heard.iter().all(|&heard| heard)
    }

    fn evaluate(&mut self, now: Instant) {
        if !self.is_complete() {
            let since = *self.put_off_since.get_or_insert(now);
            if now.saturating_since(since) < PLAN_PUT_OFF_MOST {
                return;
            }
        }
        self.put_off_since = None;
        self.heard.fill(false);
        self.has_seen_any = false;
        let Ok(()) = self.planner_loop.evaluate(&mut self.outlet);
    }
}

/// Returns whether the sample shows any request that arrived, is at the origin or is queued.
fn has_any(sample: &Sample) -> bool {
    sample.offered + sample.completed + sample.failed > 0 || sample.in_flight + sample.held > 0
}

impl Outlet<SentryPlanner> for ServiceOutlet {
    type Error = Infallible;

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    fn interval(&self) -> Duration {
        self.sentry.policy.interval
    }

    fn planner(&mut self) -> Option<SentryPlanner> {
        Some(SentryPlanner::new(self.sentry.policy.clone()))
    }

    fn epoch_in_force(&self) -> u64 {
        self.sentry.plan.load().epoch
    }

    fn publish(
        &mut self,
        now: Instant,
        plan: Plan,
        planner: Option<&SentryPlanner>,
    ) -> Result<(), Infallible> {
        let plan = match &self.shared.cluster {
            Some(cluster) => cluster.plan(now, &self.sentry, &plan),
            None => plan,
        };
        let in_order = self.nodes.as_ref().and_then(|nodes| nodes.in_order(&plan));
        put_in_force(&self.sentry.plan, in_order.as_ref().unwrap_or(&plan));
        if let Some((candidate, live)) = self.candidate.as_mut().zip(planner) {
            candidate.plan(now, live, &self.shared.warnings);
        }
        // There may be room now, or less time to wait.
        self.waiting_at.drain(..).for_each(|worker| self.sentry.ring(worker));
        self.tell(&plan, &self.shared.telemetry.control());
        self.plan_nodes(now, &plan);
        self.sentry.tell_oldest(now, &self.counts);
        self.counts.fill(ClassCounts::default());
        Ok(())
    }

    fn report(&mut self, now: Instant, event: &LoopEvent) {
        let whose = format!("the planner of the sentry of {}", self.sentry.names.service);
        event.tell(&self.shared.warnings, now, &whose);
    }
}

/// The planner for nodes in front and upstreams, where feedback is switched on and the sentry acts.
fn nodes(shared: &Arc<Shared>, sentry: &Arc<Sentry>) -> Option<NodePlanner> {
    let live = shared.live.load();
    // Seconds fit until 2106.
    let epoch = unix_seconds_now() as u32;
    let (name, service) = (&live.config.gateway.name, &sentry.names.service);
    let is_wanted = live.config.feedback.is_enabled && !sentry.shadow;
    is_wanted.then(|| NodePlanner::new(name, service, live.config.feedback.clone(), sentry.workers(), epoch))
}

fn count_fields(shared: &Shared, now: Instant, report: FieldReport) {
    let count = match report {
        FieldReport::Field(outcome) => return count_field(shared, now, outcome),
        FieldReport::Missing(count) => count,
    };
    shared.telemetry.control().feedback_fields.add(FieldOutcome::Missing, count.into());
    let text = "responses of a service come without Flashweir-Overload while a limit holds: it has restarted, or something on the way \
                strips the field; the limit opens step by step";
    shared.warnings.warn(now, Happening::FeedbackMissing, format_args!("{text}"));
}

fn count_field(shared: &Shared, now: Instant, outcome: Result<Taken, FieldError>) {
    let counted = match outcome {
        Ok(Taken::New) => FieldOutcome::New,
        // Another worker has counted it.
        Ok(Taken::Repeated) => return,
        Ok(Taken::Stale) => FieldOutcome::Stale,
        Err(error) => {
            let happening = Happening::FeedbackRefused;
            shared.warnings.warn(
                now,
                happening,
                format_args!("a service's Flashweir-Overload was ignored: {error}"),
            );
            match error {
                FieldError::Forged | FieldError::Untagged | FieldError::UnknownKey { .. } => {
                    FieldOutcome::Forged
                }
                _ => FieldOutcome::Malformed,
            }
        }
    };
    shared.telemetry.control().feedback_fields.increment(counted);
}

impl ServiceOutlet {
    /// The orders for nodes in front and upstreams, by this plan.
    fn plan_nodes(&mut self, now: Instant, plan: &Plan) {
        let live = self.shared.live.load();
        let Some(nodes) = &mut self.nodes else { return };
        nodes.configure(&live.config.feedback);
        for datagram in self.sentry.inbox.take() {
            let outcome = nodes.take_datagram(now, &datagram);
            let counted = if outcome.is_ok() { EgressDatagram::Heard } else { EgressDatagram::Refused };
            self.shared.telemetry.control().feedback_datagrams.increment(counted);
            count_field(&self.shared, now, outcome);
        }
        if let Some(orders) = nodes.plan(now, plan) {
            self.sentry.orders.store(Arc::new(orders));
            self.sentry.feedback_report.store(Arc::new(nodes.report().clone()));
            let address = live.config.feedback.address.unwrap_or(self.shared.listening_on[0]);
            for (to, datagram) in nodes.datagrams(now, address) {
                self.datagrams_out.send(to, &datagram, &self.shared);
            }
        }
        self.shared.telemetry.control().publish_feedback(nodes.report().figures(&self.sentry.names.service));
    }

    fn has_candidate(&self, candidate: Option<&Arc<Candidate>>) -> bool {
        match (&self.candidate, candidate) {
            (None, None) => true,
            (Some(known), Some(candidate)) => Arc::ptr_eq(&known.candidate, candidate),
            _ => false,
        }
    }

    fn tell(&self, plan: &Plan, metrics: &ControlMetrics) {
        let classes = self.sentry.policy.classes.iter().zip(&plan.classes);
        let known = classes.zip(&self.slots).zip(&self.counts).enumerate();
        let news = known.map(|(index, (((policy, class), &slot), counts))| ClassNews {
            slot,
            counts,
            plan: class,
            usual_us: plan.costs.by_class_us.get(index).copied().unwrap_or(0),
            revenue: policy.revenue,
            queue_stands: self.sentry.common.stands(index),
        });
        metrics.publish_sentry(&self.sentry.names.service, plan, &self.sentry.common, news);
    }
}

/// The plans of all services while the control thread stalls.
pub(crate) struct UnattendedSentries {
    shared: Arc<Shared>,
    decay: SlotDecay<Plan>,
}

impl UnattendedSentries {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, decay: SlotDecay::default() }
    }
}

impl Unattended for UnattendedSentries {
    fn whose(&self) -> &'static str {
        "the planners of the sentries"
    }

    fn decay(&mut self, age: Duration) {
        for sentry in self.shared.live.load().sentries.iter().flatten() {
            if self.decay.decay(&sentry.plan, age) {
                // There is room now.
                (0..sentry.workers()).for_each(|worker| sentry.ring(worker));
            }
        }
    }

    fn attended(&mut self) {
        self.decay.end();
    }
}
