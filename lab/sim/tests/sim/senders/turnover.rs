//! Senders that join and leave, and loads that end.

use crate::senders::plant::{CAPACITY_RPS, SEEDS, SENDERS, gaps, poisson, scenario, surge_of};
use flashweir_core::{Duration, Rng};
use flashweir_sim::request::senders::{Scenario, SenderModel, run};
use flashweir_workload::{ArrivalProcess, RateProfile};

/// Goal: the rate at the node does not swing between on and off. Method: ten senders stay, ten join and
/// leave at random, each for 5 to 30 s, all with a tenth of the capacity and one with three, so that the
/// load is above it. The calls of each second, from 10 s after the surge on.
#[test]
fn the_rate_does_not_swing_while_senders_join_and_leave() {
    let mut worst = (f64::INFINITY, 0.0_f64);
    for seed in SEEDS {
        let mut it = scenario(seed, 0.0);
        let mut random = Rng::new(seed).fork(1);
        let stays = |part: f64| SenderModel::new(surge_of(part * CAPACITY_RPS), gaps());
        it.senders = (1..SENDERS / 2).map(|_| stays(0.1)).collect();
        it.senders.push(stays(0.3));
        for _ in 0..SENDERS / 2 {
            let mut from = 20 + random.below(10);
            while from < 80 {
                let until = from + 5 + random.below(26);
                let present = Duration::from_secs(from)..Duration::from_secs(until);
                let arrivals = poisson(0.1 * CAPACITY_RPS, 60);
                it.senders.push(SenderModel { present, ..SenderModel::new(arrivals, gaps()) });
                from = until + 1 + random.below(10);
            }
        }
        let outcome = run(&it).expect("a run");
        let mut calls: Vec<u64> = outcome.node[30..80].iter().map(|bin| bin.calls).collect();
        let mean = calls.iter().sum::<u64>() as f64 / calls.len() as f64;
        calls.sort_unstable();
        let (low, high) = (calls[2] as f64 / mean, calls[47] as f64 / mean);
        println!("seed {seed}: {} senders, mean {mean:.1}/s, p5 {low:.3}, p95 {high:.3}", it.senders.len());
        worst = (worst.0.min(low), worst.1.max(high));
    }
    assert!(worst.0 >= 0.9 && worst.1 <= 1.1, "{worst:?}");
}

/// Goal: three seconds after the load has gone no sender is limited any more. Method: 225 % for 30 s, then
/// half of the capacity.
#[test]
fn three_seconds_after_the_load_no_sender_is_limited() {
    for seed in SEEDS {
        let second = Duration::from_secs;
        let part = |rate: f64, length| {
            RateProfile::constant(rate * CAPACITY_RPS / SENDERS as f64, second(length)).expect("a rate")
        };
        let profile = part(0.5, 10).then(part(2.25, 30)).then(part(0.5, 20));
        let mut it = Scenario { measured: second(43)..second(60), length: second(60), ..scenario(seed, 1.0) };
        it.senders.iter_mut().for_each(|sender| sender.arrivals = ArrivalProcess::Poisson(profile.clone()));
        let outcome = run(&it).expect("a run");
        let last = outcome.last_limited.expect("there was an overload");
        println!("seed {seed}: limited until {:.1} s after the load", last.as_secs_f64() - 40.0);
        assert!(last <= second(43), "seed {seed}: limited until {last:?}");
        let total = outcome.total();
        assert_eq!(total.offered, total.good, "seed {seed}");
    }
}

/// Goal: after a step of the load the calls that reach the node are soon what it can do, and stay there.
/// Method: 225 % from the 20th second on; calls in windows of a second, one each quarter of a second. Settled
/// is the first window that has at most 1.1 times the mean of the last 50 s; the amplitude is what the
/// windows after that vary by.
#[test]
fn after_a_step_the_rate_settles_and_does_not_swing() {
    const BINS_PER_S: usize = 4;
    const STEP_S: usize = 20;
    let mut worst = (0.0_f64, f64::INFINITY, 0.0_f64);
    for seed in SEEDS {
        let it = Scenario { bin: Duration::from_millis(1_000 / BINS_PER_S as u64), ..scenario(seed, 2.25) };
        let outcome = run(&it).expect("a run");
        let calls: Vec<f64> =
            outcome.node[STEP_S * BINS_PER_S..].iter().map(|bin| bin.calls as f64).collect();
        let steady = &calls[10 * BINS_PER_S..];
        let mean = steady.iter().sum::<f64>() * BINS_PER_S as f64 / steady.len() as f64;
        let windows: Vec<f64> =
            calls.windows(BINS_PER_S).map(|bins| bins.iter().sum::<f64>() / mean).collect();
        let settled =
            windows[..10 * BINS_PER_S].iter().position(|&part| part <= 1.1).unwrap_or(10 * BINS_PER_S);
        let settled_s = settled as f64 / BINS_PER_S as f64;
        let mut after = windows[settled..].to_vec();
        after.sort_by(f64::total_cmp);
        let (low, high) = (after[after.len() / 20], after[after.len() * 19 / 20]);
        println!("seed {seed}: settled after {settled_s:.2} s, mean {mean:.1}/s, p5 {low:.3}, p95 {high:.3}");
        worst = (worst.0.max(settled_s), worst.1.min(low), worst.2.max(high));
    }
    println!("worst: settled after {:.2} s, p5 {:.3}, p95 {:.3}", worst.0, worst.1, worst.2);
    assert!(worst.0 <= 3.0 && worst.1 >= 0.9 && worst.2 <= 1.1, "{worst:?}");
}
