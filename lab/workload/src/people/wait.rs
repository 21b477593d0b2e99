//! Waits of people: their patience, and the time they think between two requests.

use crate::duration_text::{self, DurationText};
use crate::text_error::TextError;
use flashweir_core::Rng;
use flashweir_core::limits::PERSON_WAIT_SECONDS;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time that may differ from one draw to the next, written `2s`, `exp:2s` or
/// `uniform:700ms-1300ms`.
///
/// No draw is longer than [`LONGEST_WAIT`].
///
/// ```
/// use flashweir_core::Rng;
/// use flashweir_workload::people::Wait;
/// use std::time::Duration;
/// let wait: Wait = "uniform:700ms-1300ms".parse()?;
/// assert_eq!(wait.mean(), Duration::from_secs(1));
/// assert!(wait.draw(&mut Rng::new(1)) >= Duration::from_millis(700));
/// # Ok::<(), flashweir_workload::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Always the same; `0s` is no wait at all.
    Constant(Duration),
    /// Many short and some long: at most 37 times the mean, for a draw has 53 random bits (ln 2⁵³ = 36.7).
    Exponential {
        /// The mean before the cut at [`LONGEST_WAIT`].
        mean: Duration,
    },
    /// Anything between two bounds alike. If they are the wrong way round, always the first.
    Uniform {
        /// The shortest.
        from: Duration,
        /// The longest.
        to: Duration,
    },
}

/// Maximum wait, so that no wait a file or a server asks for can overflow a clock.
pub const LONGEST_WAIT: Duration = Duration::from_secs(PERSON_WAIT_SECONDS);

impl Wait {
    /// One wait. Up to 50 ns; a constant one draws nothing.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        let wait = match self {
            Self::Constant(wait) => *wait,
            Self::Exponential { mean } => times(*mean, rng.exponential(1.0)),
            Self::Uniform { from, to } => {
                from.saturating_add(times(to.saturating_sub(*from), rng.unit_f64()))
            }
        };
        wait.min(LONGEST_WAIT)
    }

    /// The mean of the draws (an exponential's loses less than 0.1 % to its cut while below a seventh of it).
    #[must_use]
    pub fn mean(&self) -> Duration {
        let mean = match self {
            Self::Constant(mean) | Self::Exponential { mean } => *mean,
            Self::Uniform { from, to } => from.saturating_add(to.saturating_sub(*from) / 2),
        };
        mean.min(LONGEST_WAIT)
    }
}

impl FromStr for Wait {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        read(text).filter(|wait| wait.longest() <= LONGEST_WAIT).ok_or_else(|| {
            let expected = "a wait: expected a length of time up to 24h, exp:MEAN or uniform:FROM-TO, \
                            like 2s, exp:2s or uniform:700ms-1300ms";
            TextError::new(text, expected)
        })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(wait) => write!(out, "{}", DurationText(*wait)),
            Self::Exponential { mean } => write!(out, "exp:{}", DurationText(*mean)),
            Self::Uniform { from, to } => {
                write!(out, "uniform:{}-{}", DurationText(*from), DurationText(*to))
            }
        }
    }
}

impl Wait {
    /// The longest time named.
    fn longest(&self) -> Duration {
        match self {
            Self::Constant(longest) | Self::Exponential { mean: longest } => *longest,
            Self::Uniform { from, to } => *from.max(to),
        }
    }
}

/// The length times a factor that is not negative, at most [`LONGEST_WAIT`].
pub(crate) fn times(length: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(length.as_secs_f64() * factor).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
}

fn read(text: &str) -> Option<Wait> {
    let Some((kind, times)) = text.split_once(':') else {
        return duration_text::parse_or_zero(text).ok().map(Wait::Constant);
    };
    match kind {
        "exp" => duration_text::parse(times).ok().map(|mean| Wait::Exponential { mean }),
        "uniform" => {
            let (from, to) = times.split_once('-')?;
            let (from, to) = (duration_text::parse_or_zero(from).ok()?, duration_text::parse(to).ok()?);
            (from <= to).then_some(Wait::Uniform { from, to })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::goodness_of_fit::kolmogorov_smirnov_fits;
    use flashweir_core::Rng;
    use proptest::prelude::*;

    fn draws(wait: Wait, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..20_000).map(|_| wait.draw(&mut rng).as_secs_f64()).collect()
    }

    #[test]
    fn exponential_waits_fit_their_mean_and_not_another() {
        let sample = draws("exp:2s".parse().unwrap(), 4);
        assert!(kolmogorov_smirnov_fits(&sample, |seconds| 1.0 - (-seconds / 2.0).exp()));
        assert!(!kolmogorov_smirnov_fits(&sample, |seconds| 1.0 - (-seconds / 2.1).exp()));
    }

    #[test]
    fn uniform_waits_fit_their_bounds_and_no_others() {
        let sample = draws("uniform:700ms-1300ms".parse().unwrap(), 4);
        assert!(kolmogorov_smirnov_fits(&sample, |seconds| ((seconds - 0.7) / 0.6).clamp(0.0, 1.0)));
        assert!(!kolmogorov_smirnov_fits(&sample, |seconds| ((seconds - 0.7) / 0.62).clamp(0.0, 1.0)));
    }

    #[test]
    fn constant_waits_draw_nothing() {
        let (mut rng, mut untouched) = (Rng::new(1), Rng::new(1));
        assert_eq!(Wait::Constant(Duration::from_secs(3)).draw(&mut rng), Duration::from_secs(3));
        assert_eq!(rng.next_u64(), untouched.next_u64());
    }

    #[test]
    fn the_means_of_draws_are_the_means_told() {
        for text in ["0s", "2s", "exp:2s", "uniform:0s-4s", "uniform:700ms-1300ms"] {
            let wait: Wait = text.parse().unwrap();
            let mean = draws(wait, 8).iter().sum::<f64>() / 20_000.0;
            assert!(
                (mean - wait.mean().as_secs_f64()).abs() <= 0.02 * wait.mean().as_secs_f64(),
                "{text} {mean}"
            );
        }
    }

    #[test]
    fn no_wait_is_longer_than_the_longest() {
        let from = Duration::from_secs(1);
        let extremes = [
            Wait::Constant(Duration::MAX),
            Wait::Exponential { mean: Duration::MAX },
            Wait::Uniform { from, to: Duration::MAX },
            Wait::Uniform { from: Duration::MAX, to: Duration::MAX },
        ];
        for wait in extremes {
            assert!(wait.mean() <= LONGEST_WAIT && wait.draw(&mut Rng::new(1)) <= LONGEST_WAIT, "{wait:?}");
        }
        let reversed = Wait::Uniform { from, to: Duration::ZERO };
        assert_eq!((reversed.draw(&mut Rng::new(1)), reversed.mean()), (from, from));
        // The largest exponential a generator can give: −ln(2⁻⁵³).
        assert!(-libm::log1p(-(1.0 - f64::EPSILON / 2.0)) < 37.0);
    }

    #[test]
    fn waits_are_read_and_written() {
        for text in ["0s", "500ms", "2s", "24h", "exp:2s", "uniform:700ms-1300ms", "uniform:0s-1m"] {
            assert_eq!(text.parse::<Wait>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "2",
            "exp",
            "exp:",
            "exp:0s",
            "exp:-1s",
            "uniform:1s",
            "uniform:2s-1s",
            "uniform:0s-0s",
            "uniform:-1s-2s",
            "normal:2s",
            "25h",
            "exp:25h",
            "uniform:1s-25h",
            "exp:1s:2s",
            "EXP:1s",
        ] {
            let said = wrong.parse::<Wait>().unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("{wrong:?} is not a wait: expected a length of time")),
                "{said}"
            );
        }
    }

    fn waits() -> impl Strategy<Value = Wait> {
        let time = || (1u64..=LONGEST_WAIT.as_nanos() as u64).prop_map(Duration::from_nanos);
        prop_oneof![
            time().prop_map(Wait::Constant),
            time().prop_map(|mean| Wait::Exponential { mean }),
            (time(), time())
                .prop_map(|(one, other)| Wait::Uniform { from: one.min(other), to: one.max(other) }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(wait in waits()) {
            prop_assert_eq!(wait.to_string().parse::<Wait>(), Ok(wait));
        }

        #[test]
        fn draws_stay_within_bounds(wait in waits(), seed: u64) {
            let drawn = wait.draw(&mut Rng::new(seed));
            let bounds = match wait {
                Wait::Constant(same) => (same, same),
                Wait::Exponential { .. } => (Duration::ZERO, LONGEST_WAIT),
                // A nanosecond for rounding: no clock shows it.
                Wait::Uniform { from, to } => (from, to + Duration::from_nanos(1)),
            };
            prop_assert!((bounds.0..=bounds.1).contains(&drawn), "{drawn:?}");
        }
    }
}
