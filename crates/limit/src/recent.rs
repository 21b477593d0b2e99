//! Requests of a class of the last 16 completions or two seconds: completions beside expected ones, and those
//! that are late. [`prompt`](crate::prompt) has the rule.

/// Requests of a class in the recent past.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recent {
    completed: f64,
    expected: f64,
    /// Of the completed, those that took several times as long as usual; and such requests in flight at the
    /// end of the tick.
    completed_late: f64,
    pub(crate) in_flight_late: f64,
    /// Sum of the ages of these, seconds.
    pub(crate) ages_late_s: f64,
}

impl Recent {
    /// Forgets with time.
    pub(crate) fn fade(&mut self, span_s: f64) {
        self.scale(span_s / RECENT_S);
        (self.in_flight_late, self.ages_late_s) = (0.0, 0.0);
    }

    /// Counts a tick: completions beside expected ones.
    pub(crate) fn add(&mut self, completed: f64, expected: f64) {
        let expected = expected.max(0.0);
        self.scale(completed.max(expected) / RECENT);
        self.completed += completed;
        self.expected += expected;
    }

    /// Counts late requests of an age.
    pub(crate) fn add_late(&mut self, completed: f64, in_flight: f64, age_s: f64) {
        self.completed_late += completed;
        self.in_flight_late += in_flight;
        self.ages_late_s += in_flight * age_s;
    }

    fn scale(&mut self, decay: f64) {
        let part = libm::exp(-decay);
        self.completed *= part;
        self.expected *= part;
        self.completed_late *= part;
    }

    /// True if most requests are late. Requests in flight that are not yet late may become it, and say
    /// nothing; nor do a few, as long as any are present.
    pub(crate) fn is_late(self, was_late: bool, is_present: bool) -> bool {
        let late = self.completed_late + self.in_flight_late;
        let known = self.completed + self.in_flight_late;
        match was_late {
            true => late > LATE_STILL * known || is_present && known < LATE_MIN,
            false => late > LATE * known && known >= LATE_MIN,
        }
    }

    /// True if requests complete as soon as usual, to a step of stretch.
    pub(crate) fn is_prompt(self) -> bool {
        self.completed >= PROMPT_MIN && self.expected <= PROMPT * self.completed
    }

    /// True if they complete at half of the usual speed or faster.
    pub(crate) fn is_prompt_still(self) -> bool {
        self.expected < PROMPT_STILL * self.completed + 1.5
    }
}

/// True if a request is late: Λ(t/4) ≥ 3, so that t is four times what nineteen in twenty took at most.
pub(crate) fn is_late(hazard: f32) -> bool {
    hazard >= LATE_HAZARD
}

/// Completions, expected or not, that are recent, and seconds.
const RECENT: f64 = 16.0;
const RECENT_S: f64 = 2.0;
/// Steps of stretch, a factor of 4, and the hazard from which on requests that much faster are late.
pub(crate) const LATE_STEPS: usize = 8;
const LATE_HAZARD: f32 = 3.0;
/// Requests without which nothing is known, part of them from which on it is, and part down to which it stays
/// so.
const LATE_MIN: f64 = 4.0;
const LATE: f64 = 0.5;
const LATE_STILL: f64 = 0.25;
/// Completions without which a class is not prompt, stretch up to which it becomes it, a step, and up to
/// which it stays one.
const PROMPT_MIN: f64 = 4.0;
const PROMPT: f64 = 1.19;
const PROMPT_STILL: f64 = 2.0;
