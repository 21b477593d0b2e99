//! Properties of the learner under any input.

use crate::{LIMIT_MAX, Learner, Limiter, Numbers, Row, TIME_BINS, Tick};
use proptest::prelude::*;
use std::time::Duration;

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (0u32..200, 0u8..TIME_BINS as u8, 0u32..50, 0u32..5, 0u32..50);
    let row = row.prop_map(|(class, bin, completed, left, in_flight)| Row {
        class,
        bin,
        completed,
        left,
        in_flight,
    });
    prop::collection::vec(row, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any counts, also impossible ones (ages that fall, completions of what never began), give a limit and a
    /// finite stretch.
    #[test]
    fn any_input_gives_a_limit(
        ticks in prop::collection::vec((rows(), 0.0..1e4_f64, any::<bool>(), 0.0..9.0_f64, 1e-3..10.0_f64), 1..40),
    ) {
        let mut learner = Learner::new(Numbers::SHIPPED);
        for (rows, in_flight, is_waiting, failed, span_s) in &ticks {
            let learned = learner.tick(&Tick {
                span_s: *span_s,
                target_s: 1.0,
                in_flight: *in_flight,
                exempt: 0,
                rows,
                is_waiting: *is_waiting,
                offered: *in_flight,
                refused: f64::from(u8::from(*is_waiting)),
                failed: *failed,
            });
            prop_assert!((1..=LIMIT_MAX).contains(&learned.limit));
            prop_assert!(learned.stretch.is_finite() && learned.stretch > 0.0, "{learned:?}");
            let (servers, spread) = learner.posterior().servers();
            prop_assert!((1.0..=8_192.1).contains(&servers) && spread.is_finite());
        }
    }

    /// Permits are conserved in any order, also when the clock jumps.
    #[test]
    fn permits_are_conserved(steps in prop::collection::vec((0u8..6, 0u32..100, 0u64..5_000), 1..200)) {
        let (mut limiter, mut permits, mut now) = (Limiter::new(Duration::from_secs(1)), Vec::new(), 0);
        for (kind, class, millis) in steps {
            now = if kind == 5 { now / 2 } else { now + millis };
            let at = Duration::from_millis(now);
            match (kind, permits.len()) {
                (0..=2, _) => permits.extend(limiter.try_acquire(class, at)),
                (3, 1..) => permits.swap_remove(class as usize % permits.len()).complete(&mut limiter, at),
                (4, 1..) => permits.swap_remove(class as usize % permits.len()).fail(&mut limiter, at),
                _ => {
                    limiter.plan(at);
                }
            }
            prop_assert_eq!(limiter.in_flight() as usize, permits.len());
        }
    }
}
