//! A stage that cannot bind changes no decision of the other stages: it is in shadow, or its limit is out of
//! reach, or it is a candidate.

use crate::pipeline::ops::{Op, SentryMode, ops};
use crate::pipeline::world::{CeilingMode, Decision, Setup, WORKERS, World};
use flashweir_admission::flash_crowd::Agreement;
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

    /// Goal: the candidate's account of tokens is the live one's. Method: both follow the same plans,
    /// through every way in which a request can be refused, wait or be admitted; the samples of both are
    /// compared with each other, too.
    #[test]
    fn a_candidate_of_the_flash_crowd_stage_with_the_plans_in_force_agrees_about_every_request(ops in ops(300)) {
        let mut world = World::new(Setup { has_ceiling_twins: true, ..Setup::default() });
        ops.iter().for_each(|op| world.apply(op));
        for worker in 0..WORKERS {
            world.drain(worker, world.current[worker][0]);
            let Agreement { only_live, only_candidate, .. } = world.agreements[worker];
            prop_assert_eq!((only_live, only_candidate), (0, 0));
        }
    }

    /// Candidates of the sentries and of the flash-crowd stage.
    #[test]
    fn a_candidate_changes_no_decision(ops in ops(300)) {
        let setup = |has_candidates| Setup { has_candidates, ..Setup::default() };
        check(setup(false), setup(true), &ops);
    }
}
