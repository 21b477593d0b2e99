//! What the control thread counts and publishes: the plan in force, reloads, upstream health.

use std::sync::{Mutex, MutexGuard, PoisonError};

use core::sync::atomic::{AtomicBool, Ordering};

use flashweir_admission::flash_crowd::{Explanation, Limit, Plan, Rule};
use flashweir_admission::sentry;

use crate::candidates::{CandidateNews, CandidateSlot, Candidates};
use crate::classes::{ClassNews, ClassSlot, Sentries};
use crate::counter::{Counter, CounterSet};
use crate::histogram::{FINE_BOUNDS_NS, Histogram};
use crate::kernel::KernelFigures;
use crate::label::Outcome;

/// Written by the control thread alone, read by scrapes.
#[derive(Debug)]
pub struct ControlMetrics {
    /// Time of one planner tick.
    pub planner_tick: Histogram,
    /// Samples the planner took from workers.
    pub samples_judged: Counter,
    /// Plans by the rule that made them.
    pub plans: CounterSet<Rule>,
    /// Reloads of the configuration file.
    pub config_reloads: CounterSet<Outcome>,
    /// Reloads of the certificate.
    pub certificate_reloads: CounterSet<Outcome>,
    /// Writes of the state file.
    pub state_writes: CounterSet<Outcome>,
    shadow: AtomicBool,
    draining: AtomicBool,
    slow: Mutex<SlowGauges>,
    sentries: Sentries,
    candidates: Candidates,
}

/// Gauges that change with a plan or a health check: a lock taken ten times a second hurts nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlowGauges {
    pub(crate) plan: Option<PlanFigures>,
    pub(crate) upstreams_healthy: Vec<UpstreamHealth>,
    pub(crate) kernel: Option<KernelFigures>,
}

/// What the metrics tell of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanFigures {
    pub(crate) epoch: u64,
    pub(crate) hot_spots_limited: usize,
    pub(crate) explanation: Explanation,
}

impl Default for ControlMetrics {
    fn default() -> Self {
        Self {
            planner_tick: Histogram::new(FINE_BOUNDS_NS),
            samples_judged: Counter::default(),
            plans: CounterSet::default(),
            config_reloads: CounterSet::default(),
            certificate_reloads: CounterSet::default(),
            state_writes: CounterSet::default(),
            shadow: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            slow: Mutex::default(),
            sentries: Sentries::default(),
            candidates: Candidates::default(),
        }
    }
}

/// Whether one upstream is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamHealth {
    /// The service it is of.
    pub service: String,
    /// Its place in the service's `upstream.urls`.
    pub place: usize,
    /// It gets requests; false while it is left out.
    pub is_in_use: bool,
}

impl ControlMetrics {
    /// The plan now in force; sets every `flashweir_plan_*` gauge. Counts the plan's rule once for each
    /// epoch.
    pub fn publish_plan(&self, plan: &Plan) {
        let hot_spots_limited = match &plan.limit {
            Limit::HotSpots(limits) => limits.len(),
            Limit::Open | Limit::All(_) => 0,
        };
        let figures = PlanFigures { epoch: plan.epoch, hot_spots_limited, explanation: plan.explanation };
        let before = self.lock().plan.replace(figures);
        if before.is_none_or(|before| before.epoch != plan.epoch) {
            self.plans.increment(plan.explanation.rule);
        }
    }

    /// Which upstreams are in use.
    pub fn publish_upstream_health(&self, healthy: &[UpstreamHealth]) {
        let mut slow = self.lock();
        healthy.clone_into(&mut slow.upstreams_healthy);
    }

    /// What the programs in the kernel count, as just read; `None` once there are none any more.
    pub fn publish_kernel(&self, figures: Option<KernelFigures>) {
        self.lock().kernel = figures;
    }

    /// What was published last of the programs in the kernel.
    #[must_use]
    pub fn kernel(&self) -> Option<KernelFigures> {
        self.lock().kernel.clone()
    }

    /// Whether flash-crowd refusals are only recorded.
    pub fn set_shadow(&self, shadow: bool) {
        self.shadow.store(shadow, Ordering::Relaxed);
    }

    /// Whether the gateway takes no new work.
    pub fn set_draining(&self, draining: bool) {
        self.draining.store(draining, Ordering::Relaxed);
    }

    /// Where this class of this service is counted. Names from a configuration; the same names give the same slot.
    pub fn class_slot(&self, service: &str, class: &str) -> ClassSlot {
        self.sentries.slot(service, class)
    }

    /// The sentry's plan now in force for a service, and what became of its classes since the last one.
    pub fn publish_sentry<'a>(
        &self,
        service: &str,
        plan: &sentry::Plan,
        classes: impl Iterator<Item = ClassNews<'a>>,
    ) {
        self.sentries.publish(service, plan, classes);
    }

    /// Leaves out the sentries of services that are not there any more.
    pub fn keep_sentries(&self, is_there: impl Fn(&str) -> bool) {
        self.sentries.keep(is_there);
    }

    /// Where this class of this service's candidate policy is counted, as [`class_slot`](Self::class_slot).
    pub fn candidate_slot(&self, service: &str, class: &str) -> CandidateSlot {
        self.candidates.slot(service, class)
    }

    /// What became of a class of a candidate policy.
    pub fn count_candidate(&self, news: &CandidateNews<'_>) {
        self.candidates.count(news);
    }

    pub(crate) fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    pub(crate) fn sentries(&self) -> &Sentries {
        &self.sentries
    }

    pub(crate) fn shadow(&self) -> bool {
        self.shadow.load(Ordering::Relaxed)
    }

    pub(crate) fn draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn slow(&self) -> SlowGauges {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, SlowGauges> {
        // Gauges are replaced whole, so a writer that panicked leaves nothing half-written.
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
