//! A service of a worker's pipeline: its sentry and its candidate, with the plans in force.

use crate::feedback::{Hearing, Orders};
use crate::sentry::{Basis, Candidate, Sentry};
use arc_swap::{ArcSwap, Cache};
use flashweir_admission::pipeline::ServiceKey;
use flashweir_admission::sentry::Plan;
use flashweir_core::{Duration, Instant};
use flashweir_telemetry::ClassSlot;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

/// A service of the pipeline.
pub(super) struct Hosted {
    pub(super) key: ServiceKey,
    pub(super) name: String,
    /// Slots of the counters of its classes.
    pub(super) slots: Box<[ClassSlot]>,
    pub(super) sentry: Option<HostedSentry>,
    pub(super) candidate: Option<HostedCandidate>,
    pub(super) is_current: bool,
    /// It takes no requests any more, even if a later configuration has a service of the same name.
    pub(super) is_retired: bool,
}

pub(super) struct HostedSentry {
    pub(super) sentry: Arc<Sentry>,
    pub(super) latest: Cache<Arc<ArcSwap<Plan>>, Arc<Plan>>,
    /// Plan that the pipeline has taken over.
    pub(super) plan: Arc<Plan>,
    /// Grounds of its refusals, made for the first of them.
    basis: OnceCell<Rc<Basis>>,
    pub(super) latest_orders: Cache<Arc<ArcSwap<Orders>>, Arc<Orders>>,
    /// Orders that the pipeline has taken over.
    pub(super) orders: Arc<Orders>,
    pub(super) hearing: Hearing,
    /// Time at which the attendant looks again by itself.
    pub(super) looks_at: Cell<Option<Instant>>,
    /// Time of its last report, and the worker's busy time by then.
    busy: Cell<(Instant, Duration)>,
}

pub(super) struct HostedCandidate {
    pub(super) candidate: Arc<Candidate>,
    pub(super) latest: Cache<Arc<ArcSwap<Plan>>, Arc<Plan>>,
    pub(super) basis: Rc<Basis>,
}

impl HostedSentry {
    /// By the plan that the pipeline begins with.
    pub(super) fn new(sentry: &Arc<Sentry>, plan: &Arc<Plan>) -> Self {
        Self {
            latest: Cache::new(sentry.plan.clone()),
            plan: plan.clone(),
            basis: OnceCell::new(),
            latest_orders: Cache::new(sentry.orders.clone()),
            orders: Arc::default(),
            hearing: Hearing::default(),
            sentry: sentry.clone(),
            looks_at: Cell::new(None),
            busy: Cell::new((Instant::ZERO, Duration::ZERO)),
        }
    }

    /// The pipeline has taken over another plan.
    pub(super) fn follows(&mut self, plan: Arc<Plan>) {
        (self.plan, self.basis) = (plan, OnceCell::new());
    }

    /// Grounds of a refusal by the plan in force.
    pub(super) fn basis(&self) -> Rc<Basis> {
        self.basis.get_or_init(|| Rc::new(Basis::of(&self.sentry, &self.plan))).clone()
    }

    /// Utilisation of the worker since the last report, thousandths; `busy` is its busy time since it
    /// started. It decides in the same thread in which it does everything else.
    pub(super) fn deciding_milli(&self, now: Instant, busy: Duration) -> u32 {
        let (before, busy_before) = self.busy.replace((now, busy));
        let span_us = now.saturating_since(before).as_micros();
        if span_us == 0 || before == Instant::ZERO {
            return 0;
        }
        // At most 1,000, so it fits.
        (busy.saturating_sub(busy_before).as_micros() * 1_000 / span_us).min(1_000) as u32
    }
}
