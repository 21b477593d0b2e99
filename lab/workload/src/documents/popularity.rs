//! Popularity of documents.

use super::alias::Alias;
use super::popularity_error::PopularityError;
use flashweir_core::Rng;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Popularity: the distribution of the document that a request asks for. Documents are numbers from zero; the
/// sender turns them into paths.
///
/// ```
/// use flashweir_workload::documents::Popularity;
/// use flashweir_workload::people::Habits;
/// let front_page_mostly = Popularity::zipf(1.5, 507)?;
/// let mut person = Habits::default().person(7, 0, 0);
/// let request = person.next_request().expect("each person asks at least once");
/// assert!(person.document(request, &front_page_mostly) < 507);
/// # Ok::<(), flashweir_workload::documents::PopularityError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Popularity {
    /// Every request of a class asks for a document that no other asks for: the first request of person k
    /// asks for document k (modulo 2³²), further requests of a session for others. No two requests of a class
    /// share a document while the number of people times the longest session (of at most 75,000 requests)
    /// stays below 1.5 thousand million.
    EachNew,
    /// In turn: person k begins at document k and goes on from there, round and round.
    InOrder {
        /// Number of documents.
        count: NonZeroU32,
    },
    /// Each request draws one by its weight, independently of all others.
    Drawn(Alias),
    /// Person k asks for the k-th of these, begins again at the end of the list, and goes on from there if
    /// their session has more requests. An empty list asks for document 0.
    Recorded(Arc<[u32]>),
}

impl Popularity {
    /// Zipf's law: document i is asked for in proportion to 1/(i + 1)^α, so document 0 most. α = 0 is
    /// uniform; 0.6 to 1 is usual for the web; the requests behind the thesis of Esser (§3) have 1.5. About
    /// 0.1 µs and, afterwards, 8 bytes a document.
    ///
    /// # Errors
    /// α negative or not finite; no documents or more than [`DOCUMENTS`](flashweir_core::limits::DOCUMENTS).
    pub fn zipf(alpha: f64, count: u32) -> Result<Self, PopularityError> {
        if !(alpha.is_finite() && alpha >= 0.0) {
            return Err(PopularityError::NotAnExponent(alpha));
        }
        // `libm` and not the system's library: the same bits on every machine.
        Self::weighted((1..=count).map(|rank| libm::pow(f64::from(rank), -alpha)))
    }

    /// Document i is asked for in proportion to the i-th weight.
    ///
    /// # Errors
    /// As for [`Alias::new`].
    pub fn weighted(weights: impl IntoIterator<Item = f64>) -> Result<Self, PopularityError> {
        Alias::new(weights).map(Self::Drawn)
    }

    /// Document i is asked for in proportion to the i-th count: the empirical popularity of a log.
    ///
    /// # Errors
    /// As for [`Alias::new`].
    pub fn counted(counts: &[u64]) -> Result<Self, PopularityError> {
        Self::weighted(counts.iter().map(|count| *count as f64))
    }

    /// The document that request `request` of person `person` (both from zero) asks for. `draws` gives the
    /// generator of this very request and is called only if something is to be drawn. O(1).
    pub fn document(&self, person: u64, request: u64, draws: impl FnOnce() -> Rng) -> u32 {
        let turn = person.wrapping_add(request);
        match self {
            // Multiples of the golden ratio keep the distances between the sessions' documents as large as
            // can be.
            Self::EachNew => person.wrapping_add(request.wrapping_mul(GOLDEN)) as u32,
            Self::InOrder { count } => (turn % u64::from(count.get())) as u32,
            Self::Drawn(alias) => alias.draw(&mut draws()),
            Self::Recorded(list) => {
                let length = list.len().max(1) as u64;
                list.get((turn % length) as usize).copied().unwrap_or(0)
            }
        }
    }
}

/// 2³² divided by the golden ratio. Its multiples j·G modulo 2³² differ by at least 0.35·2³²/j for j ≤
/// 75,000 (by its continued fraction), which is what [`Popularity::EachNew`] promises.
const GOLDEN: u64 = 0x9E37_79B9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::goodness_of_fit::chi_square_fits;
    use std::collections::HashSet;

    fn zipf_probabilities(alpha: f64, count: u32) -> Vec<f64> {
        let weights: Vec<f64> = (1..=count).map(|rank| f64::from(rank).powf(-alpha)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    /// Counts of the documents that `people` people with one request each ask for, each from a separate
    /// fork.
    fn counts(popularity: &Popularity, documents: usize, people: u64, seed: u64) -> Vec<u64> {
        let root = Rng::new(seed);
        let mut counts = vec![0; documents];
        (0..people)
            .for_each(|person| counts[popularity.document(person, 0, || root.fork(person)) as usize] += 1);
        counts
    }

    #[test]
    fn zipf_draws_fit_their_exponent_and_not_one_beside_it() {
        for seed in 1..=3 {
            for alpha in [0.0, 0.8, 1.0, 1.5] {
                let drawn = counts(&Popularity::zipf(alpha, 200).unwrap(), 200, 500_000, seed);
                assert!(chi_square_fits(&drawn, &zipf_probabilities(alpha, 200)), "{alpha} seed {seed}");
                assert!(
                    !chi_square_fits(&drawn, &zipf_probabilities(alpha + 0.03, 200)),
                    "{alpha} seed {seed}"
                );
            }
        }
    }

    /// Minix3's documents (Esser §3; our reading of its exponent): 79 % of requests for the first ten of 507.
    #[test]
    fn the_ten_most_popular_take_their_share() {
        let drawn = counts(&Popularity::zipf(1.5, 507).unwrap(), 507, 100_000, 5);
        let share = |first: usize| drawn[..first].iter().sum::<u64>() as f64 / 1e5;
        assert!(
            (share(10) - 0.79).abs() < 0.01 && (share(19) - 0.86).abs() < 0.01,
            "{} {}",
            share(10),
            share(19)
        );
    }

    #[test]
    fn counts_of_a_log_are_its_popularity() {
        let popularity = Popularity::counted(&[10, 0, 30]).unwrap();
        let drawn = counts(&popularity, 3, 40_000, 9);
        assert_eq!(drawn[1], 0);
        assert!(chi_square_fits(&drawn, &[0.25, 0.0, 0.75]));
    }

    #[test]
    fn extreme_exponents_are_drawn_and_wrong_ones_refused() {
        assert_eq!(counts(&Popularity::zipf(1e6, 100).unwrap(), 100, 1000, 1)[0], 1000);
        assert_eq!(Popularity::zipf(1.0, 0), Err(PopularityError::NoDocuments));
        assert_eq!(Popularity::zipf(1.0, u32::MAX), Err(PopularityError::TooManyDocuments));
        for wrong in [-0.1, f64::NAN, f64::INFINITY] {
            let said = Popularity::zipf(wrong, 10).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{wrong} is not the exponent")), "{said}");
        }
    }

    #[test]
    fn lists_are_gone_through_in_order_from_where_the_person_begins() {
        let never = || -> Rng { panic!("nothing is drawn") };
        let turn = Popularity::InOrder { count: NonZeroU32::new(3).unwrap() };
        assert_eq!([0, 1, 2, 3].map(|person| turn.document(person, 0, never)), [0, 1, 2, 0]);
        assert_eq!([0, 1, 2, 3].map(|request| turn.document(2, request, never)), [2, 0, 1, 2]);
        assert_eq!(turn.document(u64::MAX, 1, never), 0);
        let recorded = Popularity::Recorded([40, 7, 7].into());
        assert_eq!([0, 1, 2, 3].map(|person| recorded.document(person, 0, never)), [40, 7, 7, 40]);
        assert_eq!(Popularity::Recorded([].into()).document(5, 5, never), 0);
    }

    #[test]
    fn new_documents_are_all_different() {
        let never = || -> Rng { panic!("nothing is drawn") };
        let document = |person, request| Popularity::EachNew.document(person, request, never);
        assert_eq!([0, 1, 2].map(|person| document(person, 0)), [0, 1, 2]);
        for (people, requests) in [(1, 75_000), (1_000, 1_000), (100_000, 10)] {
            let pairs = (0..people).flat_map(|person| (0..requests).map(move |request| (person, request)));
            let distinct: HashSet<u32> = pairs.map(|(person, request)| document(person, request)).collect();
            assert_eq!(distinct.len() as u64, people * requests);
        }
    }

    /// The promise of `EachNew` follows from this distance; tried exhaustively.
    #[test]
    fn multiples_of_the_golden_ratio_stay_apart() {
        for request in 1..=75_000u64 {
            let place = (request * GOLDEN) as u32;
            let distance = u64::from(place.min(place.wrapping_neg()));
            assert!(distance * request > 1_500_000_000, "{request}");
        }
    }
}
