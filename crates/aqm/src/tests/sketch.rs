//! Goal: the count of flows is right at every number, for any order, the repetitions and the sender's
//! choice of keys. Method: exact references, and the root mean square error over seeds.

use crate::{DistinctWindow, FlowHasher, FlowIdentity, MinSketch};
use flashweir_core::{Duration, Hasher64, Instant, Rng};
use proptest::collection::vec;
use proptest::prelude::*;

/// Relative errors of both estimators with a number of flows: by maximum likelihood, as published.
fn errors(flows: u64, seed: u64) -> [f64; 2] {
    // A keyed hash's values are uniform: drawn, as the hash itself is another test's subject.
    let mut rng = Rng::new(seed);
    let mut sketch = MinSketch::new();
    (0..flows).for_each(|_| sketch.insert(rng.next_u64()));
    [sketch.distinct(), sketch.distinct_as_published()].map(|estimate| estimate / flows as f64 - 1.0)
}

fn rmse(errors: &[f64]) -> f64 {
    (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt()
}

/// The bar of two percent lies 11 % above the asymptotic 1.80 %: with 400 seeds a root mean square is known
/// to 3.5 %.
#[test]
fn the_count_is_within_two_percent_at_every_number_of_flows() {
    let mut table = String::new();
    let mut worst: f64 = 0.0;
    for (flows, seeds) in [
        (1, 400),
        (2, 400),
        (10, 400),
        (100, 400),
        (600, 400),
        (1_000, 400),
        (2_000, 400),
        (3_000, 400),
        (4_000, 400),
        (6_000, 400),
        (8_000, 400),
        (20_000, 400),
        (100_000, 200),
        (1_000_000, 200),
    ] {
        let errors: Vec<[f64; 2]> = (0..seeds).map(|seed| errors(flows, 7_000 + seed)).collect();
        let [ours, published] = [0, 1].map(|index| errors.iter().map(|both| both[index]).collect::<Vec<_>>());
        let bias = ours.iter().sum::<f64>() / seeds as f64;
        table += &format!(
            "{flows}: RMSE {:.2} %, bias {:.2} %, published RMSE {:.1} %\n",
            100.0 * rmse(&ours),
            100.0 * bias,
            100.0 * rmse(&published)
        );
        worst = worst.max(rmse(&ours));
        if flows == 1 {
            assert_eq!(rmse(&ours), 0.0);
        }
        if flows == 600 {
            assert!((rmse(&published) - 3.33).abs() < 0.05, "{table}");
        }
    }
    println!("{table}");
    assert!(worst <= 0.02, "{table}");
}

#[test]
fn the_sketch_is_twelve_kilobytes() {
    use crate::min_sketch::{BUCKETS, KEPT};
    assert_eq!(BUCKETS * KEPT * size_of::<u32>(), 12 << 10);
}

/// Goal: chosen keys have no effect. Method: the sender knows the code and guesses a key; it sends flows
/// that all lie in one bucket under the guess. Under the true key they are counted as well as any.
#[test]
fn flows_chosen_for_one_key_are_like_any_others_under_another() {
    let guess = FlowHasher::new(1, 2, FlowIdentity::FiveTuple);
    let chosen: Vec<u64> = (0..).filter(|&flow| guess.hash_number(flow) >> 54 == 77).take(500).collect();
    let mut hidden = MinSketch::new();
    chosen.iter().for_each(|&flow| hidden.insert(guess.hash_number(flow)));
    // Who knows the key hides 500 flows in a bucket of three.
    assert_eq!(hidden.distinct().round(), 3.0);
    let errors: Vec<f64> = (0..200)
        .map(|key| {
            let hasher = FlowHasher::new(900 + key, 31, FlowIdentity::FiveTuple);
            let mut sketch = MinSketch::new();
            chosen.iter().for_each(|&flow| sketch.insert(hasher.hash_number(flow)));
            sketch.distinct() / 500.0 - 1.0
        })
        .collect();
    assert!(rmse(&errors) <= 0.02, "{}", rmse(&errors));
}

proptest! {
    #[test]
    fn merging_is_the_sketch_of_both_streams_in_any_order_with_repetitions(
        mine in vec(any::<u64>(), 0..6_000),
        theirs in vec(any::<u64>(), 0..6_000),
        seed in any::<u64>(),
    ) {
        let of = |hashes: &[u64]| {
            let mut sketch = MinSketch::new();
            hashes.iter().for_each(|&hash| sketch.insert(hash));
            sketch
        };
        let mut merged = of(&mine);
        merged.merge(&of(&theirs));
        let mut all: Vec<u64> = mine.iter().chain(&theirs).chain(&mine).copied().collect();
        let mut rng = Rng::new(seed);
        for index in (1..all.len()).rev() {
            all.swap(index, rng.below(index as u64 + 1) as usize);
        }
        prop_assert_eq!(&merged, &of(&all));
        let once = merged.clone();
        merged.merge(&once);
        prop_assert_eq!(&merged, &once);
        let mut backwards = of(&theirs);
        backwards.merge(&of(&mine));
        prop_assert_eq!(backwards, merged);
    }

    /// The estimate is finite and exact while no bucket has more than three flows.
    #[test]
    fn few_flows_are_counted_exactly(flows in 0u64..60, key in any::<u64>()) {
        let hasher = Hasher64::new(key, 1);
        let mut sketch = MinSketch::new();
        let mut in_bucket = std::collections::HashMap::<u64, u32>::new();
        for flow in 0..flows {
            let hash = hasher.hash(&[&flow.to_le_bytes()]);
            *in_bucket.entry(hash >> 54).or_default() += 1;
            (0..3).for_each(|_| sketch.insert(hash));
        }
        // A bucket with three flows is full: it knows what lies below its third, no more.
        if in_bucket.values().all(|&flows| flows < 3) {
            prop_assert_eq!(sketch.distinct(), flows as f64);
        }
        prop_assert!(sketch.distinct().is_finite());
    }

    /// Goal: a window never counts more than came, nor what is older than its length. Method: any clock,
    /// the exact set beside.
    #[test]
    fn a_window_survives_any_clock(steps in vec((0u64..20_000_000_000, any::<bool>(), 0u64..50), 1..200)) {
        let hasher = Hasher64::new(3, 4);
        let mut window = DistinctWindow::new(Instant::ZERO, Duration::from_secs(2));
        let (mut now, mut latest) = (Instant::from_secs(100), Instant::ZERO);
        let mut seen = Vec::new();
        for (step, is_back, flow) in steps {
            // Back by up to a quarter of the step: a clock that was set.
            now = if is_back { now - Duration::from_nanos(step / 4) } else { now + Duration::from_nanos(step) };
            latest = latest.max(now);
            window.insert(now, hasher.hash(&[&flow.to_le_bytes()]));
            // A clock behind the latest time counts as no time passed.
            seen.push((latest, flow));
            let at_most: std::collections::BTreeSet<u64> = seen
                .iter()
                .filter(|(at, _)| latest.saturating_since(*at) <= Duration::from_secs(2))
                .map(|(_, flow)| *flow)
                .collect();
            let at_least: std::collections::BTreeSet<u64> = seen
                .iter()
                .filter(|(at, _)| latest.saturating_since(*at) < Duration::from_millis(1_750))
                .map(|(_, flow)| *flow)
                .collect();
            let count = window.distinct(now);
            prop_assert!(count <= at_most.len() as f64 + 0.5, "{} of {}", count, at_most.len());
            prop_assert!(count >= at_least.len() as f64 - 0.5, "{} of {}", count, at_least.len());
        }
    }
}

/// P-4: with 4000 flows that send 0.3 packets a second each, a window of a second sees 1040, one of ten
/// seconds nearly all.
#[test]
fn a_longer_window_sees_slow_flows() {
    let seen = |span: u64| {
        let mut window = DistinctWindow::new(Instant::ZERO, Duration::from_secs(span));
        let mut rng = Rng::new(5);
        let hasher = Hasher64::new(5, 6);
        for packet in 0..30 * 1_200_u64 {
            let now = Instant::from_nanos(packet * 833_333);
            window.insert(now, hasher.hash(&[&rng.below(4_000).to_le_bytes()]));
        }
        window.distinct(Instant::from_secs(30) - Duration::from_nanos(1))
    };
    let (second, ten) = (seen(1), seen(10));
    assert!(second < 1_200.0 && ten > 3_600.0, "{second} in a second, {ten} in ten");
}
