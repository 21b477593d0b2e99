//! NEWS at a router that people's packets pass.

use crate::request_packets::tools::*;
use flashweir_admission::flash_crowd::{Mode, PlannerMode};
use flashweir_core::{Duration, Instant, Rate};
use flashweir_sim::network::TcpSettings;
use flashweir_sim::request::{
    ClassModel, ClassPath, ClientGroup, FaultKind, PacketNetwork, RouterPlace, Scenario, Work,
};
use flashweir_sim::router::{Controller, Reading, RouterSettings, Tick};
use flashweir_workload::documents::Sizes;

/// A static limit at the router of 20 connections a second.
fn limited(arrivals_rps: f64, timeout_s: u64) -> Scenario {
    let controller = Controller::Static(Rate::from_per_second(20.0));
    let settings =
        RouterSettings { controller, interval: Duration::from_secs(5), ..RouterSettings::default() };
    let first_tick = Duration::from_secs(5);
    let router = Some(RouterPlace { wire: 0, settings, first_tick, guarded: vec![true] });
    let class = ClassModel { timeout: Duration::from_secs(timeout_s), ..class() };
    over(PacketNetwork { router, ..network(&wide(), 1) }, steady(arrivals_rps, 30), class)
}

#[test]
fn a_syn_that_the_router_drops_is_sent_again_by_tcp_and_is_still_one_try() {
    let outcome = done(&limited(30.0, 600));
    let totals = outcome.totals();
    let router = outcome.packets.as_ref().unwrap().router.as_ref().unwrap();
    assert_eq!(totals.offered, totals.unique_offered);
    assert!(router.totals.offered > totals.offered + 300, "{:?} {totals:?}", router.totals);
    assert_eq!(router.totals.offered, router.totals.admitted + router.totals.shed);
    // Admitted requests were served; TCP gave up on the rest.
    assert_eq!((totals.completed, totals.admitted), (router.totals.admitted, router.totals.admitted));
    assert_eq!(totals.offered, totals.completed + totals.broken);
    let in_bins = router.bins.iter().map(|bin| bin.admitted).sum::<u64>();
    assert_eq!(in_bins, router.totals.admitted);
    assert!(router.bins[2..30].iter().all(|bin| bin.admitted <= 25), "{:?}", router.bins);
    assert_eq!(router.ticks.first().unwrap().at, Instant::from_secs(5));
    assert!(router.ticks.iter().all(|tick| tick.explanation.is_none()));
}

/// NEWS at the router between 200 clients and two hosts of which one is crowded, at a wire that carries half
/// the crowd.
fn with_bystander(hot_spots: bool) -> Scenario {
    let mode = PlannerMode::Repaired;
    let (interval, reading) = (Duration::from_secs(10), Reading::usual_for(mode));
    let settings = RouterSettings { controller: Controller::News(mode), interval, reading, hot_spots };
    let router = RouterPlace { wire: 0, settings, first_tick: interval, guarded: vec![true, true] };
    let clients = ClientGroup {
        access_bits_per_s: (21_000, 10_000_000),
        access_delay: (Duration::from_micros(500), Duration::from_millis(1_800)),
        ..ClientGroup::alike(0, 200, 1, MS)
    };
    let packets = PacketNetwork {
        clients: vec![clients],
        router: Some(router),
        paths: vec![ClassPath { tcp: TcpSettings::of_2003(), ..ClassPath::new(0, 1) }; 2],
        ..network(&link(2_200_000, 10 * MS, 20), 2)
    };
    let at_once = |name: &str, host| ClassModel {
        host,
        sizes: Sizes::Constant(4_000),
        timeout: Duration::from_secs(3_600),
        ..ClassModel::new(name, Work::Constant(Duration::ZERO))
    };
    Scenario {
        schedule: streams(vec![crowd(20.0, 120.0, 120, 300), steady(5.0, 300)], 5),
        classes: vec![at_once("crowd", 0), at_once("beside", 1)],
        ..over(packets, steady(1.0, 1), class())
    }
}

#[test]
fn a_bystander_passes_untouched_where_hot_spots_are_told_apart_and_not_where_all_are_limited() {
    // Requests of each host that reached the gate of those that began while the crowd was there.
    let [told_apart, alike] = [true, false].map(|hot_spots| {
        let outcome = done(&with_bystander(hot_spots));
        let router = outcome.packets.as_ref().unwrap().router.as_ref().unwrap();
        let limits = |tick: &&Tick| tick.explanation.is_some_and(|it| it.mode != Mode::Normal);
        let found = router.ticks.iter().find(limits).expect("the crowd is found").at;
        assert!(found > Instant::from_secs(120) && found <= Instant::from_secs(150), "{found:?}");
        let slow = |class: usize| {
            let bins = &outcome.classes[class].bins[160..290];
            let mean = bins.iter().map(|bin| bin.latency_nanos).sum::<u64>() as f64
                / bins.iter().map(|bin| bin.completed).sum::<u64>() as f64;
            mean / 1e9
        };
        (slow(0), slow(1), router.totals.shed)
    });
    println!("latency of the crowd and beside it, and SYNs shed: {told_apart:?}, {alike:?}");
    assert!(told_apart.2 > 1_000 && alike.2 > 1_000);
    // Where all are limited alike, all wait for their next SYN alike.
    assert!(alike.1 > 0.7 * alike.0, "{alike:?}");
    assert!(told_apart.1 < 0.5 * alike.1 && told_apart.1 < 0.5 * told_apart.0, "{told_apart:?} {alike:?}");
}

#[test]
fn a_routers_planner_without_feedback_is_blind() {
    let scenario = with_bystander(false);
    let faults = during(FaultKind::LostFeedback(1.0), 115, 300);
    let outcome = done(&Scenario { faults, ..scenario });
    let router = outcome.packets.unwrap().router.unwrap();
    assert_eq!(router.bins[..300].iter().map(|bin| bin.shed).sum::<u64>(), 0);
    assert!(router.ticks.len() >= 30);
}
