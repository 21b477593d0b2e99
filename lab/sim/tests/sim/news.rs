//! Goal: flash crowds packet by packet are conserved and repeatable, and NEWS at the router does what it is
//! for. Method: minutes of virtual time at a smaller bottleneck, a crowd of six times the quiet rate and
//! twice what fits.

use flashweir_admission::flash_crowd::{Mode, PlannerMode};
use flashweir_core::Rate;
use flashweir_sim::news::{BulkTransfer, Links, NewsError, NewsOutcome, Scenario, Server, run};
use flashweir_sim::router::{Controller, Reading, RouterSettings};
use flashweir_workload::RateProfile;
use flashweir_workload::documents::Sizes;
use flashweir_workload::people::Wait;
use std::time::Duration;

const ONSET_S: u64 = 120;
const END_S: u64 = 300;

/// 20 people a second, then 120, at a bottleneck that carries about 60; a decision every ten seconds.
fn crowd(controller: Controller) -> Scenario {
    let (onset, end) = (Duration::from_secs(ONSET_S), Duration::from_secs(END_S));
    let interval = Duration::from_secs(10);
    let reading = match controller {
        Controller::News(mode) => Reading::usual_for(mode),
        _ => Reading::AsPublished,
    };
    Scenario {
        seed: 5,
        arrivals: RateProfile::step(20.0, 120.0, onset, end).expect("a step"),
        pages: Sizes::Constant(4_000),
        links: Links {
            clients: 200,
            bottleneck_bits_per_s: 2_200_000,
            bottleneck_buffer_packets: 20,
            ..Links::default()
        },
        router: RouterSettings { controller, interval, reading, ..RouterSettings::default() },
        first_tick: interval,
        ..Scenario::default()
    }
}

fn done(scenario: &Scenario) -> NewsOutcome {
    run(scenario).expect("a scenario within its bounds")
}

fn admitted_rps(outcome: &NewsOutcome, from_s: u64) -> f64 {
    outcome.per_second(from_s..END_S, |bin| bin.gate.admitted)
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_not() {
    let scenario = crowd(Controller::News(PlannerMode::Repaired));
    let (one, again) = (done(&scenario), done(&scenario));
    assert_eq!(one, again);
    let other = done(&Scenario { seed: 6, ..scenario });
    assert_ne!(one.event_hash, other.event_hash);
}

#[test]
fn every_controller_meets_the_same_crowd() {
    let come = [
        Controller::None,
        Controller::Static(Rate::from_milli(50_000)),
        Controller::News(PlannerMode::Paper),
    ]
    .map(|controller| {
        let outcome = done(&crowd(controller));
        outcome.bins.iter().map(|bin| bin.unique_offered).collect::<Vec<_>>()
    });
    assert_eq!(come[0], come[1]);
    assert_eq!(come[0], come[2]);
}

#[test]
fn repaired_finds_the_crowd_and_lets_in_what_fits() {
    let none = done(&crowd(Controller::None));
    let news = done(&crowd(Controller::News(PlannerMode::Repaired)));
    let found = news.first_alarm_s(0).expect("a crowd of twice the capacity is found");
    assert!(found > ONSET_S as f64 && found <= (ONSET_S + 30) as f64, "{found}");
    let calm = news.ticks.iter().filter(|tick| tick.at.as_secs_f64() <= ONSET_S as f64);
    assert!(calm.flat_map(|tick| tick.explanation).all(|it| it.mode == Mode::Normal));
    // Half the crowd at most once it is found, the loss goes, and the fastest are fast again.
    let settled = ONSET_S + 60;
    assert!(admitted_rps(&news, settled) < 0.6 * admitted_rps(&none, settled));
    assert!(admitted_rps(&news, settled) > 20.0);
    assert!(news.response_loss(settled..END_S) < 0.3 * none.response_loss(settled..END_S));
    let fastest = |outcome: &NewsOutcome| {
        outcome.mean_rate(settled..END_S, |tick| tick.corrected.map(|rates| rates.fastest)).unwrap_or(0.0)
    };
    assert!(fastest(&news) > 1.5 * fastest(&none), "{} and {}", fastest(&news), fastest(&none));
}

#[test]
fn a_static_limit_admits_its_rate_and_the_refused_try_again() {
    let outcome = done(&crowd(Controller::Static(Rate::from_milli(50_000))));
    let rate = admitted_rps(&outcome, ONSET_S + 10);
    assert!((49.0..51.5).contains(&rate), "{rate}");
    let crowd = outcome.total(ONSET_S..END_S);
    assert!(crowd.gate.offered as f64 > 1.5 * crowd.unique_offered as f64, "{crowd:?}");
    assert_eq!(outcome.gate.offered, outcome.gate.admitted + outcome.gate.shed);
}

#[test]
fn everybody_is_accounted_for_whatever_ends_their_wait() {
    let server = Server::FirstComeFirstServed { bytes_per_s: 200_000, requests_most: Some(10) };
    let patience = Some(Wait::Constant(Duration::from_secs(8)));
    let outcome = done(&Scenario { server, patience, ..crowd(Controller::None) });
    let people = outcome.people;
    let ended = people.completed + people.not_connected + people.given_up + people.abandoned;
    assert_eq!(people.unique_offered, ended + people.in_flight);
    // 50 pages a second are made of the 120 that are asked for.
    let completed = outcome.per_second(ONSET_S + 20..END_S, |bin| bin.completed);
    assert!((30.0..50.5).contains(&completed), "{completed}");
    assert!(people.dropped_by_server > 1_000 && people.abandoned > people.dropped_by_server, "{people:?}");
}

#[test]
fn a_bulk_transfer_suffers_in_the_crowd_and_nobody_limits_it() {
    let outcome =
        done(&Scenario { bulk: Some(bulk()), ..crowd(Controller::Static(Rate::from_milli(1_000))) });
    let quiet = outcome.per_second(10..ONSET_S, |bin| bin.bulk_bytes);
    assert!(quiet > 100_000.0, "one transfer and a page a second on 2.2 Mb/s: {quiet} bytes/s");
    let without = done(&Scenario { bulk: Some(bulk()), ..crowd(Controller::None) });
    let crowded = without.per_second(ONSET_S + 20..END_S, |bin| bin.bulk_bytes);
    assert!(crowded < 0.3 * quiet, "{crowded} after {quiet}");
}

fn bulk() -> BulkTransfer {
    BulkTransfer {
        tcp: Scenario::default().tcp,
        access_bits_per_s: 10_000_000,
        access_delay: Duration::from_millis(50),
    }
}

#[test]
fn settings_out_of_range_are_told_by_name() {
    let check = |scenario: Scenario, message: &str| {
        let error: NewsError = run(&scenario).expect_err("a wrong setting");
        assert_eq!(error.to_string(), message);
    };
    let links = |links| Scenario { links, ..crowd(Controller::None) };
    check(
        links(Links { clients: 0, ..Links::default() }),
        "network.clients[0].count: a group without clients",
    );
    check(
        links(Links { access_bits_per_s: (5, 1), ..Links::default() }),
        "network.clients[0].access_bits_per_s: 5 to 1: expected the slowest first, from 1 bit/s",
    );
    let router = RouterSettings { interval: Duration::from_millis(10), ..RouterSettings::default() };
    check(
        Scenario { router, ..crowd(Controller::None) },
        "network.router.interval: 0.01 s: expected 1 to 3600 s",
    );
    check(
        links(Links { bottleneck_bits_per_s: 0, ..Links::default() }),
        "network.wires[0]: link rate is 0; expected 1 to 1000000000000 bit/s",
    );
    let server = Server::FirstComeFirstServed { bytes_per_s: 1, requests_most: Some(0) };
    check(Scenario { server, ..crowd(Controller::None) }, "server.requests_most: expected 1 to 4294967295");
}
