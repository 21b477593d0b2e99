//! Cost of a tick: `cargo test -p flashweir-limit cost -- --ignored --nocapture`.

use crate::{Learner, Numbers, Row, Tick, time_bin};
use std::time::Instant;

#[test]
#[ignore = "prints times, which are those of the machine"]
fn a_tick_with_64_classes() {
    for classes in [1, 8, 64] {
        let mut learner = Learner::new(Numbers::SHIPPED);
        let rows: Vec<Row> = (0..classes)
            .flat_map(|class| {
                (0..8).map(move |at| Row {
                    class,
                    bin: time_bin(0.01 * 1.3_f64.powi(at)) as u8,
                    completed: u32::from(at < 4),
                    left: 0,
                    in_flight: 1,
                })
            })
            .collect();
        let tick = Tick {
            span_s: 0.02,
            target_s: 1.0,
            in_flight: 12.0,
            exempt: 0,
            rows: &rows,
            is_waiting: true,
            offered: 5.0,
            refused: 1.0,
            failed: 0.0,
        };
        (0..500).for_each(|_| {
            learner.tick(&tick);
        });
        let (start, ticks) = (Instant::now(), 2_000);
        (0..ticks).for_each(|_| {
            learner.tick(&tick);
        });
        println!("{classes} classes: {:?} a tick", start.elapsed() / ticks);
    }
}
