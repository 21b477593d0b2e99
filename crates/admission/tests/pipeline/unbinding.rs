//! A stage that cannot bind changes no decision of the other stages: it is in shadow, or its limit is out of reach, or it is
//! a candidate.

use crate::ops::{Op, SentryMode, ops};
use crate::world::{CeilingMode, Decision, Setup, World};
use proptest::prelude::*;

fn decisions(setup: Setup, ops: &[Op]) -> Vec<Decision> {
    let mut world = World::new(setup);
    ops.iter().for_each(|op| world.apply(op));
    world.decisions
}

fn check(without: Setup, with: Setup, ops: &[Op]) {
    assert_eq!(decisions(without, ops), decisions(with, ops));
}

proptest! {
    #[test]
    fn a_ceiling_in_shadow_that_would_refuse_everything_changes_no_decision(ops in ops(300)) {
        let setup = |mode| Setup { ceiling: Some(mode), ..Setup::default() };
        check(setup(CeilingMode::Open), setup(CeilingMode::ShadowRefusesAll), &ops);
    }

    #[test]
    fn a_ceiling_out_of_reach_changes_no_decision(ops in ops(300)) {
        let setup = |mode| Setup { ceiling: Some(mode), ..Setup::default() };
        check(setup(CeilingMode::Open), setup(CeilingMode::Boundless), &ops);
    }

    #[test]
    fn a_sentry_in_shadow_that_would_refuse_everything_changes_no_decision(ops in ops(300)) {
        let setup = |mode| Setup { sentry: Some(mode), ..Setup::default() };
        check(setup(SentryMode::Off), setup(SentryMode::Shadow), &ops);
    }

    #[test]
    fn a_candidate_changes_no_decision(ops in ops(300)) {
        let setup = |has_candidates| Setup { has_candidates, ..Setup::default() };
        check(setup(false), setup(true), &ops);
    }
}
