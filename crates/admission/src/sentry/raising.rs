//! When the limit goes up: on a hint, as long as responses are in time.

use super::judgement::{Experiment, Verdict, Why};
use super::limit::{LimitRule, MARGIN, RAISE_MOST, RAISE_WAIT, round};
use super::look::Look;
use super::patience::Patience;
use super::plan::Rule;

impl LimitRule {
    /// Up where requests are not in each other's way, or nothing is known yet.
    pub(super) fn raise(&mut self, look: &Look, is_unhindered: bool, error: f64) -> Option<Rule> {
        let work_rate = self.window.work_rate(look.variation);
        let is_bearable = self.is_trusted
            || self.was_cut_in_vain(look)
            || look.p95_s.is_none_or(|p95_s| p95_s < look.target_s);
        // An origin that does more than when raising did not help is another one now.
        let may = !self.is_known
            || (is_unhindered || look.is_room_told())
                && (work_rate > self.enough_work * (1.15 + 2.0 * error)
                    || self.raise.is_over(look.now)
                    || self.raise_unhindered.is_over(look.now));
        if is_bearable && may {
            self.raise_by(look, self.bearable(look).min(self.raise_step));
            return Some(Rule::Raise);
        }
        let wanted = self.above(self.knee.unwrap_or(0.0));
        if self.is_trusted && f64::from(self.limit) * (1.0 + error) < f64::from(wanted) {
            self.move_to(look, wanted);
            return Some(Rule::Knee);
        }
        None
    }

    /// Up now and then, whatever is thought of the knee: where requests slow each other down a little from the start,
    /// only this tells that more would be done.
    pub(super) fn probe(&mut self, look: &Look) -> Option<Rule> {
        (self.raise.is_over(look.now) && !look.is_full_told()).then(|| {
            self.raise_by(look, self.raise_step);
            Rule::Raise
        })
    }

    /// Responses became late: more was not borne.
    pub(super) fn is_raised_too_far(&self, look: &Look, experiment: &Experiment) -> bool {
        experiment.why == Why::Raise
            && self.is_late(look)
            && !self.was_cut_in_vain(look)
            && experiment.p95_grew(look, 1.2)
    }

    /// Whether to go on from here.
    pub(super) fn judge_raise(&mut self, look: &Look, experiment: &Experiment, verdict: Verdict) -> bool {
        let before_s = experiment.before.unit_s(look.variation);
        let alone_s = self.alone_s.unwrap_or(before_s);
        match verdict {
            // At first in doubt up.
            Verdict::Unclear(true) if !self.is_known => {
                self.raise = Patience::new(RAISE_WAIT);
                return true;
            }
            Verdict::Followed => {
                self.alone_s = Some(alone_s.max(before_s));
                self.raise = Patience::new(RAISE_WAIT);
                self.raise_step = RAISE_MOST;
                self.has_raise_helped = true;
                self.margin = MARGIN;
                return true;
            }
            Verdict::Stayed => self.alone_s = Some(alone_s.min(before_s)),
            Verdict::Opposed => self.margin = 1.0,
            Verdict::Unclear(_) | Verdict::Changed => {}
        }
        self.give_up_raising(look, experiment, true);
        false
    }

    /// Back to where the raise began, or to a margin above the knee if that is higher. One that ended because
    /// responses became late (not `was_borne`) is not soon tried again.
    pub(super) fn give_up_raising(&mut self, look: &Look, experiment: &Experiment, was_borne: bool) {
        let work_rate = self.window.work_rate(look.variation);
        self.is_known = true;
        self.raise_unhindered = Patience::new(RAISE_WAIT + RAISE_WAIT / 2);
        if was_borne {
            self.raise_unhindered.fail(look.now);
        } else {
            self.raise_unhindered = self.raise;
            self.raise_unhindered.fail(look.now);
        }
        self.raise.fail(look.now);
        self.raise_step = libm::sqrt(self.raise_step);
        self.has_raise_helped = false;
        self.enough_work = work_rate.max(experiment.before.work_rate(look.variation));
        let before = experiment.limit_before;
        let back = if self.is_late(look) || self.margin < MARGIN {
            before
        } else {
            let knee = match self.alone_s {
                Some(alone_s) if self.is_trusted => alone_s * work_rate,
                _ => f64::from(before),
            };
            self.above(knee).clamp(before.min(self.limit), self.limit)
        };
        self.move_to(look, back);
    }

    fn raise_by(&mut self, look: &Look, factor: f64) {
        let raised = round(f64::from(self.limit) * factor.max(RAISE_LEAST)).max(self.limit.saturating_add(1));
        self.try_limit(look, raised, Why::Raise);
    }

    /// By how much the limit can go up with responses in time, even if nothing more were done.
    fn bearable(&self, look: &Look) -> f64 {
        match look.p95_s {
            _ if self.has_raise_helped || self.was_cut_in_vain(look) => RAISE_MOST,
            Some(p95_s) => look.target_s / p95_s,
            None if self.is_known => RAISE_LEAST,
            None => RAISE_MOST,
        }
    }
}

/// The least step up: smaller ones cannot be judged.
const RAISE_LEAST: f64 = 1.2;
