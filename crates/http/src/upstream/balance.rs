//! Which upstream gets a request: the less busy of two drawn at random (Mitzenmacher, 2001), healthy ones first.
//!
//! Two choices keep the longest queue near the shortest without the herd that "always the least busy" sends to
//! a server which has just come back; in-flight counts are shared by all workers, so they see each other's load.

use flashweir_core::Rng;

/// Picks one of the upstreams whose bits are set in `usable & !tried`; if there are none, one of
/// `all & !tried`; `None` when all were tried. O(64) bit operations, no allocation.
///
/// ```
/// use flashweir_core::Rng;
/// use flashweir_http::upstream::balance::pick;
/// let in_flight = [9, 2];
/// assert_eq!(pick(0b11, 0b11, 0, |index| in_flight[index], &mut Rng::new(1)), Some(1));
/// ```
pub fn pick(
    all: u64,
    usable: u64,
    tried: u64,
    in_flight: impl Fn(usize) -> usize,
    rng: &mut Rng,
) -> Option<usize> {
    let healthy = all & usable & !tried;
    let candidates = if healthy != 0 { healthy } else { all & !tried };
    match candidates.count_ones() {
        0 => None,
        1 => Some(candidates.trailing_zeros() as usize),
        count => {
            let count = u64::from(count);
            let first = rng.below(count);
            // The second differs from the first: drawn from the others, shifted past it.
            let second = (first + 1 + rng.below(count - 1)) % count;
            let (first, second) = (nth_set_bit(candidates, first), nth_set_bit(candidates, second));
            Some(if in_flight(second) < in_flight(first) { second } else { first })
        }
    }
}

fn nth_set_bit(mut bits: u64, nth: u64) -> usize {
    for _ in 0..nth {
        bits &= bits - 1;
    }
    bits.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::pick;
    use flashweir_core::Rng;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn two_choices_spread_the_load() {
        let mut in_flight = [0usize; 5];
        let mut rng = Rng::new(3);
        for _ in 0..1_000 {
            let index = pick(0b11111, 0b11111, 0, |index| in_flight[index], &mut rng).unwrap();
            in_flight[index] += 1;
        }
        let spread = in_flight.iter().max().unwrap() - in_flight.iter().min().unwrap();
        assert!(spread <= 6, "{in_flight:?}");
    }

    #[test]
    fn unhealthy_ones_serve_when_there_is_nobody_else() {
        let mut rng = Rng::new(3);
        assert_eq!(pick(0b111, 0b010, 0, |_| 0, &mut rng), Some(1));
        assert_ne!(pick(0b111, 0b010, 0b010, |_| 0, &mut rng), Some(1));
        assert!(pick(0b111, 0, 0, |_| 0, &mut rng).is_some());
        assert_eq!(pick(0b111, 0b111, 0b111, |_| 0, &mut rng), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_pick_is_a_candidate_and_never_the_busiest_of_two(all: u64, usable: u64, tried: u64, seed: u64) {
            let picked = pick(all, usable, tried, |index| index, &mut Rng::new(seed));
            let healthy = all & usable & !tried;
            let candidates = if healthy != 0 { healthy } else { all & !tried };
            match picked {
                None => prop_assert_eq!(candidates, 0),
                Some(index) => {
                    prop_assert_eq!(candidates >> index & 1, 1);
                    // Index is the load here, so the last candidate always loses against its rival.
                    prop_assert!(candidates.count_ones() == 1 || index != 63 - candidates.leading_zeros() as usize);
                }
            }
        }
    }
}
