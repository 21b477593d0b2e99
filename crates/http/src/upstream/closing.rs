//! Habits of an upstream that closes connections, learned from those it closed.
//!
//! Servers close a connection that has been idle for some seconds, or that has given some number of answers,
//! and most don't announce it (RFC 9112 §9.3 and §9.5 let them). A request that is sent just then is lost,
//! and if it may not be repeated, fails. So the pool gives a connection up a little before the upstream has
//! been observed to.
//!
//! | observed | when | learned |
//! |---|---|---|
//! | idle time at the close | [`IDLE_TIMES`] times alike, 5 ms or more | maximum idle time: the shorter one less a tenth and 1 ms |
//! | answers before the close | [`ANSWER_TIMES`] times the same, each within 100 ms of an answer or as a request came | maximum of answers |
//!
//! **Independent observations only.** A server that restarts closes all its connections at once, of any age.
//! So a second observation counts only if its connection was idle (for answers: was opened) after the first
//! one was made. **Bounds.** What is learned holds for five minutes after it was last observed: after a
//! server was replaced, the habits of the new one take its place, at the cost of those few observations.
//! Nothing learned is longer than what is configured. **Cost.** A comparison for each use of a connection.

use flashweir_core::{Duration, Instant};

/// Observations of one idle time: one may be a restart.
const IDLE_TIMES: u32 = 2;
/// Observations of one number of answers: small numbers agree by chance.
const ANSWER_TIMES: u32 = 3;
/// Shorter idle times are a close after an answer, and no time-out.
const IDLE_MIN: Duration = Duration::from_millis(5);
/// A close within this time after an answer belongs to the answer.
const PROMPT: Duration = Duration::from_millis(100);
/// Time for which a habit holds after it was last observed.
const LEARNED_FOR: Duration = Duration::from_secs(300);

/// A connection that the upstream has closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) opened: Instant,
    pub(super) answers: u32,
    pub(super) idle_since: Instant,
    /// Until the close was noticed, or until the request was sent that met it.
    pub(super) idle_for: Duration,
    /// A request was sent on it and got no answer.
    pub(super) met_request: bool,
}

/// The habits of one upstream, as one worker knows them.
#[derive(Debug, Default)]
pub(super) struct ClosingHabit {
    idle: Habit<Duration>,
    answers: Habit<u32>,
}

/// One habit: a value that was observed some times in a row.
#[derive(Debug, Default)]
struct Habit<T> {
    value: T,
    times: u32,
    observed: Instant,
}

impl ClosingHabit {
    pub(super) fn observe(&mut self, now: Instant, closing: Closing) {
        let Closing { opened, answers, idle_since, idle_for, met_request } = closing;
        if idle_for >= IDLE_MIN {
            self.idle.observe(now, idle_for, idle_since, are_alike);
        }
        if met_request || idle_for < PROMPT {
            self.answers.observe(now, answers, opened, |one, other| one == other);
        }
    }

    /// The longest time for which a connection may have been idle when it is used.
    pub(super) fn idle_max(&self, now: Instant, configured: Duration) -> Duration {
        match self.idle.learned(now, IDLE_TIMES) {
            Some(idle) => (idle - idle / 10).saturating_sub(Duration::from_millis(1)).min(configured),
            None => configured,
        }
    }

    /// Returns whether a connection that has given this many answers is to be used no more.
    pub(super) fn is_spent(&self, now: Instant, answers: u32) -> bool {
        self.answers.learned(now, ANSWER_TIMES).is_some_and(|max| answers >= max)
    }
}

impl<T: Copy + PartialOrd> Habit<T> {
    fn observe(&mut self, now: Instant, value: T, since: Instant, is_alike: fn(T, T) -> bool) {
        let is_recent = self.times > 0 && now.saturating_since(self.observed) < LEARNED_FOR;
        if is_recent && since < self.observed {
            return;
        }
        if is_recent && is_alike(self.value, value) {
            self.times = self.times.saturating_add(1);
            if value < self.value {
                self.value = value;
            }
        } else {
            (self.value, self.times) = (value, 1);
        }
        self.observed = now;
    }

    fn learned(&self, now: Instant, times: u32) -> Option<T> {
        let holds = self.times >= times && now.saturating_since(self.observed) < LEARNED_FOR;
        holds.then_some(self.value)
    }
}

/// Returns whether two idle times may be one time-out: timers of servers are coarse, and ours begins a round
/// trip later.
fn are_alike(one: Duration, other: Duration) -> bool {
    one.abs_diff(other) <= (one.max(other) / 4).max(IDLE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIGURED: Duration = Duration::from_secs(4);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A connection that was opened when it fell idle, closed after `idle_ms`, at `now_ms`.
    fn closed(now_ms: u64, idle_ms: u64, answers: u32, met_request: bool) -> (Instant, Closing) {
        let now = Instant::from_millis(now_ms);
        let idle_since = now - ms(idle_ms);
        (now, Closing { opened: idle_since, answers, idle_since, idle_for: ms(idle_ms), met_request })
    }

    fn habit(closings: &[(Instant, Closing)]) -> ClosingHabit {
        let mut habit = ClosingHabit::default();
        closings.iter().for_each(|(now, closing)| habit.observe(*now, *closing));
        habit
    }

    #[test]
    fn a_time_out_is_learned_from_two_closes_and_kept_a_little_below() {
        let first = closed(10_000, 2_000, 7, false);
        let now = Instant::from_millis(20_000);
        assert_eq!(habit(&[first]).idle_max(now, CONFIGURED), CONFIGURED, "one may be a restart");
        let learned = habit(&[first, closed(20_000, 2_010, 3, false)]);
        assert_eq!(learned.idle_max(now, CONFIGURED), ms(1_799));
        assert_eq!(learned.idle_max(now, ms(1_000)), ms(1_000), "never longer than configured");
        assert!(!learned.is_spent(now, 1_000), "the numbers of answers say nothing");
    }

    #[test]
    fn a_restart_closes_all_connections_and_is_one_observation() {
        let restart: Vec<_> = (0..50).map(|idle| closed(60_000, 1_000 + idle, 1, false)).collect();
        assert_eq!(habit(&restart).idle_max(Instant::from_millis(60_000), CONFIGURED), CONFIGURED);
        // The next one, with other ages.
        let two = [restart.as_slice(), &[closed(90_000, 3_000, 1, false)]].concat();
        assert_eq!(habit(&two).idle_max(Instant::from_millis(90_000), CONFIGURED), CONFIGURED);
    }

    #[test]
    fn what_was_learned_ends_unless_it_is_observed_again() {
        let mut habit = habit(&[closed(10_000, 2_000, 7, false), closed(20_000, 2_000, 7, false)]);
        let late = |secs: u64| Instant::from_secs(20 + secs);
        assert!(habit.idle_max(late(299), CONFIGURED) < CONFIGURED);
        assert_eq!(habit.idle_max(late(300), CONFIGURED), CONFIGURED);
        let (now, closing) = closed(310_000, 2_000, 7, false);
        habit.observe(now, closing);
        assert!(habit.idle_max(late(500), CONFIGURED) < CONFIGURED);
        // A server with another time-out in its place.
        for (now, closing) in [400, 410].map(|secs| closed(secs * 1_000, 3_500, 7, false)) {
            habit.observe(now, closing);
        }
        assert_eq!(habit.idle_max(Instant::from_secs(410), CONFIGURED), ms(3_149));
    }

    #[test]
    fn a_number_of_answers_is_learned_from_three_closes_with_the_same() {
        let now = Instant::from_millis(1_000);
        let at = |ms, answers| closed(ms, 0, answers, false);
        assert!(!habit(&[at(10, 2), at(20, 2)]).is_spent(now, 2));
        let learned = habit(&[at(10, 2), at(20, 2), at(30, 2)]);
        assert!(learned.is_spent(now, 2) && learned.is_spent(now, 3) && !learned.is_spent(now, 1));
        assert_eq!(learned.idle_max(now, CONFIGURED), CONFIGURED, "no time-out");
        assert!(!habit(&[at(10, 2), at(20, 3), at(30, 2)]).is_spent(now, 3));
    }

    /// A server that closes when the second request comes, whenever that is.
    #[test]
    fn a_close_under_a_request_counts_however_long_the_connection_was_idle() {
        let closings =
            [closed(10_000, 500, 1, true), closed(20_000, 3_000, 1, true), closed(30_000, 900, 1, true)];
        let habit = habit(&closings);
        assert!(habit.is_spent(Instant::from_millis(30_000), 1));
        let untouched = closings.map(|(now, closing)| (now, Closing { met_request: false, ..closing }));
        assert!(!self::habit(&untouched).is_spent(Instant::from_millis(30_000), 1), "those were time-outs");
    }

    #[test]
    fn nothing_is_learned_of_no_time_and_of_a_clock_that_stands() {
        let none = ClosingHabit::default();
        assert_eq!(none.idle_max(Instant::MAX, CONFIGURED), CONFIGURED);
        assert!(!none.is_spent(Instant::ZERO, u32::MAX));
        let standing = habit(&[closed(0, 0, 0, true), closed(0, 0, 0, true)]);
        assert!(!standing.is_spent(Instant::ZERO, 0));
    }
}
