//! Networks that cannot be, and the errors that say so.

use crate::request_packets::tools::*;
use flashweir_core::Duration;
use flashweir_sim::network::TcpSettings;
use flashweir_sim::request::{PacketNetwork, RouterPlace, RunError, Transfer, run};
use flashweir_sim::router::RouterSettings;

#[test]
fn what_makes_no_network_is_told_with_its_name() {
    let check = |change: fn(&mut PacketNetwork), expected: &str| {
        let mut packets = network(&wide(), 1);
        change(&mut packets);
        match run(&over(packets, steady(1.0, 10), class())) {
            Err(RunError::Scenario(error)) => assert_eq!(error.to_string(), expected),
            other => panic!("{expected}: {other:?}"),
        }
    };
    check(|it| it.paths[0].server = 7, "network.paths[0]: there is no node 7 in this network");
    check(
        |it| {
            it.nodes = 8;
            it.paths[0].server = 7;
        },
        "network.paths[0]: no route from node 0 to node 7",
    );
    check(|it| it.paths[0].clients = 1, "network.paths[0].clients: there is no group 1 of clients");
    check(|it| it.paths.clear(), "network.paths: 0 paths for 1 classes: one for each");
    check(
        |it| it.paths[0].tcp.segment_bytes = 0,
        "network.paths[0]: TCP segment_bytes is 0; expected 1 to 65535 with its header",
    );
    check(|it| it.clients[0].count = 0, "network.clients[0].count: a group without clients");
    check(
        |it| it.clients[0].count = 20_001,
        "network.clients: 20001 clients of all classes are more than 20000",
    );
    check(|it| it.clients[0].at = 2, "network.clients[0].at: there is no node 2 in this network");
    check(
        |it| it.clients[0].access_bits_per_s = (5, 1),
        "network.clients[0].access_bits_per_s: 5 to 1: expected the slowest first, from 1 bit/s",
    );
    check(
        |it| it.clients[0].access_delay = (Duration::ZERO, MS),
        "network.clients[0].access_delay: 0ns to 1ms: expected the shortest first, above zero",
    );
    check(|it| it.wires[0].ends = [0, 2], "network.wires[0]: there is no node 2 in this network");
    check(|it| it.wires[0].ends = [1, 1], "network.wires[0]: it leads from a node to itself");
    check(
        |it| it.wires[0].back.rate_bits_per_s = 0,
        "network.wires[0]: link rate is 0; expected 1 to 1000000000000 bit/s",
    );
}

#[test]
fn what_makes_no_router_and_no_transfer_is_told_with_its_name() {
    let transfer = |it: &mut PacketNetwork, to, starts_s| {
        let (name, tcp) = ("bulk".to_owned(), TcpSettings::modern());
        let starts = Duration::from_secs(starts_s);
        it.transfers.push(Transfer { name, from: 1, to, tcp, starts, bytes: None });
    };
    let router = |it: &mut PacketNetwork, wire, interval_s, guarded| {
        let interval = Duration::from_secs(interval_s);
        let settings = RouterSettings { interval, ..RouterSettings::default() };
        it.router = Some(RouterPlace { wire, settings, first_tick: Duration::from_secs(5), guarded });
    };
    let error_of = |change: &dyn Fn(&mut PacketNetwork)| {
        let mut packets = network(&wide(), 1);
        change(&mut packets);
        over(packets, steady(1.0, 10), class()).check().unwrap_err().to_string()
    };
    assert_eq!(
        error_of(&|it| transfer(it, 9, 0)),
        "network.transfers[0]: there is no node 9 in this network"
    );
    assert_eq!(error_of(&|it| transfer(it, 0, 10)), "network.transfers[0].starts: the run is over by then");
    assert_eq!(error_of(&|it| router(it, 3, 10, vec![true])), "network.router.wire: there is no wire 3");
    assert_eq!(
        error_of(&|it| router(it, 0, 0, vec![true])),
        "network.router.interval: 0 s: expected 1 to 3600 s"
    );
    assert_eq!(
        error_of(&|it| router(it, 0, 4, vec![true])),
        "network.router.first_tick: 5 s: expected above zero and at most the interval"
    );
    assert_eq!(
        error_of(&|it| router(it, 0, 10, vec![])),
        "network.router.guarded: 0 entries for 1 classes: one for each"
    );
}
