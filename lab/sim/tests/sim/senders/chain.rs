//! User requests that need one, two or three calls to the overloaded node (DAGOR's problem, SoCC 2018 §3).

use crate::senders::plant::{CAPACITY_RPS, SEEDS, SENDERS, gaps, scenario, sentry, surge_of};
use flashweir_sim::request::senders::{LadderModel, Obedience, Scenario, SenderModel, run};

/// User requests at twice what the node can serve, each with `calls` calls. Completed ones, relative to an
/// oracle's: one that begins only what it can finish completes the capacity divided by the calls.
fn completed_share(seed: u64, calls: u32, coordinated: bool) -> f64 {
    let rate_rps = 2.0 * CAPACITY_RPS / f64::from(calls) / SENDERS as f64;
    let mut it: Scenario = scenario(seed, 1.0);
    // Two classes: calls that go on, and those that begin something.
    it.node.sentry = Some(sentry(2));
    let obedience = if coordinated { gaps() } else { Obedience::Ignores };
    let sender = SenderModel { rank: 1, calls, ..SenderModel::new(surge_of(rate_rps), obedience) };
    it.senders = vec![sender; SENDERS];
    if !coordinated {
        it.node.ladder = LadderModel::None;
    }
    let outcome = run(&it).expect("a run");
    outcome.total().completed as f64 / 50.0 / (CAPACITY_RPS / f64::from(calls))
}

/// Goal: what is begun is finished. Without coordination each call is judged by itself: of p of the calls
/// that are served, p + p² + … fill the capacity, and of the user requests pⁿ are completed. At twice the
/// capacity that makes 1, 0.76 and
/// 0.65 of the oracle's for one, two and three calls.
#[test]
fn what_is_begun_is_finished() {
    for calls in 1..=3 {
        let shares = |coordinated| {
            let shares: Vec<f64> = SEEDS.map(|seed| completed_share(seed, calls, coordinated)).collect();
            let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
            (least, shares.iter().copied().fold(0.0, f64::max))
        };
        let (with, without) = (shares(true), shares(false));
        println!(
            "{calls} calls: {:.3}–{:.3} of the oracle's, without coordination {:.3}–{:.3}",
            with.0, with.1, without.0, without.1
        );
        assert!(with.0 >= 0.9, "{calls} calls: {with:?}");
        if calls > 1 {
            assert!(without.1 < with.0 - 0.15, "{calls} calls: {without:?} without");
        }
    }
}
