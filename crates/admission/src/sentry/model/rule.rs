//! The limit that is worth most under what is known of the origin.

use super::change::{Changes, Evidence, Suspicion};
use super::curve::Curve;
use super::shape::Shape;
use super::{Constants, Learned, LevelWork};
use crate::sentry::look::Look;
use crate::sentry::measured::{Measured, Variation};
use crate::sentry::plan::Rule;
use alloc::vec::Vec;
use core::cmp::Ordering;
use flashweir_core::Instant;
use flashweir_core::limits::SENTRY_IN_FLIGHT;
use flashweir_core::measure::Histogram;

/// The limit, and what is known.
#[derive(Debug)]
pub(in crate::sentry) struct ModelRule {
    k: Constants,
    learned: Learned,
    curve: Curve,
    shape: Shape,
    changes: Changes,
    /// Windows that may be of another origin than what is remembered, at most [`SUSPECTS_MAX`].
    suspects: Vec<Evidence>,
    /// Since the last window was closed.
    open: Measured,
    open_us: Histogram,
    moved_at: Instant,
    /// The limit last went up: what comes back now was not sent under a higher one.
    was_raised: bool,
    /// For how long no request has waited.
    calm_s: f64,
    /// The curve has more than the distribution.
    is_stale: bool,
    /// One in twenty answers is later than the target where as few are in flight as the origin has servers.
    is_late: bool,
    /// The number of servers was known once.
    was_knee_known: bool,
    /// Work done a second when the limit was last raised before there was evidence.
    early_rate: f64,
    /// The least median of times at the origin under any limit since the origin last changed, seconds.
    early_s: f64,
    /// Above this the origin refuses, as far as known.
    ceiling: f64,
    /// Time that requests of late took, seconds.
    usual_s: f64,
    /// Work of a usual request, and the number of requests it is averaged over.
    unit: f64,
    unit_count: f64,
}

impl ModelRule {
    pub(in crate::sentry) fn new(k: Constants) -> Self {
        Self {
            k,
            learned: Learned {
                limit: k.start as u32,
                knee: None,
                servers: None,
                alone_s: None,
                headroom: f64::INFINITY,
                target_infeasible: false,
                window: Measured::default(),
                is_settling: false,
            },
            curve: Curve::new(k),
            shape: Shape::new(k),
            changes: Changes::new(k),
            suspects: Vec::new(),
            open: Measured::default(),
            open_us: Histogram::new(),
            moved_at: Instant::ZERO,
            was_raised: false,
            calm_s: 0.0,
            is_stale: false,
            is_late: false,
            was_knee_known: false,
            early_rate: 0.0,
            early_s: f64::INFINITY,
            ceiling: f64::from(SENTRY_IN_FLIGHT),
            usual_s: 0.0,
            unit: 1.0,
            unit_count: 0.0,
        }
    }

    /// Goes on from what another planner of the same origin found.
    pub(in crate::sentry) fn resume(&mut self, limit: u32, knee: Option<f64>) {
        *self = Self::new(self.k);
        self.learned.limit = limit.clamp(1, SENTRY_IN_FLIGHT);
        (self.learned.knee, self.learned.headroom) = (knee, 1.0);
        self.was_knee_known = knee.is_some();
    }

    /// Learned state.
    pub(in crate::sentry) fn learned(&self) -> Learned {
        self.learned
    }

    /// Takes a look: its traffic by number in flight, times of what it completed, and ages of what is in
    /// flight.
    pub(in crate::sentry) fn look(
        &mut self,
        look: &Look,
        levels: &[LevelWork],
        latency_us: &Histogram,
        age_us: &Histogram,
    ) -> Rule {
        // A client that left after the target is in the times; it is no refusal.
        let tick = Measured { failed: look.tick.failed - look.tick.left_late, ..look.tick };
        let is_stationary = self.is_stationary(look, age_us);
        self.learn_unit(&tick);
        if self.learned.limit < look.limit_least {
            self.move_to(look, look.limit_least);
            return Rule::Raise;
        }
        let was_calm = self.calm_s > 0.0;
        let is_waiting = self.count_calm(&tick);
        if is_stationary && self.calm_s > self.usual_s * (1.0 + look.variation.all) {
            self.learn_freely(look, levels);
        }
        // Requests from before the limit moved count as gone when the mean age in flight is no more than the
        // time since the move.
        let was_settling = self.learned.is_settling;
        self.learned.is_settling &= self.moved_s(look) < look.age_s;
        if self.learned.is_settling {
            // An origin that is busy with refusing does not get on with the rest: their ages grow as fast as
            // the time since the move.
            self.open.add(&tick);
            return if self.was_raised { self.obey_refusals(look) } else { Rule::None };
        }
        if was_settling {
            self.restart();
        }
        self.learned.window.add(&tick);
        self.open.add(&tick);
        self.open_us.add(latency_us);
        let obeyed = self.obey_refusals(look);
        if obeyed != Rule::None {
            return obeyed;
        }
        if is_waiting && was_calm && self.is_stale && self.curve.is_informed() {
            self.update(look);
            return self.decide(look, self.learned.limit, tick.shed > 0.0);
        }
        if self.is_overdue(look) {
            return self.close(look, true);
        }
        if self.is_hopeless(look) {
            self.move_to(look, self.learned.limit / 2);
            return Rule::Start;
        }
        let is_turned_over = self.is_turned_over(look);
        let lasts = self.open.span_s >= look.age_s;
        if is_turned_over && is_stationary && lasts {
            // More clients left without an answer than got one: what they waited for takes longer than they
            // waited.
            return self.close(look, self.open.is_in_vain());
        }
        if is_turned_over && self.may_raise_early(look, lasts) {
            self.early_rate = self.open.work_rate(look.variation);
            self.early_s = self.early_s.min(self.median_s());
            self.move_to(look, self.learned.limit.saturating_mul(2));
            return Rule::Start;
        }
        if !self.open.is_bound() && self.open.span_s > self.k.quiet_s.max(2.0 * self.usual_s) {
            self.close_quietly(look);
            return Rule::Quiet;
        }
        Rule::None
    }

    /// Adds to the time in which nothing waited; returns true if something does.
    fn count_calm(&mut self, tick: &Measured) -> bool {
        let is_waiting = tick.waiting_s > 0.0 || tick.shed > 0.0;
        self.calm_s = if is_waiting { 0.0 } else { self.calm_s + tick.span_s };
        is_waiting
    }

    /// Lowers the limit where the origin refuses, even if it answers the rest in time.
    fn obey_refusals(&mut self, look: &Look) -> Rule {
        if !self.open.is_refused_by_origin(self.learned.limit) {
            return Rule::None;
        }
        self.ceiling = self.open.in_flight().min(f64::from(self.learned.limit)) / self.k.much;
        self.move_to(look, round(self.ceiling));
        Rule::Target
    }

    fn moved_s(&self, look: &Look) -> f64 {
        look.now.saturating_since(self.moved_at).as_secs_f64()
    }

    fn learn_unit(&mut self, tick: &Measured) {
        if tick.completed > 0.0 {
            self.unit_count = (self.unit_count + tick.completed).min(self.k.memory);
            let part = (tick.completed / self.unit_count).min(1.0);
            self.unit += (tick.work / tick.completed - self.unit) * part;
            let part = (tick.completed / self.unit_count.min(self.k.usual_count)).min(1.0);
            self.usual_s += (tick.latency_each_s() - self.usual_s) * part;
        }
    }

    /// While no request waits the number in flight varies by itself, and each is evidence: as many requests
    /// go from n to n + 1 as come back, for any distribution of their times.
    fn learn_freely(&mut self, look: &Look, levels: &[LevelWork]) {
        let dispersion = look.variation.all.max(1.0);
        for level in levels.iter().filter(|level| level.in_flight >= 0.5) {
            self.curve.add(&Evidence {
                in_flight: level.in_flight,
                time_s: level.in_flight_s,
                work: level.work,
                completed: level.completed,
                weight: level.completed / dispersion,
            });
            self.is_stale = true;
        }
        self.fade(look.tick.completed / dispersion);
    }

    fn fade(&mut self, weight: f64) {
        self.curve.fade(libm::exp(-(weight / self.k.memory).min(self.k.window_share)));
    }

    /// Returns true if the window binds and has as many completions as requests in flight, and more where
    /// requests are uneven.
    fn is_turned_over(&self, look: &Look) -> bool {
        let open = &self.open;
        let turnover = open.in_flight().max(self.k.enough + look.variation.within);
        let latency_each_s = open.latency_s / (open.completed + open.left_late).max(1.0);
        open.is_bound() && open.completed + open.left_late >= turnover && open.span_s >= latency_each_s
    }

    /// Since the limit moved, long requests have had time to end, too: few in flight are nearly as old as the
    /// move.
    fn is_stationary(&self, look: &Look, age_us: &Histogram) -> bool {
        let reach_s = self.moved_s(look) / 2.0;
        let old = age_us.buckets().filter(|bucket| bucket.middle() as f64 > 1e6 * reach_s);
        old.map(|bucket| bucket.count).sum::<u64>() as f64 <= self.k.old_share * age_us.count() as f64
    }

    /// Far fewer were completed than usual: the ages of those in flight tell what they take.
    fn is_overdue(&self, look: &Look) -> bool {
        let open = &self.open;
        if !open.is_bound() || self.usual_s <= 0.0 || open.in_flight() <= 0.8 || open.failed != 0.0 {
            return false;
        }
        let expected_s = match self.curve.is_informed() {
            true => self.usual_s.max(self.unit * self.curve.mean(open.in_flight(), |unit| unit.s)),
            false => self.usual_s,
        };
        let expected = open.in_flight_s / expected_s.max(1e-9);
        let is_there_time =
            expected > self.k.factor * open.in_flight().max(self.k.enough) && look.age_s > expected_s;
        is_there_time && open.completed * self.k.factor < expected
    }

    /// Nothing is known, and what is in flight is late already: so late that its clients leave, or by several
    /// targets.
    fn is_hopeless(&self, look: &Look) -> bool {
        let targets = if self.open.is_in_vain() { 1.0 } else { HOPELESS_TARGETS };
        self.open.is_bound()
            && look.age_s > targets * look.target_s
            && !self.curve.is_informed()
            && self.learned.limit > 1
    }

    /// Before long requests have ended there is no evidence; but while twice as many do much more, and none
    /// is late, twice as many may come. Where a few long requests hold most of the places, the times of the
    /// short ones tell.
    fn may_raise_early(&self, look: &Look, lasts: bool) -> bool {
        let open = &self.open;
        let is_first = open.shed == 0.0 || !self.curve.is_informed();
        let does_more = lasts && is_first && open.work_rate(look.variation) > self.k.much * self.early_rate;
        let is_held_up = look.age_s > self.k.factor * open.latency_each_s();
        self.learned.knee.is_none()
            && (look.age_s < look.target_s / 2.0 || !does_more)
            && self.is_reached(open)
            && (does_more || is_held_up && self.is_unhindered())
            && 2.0 * f64::from(self.learned.limit) < self.ceiling
    }

    fn is_unhindered(&self) -> bool {
        self.median_s() < self.k.much * self.early_s
    }

    fn median_s(&self) -> f64 {
        self.open_us.quantile(0.5).map_or(f64::INFINITY, |us| us as f64 / 1e6)
    }

    /// Learns from a window, and decides.
    fn close(&mut self, look: &Look, is_overdue: bool) -> Rule {
        let open = self.open;
        self.learned.window = open;
        let evidence = self.evidence(look, is_overdue);
        let variance = 1.0 / evidence.weight;
        let difference = self.curve.difference(evidence.in_flight, evidence.time_s / evidence.work);
        let suspicion = self.changes.judge(difference.map(|(by, remembered)| (by, variance + remembered)));
        self.suspects.push(evidence);
        self.early_s = self.early_s.min(self.median_s());
        self.early_rate = if open.shed > 0.0 { f64::INFINITY } else { open.work_rate(look.variation) };
        if suspicion == Suspicion::Changed {
            self.curve.forget();
        }
        if suspicion != Suspicion::Open || self.suspects.len() >= SUSPECTS_MAX {
            for suspect in core::mem::take(&mut self.suspects) {
                self.fade(suspect.weight);
                self.curve.add(&suspect);
            }
        }
        self.shape.add(&self.open_us, open.latency_each_s());
        self.restart();
        self.update(look);
        if self.curve.misfit() > self.k.alarm {
            self.curve.forget();
            self.curve.add(&evidence);
            self.suspects.clear();
            self.update(look);
        }
        self.ceiling *= 1.0 + self.k.window_share;
        let limit_max = if is_overdue { self.learned.limit } else { round(self.ceiling) };
        // A request may wait though the limit is not reached: clients over their share are let in below the
        // knee only.
        let is_reached = self.is_reached(&open);
        let limit_max = if is_reached { limit_max } else { limit_max.min(self.learned.limit) };
        self.decide(look, limit_max, open.shed > 0.0 || open.is_in_vain())
    }

    fn evidence(&self, look: &Look, is_overdue: bool) -> Evidence {
        let open = &self.open;
        let Variation { within, all } = look.variation;
        let (mut work, mut completed) = (open.work, open.completed);
        let mut unit_s = self.unit_s(look);
        if open.is_in_vain() {
            // Clients leave before their answers, so ages end where their patience does: what is left is how
            // long the origin worked for what it completed, and each request that left is as good a witness
            // of that as one that was answered.
            (work, completed) = (work.max(self.unit), completed.max(1.0));
            let weight = (completed + open.left_late) / within;
            return Evidence {
                in_flight: open.in_flight(),
                time_s: open.in_flight_s,
                work,
                completed,
                weight,
            };
        }
        if is_overdue {
            (work, completed) = (work.max(0.5 * self.unit), completed.max(0.5));
            // The mean age of those in flight is (1 + cv²)/2 of what they take.
            let by_age_s = 2.0 * look.age_s / (1.0 + all) * completed / work;
            unit_s = if open.completed < 1.0 { by_age_s } else { unit_s.max(by_age_s) };
        }
        // Ages show long requests before they end.
        let by_ages = if open.completed > 0.0 {
            (2.0 * look.age_s / open.latency_each_s().max(1e-9) - 1.0) * within / all
        } else {
            1.0
        };
        let weight = completed / within.max(by_ages);
        Evidence { in_flight: open.in_flight(), time_s: unit_s * work, work, completed, weight }
    }

    /// Time that a unit of work took, seconds. Some requests that completed after the limit moved began
    /// before, the more the less even requests are, and their times belong to another limit; the number of
    /// completions does not. Where requests are even a mean time is more exact.
    fn unit_s(&self, look: &Look) -> f64 {
        let by_little_s = self.open.in_flight_s / self.open.work.max(1e-12);
        let by_times_s = self.open.unit_s(look.variation);
        by_times_s * libm::pow(by_little_s / by_times_s, look.variation.within.min(1.0))
    }

    fn close_quietly(&mut self, look: &Look) {
        self.shape.add(&self.open_us, self.open.latency_each_s());
        self.restart();
        if self.is_stale {
            self.update(look);
        }
        self.learned.window = Measured::default();
    }

    fn update(&mut self, look: &Look) {
        self.is_stale = false;
        self.curve.update();
        let (servers, spread) = self.curve.servers();
        let is_knee_known = spread < libm::log(self.k.factor) / 2.0;
        if is_knee_known {
            self.learned.headroom = 1.0;
        } else if self.has_evidence() {
            self.learned.headroom = self.learned.headroom.min(self.k.factor);
        }
        self.was_knee_known |= is_knee_known;
        self.learned.knee = is_knee_known.then_some(servers);
        self.learned.servers = Some(servers.min(f64::from(self.learned.limit)));
        self.learned.alone_s = Some(self.curve.alone_s());
        // With as many in flight as there are servers: fewer would leave some idle.
        let in_flight = servers.min(f64::from(self.learned.limit));
        let p95_s = self.curve.mean(in_flight, |unit| unit.s) * self.unit * self.shape.quantile(0.95);
        self.is_late = p95_s > look.target_s;
        self.learned.target_infeasible &= self.is_late;
    }

    /// Work done a second in answers in time, those that are late counted for little, less what a line at the
    /// origin costs.
    fn worth(&self, look: &Look, limit: u32) -> f64 {
        let in_flight = f64::from(limit);
        let log_within = libm::log(self.k.target_share * look.target_s / self.unit.max(1e-12));
        let [done, unit_s] = self.curve.means(in_flight, |unit| {
            let in_time = self.shape.share_within_log(log_within - unit.log_s);
            [in_flight / unit.s * (self.k.late_worth + (1.0 - self.k.late_worth) * in_time), unit.s]
        });
        let of_target = self.unit * unit_s / look.target_s;
        done * (1.0 - self.k.line_cost * of_target.min(1.0))
    }

    /// The share of answers that are expected in time.
    fn in_time(&self, look: &Look, limit: u32) -> f64 {
        let log_within = libm::log(self.k.target_share * look.target_s / self.unit.max(1e-12));
        self.curve.mean(f64::from(limit), |unit| self.shape.share_within_log(log_within - unit.log_s))
    }

    fn decide(&mut self, look: &Look, limit_max: u32, is_refusing: bool) -> Rule {
        let at_step = |step: i32| {
            let limit =
                f64::from(self.learned.limit) * libm::exp2(f64::from(step) / f64::from(STEPS_AN_OCTAVE));
            round(limit).min(limit_max)
        };
        // Too high a limit costs answers where requests are refused; before anything is refused, and before
        // the knee was found, doubling finds it soonest.
        let up = if is_refusing || self.was_knee_known { STEPS_AN_OCTAVE / 2 } else { STEPS_AN_OCTAVE };
        // Half an octave above 1 is less than 2.
        let one_more = (self.learned.limit + 1).min(limit_max);
        let mut limits: Vec<u32> = (-STEPS_SEEN..=up).map(at_step).chain([one_more]).collect();
        limits.dedup_by(|next, last| *next <= *last);
        let half = at_step(-STEPS_AN_OCTAVE);
        self.curve.keep(limits.iter().map(|limit| f64::from(*limit)));
        let worths: Vec<(u32, f64)> = limits.iter().map(|&limit| (limit, self.worth(look, limit))).collect();
        let most = worths.iter().map(|(_, worth)| *worth).fold(0.0, f64::max);
        let enough = most * (1.0 - self.k.indifference);
        let best =
            worths.iter().find(|(_, worth)| *worth >= enough).map_or(self.learned.limit, |best| best.0);
        // Where nearly all are late with half as many in flight, too, half is not low enough.
        let best = if best < half && self.in_time(look, half) >= 1.0 / self.k.factor { half } else { best };
        if best >= self.learned.limit && self.has_evidence() {
            self.learned.target_infeasible |= self.is_late;
        }
        match best.cmp(&self.learned.limit) {
            Ordering::Greater if self.worth(look, self.learned.limit) < enough => {
                self.move_to(look, best);
                Rule::Raise
            }
            // While no request is refused a shorter line at the origin brings nothing; answers in time do.
            Ordering::Less
                if is_refusing
                    || self.in_time(look, best)
                        > self.in_time(look, self.learned.limit) + self.k.model_error =>
            {
                self.learned.headroom = 1.0;
                self.move_to(look, best);
                Rule::Knee
            }
            _ => {
                if self.has_evidence() && limit_max > self.learned.limit {
                    self.learned.headroom = 1.0;
                }
                Rule::None
            }
        }
    }

    /// Returns true if as much is remembered as of two windows.
    fn has_evidence(&self) -> bool {
        self.curve.completed() > 2.0 * self.k.enough
    }

    /// Returns true if what is in flight is much of the limit.
    fn is_reached(&self, measured: &Measured) -> bool {
        measured.in_flight() > f64::from(self.learned.limit) / self.k.much
    }

    fn move_to(&mut self, look: &Look, limit: u32) {
        let limit = limit.max(look.limit_least).clamp(1, SENTRY_IN_FLIGHT);
        if limit != self.learned.limit {
            self.was_raised = limit > self.learned.limit;
            self.learned.limit = limit;
            self.learned.is_settling = true;
            self.moved_at = look.now;
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.open = Measured::default();
        self.open_us.clear();
    }
}

fn round(value: f64) -> u32 {
    ((value + 0.5) as u32).max(1)
}

/// Mean age, in targets, at which a service that has answered nothing stands still; a lower one may be its
/// usual time.
const HOPELESS_TARGETS: f64 = 4.0;
/// Windows withheld from the evidence because of a suspicion, at most.
const SUSPECTS_MAX: usize = 8;
/// Steps an octave between the limits that are compared. A move goes up by an octave at most, by half of one
/// in a crowd and once the knee was found; down by an octave, and by three where half the limit would bring
/// hardly an answer in time either.
const STEPS_AN_OCTAVE: i32 = 4;
const STEPS_SEEN: i32 = 12;
