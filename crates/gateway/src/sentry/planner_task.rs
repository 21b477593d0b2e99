//! The slow half: asks the workers for samples, lets each service's planner decide, publishes its plan. Rests while
//! there is nothing to decide (`rest`).

use super::candidate::Candidate;
use super::candidate_planner::PlannedCandidate;
use super::service::Sentry;
use super::stage::GateSample;
use crate::shared::Shared;
use flashweir_admission::PlannerDriver;
use flashweir_admission::sentry::{ClassCounts, Plan, Sample, SentryPlanner};
use flashweir_core::limits::SENTRY_IN_FLIGHT;
use flashweir_core::{Duration, Instant};
use flashweir_telemetry::{ClassNews, ClassSlot, ControlMetrics, Happening};
use flashweir_wire::Recorder;
use flashweir_wire::recording::Stream;
use std::mem;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Short against the time in which anything about a service changes, long against what looking costs.
const INTERVAL: Duration = Duration::from_millis(20);
/// While nobody asks: nothing changes but what fades, over seconds.
const INTERVAL_AT_REST: Duration = Duration::from_secs(1);
/// It does so for this long before the rest begins: a move of the limit is judged by then, and not by samples of a second.
const IDLE_BEFORE_REST: Duration = Duration::from_secs(10);
/// The other services' plans do not wait longer for a worker that is busy.
const SAMPLES_AWAITED: Duration = Duration::from_millis(10);
/// And its own does so for this long: what only some gates measured is not what happened.
const PLAN_PUT_OFF_MOST: Duration = Duration::from_millis(100);

/// The planners of all services. Lives on the control thread.
pub(crate) struct SentryPlanners {
    shared: Arc<Shared>,
    samples: mpsc::Receiver<GateSample>,
    services: Vec<Planned>,
    recorder: Option<Arc<Recorder>>,
    /// Since when no sample has told of any request.
    idle_since: Option<Instant>,
}

/// One service.
struct Planned {
    sentry: Arc<Sentry>,
    /// Where its classes are counted.
    slots: Vec<ClassSlot>,
    planner: PlannerDriver<SentryPlanner>,
    /// What this planner sees and decides is recorded there.
    recording: Option<(Arc<Recorder>, Stream)>,
    /// A policy that is compared with this one.
    candidate: Option<PlannedCandidate>,
    /// What became of each class since the last plan.
    counts: Vec<ClassCounts>,
    /// Which workers have told since the last plan, and where somebody waits.
    heard: Vec<bool>,
    /// How long each worker had been busy when it last told, and when that was.
    busy: Vec<(Instant, Duration)>,
    waiting_at: Vec<usize>,
    /// The busiest worker's share of time since the last plan.
    busiest: f64,
    /// Whether the samples since the last plan told of any request that came, is at the origin or waits.
    has_seen_any: bool,
    /// Since when a plan has been due that some gates have no part in yet.
    put_off_since: Option<Instant>,
}

impl SentryPlanners {
    /// Nothing is known yet.
    pub(crate) fn new(
        shared: Arc<Shared>,
        samples: mpsc::Receiver<GateSample>,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        Self { shared, samples, services: Vec::new(), recorder, idle_since: None }
    }

    /// Looks again and again until the future is dropped.
    pub(crate) async fn run(mut self) {
        let shared = self.shared.clone();
        let mut due = shared.clock.now();
        let mut interval = INTERVAL;
        loop {
            // Late looks don't pile up.
            due = (due + interval).max(shared.clock.now());
            if tokio::time::timeout_at(shared.clock.timer_at(due), shared.rest.woken()).await.is_ok() {
                due = shared.clock.now();
            }
            self.take_over_services();
            interval = if self.look().await { INTERVAL_AT_REST } else { INTERVAL };
            // A planner that is asked before its time keeps its samples, and then adds up two moments of one gate.
            due = due.max(shared.clock.now());
        }
    }

    /// Plans from new samples. Whether the planner may rest: as long as it may, whoever asks wakes it.
    async fn look(&mut self) -> bool {
        let has_begun = self.shared.rest.goes_on();
        self.gather().await;
        let now = self.shared.clock.now();
        let metrics = self.shared.telemetry.control();
        let has_seen_any = self.services.iter().any(|service| service.has_seen_any);
        let is_complete = self.services.iter().all(Planned::is_complete);
        self.services.iter_mut().for_each(|service| service.plan(now, &metrics));
        if has_seen_any {
            self.idle_since = None;
            self.shared.rest.end();
        }
        if has_seen_any || !is_complete {
            return false;
        }
        let idle_since = *self.idle_since.get_or_insert(now);
        if has_begun || now.saturating_since(idle_since) < IDLE_BEFORE_REST {
            return self.shared.rest.goes_on();
        }
        // Whoever came before this, while the samples were gathered, is in the next ones.
        self.shared.rest.begin();
        false
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
            let known = self.services.iter().find(|known| Arc::ptr_eq(&known.sentry, sentry));
            known.is_some_and(|known| known.has_candidate(candidate))
        };
        if wanted().count() == self.services.len() && wanted().all(is_known) {
            return;
        }
        let metrics = self.shared.telemetry.control();
        let mut known = mem::take(&mut self.services);
        let (now, recorder) = (self.shared.clock.now(), self.recorder.clone());
        let services = wanted().map(|(sentry, candidate)| {
            let at = known.iter().position(|known| Arc::ptr_eq(&known.sentry, sentry));
            let new = || Planned::new(sentry.clone(), &metrics, now, recorder.clone());
            let mut service = at.map_or_else(new, |at| known.swap_remove(at));
            if !service.has_candidate(candidate) {
                service.candidate =
                    candidate.map(|candidate| PlannedCandidate::new(candidate.clone(), &metrics));
            }
            service
        });
        self.services = services.collect();
        metrics.keep_sentries(|name| sentries().any(|sentry| sentry.names.service == name));
    }

    /// Asks every worker, and takes what comes within a moment: normally all of it, within some 50 µs.
    async fn gather(&mut self) {
        let mut awaited = 0;
        for service in &self.services {
            let workers = service.sentry.workers();
            (0..workers).for_each(|worker| service.sentry.want_sample(worker));
            awaited += workers;
        }
        let Self { shared, samples, services, .. } = self;
        let metrics = shared.telemetry.control();
        let all = async {
            while awaited > 0 {
                let Some(GateSample { sentry, worker, busy, sample, candidate }) = samples.recv().await
                else {
                    return;
                };
                // One of a service that is gone is of no use.
                let of = services.iter_mut().find(|service| Arc::ptr_eq(&service.sentry, &sentry));
                if let Some(service) = of {
                    service.take(shared.clock.now(), worker, busy, &sample);
                    if let Some((planned, of_candidate)) = service.candidate.as_mut().zip(candidate) {
                        planned.take(&sample, &of_candidate, &metrics);
                    }
                    awaited -= 1;
                }
            }
        };
        if tokio::time::timeout(SAMPLES_AWAITED, all).await.is_err() && !shared.is_draining() {
            shared.warn(Happening::PlannerLate, format_args!("{awaited} gates did not report in time"));
        }
    }
}

impl Planned {
    fn new(
        sentry: Arc<Sentry>,
        metrics: &ControlMetrics,
        now: Instant,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        let names = &sentry.names;
        let recording = recorder.map(|recorder| {
            let policy = flashweir_wire::recording::Planned::Sentry((*sentry.policy).clone());
            let stream = recorder.begin(now, &names.service, policy);
            (recorder, stream)
        });
        Self {
            slots: names.classes.iter().map(|class| metrics.class_slot(&names.service, class)).collect(),
            planner: PlannerDriver::new(SentryPlanner::new(sentry.policy.clone()), Instant::ZERO),
            counts: vec![ClassCounts::default(); names.classes.len()],
            heard: vec![false; sentry.workers()],
            busy: vec![(Instant::ZERO, Duration::ZERO); sentry.workers()],
            waiting_at: Vec::new(),
            busiest: 0.0,
            has_seen_any: false,
            put_off_since: None,
            recording,
            candidate: None,
            sentry,
        }
    }

    fn has_candidate(&self, candidate: Option<&Arc<Candidate>>) -> bool {
        match (&self.candidate, candidate) {
            (None, None) => true,
            (Some(known), Some(candidate)) => Arc::ptr_eq(&known.candidate, candidate),
            _ => false,
        }
    }

    fn take(&mut self, now: Instant, worker: usize, busy: Duration, sample: &Sample) {
        self.planner.observe(now, sample);
        if let Some((recorder, stream)) = &self.recording {
            recorder.record_sample(now, *stream, sample);
        }
        let (before, busy_before) = mem::replace(&mut self.busy[worker], (now, busy));
        let span_s = now.saturating_since(before).as_secs_f64();
        if span_s > 0.0 && before > Instant::ZERO {
            let share = busy.saturating_sub(busy_before).as_secs_f64() / span_s;
            self.busiest = self.busiest.max(share.min(1.0));
        }
        self.heard[worker] = true;
        self.has_seen_any |= sample.offered + sample.completed + sample.failed > 0;
        self.has_seen_any |= sample.in_flight + sample.held > 0;
        self.counts.iter_mut().zip(&sample.classes).for_each(|(all, one)| all.add(one));
        if sample.held > 0 && !self.waiting_at.contains(&worker) {
            self.waiting_at.push(worker);
        }
    }

    /// Every gate has told since the last plan.
    fn is_complete(&self) -> bool {
        self.heard.iter().all(|&heard| heard)
    }

    fn plan(&mut self, now: Instant, metrics: &ControlMetrics) {
        if !self.is_complete() {
            let since = *self.put_off_since.get_or_insert(now);
            if now.saturating_since(since) < PLAN_PUT_OFF_MOST {
                return;
            }
        }
        self.put_off_since = None;
        self.heard.fill(false);
        self.has_seen_any = false;
        let busiest = mem::take(&mut self.busiest);
        self.planner.planner_mut().observe_deciding_load(now, busiest);
        let plan = Arc::new(self.planner.plan(now));
        if let Some((recorder, stream)) = &self.recording {
            recorder.record_deciding_load(now, *stream, busiest);
            recorder.record_plan(now, *stream, &*plan);
        }
        if plan.epoch == self.sentry.plan.load().epoch {
            return;
        }
        self.sentry.plan.store(plan.clone());
        if let Some(candidate) = &mut self.candidate {
            candidate.plan(now, self.planner.planner(), busiest);
        }
        // There may be room now, or less time to wait.
        self.waiting_at.drain(..).for_each(|worker| self.sentry.ring(worker));
        self.tell(&plan, metrics);
        self.sentry.tell_oldest(now, &self.counts);
        self.counts.fill(ClassCounts::default());
    }

    fn tell(&self, plan: &Plan, metrics: &ControlMetrics) {
        let classes = self.sentry.policy.classes.iter().zip(&plan.classes);
        let told = classes.zip(&self.slots).zip(&self.counts).enumerate();
        let news = told.map(|(index, (((policy, class), &slot), counts))| ClassNews {
            slot,
            counts,
            plan: class,
            usual_us: plan.costs.by_class_us.get(index).copied().unwrap_or(0),
            revenue: policy.revenue,
        });
        metrics.publish_sentry(&self.sentry.names.service, plan, news);
    }
}

impl Sentry {
    /// Nobody plans any more: everything is let in. A limit that nobody reviews would be worse than none.
    pub(crate) fn open(&self) {
        let mut plan = Plan::clone(&self.plan.load());
        plan.epoch += 1;
        plan.limit = SENTRY_IN_FLIGHT;
        plan.classes.iter_mut().for_each(|class| class.limit = SENTRY_IN_FLIGHT);
        self.plan.store(Arc::new(plan));
        (0..self.workers()).for_each(|worker| self.ring(worker));
    }
}
