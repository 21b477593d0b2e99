//! Calm: while the evidence says that the origin is short of nothing, the limit does not fall, and it rises
//! as requests show that it may.
//!
//! [`flashweir_limit`] compares completions with those that the requests in flight lead to expect at an
//! origin that is not busy, for any service times, and says which URL classes are long: see its first page.
//! It knows nothing of a crowd that found the origin cold: then, and wherever the origin may be short, the
//! limit is [`model`](super::model)'s. Cost and memory: of its tick.

use super::learning::Rules;
use super::long::LongRequests;
use super::measured::Measured;
use super::sample::Sample;
use alloc::boxed::Box;
use flashweir_core::Duration;
use flashweir_core::measure::histogram::bucket_middle;
use flashweir_limit::{Learned, Learner, Numbers, Tick};

/// Evidence of one service.
#[derive(Debug)]
pub(super) struct Calm {
    learner: Box<Learner>,
    long: LongRequests,
    rules: Rules,
}

impl Calm {
    pub(super) fn new(numbers: Numbers, rules: Rules) -> Self {
        Self { learner: Box::new(Learner::new(numbers)), long: LongRequests::default(), rules }
    }

    /// Requests that hold no place.
    pub(super) fn long(&self) -> &LongRequests {
        &self.long
    }

    /// Returns true if nothing speaks for refusing requests.
    pub(super) fn is_calm(&self) -> bool {
        self.rules.calm && self.learner.learned().is_calm
    }

    /// Takes the limit in force.
    pub(super) fn follow(&mut self, limit: u32) {
        self.learner.follow(limit);
    }

    /// Takes a sample; returns the limit that nothing speaks against, 1 where the origin may be short.
    pub(super) fn limit_least(&mut self, sample: &Sample, measured: &Measured, target_s: f64) -> u32 {
        let limit = self.learner.learned().limit;
        let learned = self.learner.tick(&Tick {
            span_s: measured.span_s,
            target_s,
            in_flight: in_flight_seen(sample),
            exempt: sample.long.in_flight,
            rows: &sample.rows,
            is_waiting: measured.waiting_s > 0.0 || measured.shed > 0.0,
            offered: sample.classes.iter().map(|class| class.unique_offered as f64).sum(),
            refused: measured.shed,
            failed: (measured.failed - measured.left_late).max(0.0),
        });
        if self.rules.long {
            self.take_long(&learned);
        }
        if self.is_calm() { learned.limit.max(limit) } else { 1 }
    }

    fn take_long(&mut self, learned: &Learned) {
        self.long.url_classes.clear();
        let classes = self.learner.exempt_classes().filter_map(|class| u16::try_from(class).ok());
        self.long.url_classes.extend(classes);
        self.long.url_classes.sort_unstable();
        self.long.limit = learned.exempt_limit;
        self.long.release_after = learned.exempt_after_s.map_or(Duration::ZERO, Duration::from_secs_f64);
    }
}

/// Requests in flight as these see it: ∫ n² dt / ∫ n dt.
fn in_flight_seen(sample: &Sample) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for level in &sample.levels {
        let weight = level.in_flight_nanos as f64;
        sum += weight * bucket_middle(level.level) as f64;
        weights += weight;
    }
    if weights > 0.0 { sum / weights } else { 0.0 }
}
