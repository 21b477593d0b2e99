//! Goal: no sequence of events loses a request or leaves a share behind, and a stage that does not bind
//! changes no decision. Method: random operations on the pipelines of several workers, with an independent
//! account of their answers that is compared with their ledgers and with what they share after every
//! operation.
//!
//! `PROPTEST_CASES=20000 cargo test -p flashweir-admission --test admission pipeline::` looks longer.

mod allocation;
mod asked_again;
mod checks;
mod ops;
mod planning;
mod regressions;
mod unbinding;
mod world;

use proptest::prelude::*;
use world::{Setup, World};

proptest! {
    #[test]
    fn nothing_is_lost_and_no_share_is_left_behind(ops in ops::ops(300), has_candidates in any::<bool>()) {
        let mut world = World::new(Setup { has_candidates, ..Setup::default() });
        world.check();
        for op in &ops {
            world.apply(op);
            world.check();
        }
        world.end_everything();
        world.check_candidates_end();
    }
}
