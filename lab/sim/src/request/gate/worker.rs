//! One of the gateway's workers: its pipeline, and when it next looks after those who wait.

use crate::request::slab::Id;
use flashweir_admission::pipeline::{
    FlashCrowdOptions, Pipeline, ServiceKey, ServiceSettings, SharedByWorkers,
};
use flashweir_admission::sentry::Plan;
use flashweir_core::{Duration, Instant, Rng};

/// A worker with its pipeline.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) pipeline: Pipeline<Waiting>,
    /// The one service that there is.
    pub(super) service: ServiceKey,
    /// True if [`Pipeline::next`] is to be asked until there is none.
    pub(super) looks: bool,
    /// True if there may be room that another worker needs, once no request here takes it.
    pub(super) offers_room: bool,
    /// Time at which the earliest pending notification reaches it.
    notified_at: Option<Instant>,
    /// The earliest call that is on its way.
    call_at: Option<Instant>,
    /// Time of its last call, and number of calls at that moment.
    called: (Instant, u32),
}

/// A try that waits, and its class in the scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) attempt: Id,
    pub(super) class: u16,
    pub(super) person_key: u64,
}

impl Worker {
    pub(super) fn new(
        index: usize,
        shared: &SharedByWorkers,
        (in_flight_max, flash_crowd): (usize, FlashCrowdOptions),
        service: ServiceSettings<'_>,
    ) -> Self {
        let mut pipeline = Pipeline::new(index, shared);
        pipeline.configure(in_flight_max, flash_crowd);
        let service = pipeline.add_service(service);
        Self {
            pipeline,
            service,
            looks: false,
            offers_room: false,
            notified_at: None,
            call_at: None,
            called: (Instant::ZERO, 0),
        }
    }

    /// Another worker, or the planner, says that there is something to look at.
    pub(super) fn tell(&mut self, now: Instant, crossings: &mut Rng) {
        let at = now + Duration::from_nanos(1 + crossings.below(CROSSING_MOST_NANOS));
        self.notified_at = Some(self.notified_at.map_or(at, |notified_at| notified_at.min(at)));
    }

    /// Handles a call: applies the plan, and looks.
    pub(super) fn hear(&mut self, now: Instant, plan: &Plan) {
        if self.call_at.is_some_and(|pending| pending <= now) {
            self.call_at = None;
        }
        let (last, count) = self.called;
        self.called = (now, if last == now { count + 1 } else { 1 });
        self.pipeline.apply_sentry(self.service, plan);
        self.look();
    }

    /// Room has become free, or may have.
    pub(super) fn look(&mut self) {
        self.looks = true;
        self.offers_room = true;
    }

    /// Time of its next call, if no call that comes as early is on its way.
    pub(super) fn next_call(&mut self, now: Instant) -> Option<Instant> {
        let due =
            self.notified_at.take().into_iter().chain(self.pipeline.next_wake(self.service)).min()?.max(now);
        if self.call_at.is_some_and(|pending| pending <= due) {
            return None;
        }
        self.call_at = Some(due);
        Some(due)
    }

    /// Returns true if the gate asks to be called again and again without time going by.
    pub(super) fn spins(&self) -> bool {
        self.called.1 > CALLS_AT_ONCE_MOST
    }

    /// Returns true if it looks now, or is about to hear something.
    pub(super) fn is_awaited(&self, now: Instant) -> bool {
        let soon = now + Duration::from_nanos(CROSSING_MOST_NANOS);
        self.looks || self.notified_at.is_some() || self.call_at.is_some_and(|at| at <= soon)
    }
}

/// Maximum number of calls at one moment that may have a reason: a notification, an expired queue timeout, a
/// batch round.
const CALLS_AT_ONCE_MOST: u32 = 1_000;
/// Maximum delay of a notification: a busy worker first finishes its current work.
const CROSSING_MOST_NANOS: u64 = 200_000;
