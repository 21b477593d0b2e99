//! The rule: where the knee is, and what the limit is to be.

use super::judgement::MARGIN_TIGHT;
use super::judgement::{GAIN, Look, MARGIN, errors, gain, gain_from_knee, is_decided, round, wanted};
use super::measured::Measured;
use super::plan::Rule;
use flashweir_core::limits::SENTRY_IN_FLIGHT;
use flashweir_core::{Duration, Instant};

/// The limit and what is known about the knee.
#[derive(Debug)]
pub(super) struct LimitRule {
    limit: u32,
    phase: Phase,
    /// Since the limit last moved and settled, or was last looked at.
    window: Measured,
    settles_at: Instant,
    /// What a unit of work takes when it is alone, seconds.
    alone_s: Option<f64>,
    /// It was found where fewer in flight did less, or nobody was in the way of anybody.
    is_trusted: bool,
    knee: Option<f64>,
    next_trim_at: Instant,
    trim_wait: Duration,
    next_raise_at: Instant,
    raise_wait: Duration,
    next_probe_at: Instant,
    target_infeasible: bool,
}

/// What the present stretch of time is for.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Doubling; what was measured before the last doubling.
    Start(Option<Measured>),
    Hold,
    /// The limit was lowered (or raised) from where this was measured.
    Moved(Measured, Instant),
    /// The limit was lowered, throughput fell, and the limit went back: does throughput, too? Else it was something
    /// else that changed.
    Back(Measured),
}

impl LimitRule {
    pub(super) fn new() -> Self {
        Self {
            limit: START,
            phase: Phase::Start(None),
            window: Measured::default(),
            settles_at: Instant::ZERO,
            alone_s: None,
            is_trusted: false,
            knee: None,
            next_trim_at: Instant::ZERO,
            trim_wait: WAIT_LEAST,
            next_raise_at: Instant::ZERO,
            raise_wait: WAIT_LEAST,
            next_probe_at: Instant::ZERO,
            target_infeasible: false,
        }
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    pub(super) fn knee(&self) -> Option<f64> {
        self.knee
    }

    pub(super) fn window(&self) -> &Measured {
        &self.window
    }

    pub(super) fn alone_s(&self) -> Option<f64> {
        self.alone_s
    }

    pub(super) fn target_infeasible(&self) -> bool {
        self.target_infeasible
    }

    /// Takes a look; which rule fired.
    pub(super) fn look(&mut self, look: &Look) -> Rule {
        if look.now < self.settles_at {
            return Rule::None;
        }
        self.window.add(&look.tick);
        if !self.window.is_bound() {
            return self.look_quietly(look);
        }
        if let Some(rule) = self.meet_target(look) {
            return rule;
        }
        match self.phase {
            Phase::Start(before) => self.start(look, before),
            Phase::Hold => self.hold(look),
            Phase::Moved(before, since) => self.judge(look, &before, since),
            Phase::Back(low) => self.judge_back(look, &low),
        }
    }

    fn look_quietly(&mut self, look: &Look) -> Rule {
        if self.window.span_s < QUIET_LOOK_S {
            return Rule::None;
        }
        if let Some(alone_s) = look.low_level_s {
            self.alone_s = Some(alone_s);
            self.is_trusted = true;
            self.next_trim_at = look.now + TRIM_FIRST;
            self.next_probe_at = look.now + TRIM_FIRST;
            self.phase = Phase::Hold;
        }
        self.target_infeasible = false;
        self.window = Measured::default();
        Rule::Quiet
    }

    fn is_tight(look: &Look) -> bool {
        look.p95_s.is_some_and(|p95_s| p95_s > TARGET_SHARE_MOST * look.target_s)
    }

    fn meet_target(&mut self, look: &Look) -> Option<Rule> {
        if !Self::is_tight(look) {
            self.target_infeasible = false;
            return None;
        }
        let p95_s = look.p95_s?;
        if self.is_swamped(look, p95_s) && self.limit > 1 {
            self.move_to(look, self.limit / 2, Phase::Hold);
            self.alone_s = None;
            self.is_trusted = false;
            return Some(Rule::Target);
        }
        let window = self.window;
        // At first it is not known which way is better: up, unless responses are really late.
        let is_first = matches!(self.phase, Phase::Start(None)) && p95_s < look.target_s;
        if is_first
            || matches!(self.phase, Phase::Start(Some(_)) | Phase::Moved(..) | Phase::Back(_))
            || window.error(look.variation) > 0.35
        {
            return None;
        }
        self.knee = self.alone_s.map(|alone_s| alone_s * window.work_rate(look.variation));
        let error = window.error(look.variation);
        let floor = match self.knee {
            // A floor is known no better than what it rests on.
            Some(knee) if self.is_trusted => {
                let floor = knee * MARGIN_TIGHT;
                if f64::from(self.limit) < floor * (1.1 + 2.0 * error) {
                    f64::from(self.limit)
                } else {
                    floor
                }
            }
            _ => 1.0,
        };
        let share = (TARGET_SHARE * look.target_s / p95_s).max(CUT_MOST);
        let lower = round((f64::from(self.limit) * share).max(floor));
        if f64::from(lower) < 0.95 * f64::from(self.limit) && lower < self.limit {
            self.target_infeasible = false;
            self.alone_s.get_or_insert(window.unit_s(look.variation));
            // A small step would tell nothing, and what costs throughput is taken back.
            let lower = lower.min(round(f64::from(self.limit) * TARGET_STEP)).max(round(floor));
            self.cut_to(look, lower);
            return Some(Rule::Target);
        }
        self.target_infeasible = p95_s > look.target_s;
        None
    }

    /// Hardly anybody is served: whatever is known, it is of another origin.
    fn is_swamped(&self, look: &Look, p95_s: f64) -> bool {
        let window = &self.window;
        p95_s > 2.0 * look.target_s
            && window.span_s > look.target_s
            && window.completed < 0.25 * window.in_flight()
    }

    fn start(&mut self, look: &Look, before: Option<Measured>) -> Rule {
        let now = self.window;
        let is_late = look.p95_s.is_some_and(|p95_s| p95_s > look.target_s);
        if let Some(before) = before.filter(|_| is_late) {
            // Whether it helped or not, it was too much; what was before is the place to learn from.
            self.alone_s = Some(before.unit_s(look.variation));
            self.move_to(look, round(before.in_flight()), Phase::Hold);
            return Rule::Target;
        }
        if self.alone_s.is_some() && before.is_none() {
            self.phase = Phase::Hold;
            return Rule::None;
        }
        if now.completed < f64::from(self.limit).max(8.0) {
            return Rule::None;
        }
        match before {
            // The first to be completed are the short ones: what they took tells nothing before long ones had time.
            Some(before) if Self::has_not_helped(look, &before, &now) => {
                if now.span_s < look.p95_s.map_or(0.0, |p95_s| 2.0 * p95_s) {
                    return Rule::None;
                }
                self.alone_s = Some(before.unit_s(look.variation));
                self.phase = Phase::Hold;
                self.go_to_knee(look, before.unit_s(look.variation) * now.work_rate(look.variation))
            }
            _ => {
                let doubled = self.limit.saturating_mul(2);
                self.move_to(look, doubled, Phase::Start(Some(now)));
                Rule::Start
            }
        }
    }

    /// Whether doubling the limit has (as surely as one can say by now) not brought more throughput.
    fn has_not_helped(look: &Look, before: &Measured, now: &Measured) -> bool {
        let (gain, distance) = gain(look, before, now);
        let error = errors(look, before, now) / distance.abs().max(0.1);
        gain < 0.5 - error.min(0.5)
    }

    fn hold(&mut self, look: &Look) -> Rule {
        let window = self.window;
        let error = window.error(look.variation);
        let Some(mut alone_s) = self.alone_s else {
            self.phase = Phase::Start(None);
            return Rule::None;
        };
        if error > 0.3 {
            return Rule::None;
        }
        let unit_s = window.unit_s(look.variation);
        if libm::log(unit_s / alone_s) < -(2.0 * error).max(0.05) {
            alone_s = unit_s;
            self.alone_s = Some(unit_s);
        }
        let knee = alone_s * window.work_rate(look.variation);
        self.knee = Some(knee);
        let stretch = unit_s / alone_s;
        let tight = Self::is_tight(look);
        let is_unhindered = stretch < 1.0 + (MARGIN - 1.0) / 2.0;
        let raises = if is_unhindered {
            look.now >= self.next_raise_at
        } else {
            !tight && look.now >= self.next_probe_at
        };
        let is_exact = error < 0.07 || error < 0.15 && window.span_s > 4.0;
        if raises && (is_unhindered && error < 0.2 || is_exact) {
            let raised = self.limit.saturating_add(1).max(round(f64::from(self.limit) * RAISE));
            let was_full = window.in_flight() > 0.85 * f64::from(self.limit);
            self.next_probe_at = look.now + PROBE_WAIT;
            self.move_to(look, raised, if was_full { Phase::Moved(window, look.now) } else { Phase::Hold });
            return Rule::Raise;
        }
        let wanted = wanted(knee, tight);
        let deviation = libm::log(f64::from(wanted) / f64::from(self.limit));
        if deviation > 0.03 + error || deviation < -(0.1 + 2.0 * error) {
            return self.go_to_knee(look, knee);
        }
        if is_exact && look.now >= self.next_trim_at && self.limit > 1 {
            let lower = round(TRIM * knee).min(self.limit - 1).max(1);
            self.move_to(look, lower, Phase::Moved(window, look.now));
            return Rule::Trim;
        }
        if error < 0.04 || window.span_s > 6.0 && error < 0.15 {
            self.window = Measured::default();
        }
        Rule::None
    }

    /// The limit a margin above the knee; much lower ones are judged by what becomes of throughput.
    fn go_to_knee(&mut self, look: &Look, knee: f64) -> Rule {
        self.knee = Some(knee);
        let wanted = wanted(knee, Self::is_tight(look));
        if wanted < self.limit {
            let least = if self.is_trusted { 1 } else { round(f64::from(self.limit) * CUT_MOST) };
            self.cut_to(look, wanted.max(least));
        } else if wanted > self.limit {
            self.move_to(look, wanted, Phase::Hold);
        } else {
            self.window = Measured::default();
            return Rule::None;
        }
        Rule::Knee
    }

    fn cut_to(&mut self, look: &Look, lower: u32) {
        let is_large = f64::from(lower) < 0.85 * self.window.in_flight();
        let is_known = self.window.error(look.variation) < 0.35;
        let phase = if is_large && is_known { Phase::Moved(self.window, look.now) } else { Phase::Hold };
        self.move_to(look, lower, phase);
    }

    /// The limit was moved: did throughput follow?
    fn judge(&mut self, look: &Look, before: &Measured, since: Instant) -> Rule {
        let now = self.window;
        let (gain, distance) = gain_from_knee(look, before, &now, self.alone_s);
        if distance.abs() < 0.05 {
            // It did not move after all (or not enough came).
            self.phase = Phase::Hold;
            return Rule::None;
        }
        let error = errors(look, before, &now) / distance.abs();
        if !is_decided(look, before, &now, gain, error) {
            return Rule::None;
        }
        let unit_s = now.unit_s(look.variation);
        let alone_s = self.alone_s.unwrap_or(unit_s);
        let lasted = look.now.saturating_since(since);
        self.phase = Phase::Hold;
        if distance > 0.0 {
            if gain > GAIN {
                // More in flight, more done: where it is now is still below the knee. (Or the knee is between: halfway
                // serves for both.)
                self.alone_s = Some(alone_s.max(libm::sqrt(unit_s * before.unit_s(look.variation))));
                self.raise_wait = WAIT_LEAST;
                self.next_probe_at = look.now;
                return self.hold(look);
            }
            self.raise_wait = (self.raise_wait * 2).max(lasted * 20).min(WAIT_MOST);
            self.next_raise_at = look.now + self.raise_wait;
            self.next_probe_at = look.now + PROBE_WAIT.max(lasted * 20);
            return self.go_to_knee(look, alone_s * now.work_rate(look.variation));
        }
        // In doubt throughput is worth more than a short line at the origin, unless it is known what a request takes.
        let is_above_knee =
            self.is_trusted && now.in_flight() > 0.9 * alone_s * now.work_rate(look.variation);
        let doubt = if is_above_knee { 0.0 } else { (0.5 * error).min(GAIN) };
        if gain > GAIN - doubt {
            self.trim_wait = (self.trim_wait * 2).max(lasted * 20).min(WAIT_MOST);
            self.next_trim_at = look.now + self.trim_wait;
            self.move_to(look, round(before.in_flight()), Phase::Back(now));
            return Rule::Restore;
        }
        self.alone_s = Some(alone_s.min(unit_s));
        self.trim_wait = WAIT_LEAST;
        self.next_trim_at = look.now;
        self.hold(look)
    }

    fn judge_back(&mut self, look: &Look, low: &Measured) -> Rule {
        let now = self.window;
        let (gain, distance) = gain(look, low, &now);
        let error = errors(look, low, &now) / distance.abs().max(0.05);
        if !is_decided(look, low, &now, gain, error) {
            return Rule::None;
        }
        self.phase = Phase::Hold;
        if gain > GAIN {
            // Fewer in flight did less: what a request took then is what it takes alone.
            let low_s = low.unit_s(look.variation);
            self.alone_s = Some(self.alone_s.unwrap_or(low_s).max(low_s));
            self.is_trusted = true;
        }
        self.hold(look)
    }

    fn move_to(&mut self, look: &Look, limit: u32, phase: Phase) {
        let limit = limit.clamp(1, SENTRY_IN_FLIGHT);
        self.phase = phase;
        if limit != self.limit {
            let each_s = self.window.in_flight_s / self.window.completed.max(1.0);
            // Those who are there now stay for their mean residual time, (1 + variation)/2 of the mean.
            let settle_s = each_s * (1.5_f64).max(0.75 * (1.0 + look.variation.all));
            self.settles_at = look.now + Duration::from_secs_f64(settle_s.clamp(0.0, SETTLE_MOST_S));
            self.limit = limit;
        }
        self.window = Measured::default();
    }
}

/// Requests in flight while nothing is known. A small origin serves them within seconds, a large one lets them double
/// within a few responses.
const START: u32 = 8;
/// What of the target the origin may take: the rest is for waiting at the gate.
const TARGET_SHARE: f64 = 0.6;
/// From here on the origin takes too much of it. (A gap, so that the limit does not move for ever.)
const TARGET_SHARE_MOST: f64 = 0.7;
/// Nothing is cut by more at once on the word of an estimate that was never tested.
const CUT_MOST: f64 = 0.5;
/// One step up.
const RAISE: f64 = 1.3;
/// How far below the knee a test goes: far enough for an answer soon, near enough to cost little.
const TRIM: f64 = 0.7;
/// The least step of a cut for the target: smaller ones cannot be judged.
const TARGET_STEP: f64 = 0.7;
/// How often inherent times are taken over while the limit does not bind.
const QUIET_LOOK_S: f64 = 0.5;
/// After a move nobody waits longer than this for the origin to settle.
const SETTLE_MOST_S: f64 = 1.0;
/// Tests in one direction are at least so far apart, and after failing at most so far.
const WAIT_LEAST: Duration = Duration::from_secs(2);
/// A limit above the knee is raised so often to see whether the knee is where it is thought to be.
const PROBE_WAIT: Duration = Duration::from_secs(10);
/// The first test in an overload.
const TRIM_FIRST: Duration = Duration::from_secs(3);
const WAIT_MOST: Duration = Duration::from_secs(60);
