//! Behaviour of people when a try fails.

use super::wait::{LONGEST_WAIT, times};
use crate::duration_text::{self, DurationText};
use crate::text_error::TextError;
use flashweir_core::Rng;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Retry policy of a person.
///
/// ```
/// use flashweir_core::Rng;
/// use flashweir_workload::people::{Failure, Retry};
/// use std::time::Duration;
/// let retry = Retry { share: 1.0, pace: "fixed:1s".parse()?, tries_most: 2, ..Retry::default() };
/// let draws = || Rng::new(1);
/// assert_eq!(retry.wait(Failure::Refused, 1, None, draws), Some(Duration::from_secs(1)));
/// assert_eq!(retry.wait(Failure::Refused, 2, None, draws), None);
/// # Ok::<(), flashweir_workload::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// The chance that a person tries again after one failed try, 0 to 1; decided again each time.
    pub share: f64,
    /// Wait before a retry.
    pub pace: Pace,
    /// Tries of one request at most, the first included.
    pub tries_most: u32,
    /// The failures after which they may try again.
    pub on: Failures,
}

/// Reason for which a try failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The service answered that it would not serve.
    Refused,
    /// The client's own time limit for a try ended.
    TimedOut,
    /// The connection could not be made, or broke, or carried something that is no answer.
    Broken,
}

/// Some of the failures, written `refusal,timeout,error` (any of them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// [`Failure::Refused`].
    pub refused: bool,
    /// [`Failure::TimedOut`].
    pub timed_out: bool,
    /// [`Failure::Broken`].
    pub broken: bool,
}

/// Wait of a person before they try again, written `at-once`, `fixed:1s`, `backoff:100ms`,
/// `backoff:100ms-10s`, `retry-after` or `retry-after:5s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Not at all: the reload button.
    AtOnce,
    /// Always the same time.
    Fixed(Duration),
    /// Exponential back-off with full jitter: uniform from zero to a bound that is `first` after the first
    /// try and doubles with each further one, up to `most`.
    Backoff {
        /// The bound after the first try.
        first: Duration,
        /// The largest bound.
        most: Duration,
    },
    /// Time that the answer's `Retry-After` asked for (to the second: an honest client adds no jitter
    /// itself, so that the effect of the server's is seen), at most [`LONGEST_WAIT`].
    Honour {
        /// If the answer asked for nothing, or there was none.
        otherwise: Duration,
    },
}

impl Default for Retry {
    /// All people try again, after any failure, up to three tries, backing off from 100 ms, as polite client
    /// libraries do.
    fn default() -> Self {
        let pace = Pace::Backoff { first: Duration::from_millis(100), most: BACKOFF_MOST };
        Self { share: 1.0, pace, tries_most: 3, on: Failures::ANY }
    }
}

impl Retry {
    /// Wait of the person before another try, after `tries_so_far` tries (the failed one included) of which
    /// the last failed for `why` and asked for a wait of `asked`; `None` if they give up. `draws` gives the
    /// generator of this very decision; it is not called if they cannot try again anyway. About 20 ns and
    /// what `draws` takes.
    pub fn wait(
        &self,
        why: Failure,
        tries_so_far: u32,
        asked: Option<Duration>,
        draws: impl FnOnce() -> Rng,
    ) -> Option<Duration> {
        if tries_so_far >= self.tries_most || !self.on.contains(why) {
            return None;
        }
        let mut rng = draws();
        // A NaN share compares false: no retry.
        (rng.unit_f64() < self.share).then(|| self.pace.wait(tries_so_far, asked, &mut rng))
    }
}

impl Failures {
    /// All of them.
    pub const ANY: Self = Self { refused: true, timed_out: true, broken: true };

    /// Returns whether this failure is among them.
    #[must_use]
    pub fn contains(&self, failure: Failure) -> bool {
        match failure {
            Failure::Refused => self.refused,
            Failure::TimedOut => self.timed_out,
            Failure::Broken => self.broken,
        }
    }
}

impl Pace {
    fn wait(&self, tries_so_far: u32, asked: Option<Duration>, rng: &mut Rng) -> Duration {
        let wait = match self {
            Self::AtOnce => Duration::ZERO,
            Self::Fixed(wait) => *wait,
            Self::Backoff { first, most } => {
                let doublings = 2u32.saturating_pow(tries_so_far.saturating_sub(1));
                times(first.saturating_mul(doublings).min(*most), rng.unit_f64())
            }
            Self::Honour { otherwise } => asked.unwrap_or(*otherwise),
        };
        wait.min(LONGEST_WAIT)
    }
}

impl FromStr for Pace {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        read(text).ok_or_else(|| {
            let expected = "a pace of retries: expected at-once, fixed:TIME, backoff:FIRST, \
                            backoff:FIRST-MOST, retry-after or retry-after:TIME with times up to 24h, like \
                            fixed:1s or backoff:100ms-10s";
            TextError::new(text, expected)
        })
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtOnce => write!(out, "at-once"),
            Self::Fixed(wait) => write!(out, "fixed:{}", DurationText(*wait)),
            Self::Backoff { first, most } => {
                write!(out, "backoff:{}-{}", DurationText(*first), DurationText(*most))
            }
            Self::Honour { otherwise } => write!(out, "retry-after:{}", DurationText(*otherwise)),
        }
    }
}

impl FromStr for Failures {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let mut failures = Self { refused: false, timed_out: false, broken: false };
        for name in text.split(',') {
            match name.trim() {
                "refusal" => failures.refused = true,
                "timeout" => failures.timed_out = true,
                "error" => failures.broken = true,
                _ => {
                    let expected = "a list of failures: expected some of refusal, timeout and error, \
                                    like refusal,timeout";
                    return Err(TextError::new(text, expected));
                }
            }
        }
        Ok(failures)
    }
}

impl fmt::Display for Failures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.refused, "refusal"), (self.timed_out, "timeout"), (self.broken, "error")];
        let named: Vec<_> = names.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
        write!(out, "{}", named.join(","))
    }
}

fn read(text: &str) -> Option<Pace> {
    let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
    match (kind, rest) {
        ("at-once", None) => Some(Pace::AtOnce),
        ("fixed", Some(wait)) => read_time(wait).map(Pace::Fixed),
        ("backoff", Some(bounds)) => {
            let (first, most) = match bounds.split_once('-') {
                Some((first, most)) => (read_time(first)?, read_time(most)?),
                // A first wait above the usual bound means that the wait does not double.
                None => read_time(bounds).map(|first| (first, first.max(BACKOFF_MOST)))?,
            };
            (first <= most).then_some(Pace::Backoff { first, most })
        }
        ("retry-after", None) => Some(Pace::Honour { otherwise: RETRY_AFTER_OTHERWISE }),
        ("retry-after", Some(otherwise)) => read_time(otherwise).map(|otherwise| Pace::Honour { otherwise }),
        _ => None,
    }
}

fn read_time(text: &str) -> Option<Duration> {
    duration_text::parse(text).ok().filter(|time| *time <= LONGEST_WAIT)
}

/// The largest bound of a back-off that names none: long enough to calm a crowd, short enough to see it
/// return.
const BACKOFF_MOST: Duration = Duration::from_secs(10);
/// The wait of a client that honours `Retry-After` when the answer had none: the shortest the header could
/// have said.
const RETRY_AFTER_OTHERWISE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::goodness_of_fit::kolmogorov_smirnov_fits;

    const SECOND: Duration = Duration::from_secs(1);

    fn everybody(pace: Pace) -> Retry {
        Retry { share: 1.0, pace, tries_most: u32::MAX, on: Failures::ANY }
    }

    #[test]
    fn the_share_of_people_tries_again() {
        let retry = Retry { share: 0.3, ..everybody(Pace::AtOnce) };
        let again = |retry: &Retry| {
            (0..100_000)
                .filter(|seed| retry.wait(Failure::Broken, 1, None, || Rng::new(*seed)).is_some())
                .count()
        };
        assert!(again(&retry).abs_diff(30_000) < 600, "{}", again(&retry));
        for (share, people) in [(1.0, 100_000), (2.0, 100_000), (0.0, 0), (-1.0, 0), (f64::NAN, 0)] {
            assert_eq!(again(&Retry { share, ..retry }), people, "{share}");
        }
    }

    #[test]
    fn nobody_tries_more_often_than_allowed_or_after_other_failures() {
        let draws = || Rng::new(1);
        let retry =
            Retry { tries_most: 3, on: "refusal,timeout".parse().unwrap(), ..everybody(Pace::AtOnce) };
        assert!(retry.wait(Failure::Refused, 2, None, draws).is_some());
        assert!(retry.wait(Failure::TimedOut, 2, None, draws).is_some());
        let never = || -> Rng { panic!("nothing is drawn") };
        assert_eq!(retry.wait(Failure::Refused, 3, None, never), None);
        assert_eq!(retry.wait(Failure::Broken, 1, None, never), None);
        assert_eq!(Retry { tries_most: 0, ..retry }.wait(Failure::Refused, 1, None, never), None);
    }

    /// Full jitter: uniform from zero to 100 ms, 200 ms, ... 1 s.
    #[test]
    fn back_off_is_uniform_up_to_a_doubling_bound() {
        let retry = everybody("backoff:100ms-1s".parse().unwrap());
        for (tries, bound) in [(1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (100, 1.0), (u32::MAX - 1, 1.0)] {
            let waits: Vec<f64> = (0..20_000)
                .filter_map(|seed| retry.wait(Failure::Refused, tries, None, || Rng::new(seed)))
                .map(|wait| wait.as_secs_f64())
                .collect();
            assert_eq!(waits.len(), 20_000);
            assert!(kolmogorov_smirnov_fits(&waits, |wait| (wait / bound).clamp(0.0, 1.0)), "{tries}");
            assert!(
                !kolmogorov_smirnov_fits(&waits, |wait| (wait / bound / 1.03).clamp(0.0, 1.0)),
                "{tries}"
            );
        }
    }

    #[test]
    fn retry_after_is_honoured_to_the_second_and_no_longer_than_sense() {
        let retry = everybody("retry-after:5s".parse().unwrap());
        let wait = |asked| retry.wait(Failure::Refused, 1, asked, || Rng::new(3)).unwrap();
        assert_eq!(wait(Some(7 * SECOND)), 7 * SECOND);
        assert_eq!(wait(Some(Duration::ZERO)), Duration::ZERO);
        assert_eq!(wait(None), 5 * SECOND);
        assert_eq!(wait(Some(Duration::MAX)), LONGEST_WAIT);
        // Clients that do not honour it keep to their own pace.
        let fixed = everybody(Pace::Fixed(SECOND));
        assert_eq!(fixed.wait(Failure::Refused, 9, Some(7 * SECOND), || Rng::new(3)), Some(SECOND));
    }

    #[test]
    fn extreme_paces_do_not_overflow() {
        let extremes = [
            Pace::Fixed(Duration::MAX),
            Pace::Backoff { first: Duration::MAX, most: Duration::MAX },
            Pace::Honour { otherwise: Duration::MAX },
        ];
        for pace in extremes {
            for tries in [0, 1, 64, u32::MAX - 1] {
                let wait = everybody(pace).wait(Failure::TimedOut, tries, None, || Rng::new(3));
                assert!(wait.unwrap() <= LONGEST_WAIT);
            }
        }
    }

    #[test]
    fn paces_are_read_and_written() {
        for text in ["at-once", "fixed:1s", "backoff:100ms-10s", "retry-after:5s"] {
            assert_eq!(text.parse::<Pace>().unwrap().to_string(), text);
        }
        let defaults = [
            ("backoff:100ms", "backoff:100ms-10s"),
            ("backoff:1m", "backoff:1m-1m"),
            ("retry-after", "retry-after:1s"),
        ];
        for (short, whole) in defaults {
            assert_eq!(short.parse::<Pace>().unwrap().to_string(), whole);
        }
        for wrong in [
            "",
            "at-once:1s",
            "atonce",
            "fixed",
            "fixed:0s",
            "fixed:1",
            "fixed:25h",
            "backoff",
            "backoff:2s-1s",
            "backoff:-1s",
            "backoff:1s-2s-3s",
            "retry-after:",
            "retry-after:0s",
        ] {
            let said = wrong.parse::<Pace>().unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("{wrong:?} is not a pace of retries: expected at-once")),
                "{said}"
            );
        }
    }

    #[test]
    fn lists_of_failures_are_read_and_written() {
        for text in ["refusal", "timeout", "error", "refusal,timeout", "refusal,timeout,error"] {
            assert_eq!(text.parse::<Failures>().unwrap().to_string(), text);
        }
        assert_eq!("error, refusal".parse::<Failures>().unwrap().to_string(), "refusal,error");
        for wrong in ["", "refused", "refusal,", "refusal;timeout"] {
            let said = wrong.parse::<Failures>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("{wrong:?} is not a list of failures: expected")), "{said}");
        }
    }
}
