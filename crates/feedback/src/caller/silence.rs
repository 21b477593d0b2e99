//! Detection of a silent node. Feedback cannot report that its node is gone; exchanges that end without an
//! answer show it.
//!
//! | state | requests | until |
//! |---|---|---|
//! | answering | go | [`UNANSWERED_MIN`] exchanges in a row had no answer and none came for [`QUIET`] |
//! | silent | are refused; one goes as a trial each time the wait is over, which doubles from [`TRIAL_FIRST`] to [`TRIAL_LONGEST`] | any answer |
//! | returning | go at a rate that begins with half of what is offered and grows by half each second | it binds no more, 2.7 s later |
//!
//! Any answer counts, an error of the node's included: a node that answers is asked to say itself how much it
//! can serve. So a request that always fails never stops the others, and a node at 50 % errors is not cut
//! off.
//!
//! Why a ramp: the node may have been restarted in the middle of a crowd, and has neither warm caches nor its
//! own limit yet. Failure modes: a node that answers nothing within its callers' deadlines counts as silent
//! although it works; its work was of no use.

use flashweir_core::{Duration, Instant, Rate};

/// Exchanges without answer that make a silence: one or two may be the fault of the requests themselves.
const UNANSWERED_MIN: u32 = 3;
/// Time without an answer that makes a silence. Longer than a server takes to accept again after a reload; a
/// dead node is noticed in 2 s with a connect timeout of 1 s.
const QUIET: Duration = Duration::from_secs(1);
/// The first trial follows the beginning of the silence by this time.
const TRIAL_FIRST: Duration = Duration::from_millis(250);
/// The longest time between trials: how late a node that is back is noticed at most.
const TRIAL_LONGEST: Duration = Duration::from_secs(1);
/// The part of what is offered that goes to a node at once when it is back.
const RAMP_FIRST: f64 = 0.5;
/// Factor by which that grows in a second.
const RAMP_GROWTH_PER_S: f64 = 1.5;
/// A ramp of this many times what is offered binds no request and ends.
const RAMP_OPEN: f64 = 1.5;
/// The ramp's least rate, requests a second: what a silence of a quiet sender begins with.
const RAMP_MIN_RPS: f64 = 1.0;

/// State of a node: it answers, or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SilenceState {
    /// It does, as far as is known.
    Answering,
    /// It does not.
    Silent {
        /// Since when.
        since: Instant,
    },
    /// It does again.
    Returning {
        /// Since when.
        since: Instant,
    },
}

/// Permission of a request to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// As others.
    Go,
    /// To find out whether the node is back.
    Trial,
    /// Not before this time has passed.
    Stay(Duration),
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    state: SilenceState,
    /// Exchanges in a row without an answer.
    unanswered: u32,
    /// The newest answer, or the first exchange without one since there was none.
    quiet_since: Option<Instant>,
    trial_at: Instant,
    trial_wait: Duration,
    /// Offered rate when the node came back, requests a second.
    offered_rps: f64,
}

impl Default for Silence {
    fn default() -> Self {
        Self {
            state: SilenceState::Answering,
            unanswered: 0,
            quiet_since: None,
            trial_at: Instant::ZERO,
            trial_wait: TRIAL_FIRST,
            offered_rps: 0.0,
        }
    }
}

impl Silence {
    /// An exchange ended with an answer of any status. `offered` is the rate that arrives for the node now.
    pub fn answered(&mut self, now: Instant, offered: Rate) {
        self.unanswered = 0;
        self.quiet_since = Some(now);
        if let SilenceState::Silent { .. } = self.state {
            self.state = SilenceState::Returning { since: now };
            self.offered_rps = offered.per_second().max(RAMP_MIN_RPS);
            self.trial_wait = TRIAL_FIRST;
        }
    }

    /// An exchange ended without: no connection, a reset before the response, or no response in time.
    pub fn unanswered(&mut self, now: Instant) {
        let quiet_since = *self.quiet_since.get_or_insert(now);
        self.unanswered = self.unanswered.saturating_add(1);
        let is_quiet = now.saturating_since(quiet_since) >= QUIET;
        let is_silent = matches!(self.state, SilenceState::Silent { .. });
        if !is_silent && is_quiet && self.unanswered >= UNANSWERED_MIN {
            self.state = SilenceState::Silent { since: now };
            self.trial_wait = TRIAL_FIRST;
            self.trial_at = now + self.trial_wait;
        }
    }

    /// Decides whether a request may go.
    pub(crate) fn leave(&mut self, now: Instant) -> Leave {
        let SilenceState::Silent { .. } = self.state else { return Leave::Go };
        if now < self.trial_at {
            return Leave::Stay(self.trial_at.saturating_since(now));
        }
        self.trial_wait = (self.trial_wait * 2).min(TRIAL_LONGEST);
        self.trial_at = now + self.trial_wait;
        Leave::Trial
    }

    /// Returns whether the next request goes as a trial.
    pub(crate) fn is_trial_due(&self, now: Instant) -> bool {
        matches!(self.state, SilenceState::Silent { .. }) && now >= self.trial_at
    }

    /// The rate that may go to a node that is back; none where that binds no request.
    pub(crate) fn ramp(&mut self, now: Instant) -> Option<Rate> {
        let SilenceState::Returning { since } = self.state else { return None };
        let growth = libm::pow(RAMP_GROWTH_PER_S, now.saturating_since(since).as_secs_f64());
        if RAMP_FIRST * growth >= RAMP_OPEN {
            self.state = SilenceState::Answering;
            return None;
        }
        Some(Rate::from_per_second(RAMP_FIRST * growth * self.offered_rps))
    }

    /// The present state.
    #[must_use]
    pub fn state(&self) -> SilenceState {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OFFERED: Rate = Rate::from_milli(100_000);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn silent(since_ms: u64) -> Silence {
        let mut silence = Silence::default();
        silence.answered(at(since_ms - 1_000), OFFERED);
        (0..3).for_each(|_| silence.unanswered(at(since_ms)));
        assert_eq!(silence.state(), SilenceState::Silent { since: at(since_ms) });
        silence
    }

    #[test]
    fn a_dead_node_is_noticed_a_second_after_its_last_answer() {
        let mut silence = Silence::default();
        silence.answered(at(10_000), OFFERED);
        (10_001..11_000).for_each(|ms| silence.unanswered(at(ms)));
        assert_eq!(silence.state(), SilenceState::Answering);
        silence.unanswered(at(11_000));
        assert_eq!(silence.state(), SilenceState::Silent { since: at(11_000) });
    }

    #[test]
    fn errors_of_single_requests_and_a_quiet_sender_make_no_silence() {
        let mut silence = Silence::default();
        silence.answered(at(1_000), OFFERED);
        silence.unanswered(at(60_000));
        silence.unanswered(at(120_000));
        assert_eq!(silence.state(), SilenceState::Answering);
        silence.answered(at(120_001), OFFERED);
        for _ in 0..1_000 {
            silence.unanswered(at(120_500));
        }
        assert_eq!(silence.state(), SilenceState::Answering, "an answer came lately");
    }

    #[test]
    fn one_trial_at_a_time_until_an_answer_comes() {
        let mut silence = silent(5_000);
        assert_eq!(silence.leave(at(5_000)), Leave::Stay(Duration::from_millis(250)));
        let trials: Vec<u64> = (5_000..9_000).filter(|&ms| silence.leave(at(ms)) == Leave::Trial).collect();
        assert_eq!(trials, [5_250, 5_750, 6_750, 7_750, 8_750]);
        silence.answered(at(9_000), OFFERED);
        assert_eq!(silence.leave(at(9_000)), Leave::Go);
    }

    #[test]
    fn a_node_that_is_back_gets_its_load_step_by_step() {
        let mut silence = silent(5_000);
        silence.answered(at(6_000), OFFERED);
        let rate = |silence: &mut Silence, ms| silence.ramp(at(ms)).map(|rate| rate.per_second());
        assert_eq!(rate(&mut silence, 6_000), Some(50.0));
        assert_eq!(rate(&mut silence, 7_000), Some(75.0));
        assert_eq!(rate(&mut silence, 8_720), None);
        assert_eq!(silence.state(), SilenceState::Answering);
    }

    use alloc::vec::Vec;

    proptest! {
        /// An answer always ends a silence, and a silent node gets no more than one request each quarter of a
        /// second.
        #[test]
        fn trials_are_rare_and_answers_count(steps in proptest::collection::vec((0u64..400, 0u8..3), 1..300)) {
            let (mut silence, mut now_ms, mut last_trial) = (Silence::default(), 1, None);
            for (gap_ms, what) in steps {
                now_ms += gap_ms;
                match what {
                    0 => {
                        silence.answered(at(now_ms), OFFERED);
                        let is_silent = matches!(silence.state(), SilenceState::Silent { .. });
                        prop_assert!(!is_silent);
                    }
                    1 => silence.unanswered(at(now_ms)),
                    _ => if silence.leave(at(now_ms)) == Leave::Trial {
                        let wait = last_trial.map_or(u64::MAX, |last: u64| now_ms - last);
                        prop_assert!(wait >= 250, "{wait}");
                        last_trial = Some(now_ms);
                    }
                }
            }
        }
    }
}
