//! People, gate and server over packets, beside the same over a delay.

use crate::request_packets::tools::*;
use flashweir_core::{Duration, Rate};
use flashweir_sim::network::TcpSettings;
use flashweir_sim::request::{
    ClassModel, ClassOutcome, ClientGroup, DatagramSource, FaultKind, FlashCrowdPolicy, LinkBin, Memory,
    NetworkModel, Overflow, PacketNetwork, Policy, RunOutcome, Scenario, ServerModel, Transfer, Work,
};
use flashweir_workload::documents::{Popularity, Sizes};
use flashweir_workload::people::{Habits, Retry};

#[test]
fn over_a_wide_network_the_same_crowd_fares_as_over_a_delay() {
    let habits = Habits { retry: Some(Retry::default()), ..Habits::default() };
    let one = ClassModel { habits, ..class() };
    let other = ClassModel { host: 1, ..ClassModel::new("other", Work::Exponential { mean: 2 * MS }) };
    let schedule = streams(vec![steady(60.0, 30), steady(100.0, 30)], 5);
    let packets = Scenario {
        schedule,
        classes: vec![one, other],
        ..over(network(&wide(), 2), steady(1.0, 1), class())
    };
    // The way of the request's connection and the request: 2 ms of delay each way, there and back and there
    // again.
    let delay = Scenario { network: NetworkModel::Delay(4 * MS), ..packets.clone() };
    let [packets, delay] = [packets, delay].map(|scenario| done(&scenario));
    for (over_packets, over_delay) in packets.classes.iter().zip(&delay.classes) {
        let counts = |outcome: &ClassOutcome| {
            let totals = outcome.totals;
            (totals.unique_offered, totals.offered, totals.admitted, totals.completed, totals.goodput)
        };
        assert_eq!(counts(over_packets), counts(over_delay), "{}", over_packets.name);
    }
    let (over_packets, over_delay) = (mean_latency_s(&packets), mean_latency_s(&delay));
    assert!((over_packets - over_delay).abs() < 0.002, "{over_packets} s and {over_delay} s");
    let wire = &packets.packets.as_ref().unwrap().wires[0];
    assert!(wire.there.iter().chain(&wire.back).all(|bin| bin.dropped == 0));
    assert!(delay.packets.is_none() && packets.events > delay.events);
}

#[test]
fn a_bottleneck_that_is_too_small_drops_packets_and_makes_people_wait() {
    // 100 documents of 10 kB a second are 8 Mb/s and more; the wire carries 5.
    let large = ClassModel { sizes: Sizes::Constant(10_000), timeout: Duration::from_secs(20), ..class() };
    let scenario = |rate: u64| over(network(&link(rate, 10 * MS, 30), 1), steady(100.0, 30), large.clone());
    let [narrow, ample] = [5_000_000, 50_000_000].map(|rate| done(&scenario(rate)));
    let dropped = |outcome: &RunOutcome| {
        outcome.packets.as_ref().unwrap().wires[0].back.iter().map(|bin| bin.dropped).sum::<u64>()
    };
    assert_eq!(dropped(&ample), 0);
    assert!(dropped(&narrow) > 1_000, "{}", dropped(&narrow));
    assert!(mean_latency_s(&ample) < 0.1, "{}", mean_latency_s(&ample));
    assert!(mean_latency_s(&narrow) > 1.0, "{}", mean_latency_s(&narrow));
    // What arrives in a second is what the wire carries: that of the answers and their headers.
    let busiest = narrow.packets.as_ref().unwrap().wires[0].back.iter().map(|bin| bin.delivered_bytes);
    assert!((600_000..=625_000 + 1_500).contains(&busiest.take(30).max().unwrap()));
}

#[test]
fn clients_that_give_up_take_their_connections_and_the_servers_work_with_them() {
    // Twice what the server makes; each client waits for a second.
    let impatient = ClassModel { timeout: Duration::from_secs(1), ..class() };
    let outcome = done(&over(network(&wide(), 1), steady(400.0, 20), impatient));
    let totals = outcome.totals();
    assert!(totals.timed_out > 3_000, "{totals:?}");
    assert_eq!(totals.offered, totals.timed_out + totals.completed);
    // The server heard of all that gave up while it had their requests, but for the last few. (What it had
    // answered by then came too late: first come, first served, those at the head of the line are about to
    // leave.)
    let server = outcome.server;
    let too_late = server.completed - totals.completed;
    assert!((totals.timed_out - too_late).abs_diff(server.stopped) < 20, "{server:?} {totals:?}");
    assert!(server.stopped > 5_000, "{server:?}");
}

#[test]
fn a_crash_resets_the_connections_that_wait_and_those_that_come() {
    let faults = during(FaultKind::Crash, 10, 12);
    let outcome = done(&Scenario { faults, ..over(network(&wide(), 1), steady(150.0, 20), class()) });
    let [before, meanwhile, after] = [0..9, 10..12, 13..20].map(|bins| outcome.began_within(bins));
    assert_eq!((before.completed, after.completed), (before.offered, after.offered));
    assert!(meanwhile.broken > 250 && meanwhile.completed < 10, "{meanwhile:?}");
    assert_eq!(outcome.totals().broken + outcome.totals().completed, outcome.totals().offered);
}

#[test]
fn tcp_gets_over_a_cut_that_a_delay_does_not() {
    let patient = ClassModel { timeout: Duration::from_secs(10), ..class() };
    let faults = during(FaultKind::LinkCut, 5, 6);
    let packets = Scenario { faults, ..over(network(&wide(), 1), steady(50.0, 12), patient) };
    let delay = Scenario { network: NetworkModel::Delay(2 * MS), ..packets.clone() };
    let [packets, delay] = [packets, delay].map(|scenario| done(&scenario));
    assert_eq!(packets.totals().completed, packets.totals().offered);
    let lost = packets.packets.as_ref().unwrap().wires[0].there.iter().map(|bin| bin.dropped).sum::<u64>();
    assert_eq!(lost, 0, "what the clients' own links lost does not come to the wire");
    assert!(packets.began_within(5..6).mean_latency_s().unwrap() > 0.5);
    assert!(delay.began_within(5..6).timed_out > 40, "{:?}", delay.began_within(5..6));
}

#[test]
fn memory_that_runs_short_turns_overload_into_collapse_over_packets_too() {
    let memory =
        Memory { memory_bytes: 1 << 30, base_bytes: 500 << 20, request_bytes: 10 << 20, penalty: 20.0 };
    let patient = ClassModel { timeout: Duration::from_secs(600), ..class() };
    let served_rps = |memory| {
        let server = ServerModel { memory, ..ServerModel::processor_sharing(1) };
        let scenario = over(network(&wide(), 1), steady(260.0, 40), patient.clone());
        done(&Scenario { server, ..scenario }).mean_level(10..40).served_rps
    };
    let (with_swapping, without) = (served_rps(Some(memory)), served_rps(None));
    assert!(with_swapping < 0.3 * without, "{with_swapping} {without}");
}

#[test]
fn the_gates_planner_learns_transfer_rates_where_there_are_any() {
    let policy = Policy::flash_crowd(FlashCrowdPolicy::default());
    // 100 kB over an access link of 10 Mb/s: a tenth of a second and a little, so at most 1,250,000 bytes/s.
    let large = ClassModel { sizes: Sizes::Constant(100_000), ..class() };
    let small = ClassModel { sizes: Sizes::Constant(10_000), ..class() };
    let clients =
        vec![ClientGroup { access_buffer_packets: 500, ..ClientGroup::alike(0, 50, 10_000_000, MS) }];
    let known_rate = |class: ClassModel| {
        let packets = PacketNetwork { clients: clients.clone(), ..network(&wide(), 1) };
        let outcome = done(&Scenario { policy: policy.clone(), ..over(packets, steady(40.0, 20), class) });
        outcome.plans.iter().rev().find_map(|plan| plan.explanation.fast_rate_bytes_per_s)
    };
    let rate = known_rate(large).expect("a large answer has a rate");
    assert!((700_000.0..1_250_000.0).contains(&rate), "{rate}");
    assert_eq!(known_rate(small), None);
}

#[test]
fn refusals_travel_too_and_people_come_back() {
    let retry = Some(Retry { tries_most: 2, pace: "fixed:100ms".parse().unwrap(), ..Retry::default() });
    let habits = Habits { retry, ..Habits::default() };
    let policy = Policy::StaticRate { rate: Rate::from_per_second(10.0), burst: 1 };
    let scenario = over(network(&wide(), 1), steady(50.0, 20), ClassModel { habits, ..class() });
    let outcome = done(&Scenario { policy, ..scenario });
    let totals = outcome.totals();
    assert!(totals.offered > totals.unique_offered && totals.refused > 1_000, "{totals:?}");
    assert_eq!(totals.shed_total(), totals.refused);
    // A connection, a request, and 300 bytes: three times 2 ms each way and a little.
    let refusal_us = outcome.classes[0].refusal_us.quantile(0.5).unwrap();
    assert!((7_000..10_000).contains(&refusal_us), "{refusal_us}");
    let server = ServerModel { queue: Some(0), overflow: Overflow::Refuse { cost: MS }, ..scenario_server() };
    let busy = done(&Scenario { server, ..over(network(&wide(), 1), steady(300.0, 10), class()) });
    assert!(busy.totals().server_refused > 500 && busy.totals().refused == busy.totals().server_refused);
}

#[test]
fn what_a_server_drops_waits_for_its_own_time_limit_unless_its_connection_breaks() {
    let outcome = |overflow| {
        let server = ServerModel { queue: Some(0), overflow, ..scenario_server() };
        done(&Scenario { server, ..over(network(&wide(), 1), steady(300.0, 10), class()) })
    };
    let [silent, reset] = [Overflow::Drop, Overflow::Reset].map(outcome);
    assert!(silent.server.dropped > 500, "{:?}", silent.server);
    assert_eq!((silent.totals().timed_out, silent.totals().broken), (silent.server.dropped, 0));
    assert_eq!((reset.totals().timed_out, reset.totals().broken), (0, silent.server.dropped));
    let resets = reset.packets.unwrap().connections.iter().map(|bin| bin.reset).sum::<u64>();
    assert_eq!(resets, reset.server.dropped);
}

#[test]
fn long_transfers_and_datagrams_share_the_wire_and_are_told_bin_by_bin() {
    let transfer = |name: &str, starts_s: u64, bytes| Transfer {
        name: name.to_owned(),
        from: 1,
        to: 2,
        tcp: TcpSettings::modern(),
        starts: Duration::from_secs(starts_s),
        bytes,
    };
    let flood = DatagramSource {
        name: "flood".to_owned(),
        from: 1,
        to: 2,
        packet_bytes: 1_000,
        rate_bits_per_s: 5_000_000,
        starts: Duration::from_secs(10),
        ends: Some(Duration::from_secs(20)),
    };
    let packets = PacketNetwork {
        nodes: 3,
        wires: vec![wire([0, 1], &link(8_000_000, 5 * MS, 50)), wire([2, 0], &wide())],
        transfers: vec![transfer("endless", 0, None), transfer("short", 25, Some(50_000))],
        datagrams: vec![flood],
        ..network(&wide(), 1)
    };
    let outcome = done(&over(packets, steady(2.0, 30), class()));
    let packets = outcome.packets.unwrap();
    let per_second = |bins: std::ops::Range<usize>| {
        let received = &packets.transfers[0].received_bytes[bins.clone()];
        received.iter().sum::<u64>() as f64 / bins.len() as f64
    };
    // 8 Mb/s are 973 kB/s of payload; the flood leaves three eighths at most.
    assert!((850_000.0..975_000.0).contains(&per_second(2..10)), "{}", per_second(2..10));
    assert!(per_second(11..20) < 375_000.0, "{}", per_second(11..20));
    assert_eq!(packets.transfers[1].received_bytes.iter().sum::<u64>(), 50_000);
    assert_eq!(packets.transfers[1].received_bytes[..25].iter().sum::<u64>(), 0);
    let flood = &packets.datagrams[0];
    assert_eq!((flood.name.as_str(), flood.bins.len()), ("flood", 31));
    assert_eq!(flood.bins.iter().map(|bin| bin.sent).sum::<u64>(), 6_250);
    // What happens when a bin ends belongs to it: the first packet to the bin before, too.
    assert!(flood.bins[10..19].iter().all(|bin| bin.sent == 625), "{:?}", flood.bins);
    let books = packets.packets;
    assert_eq!(books.sent, books.delivered + books.dropped + books.held);
}

#[test]
fn work_for_each_byte_makes_a_server_of_so_many_bytes_a_second() {
    let sizes = Sizes::Constant(4_000);
    let work = Work::PerByte { bytes_per_s: 400_000 };
    let timeout = Duration::from_secs(600);
    let class = ClassModel { sizes, timeout, ..ClassModel::new("all", work) };
    let outcome = done(&over(network(&wide(), 1), steady(150.0, 30), class));
    let served_rps = outcome.mean_level(5..30).served_rps;
    assert!((served_rps - 100.0).abs() < 1.0, "{served_rps}");
}

/// Goal: the same seed gives the same events, and a change of a rule shows what it changed. Method: two
/// runs of one seed are equal; the counts are compared with the committed table, which holds every machine
/// and build profile to the same run.
#[test]
fn the_same_seed_is_the_same_run_and_has_the_committed_table() {
    let scenario = |seed| {
        let popularity = Popularity::zipf(0.8, 100).unwrap();
        let habits = Habits {
            patience: Some("exp:5s".parse().unwrap()),
            retry: Some(Retry::default()),
            ..Habits::default()
        };
        let sizes = "pareto:1.3:1170".parse().unwrap();
        let class = ClassModel { popularity, habits, sizes, ..class() };
        let faults = [during(FaultKind::Crash, 4, 5), during(FaultKind::LinkCut, 7, 8)].concat();
        let narrow = link(4_000_000, 10 * MS, 20);
        Scenario { seed, faults, ..over(network(&narrow, 1), crowd(40.0, 120.0, 5, 15), class) }
    };
    let [one, again, other] = [1, 1, 2].map(|seed| done(&scenario(seed)));
    assert_eq!((one.events, one.event_hash, &one.packets), (again.events, again.event_hash, &again.packets));
    let totals = one.totals();
    assert!([totals.broken, totals.timed_out, totals.abandoned].iter().all(|&count| count > 0), "{totals:?}");
    assert_ne!(one.event_hash, other.event_hash);
    let table = table(&[(1, &one), (2, &other)]);
    insta::with_settings!({
        snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"),
        prepend_module_to_snapshot => false,
    }, { insta::assert_snapshot!("request_packets_people", table) });
}

/// One row per seed and five seconds. The wire's columns count the packets of the answers' direction.
fn table(runs: &[(u64, &RunOutcome)]) -> String {
    let mut table = String::new();
    for (seed, outcome) in runs {
        let (events, ended_s) = (outcome.events, outcome.ended_at.as_secs_f64());
        table += &format!("seed {seed}: {events} events in {ended_s:.4} s\n");
        table += &format!("{:?}\n{:?}\n", outcome.server, outcome.packets.as_ref().unwrap().packets);
        let latency_us = &outcome.classes[0].latency_us;
        let [p50, p95] = [0.5, 0.95].map(|share| latency_us.quantile(share).unwrap() as f64 / 1e3);
        table += &format!("p50 {p50:.1} ms, p95 {p95:.1} ms\n");
    }
    table += "\nseed from_s unique offered completed goodput timed_out abandoned broken mean_ms wire_in wire_dropped wire_bytes\n";
    for (seed, outcome) in runs {
        let wire = &outcome.packets.as_ref().unwrap().wires[0].back;
        for from in (0..wire.len()).step_by(5) {
            let counts = outcome.began_within(from..from + 5);
            let bins = &wire[from..wire.len().min(from + 5)];
            let sum = |count: fn(&LinkBin) -> u64| bins.iter().map(count).sum::<u64>();
            table += &format!(
                "{seed:>4} {from:>6} {:>6} {:>7} {:>9} {:>7} {:>9} {:>9} {:>6} {:>7.1} {:>7} {:>12} {:>10}\n",
                counts.unique_offered,
                counts.offered,
                counts.completed,
                counts.goodput,
                counts.timed_out,
                counts.abandoned,
                counts.broken,
                counts.mean_latency_s().unwrap_or(0.0) * 1e3,
                sum(|bin| bin.offered),
                sum(|bin| bin.dropped),
                sum(|bin| bin.delivered_bytes),
            );
        }
    }
    table
}
