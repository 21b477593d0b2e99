//! Requests in flight, counted where they begin and end: whole numbers only, nothing allocated between two drains.
//!
//! Per begin or end: one integral, one counter by level, one by start, one by URL class.

use super::common::Common;
use super::gate::{Asked, Ending};
use super::sample::{LevelSum, Sample, UrlSum};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::limits::URL_CLASSES;
use flashweir_core::{Duration, Instant};
use flashweir_measure::Ages;
use flashweir_measure::histogram::{BUCKETS, index};

/// One admitted request; goes back to [`InFlight::end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// When the request arrived at the gate.
    pub(super) arrived: Instant,
    started: Instant,
    pub(super) asked: Asked,
}

/// The count with everything that is measured by it.
#[derive(Debug)]
pub struct InFlight {
    common: Arc<Common>,
    /// Of this gate.
    count: u32,
    /// Until when the integrals are done.
    updated: Instant,
    is_waiting: bool,
    ages: Ages,
    levels: Vec<LevelSum>,
    urls: Vec<UrlSum>,
    sample: Sample,
}

impl InFlight {
    /// Nobody; ages are told up to `reach`.
    #[must_use]
    pub fn new(common: Arc<Common>, reach: Duration) -> Self {
        Self {
            common,
            count: 0,
            updated: Instant::ZERO,
            is_waiting: false,
            ages: Ages::new(reach),
            levels: vec![LevelSum::default(); BUCKETS],
            urls: vec![UrlSum::default(); URL_CLASSES],
            sample: Sample::default(),
        }
    }

    /// How many this gate has in flight.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// What has been counted since the last drain; the gate adds what it decides.
    pub(super) fn sample(&mut self) -> &mut Sample {
        &mut self.sample
    }

    /// One is sent to the origin, if fewer than `limit` are there, from all gates together.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        limit: u32,
        arrived: Instant,
        asked: Asked,
    ) -> Option<Permit> {
        if !self.common.take(limit) {
            return None;
        }
        self.advance(now);
        self.count += 1;
        self.ages.begin(now);
        self.sample.admitted += 1;
        Some(Permit { arrived, started: now, asked })
    }

    /// One is over.
    pub(super) fn end(&mut self, now: Instant, permit: Permit, ending: Ending) {
        self.advance(now);
        let level = usize::from(index(self.common.in_flight().into()));
        self.common.give_back();
        self.count = self.count.saturating_sub(1);
        self.ages.end(now, permit.started);
        if !ending.completed {
            return;
        }
        self.levels[level].completed += 1;
        self.sample.completed += 1;
        let latency_us = (now.saturating_since(permit.started).as_nanos() / 1_000) as u64;
        self.sample.latency_us.record(latency_us);
        let url = &mut self.urls[permit.asked.url_class as usize % URL_CLASSES];
        url.count = url.count.saturating_add(1);
        url.latency_us = url.latency_us.saturating_add(latency_us);
        url.latency_us_squared = url.latency_us_squared.saturating_add(latency_us.saturating_mul(latency_us));
        if let Some(measured_us) = ending.measured_us {
            url.measured_count = url.measured_count.saturating_add(1);
            url.measured_us = url.measured_us.saturating_add(measured_us.into());
        }
    }

    /// From now on somebody waits for room, or nobody does.
    pub(super) fn set_waiting(&mut self, now: Instant, is_waiting: bool) {
        if self.is_waiting != is_waiting {
            self.advance(now);
            self.is_waiting = is_waiting;
        }
    }

    /// Hands over what was measured since the last drain. O([`BUCKETS`] + [`URL_CLASSES`]).
    pub(super) fn drain(&mut self, now: Instant) -> Sample {
        self.advance(now);
        let mut sample = core::mem::replace(&mut self.sample, Sample { from: now, ..Sample::default() });
        sample.to = now;
        sample.in_flight = self.count;
        self.ages.record_into(now, &mut sample.age_us);
        for (level, sum) in self.levels.iter_mut().enumerate().filter(|(_, sum)| sum.nanos > 0) {
            sample.levels.push(LevelSum { level: level as u16, ..core::mem::take(sum) });
        }
        for (url_class, sum) in self.urls.iter_mut().enumerate().filter(|(_, sum)| sum.count > 0) {
            sample.urls.push(UrlSum { url_class: url_class as u16, ..core::mem::take(sum) });
        }
        sample
    }

    /// Accounts for the time until `now`.
    fn advance(&mut self, now: Instant) {
        let nanos = (now.saturating_since(self.updated).as_nanos()) as u64;
        self.updated = self.updated.max(now);
        let integral = nanos.saturating_mul(self.count.into());
        self.sample.in_flight_nanos = self.sample.in_flight_nanos.saturating_add(integral);
        if self.is_waiting {
            self.sample.waiting_nanos += nanos;
        }
        let level = &mut self.levels[usize::from(index(self.common.in_flight().into()))];
        level.nanos += nanos;
        level.in_flight_nanos = level.in_flight_nanos.saturating_add(integral);
    }
}
