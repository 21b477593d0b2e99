//! Any order of reports and broadcasts, some lost.

use crate::shares::{
    Epoch, MEMBER_SILENCE, ShareBroadcast, ShareHolder, ShareLeader, ShareReport, water_filling,
};
use flashweir_core::{Duration, Instant};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A gateway reports this demand; the report is lost or not.
    Report(usize, u16, bool),
    /// The leader broadcasts.
    Broadcast,
    /// A gateway gets one of the last broadcasts, counted back from the newest.
    Deliver(usize, usize),
    /// Time passes.
    Wait(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0usize..6, 0u16..2_000, prop::bool::weighted(0.8)).prop_map(|(gateway, demand, arrives)| Step::Report(gateway, demand, arrives)),
        3 => Just(Step::Broadcast),
        5 => (0usize..6, 0usize..4).prop_map(|(gateway, back)| Step::Deliver(gateway, back)),
        2 => (0u16..150).prop_map(Step::Wait),
    ];
    vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// With messages lost, late or overtaken: gateways that report use no more than the limit together.
    #[test]
    fn shares_in_use_never_exceed_the_limit(steps in steps(), limit in 1.0f64..500.0) {
        let mut now = Instant::from_secs(1);
        let mut leader = ShareLeader::new(now, 1, limit);
        let mut holders: Vec<ShareHolder> = (0..6).map(ShareHolder::new).collect();
        let mut heard: [Option<Instant>; 6] = [None; 6];
        let mut sent: Vec<ShareBroadcast> = Vec::new();
        for step in steps {
            match step {
                Step::Report(gateway, demand, arrives) => {
                    let holder = &holders[gateway];
                    let report = ShareReport {
                        gateway: gateway as u64,
                        applied: holder.applied(),
                        share: holder.share(now),
                        offered: u64::from(demand),
                        admitted: u64::from(demand / 2),
                        in_flight: u64::from(demand / 3),
                    };
                    if arrives {
                        leader.observe(now, &report).expect("an honest report");
                        heard[gateway] = Some(now);
                    }
                }
                Step::Broadcast => sent.extend(leader.broadcast(now)),
                Step::Deliver(gateway, back) => {
                    if let Some(place) = sent.len().checked_sub(1 + back) {
                        let before = holders[gateway].applied();
                        let applied = holders[gateway].apply(now, &sent[place]);
                        prop_assert_eq!(applied, sent[place].epoch > before, "stale epochs are dropped");
                    }
                }
                Step::Wait(millis) => now += Duration::from_millis(millis.into()),
            }
            // A gateway whose share was given away for its silence uses too much when it is heard again.
            if heard.iter().flatten().any(|&heard| now.saturating_since(heard) >= MEMBER_SILENCE) {
                break;
            }
            let used: f64 = holders.iter().map(|holder| holder.share(now)).sum();
            prop_assert!(used <= limit * (1.0 + 1e-9), "{used} of {limit}");
        }
    }

    /// Everything is given away, no share is negative, and more demand never gets less.
    #[test]
    fn water_fills_the_vessel(limit in 0.0f64..1_000.0, demands in vec(0.0f64..500.0, 1..40), more in 0.0f64..500.0) {
        let shares = water_filling(limit, &demands);
        prop_assert!((shares.iter().sum::<f64>() - limit).abs() <= 1e-6 * limit.max(1.0));
        prop_assert!(shares.iter().all(|&share| share >= 0.0));
        if demands.iter().sum::<f64>() <= limit {
            prop_assert!(shares.iter().zip(&demands).all(|(share, demand)| share + 1e-9 >= *demand));
        }
        let mut larger = demands.clone();
        larger[0] += more;
        prop_assert!(water_filling(limit, &larger)[0] + 1e-6 * limit.max(1.0) >= shares[0]);
    }
}

/// Goal: forged and senseless reports change nothing, and are named.
#[test]
fn a_report_that_cannot_be_is_refused() {
    let mut leader = ShareLeader::new(Instant::ZERO, 3, 100.0);
    let right = ShareReport { gateway: 1, offered: 10, ..ShareReport::default() };
    let mut error =
        |report: ShareReport| leader.observe(Instant::ZERO, &report).expect_err("wrong").to_string();
    let applied = Epoch { term: 3, sequence: 9 };
    assert_eq!(
        error(ShareReport { applied, ..right }),
        "gateway 1: acknowledges a broadcast that was never sent (term 3, number 9)"
    );
    assert_eq!(error(ShareReport { share: -1.0, ..right }), "gateway 1: share must be 0 or more (is -1)");
    assert_eq!(leader.gateways(), 0);
    for gateway in 0..4_096 {
        leader.observe(Instant::ZERO, &ShareReport { gateway, ..right }).expect("room");
    }
    let error = leader.observe(Instant::ZERO, &ShareReport { gateway: 5_000, ..right }).expect_err("full");
    assert_eq!(error.to_string(), "gateway 5000: 4096 gateways share the limit already");
}
