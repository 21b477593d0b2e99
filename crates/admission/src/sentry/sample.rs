//! Samples from the gate to the planner: counts, integrals over time and distributions.

use super::rows::{ROWS_MAX, compact};
use super::service_times::SERVICE_TIMES;
use crate::Flow;
use alloc::vec::Vec;
use flashweir_core::Instant;
use flashweir_core::measure::Histogram;
use flashweir_limit::Row;

/// Measurements of the gate between two drains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Start of the interval measured.
    pub from: Instant,
    /// End of the interval measured.
    pub to: Instant,
    /// Outcomes of the requests, as the pipeline charges them.
    pub flow: Flow,
    /// Requests that arrived (offered).
    pub offered: u64,
    /// Requests that were sent to the origin (admitted), whether at once or after waiting.
    pub admitted: u64,
    /// Answers of the origin that came to their end (completed).
    pub completed: u64,
    /// Requests that left the origin without such an answer; not those whose clients left while they were
    /// [paused](super::SentryGate::pause).
    pub failed: u64,
    /// Of these, requests whose clients left after the target: they tell that the origin is slow, not that it
    /// refuses.
    pub left_late: u64,
    /// Requests refused, at once or after waiting.
    pub shed: u64,
    /// Requests in flight at the end of the interval.
    pub in_flight: u32,
    /// Of the requests, those that hold no place: see [`LongRequests`](super::LongRequests).
    pub long: LongCounts,
    /// Requests held at the end of the interval.
    pub held: u32,
    /// Utilisation in the interval of the processor that decides, thousandths; of several, the busiest.
    /// `Policing::Auto` goes by it.
    pub deciding_milli: u32,
    /// Requests that hold a place, integrated over the interval, request-nanoseconds.
    pub in_flight_nanos: u64,
    /// Time during which a request waited for room at the origin, nanoseconds.
    pub waiting_nanos: u64,
    /// From admission to the end of the answer, microseconds, of the completed.
    pub latency_us: Histogram,
    /// Time for which those in flight have been in flight, microseconds.
    pub age_us: Histogram,
    /// By class, in the policy's order.
    pub classes: Vec<ClassCounts>,
    /// The completed by URL class, at most [`URL_CLASSES`](flashweir_core::limits::URL_CLASSES).
    pub urls: Vec<UrlSum>,
    /// Time and completions by number in flight, at most
    /// [`BUCKETS`](flashweir_core::measure::histogram::BUCKETS).
    pub levels: Vec<LevelSum>,
    /// Requests that ended, and requests in flight at the end of the interval, by URL class and time; the
    /// long ones too.
    pub rows: Vec<Row>,
}

/// Rows of one gate's sample, at most.
pub const ROWS: usize = ROWS_MAX;

/// Requests that hold no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongCounts {
    /// In flight at the end of the interval.
    pub in_flight: u32,
    /// Answers of the origin that came to their end.
    pub completed: u64,
}

/// Outcomes of the requests of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Requests that arrived at the door (offered), those included that other stages refused.
    pub offered: u64,
    /// Of these, attempts: retries after a refusal are left out (unique offered).
    pub unique_offered: u64,
    /// Requests that were sent to the origin (admitted), at once or after waiting.
    pub admitted: u64,
    /// Requests that another stage refused.
    pub shed_elsewhere: u64,
    /// Requests refused (shed), at once or after waiting.
    pub shed: u64,
    /// Of these, refused by a threshold's share or a round's test, whether or not there was room.
    pub shed_by_test: u64,
    /// Of these, refused because their clients are over their share.
    pub shed_over_share: u64,
    /// Within the guaranteed rate, and no room even so: those waited, or were refused.
    pub without_room: u64,
    /// Clients that went while they waited. Offered are the admitted, the shed here or elsewhere, those who
    /// left and those who wait.
    pub left: u64,
    /// Answers of the origin that came to their end (completed).
    pub completed: u64,
    /// The completed within the class's target, from the request's arrival (goodput).
    pub good: u64,
    /// Service times of the completed, added up, microseconds: as the origin measured them, else by even
    /// sharing.
    pub service_us: u64,
    /// Completed requests by service time, in buckets that end at 1 ms · 1.5ʲ; the last holds all longer
    /// ones.
    pub services: [u32; SERVICE_TIMES],
    /// Estimated service times of the offered, added up, microseconds.
    pub offered_cost_us: u64,
    /// Estimated service times of the refused, added up, microseconds.
    pub shed_cost_us: u64,
    /// Requests that wait, at the end of the interval.
    pub held: u32,
    /// Requests in flight, at the end of the interval.
    pub in_flight: u32,
    /// Wait of the oldest that waits, microseconds, at the end of the interval.
    pub oldest_held_us: u64,
}

/// Completed requests of one URL class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UrlSum {
    /// A hash of method and path, modulo the number of URL classes.
    pub url_class: u16,
    /// Number of completed requests.
    pub count: u32,
    /// Their latencies added up, microseconds.
    pub latency_us: u64,
    /// The squares of their latencies, added up, microseconds squared.
    pub latency_us_squared: u64,
    /// Their service times if the origin shares itself evenly among those in flight, added up, microseconds:
    /// each moment counts as much as the origin can give to one.
    pub shared_us: u64,
    /// Number of them with a service time measured by the origin itself, and those times added up,
    /// microseconds.
    pub measured_count: u32,
    /// See there.
    pub measured_us: u64,
}

/// Traffic while this number of requests was in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelSum {
    /// The bucket of the number in flight, by [`index`](flashweir_core::measure::histogram::index).
    pub level: u16,
    /// For how long.
    pub nanos: u64,
    /// Requests in flight, integrated over that time, request-nanoseconds.
    pub in_flight_nanos: u64,
    /// Completions.
    pub completed: u64,
}

impl Sample {
    /// Adds what another gate of the same service measured over the same time.
    pub fn merge(&mut self, other: &Self) {
        if self.to == Instant::ZERO {
            *self = other.clone();
            return;
        }
        self.from = self.from.min(other.from);
        self.to = self.to.max(other.to);
        self.flow.add(&other.flow);
        self.offered += other.offered;
        self.admitted += other.admitted;
        self.completed += other.completed;
        self.failed += other.failed;
        self.left_late += other.left_late;
        self.shed += other.shed;
        self.in_flight += other.in_flight;
        self.long.in_flight += other.long.in_flight;
        self.long.completed += other.long.completed;
        self.held += other.held;
        self.deciding_milli = self.deciding_milli.max(other.deciding_milli);
        self.in_flight_nanos = self.in_flight_nanos.saturating_add(other.in_flight_nanos);
        // Whether a request waited is asked, not how many.
        self.waiting_nanos = self.waiting_nanos.max(other.waiting_nanos);
        self.latency_us.add(&other.latency_us);
        self.age_us.add(&other.age_us);
        self.classes.resize(self.classes.len().max(other.classes.len()), ClassCounts::default());
        self.classes.iter_mut().zip(&other.classes).for_each(|(mine, theirs)| mine.add(theirs));
        self.urls.extend_from_slice(&other.urls);
        self.levels.extend_from_slice(&other.levels);
        self.rows.extend_from_slice(&other.rows);
    }
}

impl Sample {
    /// Adds what the same gate measured next: counts are added, levels are those of the later time.
    pub fn append(&mut self, later: &Self) {
        let waiting_nanos = self.waiting_nanos.saturating_add(later.waiting_nanos);
        (self.in_flight, self.long.in_flight, self.held) = (0, 0, 0);
        self.rows.iter_mut().for_each(|row| row.in_flight = 0);
        self.age_us = Histogram::new();
        for class in &mut self.classes {
            (class.held, class.in_flight, class.oldest_held_us) = (0, 0, 0);
        }
        self.merge(later);
        self.waiting_nanos = waiting_nanos;
    }

    /// Adds up the entries of each URL class and of each level, so that there are no more than there are
    /// classes and levels.
    pub fn compact(&mut self) {
        compact(&mut self.rows);
        self.urls.sort_unstable_by_key(|sum| sum.url_class);
        self.urls.dedup_by(|next, kept| {
            let is_same = next.url_class == kept.url_class;
            if is_same {
                kept.add(next);
            }
            is_same
        });
        self.levels.sort_unstable_by_key(|sum| sum.level);
        self.levels.dedup_by(|next, kept| {
            let is_same = next.level == kept.level;
            if is_same {
                kept.nanos = kept.nanos.saturating_add(next.nanos);
                kept.in_flight_nanos = kept.in_flight_nanos.saturating_add(next.in_flight_nanos);
                kept.completed = kept.completed.saturating_add(next.completed);
            }
            is_same
        });
    }
}

impl UrlSum {
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.latency_us = self.latency_us.saturating_add(other.latency_us);
        self.latency_us_squared = self.latency_us_squared.saturating_add(other.latency_us_squared);
        self.shared_us = self.shared_us.saturating_add(other.shared_us);
        self.measured_count = self.measured_count.saturating_add(other.measured_count);
        self.measured_us = self.measured_us.saturating_add(other.measured_us);
    }
}

impl crate::Sample for Sample {
    fn flow(&self) -> Flow {
        self.flow
    }
}

impl ClassCounts {
    /// Adds what another gate, or the same one later, counted; of levels the sum, so not for two times of one
    /// gate.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.unique_offered += other.unique_offered;
        self.admitted += other.admitted;
        self.shed_elsewhere += other.shed_elsewhere;
        self.shed += other.shed;
        self.shed_by_test += other.shed_by_test;
        self.shed_over_share += other.shed_over_share;
        self.without_room += other.without_room;
        self.left += other.left;
        self.completed += other.completed;
        self.good += other.good;
        self.service_us = self.service_us.saturating_add(other.service_us);
        for (mine, theirs) in self.services.iter_mut().zip(other.services) {
            *mine = mine.saturating_add(theirs);
        }
        self.offered_cost_us += other.offered_cost_us;
        self.shed_cost_us += other.shed_cost_us;
        self.held += other.held;
        self.in_flight += other.in_flight;
        self.oldest_held_us = self.oldest_held_us.max(other.oldest_held_us);
    }
}
