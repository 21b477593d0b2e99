//! NEWS as published: `paper` (the text) and `scoreboard` (the order of the authors' simulator code).
//!
//! Both compare first and update the averages afterwards. The text's other order (update, then compare) can
//! fire only when responses fall below 0.53 of their average *and* requests rise 3.7-fold, and for margins of
//! 0.143 and more never (flaw N-2 in docs/algorithms/news.md), so it is not offered.
//!
//! `paper`: alarm when responses < average·(1−δ) and requests > average·(1+δ); off when responses >
//! average·(1+δ). Averages have memory 0.125 in calm, 0.875 in alarm. `scoreboard`: two latches, responses
//! and requests, each with its own set and clear condition, and the alarm is both together; memory 0.875
//! always. Requests are the *admitted* ones in both, as in the paper's prototype (flaw in §1.4: while
//! limiting, the limiter itself lowers what the condition looks at).
//!
//! Responses are judged by one signal, which has its own average: the transfer rate, as published, once one
//! was measured; before that the latency score. A window without that signal is one without responses. The
//! signal never changes during an alarm.
//!
//! The ceiling: at 0→1 the admitted rate; while 1→1, ±20 % in the direction with the better score (ties up);
//! a move whose next tick ends the alarm scores +1, else −1; it is never removed (flaws N-6 to N-8, kept on
//! purpose: this mode exists for comparison).

use super::{Baseline, Cause, Rule, window::Measurement};
use flashweir_core::measure::HighLowFilter;

/// Memory of the averages in calm (paper only) and otherwise (NEWS §4.2; authors' code).
const MEMORY_FAST: f64 = 0.125;
const MEMORY_STABLE: f64 = 0.875;
/// The step of the ceiling in the authors' code; the paper gives none.
const STEP: f64 = 0.2;
/// A ceiling is never below one request a second: zero would end all measurement.
const CEILING_MIN_RPS: f64 = 1.0;

/// One of the two published forms.
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
    signal: Signal,
    fast_rate: HighLowFilter,
    fast_score: HighLowFilter,
    requests: HighLowFilter,
    response_alarm: bool,
    request_alarm: bool,
    alarm: bool,
    ceiling_rps: Option<f64>,
    score_up: i32,
    score_down: i32,
    last_move: Direction,
}

/// Signal by which responses are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Rate,
    Score,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Published {
    pub(super) fn new(form: Form, margin: f64, known: &Baseline) -> Self {
        let average = |known: Option<f64>| known.map_or_else(HighLowFilter::default, HighLowFilter::seeded);
        Self {
            form,
            margin,
            signal: if known.fast_rate_bytes_per_s.is_some() { Signal::Rate } else { Signal::Score },
            fast_rate: average(known.fast_rate_bytes_per_s),
            fast_score: average(known.fast_score),
            requests: average(known.unique_offered_rps),
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
        if measured.fast_rate.is_some() && !self.alarm {
            self.signal = Signal::Rate;
        }
        let (signal, usual) = match self.signal {
            Signal::Rate => (measured.fast_rate, self.fast_rate.value()),
            Signal::Score => (measured.fast_score, self.fast_score.value()),
        };
        let Some(responses) = signal.map(|fastest| fastest.mean) else {
            return (Rule::None, Cause::TooFewSamples);
        };
        let requests_rps = measured.admitted_rps;
        let (Some(usual), Some(usual_rps)) = (usual, self.requests.value()) else {
            self.learn(measured);
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
        self.learn(measured);
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

    /// The average of the fastest tenth's rates.
    pub(super) fn fast_rate_usual(&self) -> Option<f64> {
        self.fast_rate.value()
    }

    /// The average of the fastest tenth's latency scores.
    pub(super) fn fast_score_usual(&self) -> Option<f64> {
        self.fast_score.value()
    }

    /// The average of requests per second.
    pub(super) fn requests_usual_rps(&self) -> Option<f64> {
        self.requests.value()
    }

    fn learn(&mut self, measured: &Measurement) {
        let memory = if self.form == Form::Paper && !self.alarm { MEMORY_FAST } else { MEMORY_STABLE };
        let signals =
            [(&mut self.fast_rate, measured.fast_rate), (&mut self.fast_score, measured.fast_score)];
        for (average, fastest) in signals {
            if let Some(fastest) = fastest {
                average.update(fastest.mean, memory);
            }
        }
        self.requests.update(measured.admitted_rps, memory);
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

#[cfg(test)]
mod tests {
    use super::super::window::Fastest;
    use super::*;

    fn measured(fast_rate: Option<f64>, fast_score: f64, admitted_rps: f64) -> Measurement {
        let fastest = |mean| Fastest { mean, chance: 0.0 };
        Measurement {
            fast_rate: fast_rate.map(fastest),
            fast_score: Some(fastest(fast_score)),
            admitted_rps,
            ..Measurement::default()
        }
    }

    /// Goal: a window of small responses only is no collapse of the transfer rate. Method: every second
    /// window has a rate of a megabyte a second, the others only the score of 1; demand swings by more than
    /// the margin. (One average of both took the score for a rate a million times too low, and alarmed.)
    #[test]
    fn a_window_without_rates_is_not_judged_by_the_average_of_rates() {
        for form in [Form::Paper, Form::Code] {
            let mut published = Published::new(form, 0.10, &Baseline::default());
            for tick in 0..100 {
                let (rate, rps) = if tick % 2 == 0 { (Some(1e6), 100.0) } else { (None, 130.0) };
                let (rule, cause) = published.step(&measured(rate, 1.0, rps));
                assert!(!published.is_alarmed(), "{form:?}, tick {tick}: {rule:?}, {cause:?}");
            }
            assert_eq!((published.fast_rate_usual(), published.fast_score_usual()), (Some(1e6), Some(1.0)));
        }
    }

    /// Goal: the signal that raised an alarm ends it. Method: an alarm by scores; then rates are measured
    /// for the first time.
    #[test]
    fn an_alarm_ends_by_the_signal_that_raised_it() {
        let mut published = Published::new(Form::Paper, 0.10, &Baseline::default());
        for _ in 0..10 {
            published.step(&measured(None, 1.0, 100.0));
        }
        published.step(&measured(None, 0.3, 200.0));
        assert!(published.is_alarmed());
        published.step(&measured(Some(1e6), 0.3, 200.0));
        assert!(published.is_alarmed(), "scores are as bad as before");
        published.step(&measured(Some(1e6), 1.0, 200.0));
        assert!(!published.is_alarmed());
    }
}
