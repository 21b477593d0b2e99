//! Ranks of connections, and what becomes of each rank under a plan in tiers.

use std::net::IpAddr;

use super::*;
use crate::gate::GateError;

fn network(text: &str, bits: u8, rank: u8) -> (IpAddr, u8, u8) {
    (text.parse().expect("an address"), bits, rank)
}

/// Rank under which the gate counts a connection.
fn rank_of(gate: &KernelGate, segment: &Segment) -> usize {
    let before = gate.counts().tiers;
    gate.verdict(segment);
    let after = gate.counts().tiers;
    (0..TIERS).find(|&rank| after[rank].offered > before[rank].offered).expect("a rank")
}

#[test]
fn a_network_counts_before_a_mark_and_a_mark_before_a_port() {
    let Some(mut gate) = require_closed("ranks of connections", ExcessTreatment::Drop) else { return };
    let marked = |segment: Segment, mark: u8| Segment { traffic_class: mark << 2 | 3, ..segment };
    assert_eq!(rank_of(&gate, &syn()), TIERS - 1, "the default");
    gate.rank(Ranks { default_rank: 5, ..Ranks::default() }).expect("ranks");
    assert_eq!([rank_of(&gate, &syn()), rank_of(&gate, &syn_v6())], [5, 5]);
    let ranks = Ranks { ports: vec![(80, 4)], marks: vec![(46, 3), (0, 6)], ..Ranks::default() };
    gate.rank(ranks.clone()).expect("ranks");
    assert_eq!([46, 0, 1].map(|mark| rank_of(&gate, &marked(syn(), mark))), [3, 6, 4]);
    assert_eq!([46, 0, 1].map(|mark| rank_of(&gate, &marked(syn_v6(), mark))), [3, 6, 4]);
    let networks = vec![
        network("198.51.0.0", 16, 1),
        network("198.51.100.7", 32, 2),
        network("2001:db8:1::", 48, 0),
        network("::", 0, 7),
    ];
    gate.rank(Ranks { networks, ..ranks }).expect("ranks");
    assert_eq!(rank_of(&gate, &marked(syn(), 46)), 2, "the longest network");
    assert_eq!(rank_of(&gate, &Segment::syn(client(1), address(SERVER))), 1);
    assert_eq!(rank_of(&gate, &marked(syn_v6(), 46)), 0);
    let other = Segment::syn(address("[2001:db8:2::1]:4"), address(SERVER_V6));
    assert_eq!(rank_of(&gate, &other), 7, "all of IPv6");
    let stranger = Segment::syn(address("203.0.113.1:4"), address(SERVER));
    assert_eq!(rank_of(&gate, &marked(stranger, 1)), 4, "which is not IPv4");
    gate.rank(Ranks::default()).expect("no ranks");
    assert_eq!([rank_of(&gate, &marked(syn(), 46)), rank_of(&gate, &syn_v6())], [7, 7]);
}

#[test]
fn ranks_that_cannot_be_are_refused_by_name() {
    let Some(mut gate) = require("ranks that cannot be") else { return };
    let mut error = |ranks| gate.rank(ranks).expect_err("impossible").to_string();
    let with = |networks| Ranks { networks, ..Ranks::default() };
    assert_eq!(error(with(vec![network("::", 0, 8)])), "rank 8, where the least important is 7");
    assert_eq!(error(with(vec![network("10.0.0.0", 33, 0)])), "a network 33 bits long");
    let many = vec![network("10.0.0.0", 8, 0); 4_097];
    let most = "networks with a rank: 4097 are more than the kernel's table holds, 4096";
    assert_eq!(error(with(many)), most);
    let marks = vec![(64, 0)];
    assert_eq!(error(Ranks { marks, ..Ranks::default() }), "mark 64, where the highest is 63");
    assert!(matches!(Tiers::new(&[ceiling(1.0, 1); 9]), Err(GateError::TooMany { count: 9, most: 8, .. })));
}

fn ceiling(rate_per_s: f64, burst: u32) -> Ceiling {
    Ceiling { rate: Rate::from_per_second(rate_per_s), burst }
}

/// Goal: the guarantee of a plan in tiers, in the kernel: with more load than fits, a rank gets what it
/// asks for as long as it and the more important ones ask for less than the whole ceiling. Method: each
/// rank has its network and asks evenly, the least important first; the last four of five seconds count.
#[test]
fn important_connections_are_refused_last() {
    let Some(mut gate) = require_closed("tiers", ExcessTreatment::Drop) else { return };
    let networks = (0..3).map(|rank| network(&format!("10.{rank}.0.0"), 16, rank)).collect();
    gate.rank(Ranks { networks, ..Ranks::default() }).expect("ranks");
    let tiers = Tiers::new(&[ceiling(50.0, 10), ceiling(30.0, 10), ceiling(20.0, 10)]).expect("room");
    assert_eq!(tiers.total_rate(), Some(Rate::from_per_second(100.0)));
    let mut begin_ns = 10 * SECOND_NS;
    let mut admitted_per_s = |offered_per_s: [u64; 3]| {
        gate.tell(begin_ns);
        // From an open gate, so with an empty bucket.
        gate.apply(&[ServicePlan::default()]).expect("a plan");
        gate.apply(&[ServicePlan { tiers, ..closed(ExcessTreatment::Drop) }]).expect("a plan");
        let mut before = gate.counts().tiers;
        for tick in 0..500 {
            gate.tell(begin_ns + tick * SECOND_NS / 100);
            if tick == 100 {
                before = gate.counts().tiers;
            }
            for rank in (0..3).rev() {
                let offered = offered_per_s[rank];
                for number in 0..(tick + 1) * offered / 100 - tick * offered / 100 {
                    let source = SocketAddr::new([10, rank as u8, 0, number as u8].into(), 40_000);
                    gate.verdict(&Segment::syn(source, address(SERVER)));
                }
            }
        }
        begin_ns += 100 * SECOND_NS;
        let after = gate.counts().tiers;
        let per_s = |rank: usize| {
            let [offered, admitted] =
                [after[rank].offered - before[rank].offered, after[rank].admitted - before[rank].admitted];
            assert_eq!(offered, offered_per_s[rank] * 4);
            assert_eq!(
                after[rank].refused() - before[rank].refused(),
                offered - admitted,
                "offered = admitted + refused"
            );
            admitted / 4
        };
        [0, 1, 2].map(per_s)
    };
    assert_eq!(admitted_per_s([20, 40, 400]), [20, 40, 40]);
    assert_eq!(admitted_per_s([20, 300, 400]), [20, 80, 0]);
    assert_eq!(admitted_per_s([300, 300, 400]), [100, 0, 0]);
    assert_eq!(admitted_per_s([0, 0, 400]), [0, 0, 100]);
    assert_eq!(admitted_per_s([30, 30, 30]), [30, 30, 30], "all fit");
}

#[test]
fn one_ceiling_in_tiers_keeps_its_rate_and_little_more_than_its_burst() {
    let of = |rate_per_s: f64, ranks| Tiers::under(ceiling(rate_per_s, 25), ranks);
    assert_eq!(of(100.0, 1), Tiers::one(ceiling(100.0, 25)));
    assert_eq!(of(100.0, 0), Tiers::one(ceiling(100.0, 25)));
    for ranks in 2..=9 {
        let tiers = of(100.0, ranks);
        assert_eq!(
            (tiers.ceilings().len(), tiers.total_rate()),
            (ranks.min(8), Some(Rate::from_per_second(100.0)))
        );
        let reserved: u32 = tiers.ceilings().iter().rev().skip(1).map(|ceiling| ceiling.burst).sum();
        assert!((ranks as u32 - 2..=25).contains(&reserved), "{tiers:?}");
    }
    assert_eq!(of(100.0, 2).ceilings(), [ceiling(0.0, 10), ceiling(100.0, 25)]);
    assert_eq!(of(1.0, 3).ceilings(), [ceiling(0.0, 1), ceiling(0.0, 1), ceiling(1.0, 25)]);
}

#[test]
fn preferred_networks_have_no_rank_and_tiers_add_up_to_the_rest() {
    let Some(mut gate) = require_closed("tiers beside preferred networks", ExcessTreatment::Drop) else {
        return;
    };
    gate.prefer(&[("198.51.100.0".parse().expect("an address"), 24)]).expect("networks");
    gate.rank(Ranks { networks: vec![network("198.51.0.0", 16, 1)], ..Ranks::default() }).expect("ranks");
    let tiers = Tiers::new(&[ceiling(0.0, 1); 2]).expect("room");
    gate.apply(&[ServicePlan { tiers, preferred: None, ..closed(ExcessTreatment::Drop) }]).expect("a plan");
    assert_eq!([gate.verdict(&syn()), gate.verdict(&syn_v6())], [PASS, DROP]);
    assert_eq!(gate.verdict(&Segment::syn(client(1), address(SERVER))), DROP);
    let counts = gate.counts();
    let one = TierCounts { offered: 1, admitted: 0 };
    assert_eq!((counts.tiers[1], counts.tiers[7]), (one, one));
    let offered: u64 = counts.tiers.iter().map(|tier| tier.offered).sum();
    assert_eq!((offered + counts.preferred_offered, counts.preferred_admitted), (counts.offered, 1));
}

/// Services that share a ceiling share its tiers.
#[test]
fn a_service_is_charged_to_the_tiers_of_another() {
    let Some(mut gate) = require("tiers that are shared") else { return };
    gate.tell(SECOND_NS);
    let other = "192.0.2.81:81";
    let service =
        |at: &str| Service { endpoints: vec![address(at)], speaks_tls: false, page: Page::default() };
    gate.set_services(vec![service(SERVER), service(other)]).expect("services");
    gate.rank(Ranks { ports: vec![(81, 0)], ..Ranks::default() }).expect("ranks");
    let paying = ServicePlan {
        tiers: Tiers::new(&[ceiling(1.0, 2); 2]).expect("room"),
        ..closed(ExcessTreatment::Drop)
    };
    let charged = ServicePlan { charged_to: Some(0), tiers: Tiers::OPEN, ..paying };
    gate.apply(&[paying, charged]).expect("a plan");
    gate.tell(10 * SECOND_NS);
    let verdicts = |to: &str| [0; 3].map(|_| gate.verdict(&Segment::syn(address(CLIENT), address(to))));
    assert_eq!(verdicts(SERVER), [PASS, PASS, DROP]);
    assert_eq!(verdicts(other), [PASS, PASS, DROP]);
    assert_eq!(gate.counters().expect("counters")[1].tiers[0], TierCounts { offered: 3, admitted: 2 });
}
