//! Sizes of documents.

use crate::text_error::TextError;
use flashweir_core::Rng;
use flashweir_core::limits::DOCUMENT_BYTES;
use std::fmt;
use std::str::FromStr;

/// The sizes of documents, written `1024` (all the same), or `pareto:1.3:1170` (shape and smallest size).
///
/// A document's size depends on the seed and its number only: every request for it gets as much.
///
/// ```
/// use flashweir_workload::documents::Sizes;
/// let sizes: Sizes = "pareto:1.3:1170".parse()?;
/// assert!(sizes.bytes(7, 0) >= 1170);
/// assert_eq!(sizes.bytes(7, 3), sizes.bytes(7, 3));
/// # Ok::<(), flashweir_workload::TextError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// Every document has this number of bytes.
    Constant(u64),
    /// Many small documents and few that are very large.
    Pareto(Pareto),
}

/// Pareto sizes: P(X > x) = (x/x_m)^−k with the smallest size x_m and the shape k, cut off at a largest size.
///
/// Web documents have shapes from 1.1 to 1.5. The thesis of Esser (§3) wants a median of 2 kB and a mean of 4
/// to 6 kB, which k = 1.3 and x_m = 1.17 kB give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    shape: f64,
    minimum_bytes: f64,
    most_bytes: u64,
}

/// The numbers given do not make a Pareto distribution of sizes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "Pareto sizes need a finite shape above zero and 1 <= smallest <= largest <= {DOCUMENT_BYTES} bytes, \
     not shape {shape}, smallest {minimum_bytes} and largest {most_bytes}"
)]
pub struct ParetoError {
    /// The shape given.
    pub shape: f64,
    /// The smallest size given, or found from the median given.
    pub minimum_bytes: f64,
    /// The largest size given.
    pub most_bytes: u64,
}

impl Sizes {
    /// The size of a document in bytes. The same for the same seed and document; about 100 ns when drawn.
    #[must_use]
    pub fn bytes(&self, seed: u64, document: u32) -> u64 {
        match self {
            Self::Constant(bytes) => *bytes,
            Self::Pareto(pareto) => pareto.draw(&mut Rng::new(seed).fork(SIZES ^ u64::from(document))),
        }
    }
}

impl FromStr for Sizes {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let wrong = || {
            let expected = "a size: expected bytes up to 1 GiB, like 1024, or pareto:SHAPE:SMALLEST or \
                            pareto:SHAPE:SMALLEST:LARGEST with a shape above zero, like pareto:1.3:1170";
            TextError::new(text, expected)
        };
        let Some(numbers) = text.strip_prefix("pareto:") else {
            let bytes = text.parse().ok().filter(|bytes| *bytes <= DOCUMENT_BYTES);
            return bytes.map(Self::Constant).ok_or_else(wrong);
        };
        let (shape, sizes) = numbers.split_once(':').ok_or_else(wrong)?;
        let (minimum, most) = match sizes.split_once(':') {
            Some((minimum, most)) => (minimum, most.parse().map_err(|_| wrong())?),
            None => (sizes, DOCUMENT_BYTES),
        };
        let (shape, minimum) = (shape.parse().map_err(|_| wrong())?, minimum.parse().map_err(|_| wrong())?);
        Pareto::with_minimum(shape, minimum, most).map(Self::Pareto).map_err(|_| wrong())
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(bytes) => write!(out, "{bytes}"),
            Self::Pareto(Pareto { shape, minimum_bytes, most_bytes: DOCUMENT_BYTES }) => {
                write!(out, "pareto:{shape}:{minimum_bytes}")
            }
            Self::Pareto(Pareto { shape, minimum_bytes, most_bytes }) => {
                write!(out, "pareto:{shape}:{minimum_bytes}:{most_bytes}")
            }
        }
    }
}

impl Pareto {
    /// Sizes of `minimum_bytes` and more; those above `most_bytes` are given that.
    ///
    /// # Errors
    /// A shape that is not finite and above zero, or sizes not in the order 1 ≤ smallest ≤ largest ≤
    /// [`DOCUMENT_BYTES`].
    pub fn with_minimum(shape: f64, minimum_bytes: f64, most_bytes: u64) -> Result<Self, ParetoError> {
        let fits = shape.is_finite()
            && shape > 0.0
            && most_bytes <= DOCUMENT_BYTES
            && (1.0..=most_bytes as f64).contains(&minimum_bytes);
        if fits {
            Ok(Self { shape, minimum_bytes, most_bytes })
        } else {
            Err(ParetoError { shape, minimum_bytes, most_bytes })
        }
    }

    /// Half of the documents smaller than `median_bytes`: x_m = median / 2^(1/k).
    ///
    /// # Errors
    /// As for [`with_minimum`](Self::with_minimum), of the smallest size that follows.
    pub fn with_median(shape: f64, median_bytes: f64, most_bytes: u64) -> Result<Self, ParetoError> {
        Self::with_minimum(shape, median_bytes / libm::exp2(1.0 / shape), most_bytes)
    }

    /// One size in bytes, by inverting the distribution: x_m · u^(−1/k) with u uniform in (0, 1].
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let size = self.minimum_bytes * libm::pow(1.0 - rng.unit_f64(), -1.0 / self.shape);
        // A tiny shape may give infinity, which the cast makes the largest number.
        (libm::round(size) as u64).min(self.most_bytes)
    }
}

/// Names the forks that sizes are drawn from, separate from all others of the seed: "size" in ASCII, above
/// any document's number.
const SIZES: u64 = 0x7369_7A65 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::goodness_of_fit::kolmogorov_smirnov_fits;
    use proptest::prelude::*;

    fn drawn(sizes: Sizes, seed: u64, documents: u32) -> Vec<f64> {
        (0..documents).map(|document| sizes.bytes(seed, document) as f64).collect()
    }

    fn pareto(shape: f64, minimum: f64) -> impl Fn(f64) -> f64 {
        move |bytes| 1.0 - (bytes / minimum).max(1.0).powf(-shape)
    }

    #[test]
    fn sizes_fit_their_shape_and_not_one_beside_it() {
        for seed in 1..=3 {
            for shape in [0.9, 1.3, 2.5] {
                // So large a smallest size that whole bytes do not matter.
                let sizes = Sizes::Pareto(Pareto::with_minimum(shape, 1e5, DOCUMENT_BYTES).unwrap());
                let sample = drawn(sizes, seed, 20_000);
                assert!(kolmogorov_smirnov_fits(&sample, pareto(shape, 1e5)), "{shape} seed {seed}");
                assert!(!kolmogorov_smirnov_fits(&sample, pareto(shape * 1.06, 1e5)), "{shape} seed {seed}");
                assert!(!kolmogorov_smirnov_fits(&sample, pareto(shape, 1.04e5)), "{shape} seed {seed}");
            }
        }
    }

    /// Esser §3: a median of 2 kB and a mean of 4 to 6 kB. The largest size tames the mean's infinite
    /// variance.
    #[test]
    fn the_thesis_sizes_have_its_median_and_mean() {
        let mut sample = drawn("pareto:1.3:1170:1000000".parse().unwrap(), 3, 200_000);
        sample.sort_by(f64::total_cmp);
        let mean = sample.iter().sum::<f64>() / 2e5;
        assert!((sample[100_000] - 1994.0).abs() < 30.0, "{}", sample[100_000]);
        assert!((4000.0..6000.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_median_gives_the_smallest_size() {
        let from_median = Pareto::with_median(1.0, 2000.0, 1 << 20).unwrap();
        assert_eq!(from_median, Pareto::with_minimum(1.0, 1000.0, 1 << 20).unwrap());
        assert!(Pareto::with_median(0.01, 2000.0, 1 << 20).is_err());
    }

    #[test]
    fn no_size_passes_its_bounds() {
        let sizes = Sizes::Pareto(Pareto::with_minimum(1e-9, 10.0, 500).unwrap());
        assert!(drawn(sizes, 1, 1000).iter().all(|bytes| (10.0..=500.0).contains(bytes)));
        let even = Sizes::Pareto(Pareto::with_minimum(1e9, 10.0, 500).unwrap());
        assert!(drawn(even, 1, 1000).iter().all(|bytes| *bytes == 10.0));
    }

    #[test]
    fn each_seed_and_document_has_its_own_size() {
        let sizes: Sizes = "pareto:1.3:1170".parse().unwrap();
        assert_eq!(drawn(sizes, 1, 100), drawn(sizes, 1, 100));
        assert_ne!(drawn(sizes, 1, 100), drawn(sizes, 2, 100));
        assert_ne!(sizes.bytes(1, 0), sizes.bytes(1, u32::MAX));
        assert_eq!(Sizes::Constant(9).bytes(1, 2), 9);
    }

    #[test]
    fn sizes_are_read_and_written() {
        for text in ["0", "1024", "pareto:1.3:1170", "pareto:1.5:1260.5:1000000"] {
            assert_eq!(text.parse::<Sizes>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "-1",
            "1.5",
            "1k",
            "1073741825",
            "pareto",
            "pareto:",
            "pareto:1.3",
            "pareto:0:10",
            "pareto:-1:10",
            "pareto:NaN:10",
            "pareto:inf:10",
            "pareto:1:0",
            "pareto:1:NaN",
            "pareto:1:20:10",
            "pareto:1:20:1e6",
            "pareto:1:20:2000000000",
            "pareto:1:2:3:4",
            "Pareto:1:2",
        ] {
            let said = wrong.parse::<Sizes>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("{wrong:?} is not a size: expected bytes")), "{said}");
        }
        let said = Pareto::with_minimum(1.0, 20.0, 10).unwrap_err().to_string();
        assert!(said.ends_with("not shape 1, smallest 20 and largest 10"), "{said}");
    }

    proptest! {
        #[test]
        fn any_sizes_stay_within_their_bounds(
            shape in 1e-12..1e12f64, low in 1u64..1 << 30, more in 0u64..1 << 30, seed: u64, document: u32,
        ) {
            let most = (low + more).min(DOCUMENT_BYTES);
            let sizes = Sizes::Pareto(Pareto::with_minimum(shape, low as f64, most).unwrap());
            prop_assert!((low..=most).contains(&sizes.bytes(seed, document)));
            prop_assert_eq!(sizes.to_string().parse::<Sizes>(), Ok(sizes));
        }
    }
}
