//! What is counted for each class of each service, and what the sentry of each service is doing.
//!
//! The label values are names from the configuration, never anything a client sent, and there are at most
//! [`CLASS_SLOTS`] pairs of them: a name keeps its slot for as long as the process lives, whatever reloads bring, and
//! once they are used up the rest shares the last, `(other)`: no name in a configuration has brackets.

use std::sync::{Mutex, MutexGuard, PoisonError};

use flashweir_admission::sentry::{ClassCounts, ClassPlan, Explanation, Plan};
use flashweir_core::Reason;
use flashweir_core::limits::CLASS_SLOTS;

use crate::counter::{Counter, CounterSet};

/// Names one class of one service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSlot(u8);

/// What one worker counts of one class.
#[derive(Debug, Default)]
pub struct ClassMetrics {
    /// Requests that arrived (offered), whatever became of them.
    pub offered: Counter,
    /// Requests let in (admitted).
    pub admitted: Counter,
    /// Requests that had to wait (held), whatever became of them.
    pub held: Counter,
    /// Requests whose client left while they waited.
    pub left: Counter,
    /// Requests refused, by reason (shed).
    pub shed: CounterSet<Reason>,
    /// What those refused, and those who left, would have taken at the origin, microseconds, as estimated.
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

    pub(crate) fn by_index(&self, index: usize) -> Option<&ClassMetrics> {
        self.0.get(index)
    }
}

/// What the control thread knows of all classes and services.
#[derive(Debug, Default)]
pub(crate) struct Sentries(Mutex<Known>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// A slot is a place in here.
    pub(crate) classes: Vec<KnownClass>,
    pub(crate) services: Vec<KnownService>,
}

/// One class, all gates together.
#[derive(Clone, Debug)]
pub(crate) struct KnownClass {
    pub(crate) service: String,
    pub(crate) class: String,
    pub(crate) completed: u64,
    pub(crate) good: u64,
    pub(crate) revenue: f64,
    pub(crate) in_flight: u32,
    pub(crate) held: u32,
    pub(crate) oldest_held_s: f64,
    pub(crate) limit: Option<u32>,
    pub(crate) service_time_s: Option<f64>,
}

/// One service's plan in force.
#[derive(Clone, Debug)]
pub(crate) struct KnownService {
    pub(crate) service: String,
    pub(crate) limit: u32,
    pub(crate) price: f64,
    pub(crate) explanation: Explanation,
}

/// What became of one class since the last time.
#[derive(Clone, Copy, Debug)]
pub struct ClassNews<'a> {
    /// Which one.
    pub slot: ClassSlot,
    /// Its counts, of all gates together.
    pub counts: &'a ClassCounts,
    /// What the plan says of it.
    pub plan: &'a ClassPlan,
    /// What its requests take, microseconds; 0 if unknown.
    pub usual_us: u32,
    /// What one is worth.
    pub revenue: f64,
}

impl Sentries {
    pub(crate) fn slot(&self, service: &str, class: &str) -> ClassSlot {
        let is_known = |known: &KnownClass| known.service == service && known.class == class;
        ClassSlot(place_of(&mut self.lock().classes, (service, class), is_known, KnownClass::new))
    }

    /// Takes over a service's plan, and its classes' counts.
    pub(crate) fn publish<'a>(
        &self,
        service: &str,
        plan: &Plan,
        classes: impl Iterator<Item = ClassNews<'a>>,
    ) {
        let mut known = self.lock();
        for news in classes {
            if let Some(class) = known.classes.get_mut(usize::from(news.slot.0)) {
                class.take(&news);
            }
        }
        let new = KnownService {
            service: service.to_owned(),
            limit: plan.limit,
            price: plan.price,
            explanation: plan.explanation,
        };
        match known.services.iter_mut().find(|known| known.service == service) {
            Some(before) => *before = new,
            None => known.services.push(new),
        }
    }

    /// Forgets the gauges of services that are gone.
    pub(crate) fn keep(&self, is_there: impl Fn(&str) -> bool) {
        self.lock().services.retain(|known| is_there(&known.service));
    }

    pub(crate) fn known(&self) -> Known {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Figures are replaced one by one: a writer that panicked leaves some that are older.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownClass {
    fn new(service: &str, class: &str) -> Self {
        Self {
            service: service.to_owned(),
            class: class.to_owned(),
            completed: 0,
            good: 0,
            revenue: 0.0,
            in_flight: 0,
            held: 0,
            oldest_held_s: 0.0,
            limit: None,
            service_time_s: None,
        }
    }

    fn take(&mut self, news: &ClassNews<'_>) {
        let ClassCounts { completed, good, in_flight, held, oldest_held_us, .. } = *news.counts;
        self.completed += completed;
        self.good += good;
        self.revenue += good as f64 * news.revenue;
        (self.in_flight, self.held) = (in_flight, held);
        self.oldest_held_s = oldest_held_us as f64 / 1e6;
        self.limit = Some(news.plan.limit);
        self.service_time_s = (news.usual_us > 0).then(|| f64::from(news.usual_us) / 1e6);
    }
}

/// The place of what is known, or of something new with these names of a service and a class; once there are
/// [`CLASS_SLOTS`], the last is everybody else's.
pub(crate) fn place_of<T>(
    all: &mut Vec<T>,
    names: (&str, &str),
    is_known: impl Fn(&T) -> bool,
    new: impl Fn(&str, &str) -> T,
) -> u8 {
    let place = all.iter().position(is_known).unwrap_or_else(|| {
        if all.len() < CLASS_SLOTS - 1 {
            all.push(new(names.0, names.1));
        } else if all.len() < CLASS_SLOTS {
            all.push(new(OTHER, OTHER));
        }
        all.len() - 1
    });
    const { assert!(CLASS_SLOTS <= u8::MAX as usize + 1) };
    place as u8
}

/// What classes beyond [`CLASS_SLOTS`] are called together.
const OTHER: &str = "(other)";
