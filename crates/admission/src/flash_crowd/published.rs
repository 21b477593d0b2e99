//! NEWS as published: `paper` (the text) and `scoreboard` (the order of the authors' simulator code).
//!
//! Both compare first and update the averages afterwards. The text's other order (update, then compare) can
//! fire only when responses fall below 0.53 of their average *and* requests rise 3.7-fold, and for margins of
//! 0.143 and more never (flaw N-2 in docs/algorithms/news.md), so it is not offered.
//!
//! `paper`: alarm when responses < average·(1−δ) and requests > average·(1+δ); off when responses >
//! average·(1+δ). Averages have memory 0.125 in calm, 0.875 in alarm.
//! `scoreboard`: two latches, responses and requests, each with its own set and clear condition, and the alarm
//! is both together; memory 0.875 always.
//! Requests are the *admitted* ones in both, as in the paper's prototype (flaw in §1.4: while limiting, the
//! limiter itself lowers what the condition looks at).
//!
//! The ceiling: at 0→1 the admitted rate; while 1→1, ±20 % in the direction with the better score (ties up); a
//! move whose next tick ends the alarm scores +1, else −1; it is never removed (flaws N-6 to N-8, kept on
//! purpose: this mode exists for comparison).

use super::{Cause, Rule, window::Measurement};
use flashweir_measure::HighLowFilter;

/// Memory of the averages in calm (paper only) and otherwise (NEWS §4.2; authors' code).
const MEMORY_FAST: f64 = 0.125;
const MEMORY_STABLE: f64 = 0.875;
/// The step of the ceiling in the authors' code; the paper gives none.
const STEP: f64 = 0.2;
/// A ceiling is never below one request a second: zero would end all measurement.
const CEILING_MIN_RPS: f64 = 1.0;

/// Which of the two published forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Paper,
    Code,
}

/// Detector and ceiling as published.
#[derive(Debug)]
pub(super) struct Published {
    form: Form,
    margin: f64,
    responses: HighLowFilter,
    requests: HighLowFilter,
    response_alarm: bool,
    request_alarm: bool,
    alarm: bool,
    ceiling_rps: Option<f64>,
    score_up: i32,
    score_down: i32,
    last_move: Direction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Published {
    pub(super) fn new(form: Form, margin: f64, responses: Option<f64>, requests: Option<f64>) -> Self {
        Self {
            form,
            margin,
            responses: responses.map_or_else(HighLowFilter::default, HighLowFilter::seeded),
            requests: requests.map_or_else(HighLowFilter::default, HighLowFilter::seeded),
            response_alarm: false,
            request_alarm: false,
            alarm: false,
            ceiling_rps: None,
            score_up: 0,
            score_down: 0,
            last_move: Direction::Down,
        }
    }

    /// One tick. A window without responses is skipped: nothing changes.
    pub(super) fn step(&mut self, measured: &Measurement) -> (Rule, Cause) {
        let Some(responses) = measured.fast_rate.or(measured.fast_score).map(|fastest| fastest.mean) else {
            return (Rule::None, Cause::TooFewSamples);
        };
        let requests_rps = measured.admitted_rps;
        let (Some(usual), Some(usual_rps)) = (self.responses.value(), self.requests.value()) else {
            self.learn(responses, requests_rps);
            return (Rule::Seed, Cause::Calm);
        };
        let before = self.alarm;
        let worse = responses < usual * (1.0 - self.margin);
        let better = responses > usual * (1.0 + self.margin);
        let risen = requests_rps > usual_rps * (1.0 + self.margin);
        let fallen = requests_rps < usual_rps * (1.0 - self.margin);
        self.alarm = match self.form {
            Form::Paper if before => !better,
            Form::Paper => worse && risen,
            Form::Code => {
                self.response_alarm = if self.response_alarm { !better } else { worse };
                self.request_alarm = risen || self.request_alarm && !fallen;
                self.response_alarm && self.request_alarm
            }
        };
        self.learn(responses, requests_rps);
        let rule = self.control(before, requests_rps);
        let cause = match (self.alarm, worse, risen) {
            (true, _, _) => Cause::Popular,
            (false, true, _) => Cause::SlowBackend,
            (false, false, true) => Cause::SurgeOk,
            (false, false, false) => Cause::Calm,
        };
        (rule, cause)
    }

    pub(super) fn is_alarmed(&self) -> bool {
        self.alarm
    }

    pub(super) fn ceiling_rps(&self) -> Option<f64> {
        self.ceiling_rps
    }

    /// The averages: responses, requests per second.
    pub(super) fn averages(&self) -> (Option<f64>, Option<f64>) {
        (self.responses.value(), self.requests.value())
    }

    fn learn(&mut self, responses: f64, requests_rps: f64) {
        let memory = if self.form == Form::Paper && !self.alarm { MEMORY_FAST } else { MEMORY_STABLE };
        self.responses.update(responses, memory);
        self.requests.update(requests_rps, memory);
    }

    fn control(&mut self, before: bool, admitted_rps: f64) -> Rule {
        match (before, self.alarm) {
            (false, true) => {
                (self.score_up, self.score_down) = (0, 0);
                // The clamp counts as a decrease, so the first move of an alarm is an increase (tie).
                self.last_move = Direction::Down;
                self.ceiling_rps = Some(admitted_rps.max(CEILING_MIN_RPS));
                Rule::Raise
            }
            (true, true) => {
                self.charge(-1);
                let up = self.score_up >= self.score_down;
                let factor = if up { 1.0 + STEP } else { 1.0 - STEP };
                self.last_move = if up { Direction::Up } else { Direction::Down };
                self.ceiling_rps = self.ceiling_rps.map(|rate| (rate * factor).max(CEILING_MIN_RPS));
                if up { Rule::ProbeUp } else { Rule::Cut }
            }
            (true, false) => {
                self.charge(1);
                Rule::Hold
            }
            (false, false) => Rule::Learn,
        }
    }

    fn charge(&mut self, points: i32) {
        match self.last_move {
            Direction::Up => self.score_up += points,
            Direction::Down => self.score_down += points,
        }
    }
}
