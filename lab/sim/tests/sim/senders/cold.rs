//! A node that meets its origin in the middle of a crowd.

use crate::senders::plant::{CAPACITY_RPS, SEEDS, SENDERS, poisson, scenario};
use flashweir_core::Duration;
use flashweir_sim::request::senders::{Scenario, SendersOutcome, run};

const OVERLOAD: f64 = 2.25;
const LENGTH_S: u64 = 60;
/// From then on the node is held to what it serves: before, its capacity is unknown.
const KNOWN_AFTER_S: u64 = 5;

/// Nothing was ever sent before the crowd, so neither end knows anything.
fn cold(seed: u64, senders: usize) -> Scenario {
    let length = Duration::from_secs(LENGTH_S);
    let mut it =
        Scenario { length, measured: Duration::from_secs(KNOWN_AFTER_S)..length, ..scenario(seed, OVERLOAD) };
    it.senders.truncate(senders);
    for sender in &mut it.senders {
        sender.arrivals = poisson(OVERLOAD * CAPACITY_RPS / senders as f64, LENGTH_S);
    }
    it
}

/// Of all that was offered from the first moment on, what the node refused.
fn refused_share(outcome: &SendersOutcome) -> f64 {
    let refused: u64 = outcome.node.iter().map(|bin| bin.refused).sum();
    refused as f64 / (OVERLOAD * CAPACITY_RPS * LENGTH_S as f64)
}

/// Goal: a node that knows nothing asks for less before a backlog has grown that it has to refuse. Without
/// that, the first two seconds of one sender's crowd were 500 refusals, 1.9 % of what a minute offers.
#[test]
fn a_cold_node_in_the_middle_of_a_crowd_refuses_little() {
    for senders in [1, SENDERS] {
        let mut worst = (0.0_f64, f64::INFINITY);
        for seed in SEEDS {
            let outcome = run(&cold(seed, senders)).expect("a run");
            let total = outcome.total();
            let busy: u64 =
                outcome.levels[KNOWN_AFTER_S as usize..].iter().map(|level| level.busy_nanos).sum();
            let good = busy as f64 / 1e9 / (LENGTH_S - KNOWN_AFTER_S) as f64 * total.good as f64
                / total.completed as f64;
            let refused = refused_share(&outcome);
            worst = (worst.0.max(refused), worst.1.min(good));
            assert!(refused <= 0.01, "{senders} senders, seed {seed}: {refused:.4} refused at the node");
            assert!(good >= 0.97, "{senders} senders, seed {seed}: {good:.3} of the capacity");
        }
        println!(
            "{senders} senders, cold: refused at the node {:.4}, good {:.3} of the capacity",
            worst.0, worst.1
        );
    }
}
