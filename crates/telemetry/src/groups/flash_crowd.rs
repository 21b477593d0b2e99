//! The flash crowd's plan in force and what it rests on.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flashweir_admission::flash_crowd::{Cause, Explanation, Limit, Mode, Plan, Rule};

use super::ControlMetrics;
use crate::counter::CounterSet;
use crate::group::{MetricGroup, Row, Scrape};

/// Metrics of plans: a lock taken ten times a second costs nothing that counts.
#[derive(Debug, Default)]
pub(crate) struct FlashCrowdMetrics {
    plan: Mutex<Option<PlanFigures>>,
    /// Plans by the rule that made them.
    plans: CounterSet<Rule>,
    shadow: AtomicBool,
}

/// Figures of a plan in the metrics.
#[derive(Clone, Copy, Debug)]
struct PlanFigures {
    epoch: u64,
    hot_spots_limited: usize,
    hot_hosts: usize,
    explanation: Explanation,
}

impl ControlMetrics {
    /// The plan now in force; sets every `flashweir_plan_*` gauge. Counts the plan's rule once for each
    /// epoch.
    pub fn publish_plan(&self, plan: &Plan) {
        let hot_spots_limited = match &plan.limit {
            Limit::HotSpots(limits) => limits.len(),
            Limit::Open | Limit::All(_) => 0,
        };
        let hot_hosts = plan.hot_hosts.len();
        let figures =
            PlanFigures { epoch: plan.epoch, hot_spots_limited, hot_hosts, explanation: plan.explanation };
        let before = self.flash_crowd.lock().replace(figures);
        if before.is_none_or(|before| before.epoch != plan.epoch) {
            self.flash_crowd.plans.increment(plan.explanation.rule);
        }
    }

    /// Sets whether flash-crowd refusals are only recorded.
    pub fn set_shadow(&self, shadow: bool) {
        self.flash_crowd.shadow.store(shadow, Ordering::Relaxed);
    }
}

impl FlashCrowdMetrics {
    fn lock(&self) -> MutexGuard<'_, Option<PlanFigures>> {
        // Replaced whole, so a writer that panicked leaves nothing half-written.
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetricGroup for FlashCrowdMetrics {
    fn title(&self) -> &'static str {
        "Flash crowd"
    }

    fn export(&self, scrape: &mut Scrape) {
        let plan = *self.lock();
        let why = plan.map(|plan| plan.explanation);
        let epoch = plan.map(|plan| plan.epoch as f64);
        scrape.gauge("plan_epoch", "Number of the decision in force.", epoch);
        let modes = Mode::ALL.iter().map(|&mode| (mode.as_str(), why.is_some_and(|why| why.mode == mode)));
        scrape.states("plan_mode", "The detector's state: 1 for the present one.", "mode", modes);
        let causes =
            Cause::ALL.iter().map(|&cause| (cause.as_str(), why.is_some_and(|why| why.cause == cause)));
        scrape.states("plan_cause", "What this stage alone sees: 1 for the present.", "cause", causes);
        scrape.counter_set("plans", "Decisions by the rule that made them.", &[self], |of| &of.plans);
        let limited = plan.map(|plan| plan.hot_spots_limited as f64);
        scrape.gauge("plan_hot_spots_limited", "Hosts that have a ceiling of their own.", limited);
        let hot_hosts = plan.map(|plan| plan.hot_hosts as f64);
        let help = "Hosts to which a crowd came that another stage refuses: others go first.";
        scrape.gauge("plan_hot_hosts", help, hot_hosts);
        scrape.gauges(WHY, why.as_ref());
        let shadow = self.shadow.load(Ordering::Relaxed);
        scrape.flag("shadow", "1 when flash-crowd refusals are only recorded.", shadow);
    }
}

const WHY: &[Row<Explanation, Option<f64>>] = &[
    ("plan_responses", "Responses the decision rests on.", |why| Some(why.responses as f64)),
    ("plan_ceiling_requests_per_second", "Ceiling on admission; absent when open.", |why| why.ceiling_rps),
    ("plan_quality_ratio", "Response quality over its baseline: 1 as usual, less is worse.", |why| {
        why.quality
    }),
    ("plan_margin_ratio", "Tolerated degradation in force.", |why| Some(why.margin)),
    ("plan_fast_rate_bytes_per_second", "Mean rate of the fastest tenth of large responses.", |why| {
        why.fast_rate_bytes_per_s
    }),
    ("plan_fast_rate_reference_bytes_per_second", "Its baseline.", |why| why.fast_rate_reference),
    ("plan_fast_score_ratio", "Mean latency of the fastest tenth over the usual median.", |why| {
        why.fast_score
    }),
    ("plan_fast_score_reference_ratio", "Its baseline.", |why| why.fast_score_reference),
    ("plan_offered_requests_per_second", "Requests that arrived, as last judged.", |why| {
        Some(why.offered_rps)
    }),
    ("plan_unique_offered_requests_per_second", "People's attempts, as last judged.", |why| {
        Some(why.unique_offered_rps)
    }),
    ("plan_unique_offered_reference_requests_per_second", "Its baseline.", |why| {
        why.unique_offered_reference_rps
    }),
    ("plan_admitted_requests_per_second", "Requests let in, as last judged.", |why| Some(why.admitted_rps)),
    ("plan_completed_requests_per_second", "Responses finished, as last judged.", |why| {
        Some(why.completed_rps)
    }),
];
