//! Distributions of a request's processor time, and of its wait before that.

use flashweir_core::limits::SIM_WORK_SECONDS;
use flashweir_core::{Duration, Rng};

/// The distribution of the processor time that the requests of one class need.
///
/// ```
/// use flashweir_core::{Duration, Rng};
/// use flashweir_sim::request::Work;
/// let mean = Duration::from_millis(20);
/// assert_eq!(Work::Constant(mean).draw(|| Rng::new(1), || 4_000), mean);
/// assert_eq!(Work::Exponential { mean }.mean_s(4_000.0), 0.020);
/// assert_eq!(Work::PerByte { bytes_per_s: 1_000_000 }.mean_s(4_000.0), 0.004);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// All the same.
    Constant(Duration),
    /// Many short and some long.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// A heavy tail: P(X > x) = (least/x)^shape; what would be longer than `most` takes that.
    Pareto {
        /// The tail's exponent (α): below 2 the variance grows with `most` without end, below 1 the mean too.
        shape: f64,
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
    /// Two kinds of requests, such as pages from a cache and pages that are made.
    TwoPoint {
        /// The quick ones.
        short: Duration,
        /// The slow ones.
        long: Duration,
        /// Share of slow requests, 0 to 1.
        long_share: f64,
    },
    /// So much for each byte of the document.
    PerByte {
        /// Bytes of documents that a processor makes in a second; at least 1.
        bytes_per_s: u64,
    },
}

impl Work {
    /// One request's processor time, to the nearest nanosecond. `draws` gives the generator of this very
    /// request and `bytes` its document's size; each is called only if it is needed. About 20 ns.
    pub fn draw(&self, draws: impl FnOnce() -> Rng, bytes: impl FnOnce() -> u64) -> Duration {
        match *self {
            Self::Constant(work) => work,
            Self::Exponential { mean } => rounded(draws().exponential(mean.as_secs_f64())),
            Self::Pareto { shape, least, most } => {
                let factor = libm::pow(1.0 - draws().unit_f64(), -1.0 / shape);
                rounded(least.as_secs_f64() * factor).min(most)
            }
            Self::TwoPoint { short, long, long_share } => {
                if draws().unit_f64() < long_share {
                    long
                } else {
                    short
                }
            }
            Self::PerByte { bytes_per_s } => {
                let nanos = u128::from(bytes()) * 1_000_000_000 / u128::from(bytes_per_s);
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
        .min(LONGEST)
    }

    /// The mean, seconds of processor time, where documents have `document_bytes` in the mean.
    #[must_use]
    pub fn mean_s(&self, document_bytes: f64) -> f64 {
        match *self {
            Self::Constant(work) => work.as_secs_f64(),
            Self::Exponential { mean } => mean.as_secs_f64(),
            Self::Pareto { shape, least, most } => {
                // least plus the integral of (least/x)^shape from least to most.
                let (least, most) = (least.as_secs_f64(), most.as_secs_f64());
                if shape == 1.0 {
                    least + least * libm::log(most / least)
                } else {
                    least + least / (shape - 1.0) * (1.0 - libm::pow(least / most, shape - 1.0))
                }
            }
            Self::TwoPoint { short, long, long_share } => {
                short.as_secs_f64() * (1.0 - long_share) + long.as_secs_f64() * long_share
            }
            Self::PerByte { bytes_per_s } => document_bytes / bytes_per_s as f64,
        }
    }

    /// The first problem of the parameters, if any.
    pub(super) fn problem(&self) -> Option<String> {
        let (shape, longest) = match *self {
            Self::Constant(work) | Self::Exponential { mean: work } => (1.0, work),
            Self::Pareto { shape, least, most } => {
                if least.is_zero() || least > most {
                    return Some(format!("Pareto work needs 0 < least <= most, not {least:?} and {most:?}"));
                }
                (shape, most)
            }
            Self::TwoPoint { short, long, long_share } => {
                if !(0.0..=1.0).contains(&long_share) {
                    return Some(format!("{long_share} is no share of long requests: expected 0 to 1"));
                }
                (1.0, short.max(long))
            }
            Self::PerByte { bytes_per_s: 0 } => {
                return Some("no bytes a second: expected at least 1".to_owned());
            }
            Self::PerByte { .. } => (1.0, Duration::ZERO),
        };
        if !(shape.is_finite() && shape > 0.0) {
            return Some(format!("{shape} is no shape of a Pareto distribution: expected a number above 0"));
        }
        (longest > LONGEST).then(|| format!("work of {longest:?} is more than {SIM_WORK_SECONDS} s"))
    }
}

const LONGEST: Duration = Duration::from_secs(SIM_WORK_SECONDS);

/// Seconds as a duration, to the nearest nanosecond: the one place where a drawn number becomes a time.
/// Negative numbers and NaN become zero, and what does not fit the longest there is.
fn rounded(seconds: f64) -> Duration {
    // `as` saturates and maps NaN to zero.
    Duration::from_nanos((seconds * 1e9 + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn draws_have_the_mean_that_is_told() {
        let works = [
            Work::Constant(7 * MS),
            Work::Exponential { mean: 5 * MS },
            Work::Pareto { shape: 1.5, least: MS, most: 100 * MS },
            Work::Pareto { shape: 1.0, least: MS, most: 20 * MS },
            Work::TwoPoint { short: MS, long: 50 * MS, long_share: 0.1 },
            Work::PerByte { bytes_per_s: 1_000_000 },
        ];
        for work in works {
            assert_eq!(work.problem(), None);
            let root = Rng::new(3);
            let sum: f64 =
                (0..200_000).map(|part| work.draw(|| root.fork(part), || 3_000).as_secs_f64()).sum();
            let mean_s = sum / 200_000.0;
            assert!((mean_s / work.mean_s(3_000.0) - 1.0).abs() < 0.015, "{work:?}: {mean_s}");
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (work, why) in [
            (Work::Constant(LONGEST + MS), "more than 86400 s"),
            (Work::Pareto { shape: 1.5, least: 2 * MS, most: MS }, "0 < least <= most"),
            (Work::Pareto { shape: f64::NAN, least: MS, most: MS }, "NaN is no shape"),
            (Work::TwoPoint { short: MS, long: MS, long_share: 1.5 }, "1.5 is no share"),
            (Work::PerByte { bytes_per_s: 0 }, "no bytes a second"),
        ] {
            assert!(work.problem().is_some_and(|said| said.contains(why)), "{work:?}");
        }
    }
}
