//! Goal: the shared words keep their promises for any value. Method: random values and, for the generator,
//! its distribution over a fixed seed.

use crate::{DecisionId, Duration, Instant, Rate, Reason, Rng};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_decision_id_survives_being_written_down(boot: u16, worker: u8, counter in 0u64..1 << 40) {
        let id = DecisionId::new(boot, worker, counter);
        let text = id.to_string();
        prop_assert_eq!(text.len(), 13);
        prop_assert_eq!(text.parse(), Ok(id));
        prop_assert_eq!(text.to_uppercase().parse(), Ok(id));
        prop_assert_eq!((id.boot(), id.worker(), id.counter()), (boot, worker, counter));
    }

    #[test]
    fn anything_else_is_no_decision_id(text in "\\PC{0,20}") {
        if let Ok(id) = text.parse::<DecisionId>() {
            prop_assert_eq!(id.to_string(), text.to_lowercase());
        }
    }

    #[test]
    fn time_never_wraps(at: u64, step: u64) {
        let (at, step) = (Instant::from_nanos(at), Duration::from_nanos(step));
        prop_assert!(at + step >= at && at - step <= at);
        prop_assert!((at + step).saturating_since(at) <= step);
        prop_assert_eq!(at.saturating_since(at + step), Duration::ZERO);
    }

    #[test]
    fn a_rate_is_exact_to_a_thousandth_and_never_beyond_its_maximum(per_second in -1e3f64..1e12) {
        let rate = Rate::from_per_second(per_second);
        prop_assert!(rate <= Rate::MAX);
        if (0.0..1e9).contains(&per_second) {
            prop_assert!((rate.per_second() - per_second).abs() <= 0.0005 + per_second * 1e-12);
        }
        if per_second < 0.0 {
            prop_assert_eq!(rate, Rate::ZERO);
        }
    }

    #[test]
    fn the_generator_stays_within_bounds(seed: u64, bound in 1u64..u64::MAX) {
        let mut rng = Rng::new(seed);
        prop_assert!(rng.below(bound) < bound);
        prop_assert!((0.0..1.0).contains(&rng.unit_f64()));
        prop_assert!(rng.exponential(1.0) >= 0.0);
    }
}

#[test]
fn the_generator_is_uniform_and_its_forks_differ() {
    let mut rng = Rng::new(1);
    let mut counts = [0u32; 10];
    (0..100_000).for_each(|_| counts[rng.below(10) as usize] += 1);
    // Five standard deviations of a binomial around 10,000.
    assert!(counts.iter().all(|&count| (9_526..=10_474).contains(&count)), "{counts:?}");
    let mean = (0..100_000).map(|_| rng.exponential(2.0)).sum::<f64>() / 100_000.0;
    assert!((mean - 2.0).abs() < 0.04, "{mean}");
    assert_ne!(rng.fork(1).next_u64(), rng.fork(2).next_u64());
}

#[test]
fn every_reason_has_a_name_of_its_own_and_an_honest_status() {
    for (index, reason) in Reason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, index);
        assert!(Reason::ALL[..index].iter().all(|other| other.as_str() != reason.as_str()));
        match reason {
            // The caller's time was over, not this gateway's (RFC 9110 §15.6.5).
            Reason::CallerDeadline => assert_eq!(reason.status(), 504),
            _ => assert!([429, 503].contains(&reason.status())),
        }
    }
}
