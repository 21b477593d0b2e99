//! The path to the clients is short, the origin is not: `make bench-composition` measures it against the best
//! rate limit.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `a_narrow_link_carries_nine_tenths_of_what_the_best_fixed_rate_gets_through`.

use std::time::Duration;

use flashweir_load::{ClassPlan, LoadPlan, LoadTarget, Sources};
use flashweir_testkit::{GatewayBuilder, NarrowLink, Origin};
use flashweir_workload::{ArrivalProcess, RateProfile, Schedule};

use crate::news::scene::binary;
use crate::news::watch::{Watch, story};
use crate::turn;

const RATE_BITS_PER_S: u64 = 20_000_000;
const PACKETS: u32 = 200;
const DELAY: Duration = Duration::from_millis(10);
const BODY_BYTES: &str = "20000";
/// Bodies of answers that the link carries, a second.
const CAPACITY_RPS: f64 = 125.0;
const CALM_S: u64 = 6;
/// Seconds of the crowd of five times the capacity: from the fifth on it is measured.
const MEASURED_S: std::ops::Range<u64> = CALM_S + 5..CALM_S + 12;
/// Completions in time over the capacity, at least. Refusals and headers take a quarter of the link; without
/// a gateway hardly any answer is in time.
const IN_TIME_MIN: f64 = 0.55;

/// Share of the admitted requests' answers that are in time, at least: what is held to the link's rate does
/// not queue before it. Holds on a busy machine; without a gateway hardly any is.
const IN_TIME_SHARE_MIN: f64 = 0.9;
/// Runs at most: one whose crowd the machine carried late is made again.
const ATTEMPTS: usize = 3;

/// Outcome of one crowd.
struct Met {
    in_time_rps: f64,
    in_time_share: f64,
    /// The load generator was late, or the machine lost packets that the link had room for.
    is_late: bool,
    story: String,
}

/// Goal: behind a narrow link the crowd is held at what the link carries, and the verdict says that it is the
/// link. Method: a token bucket between network namespaces. Shares and verdicts are asserted of every run;
/// the rate of the first run that was carried in time, or of the last. Twin in virtual time:
/// `composition::promises` of flashweir-sim.
#[test]
#[ignore = "real load: make test-load"]
fn a_crowd_behind_a_narrow_link_is_held_to_what_the_link_carries_under_load() {
    let test = "a_crowd_behind_a_narrow_link_is_held_to_what_the_link_carries_under_load";
    let _turn = turn::take();
    let mut attempts = Vec::new();
    while attempts.len() < ATTEMPTS {
        let Some(network) = NarrowLink::require(test, RATE_BITS_PER_S, PACKETS, DELAY) else { return };
        let met = send_crowd(&network);
        println!(
            "{:.1}/s in time of {CAPACITY_RPS}/s bodies, {:.3} of the admitted in time, late: {}",
            met.in_time_rps, met.in_time_share, met.is_late
        );
        assert!(met.in_time_share >= IN_TIME_SHARE_MIN, "{:.2} in time: {}", met.in_time_share, met.story);
        let is_judged = !met.is_late;
        attempts.push(met);
        if is_judged {
            break;
        }
    }
    let rates: Vec<f64> = attempts.iter().map(|met| met.in_time_rps).collect();
    let last = attempts.last().expect("one attempt at least");
    assert!(last.in_time_rps >= IN_TIME_MIN * CAPACITY_RPS, "in time per second {rates:?}: {}", last.story);
}

fn send_crowd(network: &NarrowLink) -> Met {
    let address = network.address().to_string();
    let (_origin, gateway, watch) = network.as_server(|| {
        let options = ["--workers", "2", "--work-ms", "0.2", "--body-bytes", BODY_BYTES];
        let origin = Origin::start_with(&binary(), &options);
        let builder = GatewayBuilder::new(&binary()).upstream(&origin.url());
        let gateway = builder.text("listen.address", &address).start();
        let watch = Watch::start(gateway.admin());
        (origin, gateway, watch)
    });

    let rate = |load: f64, seconds| {
        RateProfile::constant(load * CAPACITY_RPS, Duration::from_secs(seconds)).expect("a rate")
    };
    let profile = rate(0.5, CALM_S).then(rate(5.0, MEASURED_S.end + 1 - CALM_S));
    let target = LoadTarget::parse(&format!("http://{address}/")).expect("a target");
    let class = ClassPlan::get(&target).expect("a class");
    let mut plan = LoadPlan::new(target, Schedule::one(ArrivalProcess::Poisson(profile), 1), class);
    plan.sources = Sources { count: 20_000, network: NarrowLink::CLIENTS.parse().expect("a network") };
    let load = network.as_client(|| flashweir_load::run(plan, |_| {})).expect("a run");
    let seen = watch.stop();
    drop(gateway);

    let sum = |seconds: std::ops::Range<u64>, count: fn(&flashweir_load::Second) -> u64| -> u64 {
        load.totals.series.iter().filter(|second| seconds.contains(&second.second)).map(count).sum()
    };
    let (in_time, admitted) = (
        sum(MEASURED_S, |second| second.goodput) as f64,
        sum(MEASURED_S, |second| second.completed + second.timed_out) as f64,
    );
    let story = format!("{in_time} in time, {:?}\n{}", load.totals.refused_by_reason, story(&seen));
    assert_eq!(sum(0..CALM_S, |second| second.refused), 0, "refused before the crowd came: {story}");
    assert!(seen.iter().any(|look| look.verdict == "congested_link"), "never blamed: {story}");
    Met {
        in_time_rps: in_time / MEASURED_S.count() as f64,
        in_time_share: in_time / admitted.max(1.0),
        is_late: load.saturated || network.lost() > 0,
        story,
    }
}
