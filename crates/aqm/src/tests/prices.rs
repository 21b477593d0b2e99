//! Goal: the price keeps its range, and its errors are where they are said to be. Method: random sequences,
//! and the numbers of each error by hand.

use crate::{Rem, RemPrice, SurplusUnit};
use flashweir_core::{Duration, Instant};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_price_is_never_negative_and_a_mark_never_certain(
        steps in vec((0u64..10_000_000_000, 0usize..2_000, 0u32..500), 1..200),
    ) {
        let mut price = RemPrice::new(&Rem::default(), 10_000_000);
        let mut now = Instant::ZERO;
        for (step, queue, arrivals) in steps {
            now += Duration::from_nanos(step);
            price.advance(now, queue);
            (0..arrivals).for_each(|_| price.count_arrival());
            prop_assert!(price.price() >= 0.0);
            prop_assert!((0.0..=0.9901).contains(&price.probability()), "{}", price.probability());
        }
        // The price of an idle link decays to nothing, in one call however long it takes.
        price.advance(now + Duration::from_secs(100_000), 0);
        prop_assert_eq!(price.price(), 0.0);
    }
}

/// In bytes the same surplus moves the price a thousand times as far.
#[test]
fn bytes_make_every_gain_a_thousand_times_too_high() {
    let price = |unit| {
        let rem = Rem { unit, is_price_bounded: false, ..Rem::default() };
        let mut price = RemPrice::new(&rem, 10_000_000);
        price.advance(Instant::from_millis(2), 120);
        price.price()
    };
    let (packets, bytes) = (price(SurplusUnit::Packets), price(SurplusUnit::Bytes));
    // 0.001 · (0.1 · (120 − 20) − 2.5).
    assert!(
        (packets - 0.0075).abs() < 1e-12 && (bytes / packets - 1_000.0).abs() < 1e-6,
        "{packets} {bytes}"
    );
}

/// Without a bound the price of ten minutes' flood takes minutes to fall; with one it falls within half a
/// second of idle periods.
#[test]
fn a_bounded_price_recovers() {
    let seconds_to_fall = |is_price_bounded| {
        let mut price = RemPrice::new(&Rem { is_price_bounded, ..Rem::default() }, 10_000_000);
        price.advance(Instant::from_secs(600), 1_250);
        let fallen = |seconds: u64| {
            let mut price = price.clone();
            price.advance(Instant::from_secs(600 + seconds), 0);
            price.price() < 693.0
        };
        (0..100_000_u64).find(|&seconds| fallen(seconds)).unwrap()
    };
    let (bounded, unbounded) = (seconds_to_fall(true), seconds_to_fall(false));
    assert!(bounded * 5 < unbounded, "{bounded} s and {unbounded} s");
}
