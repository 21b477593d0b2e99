//! Counts of each class of each service.

use std::sync::Arc;

use flashweir_admission::sentry::{ClassCounts, ClassPlan};
use flashweir_core::Reason;
use flashweir_core::limits::CLASS_SLOTS;

use super::ControlMetrics;
use super::WorkerMetrics;
use crate::by_class::{ByClass, CLASS};
use crate::counter::{Counter, CounterSet};
use crate::group::{MetricGroup, Row, Scrape};

/// Names one class of one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSlot(u8);

/// Counts of one worker for one class.
#[derive(Debug, Default)]
pub struct ClassMetrics {
    /// Requests that arrived (offered), with any outcome.
    pub offered: Counter,
    /// Requests let in (admitted).
    pub admitted: Counter,
    /// Requests that had to wait (held), with any outcome.
    pub held: Counter,
    /// Requests whose client left while they waited.
    pub left: Counter,
    /// Requests refused, by reason (shed).
    pub shed: CounterSet<Reason>,
    /// Time at the origin that refused requests, and those whose client left, would have taken, microseconds,
    /// as estimated.
    pub unmet_us: Counter,
    /// Requests that shadow mode let in although the sentry would have refused them.
    pub shadow_shed: Counter,
}

/// One worker's classes.
#[derive(Debug)]
pub struct ClassTable(Box<[ClassMetrics]>);

impl Default for ClassTable {
    fn default() -> Self {
        Self((0..CLASS_SLOTS).map(|_| ClassMetrics::default()).collect())
    }
}

impl ClassTable {
    /// The counters of this class.
    #[must_use]
    pub fn of(&self, slot: ClassSlot) -> &ClassMetrics {
        &self.0[usize::from(slot.0)]
    }
}

/// Figures of the control thread about one class, all gates together.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassFigures {
    completed: u64,
    good: u64,
    revenue: f64,
    in_flight: u32,
    held: u32,
    oldest_held_s: f64,
    queue_stands: bool,
    limit: Option<u32>,
    service_time_s: Option<f64>,
}

/// Counts and plan of one class since the last time.
#[derive(Clone, Copy, Debug)]
pub struct ClassNews<'a> {
    /// Slot of the class.
    pub slot: ClassSlot,
    /// Its counts, of all gates together.
    pub counts: &'a ClassCounts,
    /// The class in the plan.
    pub plan: &'a ClassPlan,
    /// Usual time of its requests, microseconds; 0 if unknown.
    pub usual_us: u32,
    /// Revenue of one request.
    pub revenue: f64,
    /// True if its queue stands: it is kept short, because it evens out nothing.
    pub queue_stands: bool,
}

impl ControlMetrics {
    /// Slot of the counters of this class of this service. Names from a configuration; the same names give
    /// the same slot.
    pub fn class_slot(&self, service: &str, class: &str) -> ClassSlot {
        ClassSlot(self.classes.slot(service, class))
    }

    pub(super) fn publish_class(&self, news: &ClassNews<'_>) {
        let ClassCounts { completed, good, in_flight, held, oldest_held_us, .. } = *news.counts;
        self.classes.change(news.slot.0, |class| {
            class.completed += completed;
            class.good += good;
            class.revenue += good as f64 * news.revenue;
            (class.in_flight, class.held) = (in_flight, held);
            class.oldest_held_s = oldest_held_us as f64 / 1e6;
            class.queue_stands = news.queue_stands;
            class.limit = Some(news.plan.limit);
            class.service_time_s = (news.usual_us > 0).then(|| f64::from(news.usual_us) / 1e6);
        });
    }
}

/// The workers' counts of the classes, by the names that the control thread knows.
#[derive(Debug)]
pub(crate) struct ClassGroup {
    pub(crate) workers: Arc<[Arc<WorkerMetrics>]>,
    pub(crate) classes: Arc<ByClass<ClassFigures>>,
}

impl MetricGroup for ClassGroup {
    fn title(&self) -> &'static str {
        "Classes"
    }

    fn export(&self, scrape: &mut Scrape) {
        let known = self.classes.known();
        for &(name, help, count) in COUNTED {
            let of = |slot: usize| self.sum(slot, count) as f64;
            let series = known.iter().enumerate().map(|(slot, class)| (class.labels(), of(slot)));
            scrape.counter_series(name, help, CLASS, series);
        }
        let unmet_s = |slot: usize| self.sum(slot, |c| c.unmet_us.value()) as f64 / 1e6;
        let unmet = known.iter().enumerate().map(|(slot, class)| (class.labels(), unmet_s(slot)));
        let help =
            "What the demand not met would have taken at the origin, as estimated: for who adds servers.";
        scrape.counter_series("class_unmet_server_seconds", help, CLASS, unmet);
        let shed = known.iter().enumerate().flat_map(|(slot, class)| {
            Reason::ALL.map(|reason| {
                (class.labels_and(reason.as_str()), self.sum(slot, |c| c.shed.value(reason)) as f64)
            })
        });
        let help = "Requests refused, by class and by the limit that was met.";
        scrape.counter_series("class_shed", help, &["service", "class", "reason"], shed);
        for &(name, help, value) in ENDED {
            scrape.counter_series(name, help, CLASS, known.iter().map(|c| (c.labels(), value(&c.figures))));
        }
        for &(name, help, value) in GAUGES {
            let series = known.iter().filter_map(|class| Some((class.labels(), value(&class.figures)?)));
            scrape.gauge_series(name, help, CLASS, series);
        }
    }
}

impl ClassGroup {
    fn sum(&self, slot: usize, count: impl Fn(&ClassMetrics) -> u64) -> u64 {
        self.workers.iter().filter_map(|worker| worker.classes.0.get(slot)).map(count).sum()
    }
}

const COUNTED: &[Row<ClassMetrics, u64>] = &[
    ("class_offered", "Requests that arrived, by class.", |c| c.offered.value()),
    ("class_admitted", "Requests let in, by class.", |c| c.admitted.value()),
    ("class_held", "Requests that had to wait for room, by class.", |c| c.held.value()),
    ("class_left", "Requests whose client left while they waited, by class.", |c| c.left.value()),
    ("class_shadow_shed", "Requests the sentry would have refused but for shadow mode, by class.", |c| {
        c.shadow_shed.value()
    }),
    ("class_unmet", "Requests refused, or given up while waiting: demand not met.", |c| {
        c.shed.total() + c.left.value()
    }),
];

const ENDED: &[Row<ClassFigures, f64>] = &[
    ("class_completed", "Answers that came from the origin to their end, by class.", |c| c.completed as f64),
    ("class_good", "Answers that came to their end within the class's target (goodput), by class.", |c| {
        c.good as f64
    }),
    ("class_revenue", "What the good ones were worth, by class.", |c| c.revenue),
];

const GAUGES: &[Row<ClassFigures, Option<f64>>] = &[
    ("class_in_flight", "Requests at the origin, by class.", |c| Some(c.in_flight.into())),
    ("class_waiting", "Requests that wait for room, by class.", |c| Some(c.held.into())),
    ("class_waiting_oldest_seconds", "How long the oldest has waited, by class.", |c| Some(c.oldest_held_s)),
    ("class_queue_stands", "1 while the queue is kept short, because it was never empty in a crowd.", |c| {
        Some(u8::from(c.queue_stands).into())
    }),
    (
        "class_limit",
        "Requests at the origin, of all classes, below which one of this class is let in.",
        |c| c.limit.map(f64::from),
    ),
    (
        "class_service_time_seconds",
        "What a request takes at the origin when it is alone, as estimated, by class.",
        |c| c.service_time_s,
    ),
];
