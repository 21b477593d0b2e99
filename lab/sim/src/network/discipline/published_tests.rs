//! Goal: hit fractions and the published rules keep their ranges; their errors are where they are said to be.
//! Method: random sequences, and the numbers of each error by hand.

use super::black::BlackLike;
use super::occupancy::Occupancy;
use super::published::{Counter, PublishedPurge, PublishedSettings};
use flashweir_aqm::{Arrival, Fate, Rem};
use flashweir_core::{Duration, Instant, Rng};
use proptest::collection::vec;
use proptest::prelude::*;

fn packet(flow: u64) -> Arrival {
    Arrival { flow, bytes: 1_000, is_markable: true }
}

proptest! {
    #[test]
    fn hit_fractions_are_parts_of_a_whole(periods in vec(vec(0u64..200, 0..300), 1..20)) {
        let mut occupancy = Occupancy::<50>::new();
        for samples in periods {
            samples.iter().for_each(|&flow| occupancy.hit(flow));
            occupancy.end_period();
            prop_assert!(occupancy.total() <= 1.0 + 1e-9, "{}", occupancy.total());
            prop_assert!((0..200).all(|flow| (0.0..=1.0).contains(&occupancy.fraction(flow))));
        }
    }
}

/// P-1: of ten samples in two periods one is a tenth, ten times the share of one among a hundred.
#[test]
fn one_stray_hit_among_few_samples_looks_like_many_shares() {
    let mut occupancy = Occupancy::<50>::new();
    (0..10).for_each(|flow| occupancy.hit(flow));
    occupancy.end_period();
    assert_eq!(occupancy.fraction(3) * 100.0, 10.0);
    // After two periods without samples nothing has changed: P-10.
    occupancy.end_period();
    occupancy.end_period();
    assert_eq!(occupancy.fraction(3) * 100.0, 10.0);
}

/// Feeds the published rule a flow with half of 2500 packets a second and 49 others, above the target or not;
/// drops by second.
fn drops_by_second(is_above_target: bool) -> Vec<u32> {
    let rem = Rem { target_packets: 250.0, ..Rem::default() };
    let settings =
        PublishedSettings { rem, period: Duration::from_secs(1), counter: Counter::MaximumLikelihood };
    let mut purge = PublishedPurge::new(&settings, 10_000_000);
    let mut rng = Rng::new(1);
    let mut drops = vec![0; 8];
    let hash = |flow: u64| flashweir_core::hash::mix(flow + 1);
    let queue = if is_above_target { 900 } else { 100 };
    for n in 0..20_000_u64 {
        let flow = if n % 2 == 0 { 0 } else { 1 + n / 2 % 49 };
        let sample = |rng: &mut Rng| Some(hash(if rng.below(2) == 0 { 0 } else { 1 + rng.below(49) }));
        let now = Instant::from_nanos(n * 400_000);
        if purge.arrive(now, queue, packet(hash(flow)), &mut rng, sample) == Fate::Drop {
            drops[(n * 400_000 / 1_000_000_000) as usize] += 1;
        }
    }
    drops
}

#[test]
fn the_published_rule_drops_from_the_second_overloaded_period_on_and_only_above_the_target() {
    let above = drops_by_second(true);
    assert_eq!(above[..2], [0, 0], "{above:?}");
    assert!(above[2..].iter().all(|&drops| drops > 1_000), "{above:?}");
    assert!(drops_by_second(false).iter().all(|&drops| drops == 0));
}

/// BLACK's count is 1/Σp², right where all send alike and far too low where one flow sends half.
#[test]
fn blacks_count_is_right_only_where_all_send_alike() {
    let count = |heavy_part: u64| {
        let rem = Rem { target_packets: 20.0, marks: true, ..Rem::default() };
        let mut black = BlackLike::new(&rem, Duration::from_secs(1), 10_000_000);
        let mut rng = Rng::new(3);
        let draw = |rng: &mut Rng| if rng.below(100) < heavy_part { 1_000 } else { rng.below(100) };
        for n in 0..200_000_u64 {
            let flow = draw(&mut rng);
            black.arrive(Instant::from_nanos(n * 8_000), 100, packet(flow), &mut rng, |rng| Some(draw(rng)));
        }
        black.active_flows()
    };
    let (alike, one_heavy) = (count(0), count(50));
    assert!((alike / 100.0 - 1.0).abs() < 0.15, "{alike}");
    assert!(one_heavy < 5.0, "{one_heavy} of 101");
}
