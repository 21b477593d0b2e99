//! Requests of one application: how many arrive, what an ideal admission lets in, and how long they take.

use super::draw::{poisson, sum_s};
use super::scenario::{ApplicationModel, LATE_QUANTILE_FACTOR};
use flashweir_core::{Duration, Rng};
use flashweir_provisioning::{ClassCounts, Moments};
use flashweir_workload::{RateProfile, Segment};

/// A profile that is walked forward.
#[derive(Debug)]
pub(super) struct ProfileWalk<'a> {
    segments: &'a [Segment],
    into: Duration,
}

impl<'a> ProfileWalk<'a> {
    pub(super) fn new(profile: &'a RateProfile) -> Self {
        Self { segments: profile.segments(), into: Duration::ZERO }
    }

    /// The rate in the middle of the next `tick`; 0 once the profile is over. O(1) but for segments that are
    /// passed.
    pub(super) fn next_rate(&mut self, tick: Duration) -> f64 {
        self.into += tick / 2;
        while let Some(first) = self.segments.first()
            && self.into >= first.length
        {
            self.into -= first.length;
            self.segments = &self.segments[1..];
        }
        let rate = self.segments.first().map_or(0.0, |first| first.rate_after(self.into));
        self.into += tick / 2;
        rate
    }
}

/// Counts of one tick.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TickCounts {
    pub(super) offered: u64,
    pub(super) admitted: u64,
    /// Admitted that were not answered within the target.
    pub(super) late: u64,
    pub(super) revenue: f64,
    /// Server-seconds that were worked.
    pub(super) worked_s: f64,
}

/// The requests of one application.
#[derive(Debug)]
pub(super) struct Traffic<'a> {
    model: &'a ApplicationModel,
    walks: Vec<ProfileWalk<'a>>,
    /// Server-seconds of admitted work that is not done.
    backlog_s: f64,
    /// By class, since the last report.
    counts: Vec<ClassCounts>,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(model: &'a ApplicationModel) -> Self {
        let walks: Vec<_> = model.classes.iter().map(|class| ProfileWalk::new(&class.rate)).collect();
        let counts = vec![ClassCounts::default(); walks.len()];
        Self { model, walks, backlog_s: 0.0, counts }
    }

    /// Takes the counts since the last call.
    pub(super) fn take_counts(&mut self) -> Vec<ClassCounts> {
        let empty = vec![ClassCounts::default(); self.counts.len()];
        core::mem::replace(&mut self.counts, empty)
    }

    /// One tick with `ready` servers and this target. The wait is that of the work that is admitted already;
    /// a request is late if with it the 95th percentile of response times exceeds the target, so that
    /// admission lets in what waits no longer than the rest.
    pub(super) fn step(&mut self, rng: &mut Rng, tick: Duration, ready: u32, target: Duration) -> TickCounts {
        let service = self.model.service;
        let capacity_s = f64::from(ready) * tick.as_secs_f64();
        let wait_max_s = (target.as_secs_f64() - LATE_QUANTILE_FACTOR * service.mean_s).max(0.0);
        let wait_s = if ready > 0 { self.backlog_s / f64::from(ready) } else { f64::INFINITY };
        let mut room_s = (capacity_s + wait_max_s * f64::from(ready) - self.backlog_s).max(0.0);
        let mut tick_counts = TickCounts::default();
        for (place, walk) in self.walks.iter_mut().enumerate() {
            let offered = poisson(rng, walk.next_rate(tick) * tick.as_secs_f64());
            let work_s = sum_s(rng, offered, service.mean_s, service.squared_variation);
            let part = if work_s > room_s { room_s / work_s } else { 1.0 };
            let admitted = libm::floor(offered as f64 * part) as u64;
            let work_s = work_s * part;
            room_s -= work_s;
            self.backlog_s += work_s;
            let counts = &mut self.counts[place];
            let squares_s2 = work_s * service.mean_s * (1.0 + service.squared_variation);
            counts.offered += offered;
            counts.admitted += admitted;
            counts.refused += offered - admitted;
            counts.service.add(&Moments { count: admitted, sum_s: work_s, squares_s2 });
            tick_counts.offered += offered;
            tick_counts.admitted += admitted;
            tick_counts.revenue += admitted as f64 * self.model.classes[place].revenue;
        }
        // Servers were taken away under it, or the target was tightened: the next ones wait too long.
        if wait_s > wait_max_s * (1.0 + 1e-9) {
            tick_counts.late = tick_counts.admitted;
        }
        tick_counts.worked_s = self.backlog_s.min(capacity_s);
        self.backlog_s -= tick_counts.worked_s;
        tick_counts
    }
}
