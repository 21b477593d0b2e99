//! Goal: gateways share one limit through the gateway that leads, and go on without it. Method: real
//! gateways, an origin with ten workers, a crowd of twice what it can do, and a leader that is killed.
//!
//! Twin in virtual time of the tests under load: `provisioning`, `many_gateways_admit_what_one_does`.

#![expect(clippy::disallowed_methods, reason = "gateways take their time")]

use crate::cluster::scene::{
    follower, gateway, leader, leader_of, number, origin, shared, standing, with_key,
};
use crate::cluster::shared_limit::{CAPACITY_RPS, counts, crowd, finish};
use flashweir_testkit::{
    Client, Clocks, FakeClock, Gateway, Signal, Upstream, eventually, reserve_address, until,
};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The limit is found within seconds; on a machine ten times slower within this time.
const LEARNED_WITHIN: Duration = Duration::from_secs(60);
/// The last share is kept for 15 s, and goes to an equal one for 15 s; twice that for a slow machine.
const EQUAL_WITHIN: Duration = Duration::from_secs(60);

fn is_sharing(gateway: &Gateway) -> Option<()> {
    (standing(gateway) == "sharing").then_some(())
}

#[test]
#[ignore = "real load: make test-load"]
fn the_limit_is_divided_and_what_remains_of_it_outlives_the_leader_under_load() {
    let (origin, listen) = (origin(), reserve_address());
    let first = leader(&origin, listen).start();
    let second = follower(&origin, listen).start();
    eventually("both share", || is_sharing(&first).and(is_sharing(&second)));
    let crowds = vec![
        crowd(first.address(), 1.5 * CAPACITY_RPS, 50, 1, &[]),
        crowd(second.address(), 0.5 * CAPACITY_RPS, 50, 2, &[]),
    ];
    until("shares by demand", LEARNED_WITHIN, || {
        let (of_first, of_second) = (shared(&first), shared(&second));
        let (limit, sum) =
            (number(&of_first, "limit"), number(&of_first, "share") + number(&of_second, "share"));
        let is_by_demand = number(&of_first, "share") > 1.7 * number(&of_second, "share");
        (is_by_demand && number(&of_first, "gateways") == 2.0 && sum <= 1.1 * limit).then_some(())
    });
    let (limit, before) = (number(&shared(&first), "limit"), number(&shared(&second), "share"));
    assert!(
        first.status()["cluster"]["is_leader"] == true && second.status()["cluster"]["is_leader"] == false
    );
    let metrics = second.metrics();
    assert_eq!(metrics.value("flashweir_cluster_gateways{service=\"shop\"}"), 2.0);
    assert!(metrics.value("flashweir_cluster_broadcasts_total{outcome=\"new\"}") > 0.0);

    first.process().signal(Signal::Kill);
    eventually("the leader is missed", || (standing(&second) == "holding").then_some(()));
    let kept = number(&shared(&second), "share");
    assert!((kept - before).abs() < 0.5 * limit, "{kept} of {limit} for {before}");
    eventually("the log says so", || {
        second.process().stderr().contains("the last share is kept").then_some(())
    });
    until("an equal share", EQUAL_WITHIN, || {
        let of_second = shared(&second);
        (standing(&second) == "equal"
            && (number(&of_second, "share") - number(&of_second, "limit") / 2.0).abs() < 0.1)
            .then_some(())
    });
    let metrics = second.metrics();
    assert!(metrics.value("flashweir_cluster_broadcasts_total{outcome=\"missing\"}") > 0.0);
    assert_eq!(second.get("/").status() / 100, 2, "it serves without a leader");

    // Another leader goes on from what the other gateway knows.
    let third = leader(&origin, listen).start();
    eventually("both share again", || is_sharing(&second).and(is_sharing(&third)));
    assert_eq!(number(&shared(&second), "gateways"), 2.0);
    drop(crowds);
}

#[test]
fn a_gateway_that_never_hears_of_a_leader_serves_by_its_own_plan() {
    let origin = origin();
    let alone = follower(&origin, reserve_address()).start();
    eventually("it is alone", || (standing(&alone) == "alone").then_some(()));
    assert_eq!(alone.get("/").status(), 200);
    eventually("the log says so", || {
        alone.process().stderr().contains("no leader was heard since the start").then_some(())
    });
}

#[test]
fn reports_of_others_are_refused_and_change_nothing() {
    let (origin, listen) = (origin(), reserve_address());
    let first = leader(&origin, listen).start();
    let stranger = with_key(gateway(&origin, "shop"), "1 another-horse-battery-staple\n");
    let stranger = stranger.text("cluster.leader", &listen.to_string()).start();
    eventually("forged reports are counted", || {
        (first.metrics().value("flashweir_cluster_reports_total{outcome=\"forged\"}") > 3.0).then_some(())
    });
    eventually("the stranger goes on alone", || (standing(&stranger) == "alone").then_some(()));
    assert_eq!(number(&shared(&first), "gateways"), 1.0);
    let why = stranger.process().stderr();
    assert!(why.contains("403") && why.contains("the tag is wrong"), "{why}");
    for (request, expected) in [
        ("POST /reports HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nConnection: close\r\n\r\nno report", 403),
        ("POST /reports HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 403),
        ("GET /reports HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 404),
    ] {
        assert_eq!(Client::connect(listen).ask(request).status(), expected, "{request}");
    }
}

/// Goal: an answer of the leader counts for the report that it answers, and is nothing when it is sent again.
/// Method: a wire that passes the first answer on and then repeats it.
#[test]
fn an_answer_that_is_repeated_is_none() {
    let (origin, listen) = (origin(), reserve_address());
    let _leader = leader(&origin, listen).start();
    let first: Mutex<Option<Vec<u8>>> = Mutex::default();
    let repeating = Upstream::start(move |connection| {
        while let Some(report) = connection.read_request() {
            let mut first = first.lock().expect("no panic");
            if first.is_none() {
                let head = format!(
                    "POST /reports HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n",
                    report.body.len()
                );
                let mut client = Client::connect(listen);
                client.send([head.as_bytes(), &report.body].concat());
                let answer = client.response();
                assert_eq!(answer.status(), 200, "{answer:?}");
                *first = Some(answer.body);
            }
            let answer = first.clone().expect("the first answer");
            drop(first);
            if !connection.answer(200, "", answer) {
                return;
            }
        }
    });
    let other = follower(&origin, repeating.address()).start();
    let count = |outcome: &str| {
        other.metrics().value(&format!("flashweir_cluster_broadcasts_total{{outcome=\"{outcome}\"}}"))
    };
    eventually("repeated answers", || (count("forged") >= 3.0).then_some(()));
    assert_eq!(count("new"), 1.0);
    let said = other.process().stderr();
    assert!(said.contains("its answer is to another report"), "{said}");
}

/// Goal: clocks of gateways may differ. Method: a leader whose clock is a day ahead, and then one at the same
/// address whose clock is right: its term would be smaller than the one that the other gateway knows.
#[test]
fn a_leader_with_an_earlier_clock_leads_on() {
    const TEST: &str = "a_leader_with_an_earlier_clock_leads_on";
    const DAY_S: i64 = 86_400;
    let Some(clock) = FakeClock::require(TEST, env!("CARGO_BIN_EXE_flashweir"), Clocks::TimeOfDay) else {
        return;
    };
    clock.shift_s(DAY_S);
    let (origin, listen) = (origin(), reserve_address());
    let ahead = leader_of(&clock.binary(), &origin, listen).start();
    let other = follower(&origin, listen).start();
    eventually("both share", || is_sharing(&ahead).and(is_sharing(&other)));
    let term = number(&shared(&other), "term");
    ahead.process().signal(Signal::Kill);
    eventually("the leader is missed", || (standing(&other) == "holding").then_some(()));
    let right = leader(&origin, listen).start();
    eventually("both share again", || is_sharing(&right).and(is_sharing(&other)));
    assert!(number(&shared(&other), "term") > term, "a later term than that of {term}");
    assert_eq!(number(&shared(&other), "gateways"), 2.0);
}

/// Goal: gateways with other targets are recognised, by name, instead of dividing a plan that is not theirs.
#[test]
fn a_gateway_with_another_policy_gets_no_share() {
    let (origin, listen) = (origin(), reserve_address());
    let first = leader(&origin, listen).start();
    let other = follower(&origin, listen).text("sentry.response_target", "300ms").start();
    eventually("its reports are refused", || {
        (first.metrics().value("flashweir_cluster_reports_total{outcome=\"refused\"}") > 0.0).then_some(())
    });
    eventually("it acts alone", || (standing(&other) == "alone").then_some(()));
    eventually("the log says so", || {
        first.process().stderr().contains("another policy than the leader").then_some(())
    });
}

/// Goal: however many gateways, at the origin there are as many requests as one gateway would send. Method:
/// looked at ten times a second.
#[test]
#[ignore = "real load: make test-load"]
fn three_gateways_have_no_more_at_the_origin_than_the_limit_under_load() {
    let (origin, listen) = (origin(), reserve_address());
    let first = leader(&origin, listen).start();
    let others = [follower(&origin, listen).start(), follower(&origin, listen).start()];
    let all = [&first, &others[0], &others[1]];
    eventually("all share", || all.iter().all(|gateway| standing(gateway) == "sharing").then_some(()));
    let rates = [1.0, 0.5, 0.5];
    let crowds = all.iter().zip(rates).zip(1..);
    let crowds = crowds
        .map(|((gateway, rate), seed)| crowd(gateway.address(), rate * CAPACITY_RPS, 20, seed, &[]))
        .collect();
    let until = Instant::now() + Duration::from_secs(18);
    let (mut looks, mut over, mut sum) = (0u32, 0u32, 0.0);
    while Instant::now() < until {
        // The limit moves while it is learned; what is there belongs to the larger of two.
        let before = number(&shared(&first), "limit");
        let there = counts(&all).1 as f64;
        let limit = before.max(number(&shared(&first), "limit"));
        looks += 1;
        // Each share is rounded up for moments.
        over += u32::from(there > limit + all.len() as f64);
        sum += there / limit.max(1.0);
        std::thread::sleep(Duration::from_millis(100));
    }
    finish(crowds);
    println!("{looks} looks, {over} above the limit, on average {:.2} of it", sum / f64::from(looks));
    assert!(over * 10 <= looks, "above the limit in {over} of {looks} looks");
}
