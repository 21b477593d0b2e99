//! Reports for people, word by word where they are prose.

use super::*;
use crate::sample::PlaceCounts;
use flashweir_admission::flash_crowd::{Cause, Explanation, HotSpotLimit, Mode};
use flashweir_config::Overrides;

fn snapshot() -> RouterStatus {
    let text = "kernel.interface = 'eth0'\nkernel.protect = ['10.0.0.1:80', '10.0.0.2:80']\n";
    let config =
        RouterConfig::from_toml_with(text, "router.toml", &Overrides::default()).expect("a configuration");
    RouterStatus::of(&config, Baseline { unique_offered_rps: Some(50.0), ..Baseline::default() })
}

fn decision(limit: Limit, shadow: bool) -> Decision {
    let open = Plan::open(1);
    let explanation = Explanation {
        mode: Mode::Alarm,
        cause: Cause::Popular,
        quality: Some(0.57),
        offered_rps: 210.0,
        unique_offered_reference_rps: Some(50.0),
        ..open.explanation
    };
    let hot_spots = match limit {
        Limit::HotSpots(_) => vec![("10.0.0.2:80".parse().expect("an address"), 97.0)],
        Limit::Open | Limit::All(_) => Vec::new(),
    };
    Decision {
        at: Instant::from_secs(5),
        plan: Plan { epoch: 7, limit, explanation, ..open },
        hot_spots,
        shadow,
    }
}

#[test]
fn the_status_tells_of_every_destination_and_place_and_adds_up() {
    let mut snapshot = snapshot();
    let counts = GateCounts { offered: 100, admitted: 60, answered: 30, reset: 10, ..GateCounts::default() };
    let service = |name: &str, counts| KernelService {
        name: name.to_owned(),
        ceiling_per_s: Some(97.0),
        counts,
        ..KernelService::default()
    };
    snapshot.kernel.services = vec![service("server_0", counts), service("server_1", GateCounts::default())];
    snapshot.place_destinations = snapshot.protected.iter().map(|at| vec![*at]).collect();
    let counts = PlaceCounts { offered: 9, unique_offered: 8, admitted: 4 };
    snapshot.destinations = vec![DestinationFigures { destination: snapshot.protected[0], counts }];
    let document = status(&snapshot, Instant::from_secs(9));
    assert_eq!(document["connections"]["offered"], 100);
    assert_eq!(document["connections"]["refused"], 40);
    assert_eq!(document["places"][0]["destinations"][0], "10.0.0.1:80");
    assert_eq!(document["destinations"]["busiest"][0]["refused"], 5);
    assert_eq!((document["mode"].as_str(), document["interval_s"].as_f64()), (Some("normal"), Some(1.0)));
    assert_eq!(document["baseline"]["unique_offered_rps"], 50.0);
    assert!(document["flows"].is_null(), "nothing was seen yet");
}

#[test]
fn an_explanation_says_whom_a_plan_limits_and_why() {
    let text = |limit, shadow| {
        let document = explanation(&decision(limit, shadow), Instant::from_secs(6));
        assert_eq!((document["epoch"].as_u64(), document["age_s"].as_f64()), (Some(7), Some(1.0)));
        document["text"].as_str().expect("text").to_owned()
    };
    assert_eq!(
        text(Limit::All(Rate::from_per_second(97.0)), false),
        "New connections beyond 97.0/s to all servers together are refused, because load was judged popular: 210.0 new \
         connections a second arrived (usually 50.0), and the fastest responses had 57 % of their usual speed."
    );
    let spot = HotSpotLimit { key: 1, rate: Rate::from_per_second(97.0) };
    let hot = text(Limit::HotSpots(vec![spot]), true);
    assert!(
        hot.starts_with(
            "New connections beyond 97.0/s to 10.0.0.2:80 would be (shadow mode: they are let in) refused"
        ),
        "{hot}"
    );
    assert!(text(Limit::Open, false).starts_with("Every new connection is let in"));
}
