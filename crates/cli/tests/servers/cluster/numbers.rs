//! Measurements, by `make bench-gateways`: what several gateways admit beside what one does, without the
//! leader, and with one cut off. Each prints its numbers; what is asserted is looser, for a busy machine.

#![expect(clippy::disallowed_methods, reason = "what is measured takes its time")]

use crate::cluster::relay::Relay;
use crate::cluster::scene::{follower, gateway, leader, number, origin, shared, standing};
use crate::cluster::shared_limit::{
    COUNTS, MeasuredGateway, Ratios, WARM_UP, counts, crowds, measure, rounds,
};
use flashweir_testkit::{Gateway, Origin, Signal, eventually, reserve_address};
use serde_json::Value;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

impl MeasuredGateway for Gateway {
    fn door(&self) -> SocketAddr {
        self.address()
    }

    fn says(&self) -> Value {
        self.status()
    }
}

fn admitted_rps(gateways: &[&Gateway], over: Duration) -> f64 {
    let (from, before) = (Instant::now(), counts(gateways).0);
    sleep(over);
    let after = counts(gateways).0;
    (after - before) as f64 / from.elapsed().as_secs_f64()
}

fn cluster(origin: &Origin, count: usize, listen: SocketAddr) -> Vec<Gateway> {
    let mut all = vec![leader(origin, listen).start()];
    all.extend((1..count).map(|_| follower(origin, listen).start()));
    eventually("all share", || all.iter().all(|gateway| standing(gateway) == "sharing").then_some(()));
    all
}

/// Goal: however many gateways, they admit what one does. Method: rounds of one gateway by itself, then 1, 4
/// and 16 that share; the ratio is of one round.
#[test]
#[ignore = "minutes of measurements: make bench-gateways"]
fn several_gateways_admit_what_one_does() {
    let mut ratios = Ratios::default();
    for round in 0..rounds() {
        let one = {
            let origin = origin();
            measure(&[&gateway(&origin, "shop").start()], 100 * round, &[])
        };
        let several = COUNTS.map(|count| {
            let origin = origin();
            let all = cluster(&origin, count, reserve_address());
            measure(&all.iter().collect::<Vec<_>>(), 100 * round + 10, &[])
        });
        ratios.add(&one, several);
    }
    ratios.judge();
}

#[test]
#[ignore = "five minutes of measurements: make bench-gateways"]
fn without_the_leader_admission_goes_on() {
    let (origin, listen) = (origin(), reserve_address());
    let all = cluster(&origin, 4, listen);
    let all: Vec<&Gateway> = all.iter().collect();
    // The leader has no clients: those would lose their gateway, and leave the origin to the others.
    let others = &all[1..];
    let crowds = crowds(others, 90, 20, &[]);
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
    let (origin, listen) = (origin(), reserve_address());
    let relay = Relay::start(listen);
    let first = leader(&origin, listen).start();
    let (second, third) = (follower(&origin, listen).start(), follower(&origin, relay.address).start());
    let all = [&first, &second, &third];
    eventually("all share", || all.iter().all(|gateway| standing(gateway) == "sharing").then_some(()));
    let crowds = crowds(&[&third, &first, &second], 80, 30, &[]);
    sleep(WARM_UP);
    relay.cut();
    let last_share = number(&shared(&third), "share");
    let (mut looks, mut most, mut over, mut sum) = (0u32, 0.0f64, 0u32, 0.0);
    let from = Instant::now();
    while from.elapsed() < Duration::from_secs(14) {
        let limit = number(&shared(&first), "limit");
        let beyond = counts(&all).1 as f64 - limit;
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
