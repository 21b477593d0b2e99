//! When the limit comes down: on proof. Late responses, an origin that refuses, or nothing lost by it.

use super::judgement::{Experiment, Verdict, Why};
use super::limit::{LimitRule, TRIM_WAIT, round};
use super::look::Look;
use super::patience::Patience;
use super::plan::Rule;

impl LimitRule {
    /// Down where responses are late, but not below a knee that is known: there they would not be faster.
    pub(super) fn meet_target(&mut self, look: &Look, is_unhindered: bool) -> Option<Rule> {
        let p95_s = look.p95_least_s.filter(|_| self.is_late(look) && !(is_unhindered && self.is_trusted));
        let Some(p95_s) = p95_s else {
            self.target_infeasible = is_unhindered && look.p95_s.is_some_and(|p95_s| p95_s > look.target_s);
            return None;
        };
        let limit = f64::from(self.limit);
        let error = self.window.error(look.variation);
        let floor = if self.is_trusted { (self.knee.unwrap_or(0.0) * MARGIN_TIGHT).max(1.0) } else { 1.0 };
        let share = (TARGET_SHARE * look.target_s / p95_s).clamp(CUT_MOST, CUT_LEAST);
        let lower = round((limit * share).max(floor));
        let is_as_before = self.was_cut_in_vain(look) && p95_s < 1.5 * self.in_vain_p95_s;
        if limit < floor * (1.1 + 2.0 * error) || lower >= self.limit || is_as_before {
            self.target_infeasible = p95_s > look.target_s;
            self.is_known = true;
            return (!is_unhindered).then_some(Rule::None);
        }
        self.try_limit(look, lower, Why::Target);
        Some(Rule::Target)
    }

    /// Down where the limit is far above the knee, or what the knee rests on was never tested.
    pub(super) fn trim(&mut self, look: &Look, error: f64) -> Option<Rule> {
        if !self.trim.is_over(look.now) {
            return None;
        }
        let wanted = self.above(self.knee?);
        let trimmed = round(TRIM * f64::from(self.limit));
        let lower = if f64::from(self.limit) > f64::from(wanted) * 1.15 * (1.0 + error) {
            wanted.max(trimmed)
        } else if self.is_trusted {
            self.limit
        } else {
            trimmed.max(2)
        };
        (lower < self.limit).then(|| {
            self.try_limit(look, lower, Why::Trim);
            Rule::Trim
        })
    }

    /// Whether to go on from here.
    pub(super) fn judge_lower(&mut self, look: &Look, experiment: &Experiment, verdict: Verdict) -> bool {
        let unit_s = self.window.unit_s(look.variation);
        let alone_s = self.alone_s.unwrap_or(unit_s);
        match verdict {
            Verdict::Stayed | Verdict::Opposed => {
                if verdict == Verdict::Opposed {
                    self.margin = 1.0;
                }
                self.alone_s = Some(alone_s.min(unit_s));
                self.trim = Patience::new(TRIM_WAIT);
                return true;
            }
            Verdict::Followed => {
                self.alone_s = Some(alone_s.max(unit_s));
                self.is_trusted = true;
            }
            Verdict::Unclear(_)
                if experiment.why == Why::Target && experiment.has_hastened(look, self.limit) =>
            {
                return true;
            }
            Verdict::Unclear(_) | Verdict::Changed => {}
        }
        self.is_known = true;
        if experiment.why == Why::Target {
            self.cut.fail(look.now);
            self.in_vain_p95_s = experiment.p95_s.unwrap_or(0.0);
        }
        self.trim.fail(look.now);
        self.move_to(look, experiment.limit_before);
        false
    }

    /// Whether responses take too much of the target, beyond doubt. At first it is not known which way is better: up,
    /// unless they are really late.
    pub(super) fn is_late(&self, look: &Look) -> bool {
        let share_most = if self.is_known { TARGET_SHARE_MOST } else { 1.0 };
        look.p95_least_s.is_some_and(|p95_s| p95_s > share_most * look.target_s)
    }

    /// Whether, not long ago, fewer in flight were not answered faster.
    pub(super) fn was_cut_in_vain(&self, look: &Look) -> bool {
        !self.cut.is_over(look.now)
    }

    pub(super) fn leave_refusals(&mut self, look: &Look) -> Rule {
        let lower = CUT_LEAST * self.window.in_flight().min(f64::from(self.limit));
        self.raise.fail(look.now);
        self.raise_unhindered = self.raise;
        self.is_known = true;
        self.move_to(look, round(lower));
        Rule::Target
    }

    /// Hardly anybody is served: whatever is known, it is of another origin.
    pub(super) fn is_swamped(&self, look: &Look) -> bool {
        let window = &self.window;
        self.limit > 1
            && look.p95_s.is_some_and(|p95_s| p95_s > 2.0 * look.target_s)
            && window.span_s > look.target_s
            && window.completed < SWAMPED * window.in_flight()
    }

    pub(super) fn leave_swamp(&mut self, look: &Look) -> Rule {
        self.alone_s = None;
        self.is_trusted = false;
        self.move_to(look, self.limit / 2);
        Rule::Target
    }
}

/// What of the target the origin may take: the rest is for waiting at the gate.
const TARGET_SHARE: f64 = 0.6;
/// From here on the origin takes too much of it. (A gap, so that the limit does not move for ever.)
const TARGET_SHARE_MOST: f64 = 0.7;
/// The limit over the knee where responses are late anyway.
const MARGIN_TIGHT: f64 = 1.05;
/// Nothing is cut by more at once on the word of an estimate that was never tested.
const CUT_MOST: f64 = 0.5;
/// The least step of a cut: smaller ones cannot be judged.
const CUT_LEAST: f64 = 0.75;
/// How far down a test goes: half as many tell soon.
const TRIM: f64 = 0.5;
/// The share of those in flight that is completed within a target, at most, by an origin that is swamped.
const SWAMPED: f64 = 0.05;
