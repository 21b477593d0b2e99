//! A person's visit: the number of requests, and how long they think between two.

use super::wait::Wait;
use crate::text_error::TextError;
use flashweir_core::Rng;
use flashweir_core::limits::SESSION_REQUESTS_MEAN;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// One visit: requests one after the other, with time to think from one answer to the next request.
///
/// ```
/// use flashweir_workload::people::Session;
/// let reader = Session { requests: "geometric:5".parse()?, think: "exp:8s".parse()? };
/// assert_ne!(reader, Session::default());
/// # Ok::<(), flashweir_workload::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Session {
    /// Number of requests.
    pub requests: SessionLength,
    /// Time from the end of one request to the next.
    pub think: Wait,
}

/// Number of requests of a session, written `3`, `geometric:5` or `endless`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SessionLength {
    /// Always this number.
    Exactly(NonZeroU32),
    /// After each request the same chance of another: at least one, `mean` on average.
    Geometric {
        /// The mean number; a mean of one or less (or not a number) is exactly one request.
        mean: f64,
    },
    /// Requests until the run ends: people who stay, as the workers of a closed-loop tool do.
    Endless,
}

impl Default for Session {
    /// One request and gone.
    fn default() -> Self {
        Self { requests: SessionLength::Exactly(NonZeroU32::MIN), think: Wait::Constant(Duration::ZERO) }
    }
}

impl SessionLength {
    /// The number of requests of one session, at least one; `u64::MAX` stands for endless. `draws` is called
    /// only if something is to be drawn. At most 37 times the mean (a draw has 53 random bits), plus one.
    pub(crate) fn draw(&self, draws: impl FnOnce() -> Rng) -> u64 {
        match self {
            Self::Exactly(count) => u64::from(count.get()),
            Self::Geometric { mean } if *mean > 1.0 => {
                // Whole steps of an exponential are geometric: P(more than n) = (1 − 1/mean)^n.
                let steps = draws().exponential(1.0) / -libm::log1p(-1.0 / mean);
                1u64.saturating_add(steps as u64)
            }
            Self::Geometric { .. } => 1,
            Self::Endless => u64::MAX,
        }
    }
}

impl FromStr for SessionLength {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let length = match text.split_once(':') {
            Some(("geometric", mean)) => {
                let mean = mean.parse().ok().filter(|mean| (1.0..=SESSION_REQUESTS_MEAN).contains(mean));
                mean.map(|mean| Self::Geometric { mean })
            }
            Some(_) => None,
            None if text == "endless" => Some(Self::Endless),
            None => text.parse().ok().map(Self::Exactly),
        };
        length.ok_or_else(|| {
            let expected = "a number of requests: expected a whole number above zero, geometric:MEAN with \
                            a mean from 1 to a million, or endless, like 3 or geometric:5";
            TextError::new(text, expected)
        })
    }
}

impl fmt::Display for SessionLength {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(count) => write!(out, "{count}"),
            Self::Geometric { mean } => write!(out, "geometric:{mean}"),
            Self::Endless => write!(out, "endless"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::goodness_of_fit::chi_square_fits;

    /// Counts of lengths 1 to 19 and, last, of all longer ones.
    fn lengths(mean: f64) -> Vec<u64> {
        let mut rng = Rng::new(6);
        let mut counts = vec![0; 20];
        for _ in 0..100_000 {
            let length = SessionLength::Geometric { mean }.draw(|| rng.fork(rng.clone().next_u64()));
            rng.next_u64();
            counts[(length as usize).min(20) - 1] += 1;
        }
        counts
    }

    fn geometric(mean: f64) -> Vec<f64> {
        let again = 1.0 - 1.0 / mean;
        let mut probabilities: Vec<f64> = (0..19).map(|steps| again.powi(steps) / mean).collect();
        probabilities.push(again.powi(19));
        probabilities
    }

    #[test]
    fn drawn_lengths_fit_their_mean_and_not_another() {
        assert!(chi_square_fits(&lengths(5.0), &geometric(5.0)));
        assert!(!chi_square_fits(&lengths(5.0), &geometric(5.1)));
    }

    #[test]
    fn only_geometric_lengths_draw() {
        let never = || -> Rng { panic!("nothing is drawn") };
        assert_eq!(Session::default().requests.draw(never), 1);
        assert_eq!(SessionLength::Exactly(NonZeroU32::MAX).draw(never), u64::from(u32::MAX));
        assert_eq!(SessionLength::Endless.draw(never), u64::MAX);
        for mean in [1.0, 0.0, -5.0, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(SessionLength::Geometric { mean }.draw(never), 1);
        }
    }

    #[test]
    fn extreme_means_stay_whole_numbers() {
        for seed in 0..1000 {
            assert!(SessionLength::Geometric { mean: 1.0 + 1e-15 }.draw(|| Rng::new(seed)) <= 3);
            assert!(SessionLength::Geometric { mean: 1e6 }.draw(|| Rng::new(seed)) <= 37_000_001);
            assert!(SessionLength::Geometric { mean: f64::INFINITY }.draw(|| Rng::new(seed)) >= 1);
        }
    }

    #[test]
    fn lengths_are_read_and_written() {
        for text in ["1", "3", "geometric:1", "geometric:5.5", "endless"] {
            assert_eq!(text.parse::<SessionLength>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "0",
            "-1",
            "1.5",
            "geometric",
            "geometric:",
            "geometric:0.9",
            "geometric:NaN",
            "geometric:inf",
            "geometric:1e7",
            "exactly:3",
            "endless:1",
            "4294967296",
        ] {
            let said = wrong.parse::<SessionLength>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("{wrong:?} is not a number of requests: expected")), "{said}");
        }
    }
}
