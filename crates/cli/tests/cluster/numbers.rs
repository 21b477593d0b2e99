//! Measurements, by `make bench-gateways`: what several gateways admit beside what one does, without the leader, and with one cut off. Each prints its
//! numbers; what is asserted is looser, for a busy machine.

#![expect(clippy::disallowed_methods, reason = "what is measured takes its time")]

use crate::relay::Relay;
use crate::scene::{
    CAPACITY_RPS, admitted, at_origin, crowd, finish, follower, gateway, leader, number, origin, shared,
    standing,
};
use flashweir_testkit::{Gateway, Load, Origin, Signal, eventually, free_address};
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Twice what the origin can do.
const OFFERED_RPS: f64 = 2.0 * CAPACITY_RPS;
/// The limit is known by then.
const WARM_UP: Duration = Duration::from_secs(15);
const MEASURED: Duration = Duration::from_secs(25);
/// A crowd lasts at least as long as both.
const CROWD_S: u32 = 42;

/// A crowd at each gateway, the k-th gets 1/k of the first one's.
fn crowds(gateways: &[&Gateway], seconds: u32, seed: u64) -> Vec<Load> {
    let all: f64 = (1..=gateways.len()).map(|place| 1.0 / place as f64).sum();
    let crowd = |(place, gateway): (usize, &&Gateway)| {
        let rate = OFFERED_RPS / all / (place + 1) as f64;
        crowd(gateway.address(), rate, seconds, seed + place as u64)
    };
    gateways.iter().enumerate().map(crowd).collect()
}

fn admitted_rps(gateways: &[&Gateway], over: Duration) -> f64 {
    let (from, before) = (Instant::now(), admitted(gateways));
    sleep(over);
    let after = admitted(gateways);
    (after - before) as f64 / from.elapsed().as_secs_f64()
}

fn cluster(origin: &Origin, count: usize, listen: SocketAddr) -> Vec<Gateway> {
    let mut all = vec![leader(origin, listen).start()];
    all.extend((1..count).map(|_| follower(origin, listen).start()));
    eventually("all share", || all.iter().all(|gateway| standing(gateway) == "sharing").then_some(()));
    all
}

/// What a number of gateways did while it was measured.
struct Found {
    admitted_rps: f64,
    /// Means of what was looked at.
    limit: f64,
    in_flight: f64,
}

/// A crowd at each gateway: warmed up, then looked at.
fn measure(all: &[&Gateway], seed: u64, limit: impl Fn() -> f64) -> Found {
    let crowds = crowds(all, CROWD_S, seed);
    sleep(WARM_UP);
    let (from, before) = (Instant::now(), admitted(all));
    let (mut looks, mut limits, mut in_flight) = (0.0, 0.0, 0.0);
    while from.elapsed() < MEASURED {
        (looks, limits, in_flight) = (looks + 1.0, limits + limit(), in_flight + at_origin(all) as f64);
        sleep(Duration::from_millis(500));
    }
    let admitted = (admitted(all) - before) as f64;
    let admitted_rps = admitted / from.elapsed().as_secs_f64();
    finish(crowds);
    Found { admitted_rps, limit: limits / looks, in_flight: in_flight / looks }
}

/// Goal: however many gateways, they admit what one does. Method: rounds of one gateway by itself, then 1, 4 and 16 that share; the ratio is of one round.
#[test]
#[ignore = "minutes of measurements: make bench-gateways"]
fn several_gateways_admit_what_one_does() {
    const COUNTS: [usize; 3] = [1, 4, 16];
    let rounds = std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5u64);
    let mut ratios = COUNTS.map(|_| Vec::new());
    let say = |what: &str, found: &Found, ratio: f64| {
        let Found { admitted_rps, limit, in_flight } = found;
        println!(
            "{what}: {admitted_rps:.1}/s admitted, {ratio:.3} of one's; limit {limit:.2}, in flight {in_flight:.2}"
        );
    };
    for round in 0..rounds {
        let one = {
            let origin = origin();
            let alone = gateway(&origin, "shop").start();
            let limit = || alone.status()["services"][0]["sentry"]["plan"]["limit"].as_f64().unwrap_or(0.0);
            measure(&[&alone], 100 * round, limit)
        };
        say("1 without a cluster", &one, 1.0);
        for (count, ratios) in COUNTS.into_iter().zip(&mut ratios) {
            let origin = origin();
            let all = cluster(&origin, count, free_address());
            let all: Vec<&Gateway> = all.iter().collect();
            let found = measure(&all, 100 * round + 10, || number(&shared(all[0]), "limit"));
            let ratio = found.admitted_rps / one.admitted_rps;
            say(&format!("{count} that share"), &found, ratio);
            ratios.push(ratio);
        }
    }
    for (count, ratios) in COUNTS.into_iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let (median, worst) =
            (ratios[ratios.len() / 2], ratios.iter().map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max));
        println!(
            "{count} gateways: median {median:.3} of one's, furthest {worst:.3} from it, {rounds} rounds; wanted within .03"
        );
        assert!((median - 1.0).abs() < 0.15, "{count} gateways: {ratios:?}");
    }
}

#[test]
#[ignore = "five minutes of measurements: make bench-gateways"]
fn without_the_leader_admission_goes_on() {
    let (origin, listen) = (origin(), free_address());
    let all = cluster(&origin, 4, listen);
    let all: Vec<&Gateway> = all.iter().collect();
    // The leader has no clients: those would lose their gateway, and leave the origin to the others.
    let others = &all[1..];
    let crowds = crowds(others, 90, 20);
    sleep(WARM_UP);
    let before = admitted_rps(others, Duration::from_secs(15));
    all[0].process().signal(Signal::Kill);
    let without = admitted_rps(others, Duration::from_secs(15));
    println!(
        "leader killed: {before:.1}/s before, {without:.1}/s in the 15 s after, {:.3}",
        without / before
    );
    drop(crowds);
    assert!((without / before - 1.0).abs() < 0.2, "{without:.1} for {before:.1}");
}

#[test]
#[ignore = "five minutes of measurements: make bench-gateways"]
fn a_gateway_that_is_cut_off_uses_at_most_its_last_share() {
    let (origin, listen) = (origin(), free_address());
    let relay = Relay::start(listen);
    let first = leader(&origin, listen).start();
    let (second, third) = (follower(&origin, listen).start(), follower(&origin, relay.address).start());
    let all = [&first, &second, &third];
    eventually("all share", || all.iter().all(|gateway| standing(gateway) == "sharing").then_some(()));
    let crowds = crowds(&[&third, &first, &second], 80, 30);
    sleep(WARM_UP);
    relay.cut();
    let last_share = number(&shared(&third), "share");
    let (mut looks, mut most, mut over, mut sum) = (0u32, 0.0f64, 0u32, 0.0);
    let from = Instant::now();
    while from.elapsed() < Duration::from_secs(14) {
        let limit = number(&shared(&first), "limit");
        let beyond = at_origin(&all) as f64 - limit;
        // Shares are rounded up for moments.
        over += u32::from(beyond > last_share + all.len() as f64);
        (looks, most, sum) = (looks + 1, most.max(beyond), sum + beyond);
        sleep(Duration::from_millis(50));
    }
    println!(
        "cut off with a share of {last_share:.1}: at most {most:.1} beyond the limit, {:.1} on average; beyond the share in {over} of {looks} looks",
        sum / f64::from(looks)
    );
    relay.mend();
    eventually("it shares again", || (standing(&third) == "sharing").then_some(()));
    drop(crowds);
    assert!(over * 10 <= looks, "beyond its last share in {over} of {looks} looks");
}
