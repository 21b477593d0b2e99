//! Requests in flight, counted where they begin and end: whole numbers only, nothing allocated but what its
//! tables grow by.
//!
//! Per begin or end: one integral, one counter by level, one entry of those present, one counter by URL
//! class, one by class.
//!
//! *Long requests* hold no place: those of classes that the plan calls long, and those that are in flight for
//! longer than the plan's [`release_after`](super::long::LongRequests::release_after). They are in no number
//! that the limit is learned from but [`Sample::rows`].
//!
//! *Service times under load.* An origin that shares itself evenly gives each of n requests min(1, knee/n) of
//! a server. A clock that runs at that speed says by how much a request has been served: what it shows at the
//! end, less what it showed at the start, is the request's own service time (for processor sharing exactly
//! so, for any arrivals and departures meanwhile). While few are in flight it is plain time. While the knee
//! is unknown, too.

use super::common::Common;
use super::long::LongRequests;
use super::plan::Plan;
use super::request::{Ending, Position, SentryRequest};
use super::rows::Ended;
use super::sample::{ClassCounts, LevelSum, Sample, UrlSum};
use super::service_times::lane_of_cost;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::limits::{SENTRY_IN_FLIGHT, URL_CLASSES};
use flashweir_core::measure::histogram::{BUCKETS, Recorder, index};
use flashweir_core::{Duration, Instant};
use slab::Slab;

/// One admitted request; goes back to [`SentryGate::end`](super::SentryGate::end) of the gate that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// Arrival of the request at the gate, moved on by as long as it was paused.
    arrived: Instant,
    /// Time at which it was sent to the origin, moved on likewise.
    started: Instant,
    /// Its entry among those present.
    present: u32,
    /// Reading of the service clock at the start, nanoseconds, moved on likewise.
    served_nanos: u64,
    pub(super) request: SentryRequest,
}

/// One admitted request that the origin cannot go on with: its client is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paused {
    /// As it was given back.
    permit: Permit,
    since: Instant,
    /// By how much it had been served, nanoseconds.
    served_nanos: u64,
    is_long: bool,
}

impl Paused {
    /// Returns true if it holds no place when it goes on.
    pub(super) fn is_long(&self) -> bool {
        self.is_long
    }
}

/// One request in flight at this gate.
#[derive(Clone, Copy, Debug)]
struct Present {
    started: Instant,
    url_class: u16,
    /// It holds no place.
    is_long: bool,
}

/// The count with everything that is measured by it.
#[derive(Debug)]
pub(super) struct InFlight {
    common: Arc<Common>,
    /// Requests of this gate that hold a place, and that hold none.
    count: u32,
    long: u32,
    /// Until when the integrals are done.
    updated: Instant,
    is_waiting: bool,
    /// The clock of service.
    served_nanos: u64,
    present: Slab<Present>,
    /// Response target where neither class nor ladder has another.
    target: Duration,
    ended: Ended,
    levels: Vec<LevelSum>,
    urls: Vec<UrlSum>,
    /// Levels and URL classes that have a sum, at most all: a drain visits these alone.
    levels_used: Vec<u16>,
    urls_used: Vec<u16>,
    classes: Vec<ClassCounts>,
    latency_us: Recorder,
    /// Used by a drain only.
    age_us: Recorder,
    sample: Sample,
}

impl InFlight {
    /// Without any request.
    pub(super) fn new(common: Arc<Common>, classes: usize, target: Duration) -> Self {
        Self {
            common,
            count: 0,
            long: 0,
            updated: Instant::ZERO,
            is_waiting: false,
            served_nanos: 0,
            present: Slab::with_capacity(PRESENT_AT_FIRST),
            target,
            ended: Ended::new(),
            levels: vec![LevelSum::default(); BUCKETS],
            urls: vec![UrlSum::default(); URL_CLASSES],
            levels_used: Vec::new(),
            urls_used: Vec::new(),
            classes: vec![ClassCounts::default(); classes],
            latency_us: Recorder::default(),
            age_us: Recorder::default(),
            sample: Sample::default(),
        }
    }

    /// Counts of a class since the last drain; the gate adds its decisions.
    pub(super) fn class(&mut self, class: usize) -> &mut ClassCounts {
        &mut self.classes[class]
    }

    /// Takes a place in flight, if fewer than `limit` are taken, from all gates together.
    pub(super) fn take(&mut self, now: Instant, plan: &Plan, limit: u32) -> bool {
        self.advance(now, plan.knee_milli);
        self.common.take(limit)
    }

    /// Counts a long request, if fewer than `limit` are in flight, from all gates together.
    pub(super) fn take_long(&mut self, now: Instant, plan: &Plan, limit: u32) -> bool {
        self.advance(now, plan.knee_milli);
        self.common.take_long(limit)
    }

    /// One that arrived at `arrived` is sent to the origin, with a place that was [taken](Self::take), or as
    /// a long one.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        arrived: Instant,
        request: SentryRequest,
        is_long: bool,
    ) -> Permit {
        let present = self.enter(now, request, is_long);
        self.classes[usize::from(request.class)].admitted += 1;
        Permit { arrived, started: now, present, served_nanos: self.served_nanos, request }
    }

    /// One is over.
    pub(super) fn end(&mut self, now: Instant, plan: &Plan, permit: Permit, ending: Ending) {
        self.advance(now, plan.knee_milli);
        let level = usize::from(index(self.common.at_origin().into()));
        let is_long = self.leave(&permit);
        let took = now.saturating_since(permit.started);
        if self.ended.add(url_index(permit.request) as u16, took, ending.completed) {
            self.common.count_merged_rows();
        }
        let target = plan.classes[usize::from(permit.request.class)].target;
        if is_long {
            let class = &mut self.classes[usize::from(permit.request.class)];
            class.completed += u64::from(ending.completed);
            class.good += u64::from(ending.completed && now.saturating_since(permit.arrived) <= target);
            self.sample.long.completed += u64::from(ending.completed);
            return;
        }
        if !ending.completed {
            // An early client abort is not an origin failure; an abort after the target shows that the origin
            // is slow.
            let in_vain = now.saturating_since(permit.started) > target;
            self.sample.failed += u64::from(!ending.withdrawn || in_vain);
            self.sample.left_late += u64::from(ending.withdrawn && in_vain);
            return;
        }
        let class = &mut self.classes[usize::from(permit.request.class)];
        class.completed += 1;
        class.good += u64::from(now.saturating_since(permit.arrived) <= target);
        self.levels[level].completed += 1;
        let latency_us = micros(now.saturating_since(permit.started));
        // The target is promised to those within their share.
        if permit.request.position < Position::OverShare {
            self.latency_us.record(latency_us);
        }
        let shared_us = self.served_nanos.wrapping_sub(permit.served_nanos) / 1_000;
        let service_us = ending.measured_us.map_or(shared_us, u64::from);
        class.service_us = class.service_us.saturating_add(service_us);
        let lane = lane_of_cost(u32::try_from(service_us).unwrap_or(u32::MAX));
        class.services[lane] = class.services[lane].saturating_add(1);
        let url_class = url_index(permit.request);
        let url = &mut self.urls[url_class];
        if url.count == 0 {
            self.urls_used.push(url_class as u16);
        }
        url.count = url.count.saturating_add(1);
        url.latency_us = url.latency_us.saturating_add(latency_us);
        url.latency_us_squared = url.latency_us_squared.saturating_add(latency_us.saturating_mul(latency_us));
        url.shared_us = url.shared_us.saturating_add(shared_us);
        if let Some(measured_us) = ending.measured_us {
            url.measured_count = url.measured_count.saturating_add(1);
            url.measured_us = url.measured_us.saturating_add(measured_us.into());
        }
    }

    /// One gives its place back without being over.
    pub(super) fn pause(&mut self, now: Instant, plan: &Plan, permit: Permit) -> Paused {
        self.advance(now, plan.knee_milli);
        let is_long = self.leave(&permit);
        let served_nanos = self.served_nanos.wrapping_sub(permit.served_nanos);
        Paused { permit, since: now, served_nanos, is_long }
    }

    /// One that was paused goes on, with a place that was [taken](Self::take) unless it is long. Nothing that
    /// is measured of it counts the time in between.
    pub(super) fn resume(&mut self, now: Instant, paused: Paused) -> Permit {
        let Paused { permit, since, served_nanos, is_long } = paused;
        let away = now.saturating_since(since);
        let started = permit.started + away;
        Permit {
            arrived: permit.arrived + away,
            started,
            present: self.enter(started, permit.request, is_long),
            served_nanos: self.served_nanos.wrapping_sub(served_nanos),
            request: permit.request,
        }
    }

    /// From now on a request waits for room, or none does.
    pub(super) fn set_waiting(&mut self, now: Instant, plan: &Plan, is_waiting: bool) {
        if self.is_waiting != is_waiting {
            self.advance(now, plan.knee_milli);
            self.is_waiting = is_waiting;
        }
    }

    /// Hands over what was measured since the last drain. O(levels and URL classes in use + requests in
    /// flight · log).
    pub(super) fn drain(&mut self, now: Instant, plan: &Plan) -> Sample {
        self.advance(now, plan.knee_milli);
        self.release(now, &plan.long);
        let mut sample = core::mem::replace(&mut self.sample, Sample { from: now, ..Sample::default() });
        sample.to = now;
        sample.in_flight = self.count + self.long;
        sample.long.in_flight = self.long;
        sample.classes.reserve_exact(self.classes.len());
        for class in &mut self.classes {
            sample.offered += class.offered;
            sample.admitted += class.admitted;
            sample.completed += class.completed;
            sample.shed += class.shed;
            sample.classes.push(*class);
            *class = ClassCounts { in_flight: class.in_flight, ..ClassCounts::default() };
        }
        let slot_nanos = ((self.target * AGES_REACH_TARGETS).as_nanos() as u64 / AGE_SLOTS).max(1);
        for (_, present) in self.present.iter().filter(|(_, present)| !present.is_long) {
            let started = present.started.as_nanos() / slot_nanos * slot_nanos;
            let age_nanos = now.as_nanos().saturating_sub(started);
            self.age_us.record(age_nanos.min(slot_nanos * AGE_SLOTS) / 1_000);
        }
        (sample.latency_us, sample.age_us) = (self.latency_us.drain(), self.age_us.drain());
        let present = self.present.iter().map(|(_, present)| (present.url_class, present.started));
        let (rows, is_merged) = self.ended.drain(now, present);
        sample.rows = rows;
        if is_merged {
            self.common.count_merged_rows();
        }
        self.levels_used.sort_unstable();
        let levels = &mut self.levels;
        let taken = |level| LevelSum { level, ..core::mem::take(&mut levels[usize::from(level)]) };
        sample.levels.extend(self.levels_used.drain(..).map(taken));
        self.urls_used.sort_unstable();
        let urls = &mut self.urls;
        let taken = |url_class| UrlSum { url_class, ..core::mem::take(&mut urls[usize::from(url_class)]) };
        sample.urls.extend(self.urls_used.drain(..).map(taken));
        sample
    }

    fn enter(&mut self, started: Instant, request: SentryRequest, is_long: bool) -> u32 {
        let count = if is_long { &mut self.long } else { &mut self.count };
        *count += 1;
        self.classes[usize::from(request.class)].in_flight += 1;
        // At most as many as there are places of both kinds, see `Common`.
        self.present.insert(Present { started, url_class: url_index(request) as u16, is_long }) as u32
    }

    /// Gives back the place of one that was present; returns whether it was long.
    fn leave(&mut self, permit: &Permit) -> bool {
        // A permit is given back once; a copy of it that is given back again changes nothing that others
        // hold.
        let Some(present) = self.present.try_remove(permit.present as usize) else { return false };
        if present.is_long {
            self.common.give_back_long();
            self.long -= 1;
        } else {
            self.common.give_back();
            self.count -= 1;
        }
        let class = &mut self.classes[usize::from(permit.request.class)];
        class.in_flight = class.in_flight.saturating_sub(1);
        present.is_long
    }

    /// Frees the places of requests that need none: those in flight for longer than the plan says, and after
    /// a target those of classes that hold none, which came when too many of them were in flight, or when
    /// their class held places.
    fn release(&mut self, now: Instant, long: &LongRequests) {
        if long.release_after.is_zero() && long.url_classes.is_empty() {
            return;
        }
        let limit = long.limit.unwrap_or(SENTRY_IN_FLIGHT);
        let after = if long.release_after.is_zero() { Duration::MAX } else { long.release_after };
        for (_, present) in self.present.iter_mut().filter(|(_, present)| !present.is_long) {
            let age = now.saturating_since(present.started);
            let needs_none = age > after || age > self.target && long.has(present.url_class.into());
            if needs_none && self.common.release(limit) {
                present.is_long = true;
                (self.count, self.long) = (self.count - 1, self.long + 1);
            }
        }
    }

    /// Accounts for the time until `now`. The level is that of all gates, the integral this gate's own: sums
    /// over gates are right.
    fn advance(&mut self, now: Instant, knee_milli: u64) {
        let nanos = now.as_nanos().saturating_sub(self.updated.as_nanos());
        if nanos == 0 {
            return;
        }
        self.updated = now;
        let integral = nanos.saturating_mul(self.count.into());
        self.sample.in_flight_nanos = self.sample.in_flight_nanos.saturating_add(integral);
        if self.is_waiting {
            self.sample.waiting_nanos += nanos;
        }
        let in_flight = self.common.at_origin();
        // An unknown knee stays unknown, even if other gateways know theirs.
        let knee_milli = match knee_milli {
            0 => 0,
            here => here.saturating_add(self.common.knee_elsewhere_milli()),
        };
        let used = index(in_flight.into());
        let level = &mut self.levels[usize::from(used)];
        if level.nanos == 0 {
            self.levels_used.push(used);
        }
        level.nanos += nanos;
        level.in_flight_nanos = level.in_flight_nanos.saturating_add(integral);
        self.served_nanos = self.served_nanos.wrapping_add(served(nanos, in_flight, knee_milli));
    }
}

/// Service that each of `in_flight` requests gets in this time.
fn served(nanos: u64, in_flight: u32, knee_milli: u64) -> u64 {
    let in_flight_milli = u64::from(in_flight) * 1_000;
    if knee_milli == 0 || in_flight_milli <= knee_milli {
        return nanos;
    }
    // The share is below 1: an interval of more than 4 s (no request came or went) is rounded to it, not
    // overflown by it.
    const SHARE_BITS: u32 = 32;
    let share = (knee_milli << SHARE_BITS) / in_flight_milli;
    match nanos.checked_mul(share) {
        Some(product) => product >> SHARE_BITS,
        None => (nanos >> SHARE_BITS) * share,
    }
}

fn url_index(request: SentryRequest) -> usize {
    request.url_class as usize % URL_CLASSES
}

/// Largest recorded age of a request in flight, in targets: a request that takes longer is late, however
/// late.
const AGES_REACH_TARGETS: u32 = 4;
/// Ages are recorded in this many steps, from the step that a request began in: those of requests that began
/// together are one.
const AGE_SLOTS: u64 = 512;
/// Requests in flight that a gate has room for at once; beyond them its table grows.
const PRESENT_AT_FIRST: usize = 256;

pub(super) fn micros(duration: Duration) -> u64 {
    // Both instants are nanoseconds in 64 bits, so their difference is.
    (duration.as_nanos() / 1_000) as u64
}

#[cfg(test)]
mod tests {
    use super::served;

    #[test]
    fn what_is_served_is_shared_evenly_above_the_knee() {
        assert_eq!([0, 1, 4].map(|count| served(900, count, 4_000)), [900; 3]);
        assert_eq!([served(900, 6, 4_000), served(900, 9, 4_500), served(900, 9, 0)], [599, 450, 900]);
        let day = 86_400 * 1_000_000_000;
        assert!(served(day, 8, 1_000).abs_diff(day / 8) < day / 10_000);
        assert_eq!(served(u64::MAX, u32::MAX, 1), 0);
    }
}
