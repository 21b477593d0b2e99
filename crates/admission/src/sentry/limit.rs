//! The rule: what the limit is to be.
//!
//! *What it decides:* how many requests may be in flight. *From:* work done per second, the time that a unit of work
//! takes, and the 95th percentile of responses with the ages of those still in flight.
//!
//! *The rule.* A limit that is too high costs nothing as long as answers come in time: the line is at the origin instead
//! of here. One that is too low costs throughput. So raising is cheap and lowering is dear; the limit goes up on a hint
//! ([`raising`](super::raising)) and comes down on proof ([`lowering`](super::lowering)). Each move is an experiment
//! ([`judgement`](super::judgement)). *Why not the knee alone* (inherent time times work per second, by Little's law):
//! the inherent time is never known well enough where requests are slow or uneven, and one estimated too short pulls the
//! limit below the knee, which lowers throughput, which lowers the estimate again.
//!
//! *Cold start:* doubled until that does not help, from the first responses on. *Recovery:* an origin that became faster
//! shows in requests that are not in each other's way any more. *Cost:* O(1) per look. *Fails* where so few requests are
//! completed that nothing can be told within a minute.

use super::judgement::{Experiment, Verdict, Why};
use super::look::Look;
use super::measured::Measured;
use super::patience::Patience;
use super::plan::Rule;
use flashweir_core::limits::SENTRY_IN_FLIGHT;
use flashweir_core::{Duration, Instant};

/// The limit and what is known about the knee.
#[derive(Debug)]
pub(super) struct LimitRule {
    pub(super) limit: u32,
    experiment: Option<Experiment>,
    /// Since the limit last moved and settled, or was last looked at.
    pub(super) window: Measured,
    /// While requests sent under the limit before may still be there: at least until, and at most until.
    is_settling: bool,
    settles_at: Instant,
    settles_by: Instant,
    /// What a unit of work takes when it is alone, seconds.
    pub(super) alone_s: Option<f64>,
    /// It was found where fewer in flight did less, or nobody was in the way of anybody.
    pub(super) is_trusted: bool,
    /// Some limit was found that is not to be raised or lowered: the start is over.
    pub(super) is_known: bool,
    pub(super) knee: Option<f64>,
    /// The limit over the knee.
    pub(super) margin: f64,
    pub(super) raise: Patience,
    /// The same where requests are not in each other's way.
    pub(super) raise_unhindered: Patience,
    /// The factor of the next raise: smaller after each one that was too much.
    pub(super) raise_step: f64,
    pub(super) has_raise_helped: bool,
    /// Work per second when raising was last seen not to help.
    pub(super) enough_work: f64,
    pub(super) trim: Patience,
    pub(super) cut: Patience,
    /// The 95th percentile when a cut was last seen not to help.
    pub(super) in_vain_p95_s: f64,
    pub(super) target_infeasible: bool,
}

impl LimitRule {
    pub(super) fn new() -> Self {
        Self {
            limit: START,
            experiment: None,
            window: Measured::default(),
            is_settling: false,
            settles_at: Instant::ZERO,
            settles_by: Instant::ZERO,
            alone_s: None,
            is_trusted: false,
            is_known: false,
            knee: None,
            margin: MARGIN,
            raise: Patience::new(RAISE_WAIT),
            raise_unhindered: Patience::new(RAISE_WAIT),
            raise_step: RAISE_MOST,
            has_raise_helped: false,
            enough_work: 0.0,
            trim: Patience::new(TRIM_WAIT),
            cut: Patience::new(CUT_WAIT),
            in_vain_p95_s: 0.0,
            target_infeasible: false,
        }
    }

    /// Goes on from what another planner of the same origin found: the start is over.
    pub(super) fn resume(&mut self, limit: u32, knee: Option<f64>) {
        *self = Self { limit: limit.clamp(1, SENTRY_IN_FLIGHT), is_known: true, knee, ..Self::new() };
    }

    /// Whether what is measured now still belongs to the limit before.
    pub(super) fn is_settling(&self) -> bool {
        self.is_settling
    }

    /// Takes a look; which rule fired.
    pub(super) fn look(&mut self, look: &Look) -> Rule {
        let is_settled = look.now >= self.settles_at
            && (look.tick.in_flight() <= 1.1 * f64::from(self.limit) || look.now >= self.settles_by);
        self.is_settling &= !is_settled;
        if self.is_settling {
            return Rule::None;
        }
        self.window.add(&look.tick);
        if self.window.is_refused_by_origin(self.limit) {
            return self.leave_refusals(look);
        }
        if !self.window.is_bound() {
            return self.look_quietly(look);
        }
        if self.is_swamped(look) {
            return self.leave_swamp(look);
        }
        match self.experiment {
            Some(experiment) => self.judge(look, &experiment),
            None => self.hold(look),
        }
    }

    /// While the limit does not bind, nothing is decided and inherent times are learned.
    fn look_quietly(&mut self, look: &Look) -> Rule {
        if self.window.span_s < QUIET_LOOK_S {
            return Rule::None;
        }
        let new = Self::new();
        if let Some(low_level) = look.low_level {
            self.alone_s = Some(low_level.alone_s);
            self.is_trusted = look.knows_alone(low_level);
            self.is_known = self.is_trusted;
        }
        *self = Self {
            limit: self.limit,
            alone_s: self.alone_s,
            is_trusted: self.is_trusted,
            is_known: self.is_known,
            knee: self.knee,
            margin: self.margin,
            in_vain_p95_s: self.in_vain_p95_s,
            has_raise_helped: self.has_raise_helped,
            ..new
        };
        Rule::Quiet
    }

    fn hold(&mut self, look: &Look) -> Rule {
        let window = self.window;
        let error = window.error(look.variation);
        if error > super::judgement::ROUGH || self.is_early(look) {
            return Rule::None;
        }
        let alone_s = self.learn_alone_s(look);
        let knee = alone_s * window.work_rate(look.variation);
        self.knee = Some(knee);
        let is_unhindered = window.unit_s(look.variation) / alone_s < UNHINDERED;
        let moved = self.meet_target(look, is_unhindered).or_else(|| self.raise(look, is_unhindered, error));
        if let Some(rule) = moved {
            return rule;
        }
        if error > EXACT {
            return Rule::None;
        }
        if let Some(rule) = self.probe(look).or_else(|| self.trim(look, error)) {
            return rule;
        }
        if error < 0.5 * EXACT || window.span_s > WINDOW_MOST_S {
            self.window = Measured::default();
        }
        Rule::None
    }

    /// The first to be completed are the short ones: what they took tells nothing before long ones had time.
    fn is_early(&self, look: &Look) -> bool {
        let window = &self.window;
        let longest_s = look.p95_s.filter(|_| !look.is_surely_late()).unwrap_or(0.0);
        window.span_s < longest_s.max(window.latency_each_s())
            || !self.is_known && window.span_s < look.target_s * EARLY_TARGETS
    }

    /// What a unit of work takes alone, as far as the window tells.
    fn learn_alone_s(&mut self, look: &Look) -> f64 {
        let window = &self.window;
        let (unit_s, error) = (window.unit_s(look.variation), window.error(look.variation));
        let at_first_s = unit_s.max(window.in_flight_s / window.work.max(1e-12));
        let mut alone_s = *self.alone_s.get_or_insert(at_first_s);
        if window.in_flight() < 1.05 && error < 0.2 {
            alone_s = unit_s;
            self.is_trusted = true;
        } else if error < 0.25 {
            // Nobody is served faster than alone. (Errors on the safe side: too long makes the limit too high.)
            alone_s = alone_s.min(unit_s * (1.0 + error));
        }
        self.alone_s = Some(alone_s);
        alone_s
    }

    fn judge(&mut self, look: &Look, experiment: &Experiment) -> Rule {
        if self.is_raised_too_far(look, experiment) {
            self.give_up_raising(look, experiment, false);
            return Rule::Target;
        }
        let Some(verdict) = experiment.verdict(look, &self.window) else { return Rule::None };
        self.experiment = None;
        if verdict == Verdict::Changed {
            return Rule::None;
        }
        let goes_on = match experiment.why {
            Why::Raise => self.judge_raise(look, experiment, verdict),
            Why::Trim | Why::Target => self.judge_lower(look, experiment, verdict),
        };
        if goes_on { self.hold(look) } else { Rule::Restore }
    }

    pub(super) fn try_limit(&mut self, look: &Look, limit: u32, why: Why) {
        let experiment = Experiment { why, p95_s: look.p95_s, before: self.window, limit_before: self.limit };
        self.move_to(look, limit);
        self.experiment = Some(experiment);
    }

    pub(super) fn move_to(&mut self, look: &Look, limit: u32) {
        let limit = limit.clamp(1, SENTRY_IN_FLIGHT);
        self.experiment = None;
        if limit != self.limit {
            let each_s = self.window.in_flight_s / self.window.completed.max(1.0);
            // Those who are there now stay for their mean residual time, (1 + variation)/2 of the mean.
            let settle_s = each_s * (1.5_f64).max(0.75 * (1.0 + look.variation.all));
            self.is_settling = true;
            self.settles_at = look.now + Duration::from_secs_f64(settle_s.clamp(0.0, SETTLE_LEAST_S));
            self.settles_by = self.settles_at + Duration::from_secs_f64(SETTLE_MOST_TARGETS * look.target_s);
            self.limit = limit;
        }
        self.window = Measured::default();
    }

    /// The limit a margin above the knee. (At least 2: with one in flight nobody is ever in the way of anybody.)
    pub(super) fn above(&self, knee: f64) -> u32 {
        (libm::ceil(self.margin * knee - 0.01) as u32).max(2)
    }
}

pub(super) fn round(value: f64) -> u32 {
    ((value + 0.5) as u32).max(1)
}

/// Requests in flight while nothing is known. A small origin serves them within seconds, a large one lets them double
/// within a few responses.
const START: u32 = 8;
/// The limit over the knee: enough to see that more would be done if the origin could, and for requests that end
/// together; no more, because what waits at the origin cannot be refused or put in order any more.
pub(super) const MARGIN: f64 = 1.2;
/// Requests that take less than so many times longer than alone are not in each other's way.
const UNHINDERED: f64 = 1.15;
/// The standard error that is good enough for a proof.
const EXACT: f64 = 0.08;
/// A window over more than this would mix the origin of now with the one before.
const WINDOW_MOST_S: f64 = 6.0;
/// At first nothing is believed that was seen in less than so many targets: nobody knows how slow the slow ones are.
const EARLY_TARGETS: f64 = 0.05;
/// How often inherent times are taken over while the limit does not bind.
const QUIET_LOOK_S: f64 = 0.5;
/// The usual time to settle is cut off here, and the time until those above a lowered limit have gone here.
const SETTLE_LEAST_S: f64 = 1.0;
const SETTLE_MOST_TARGETS: f64 = 4.0;
/// The most that a limit is raised at once.
pub(super) const RAISE_MOST: f64 = 2.0;
/// Between tests of one kind, at first. Raising costs little, a cut in vain is paid for with throughput.
pub(super) const RAISE_WAIT: Duration = Duration::from_secs(2);
pub(super) const TRIM_WAIT: Duration = Duration::from_secs(2);
const CUT_WAIT: Duration = Duration::from_secs(10);
