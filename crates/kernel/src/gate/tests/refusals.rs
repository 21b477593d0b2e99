//! Refused connections: which ones, how, and how they are counted.

use std::net::IpAddr;

use flashweir_testkit::packet::{ETHERNET_BYTES, flag};

use super::*;

#[test]
fn a_new_connection_beyond_the_ceiling_is_dropped_and_everything_else_passes() {
    let Some(gate) = require_closed("drop", ExcessTreatment::Drop) else { return };
    assert_eq!(gate.verdict(&syn()), DROP);
    assert_eq!(gate.verdict(&syn_v6()), DROP);
    let others =
        [flag::ACK, flag::SYN | flag::ACK, flag::RST, flag::FIN | flag::ACK, flag::SYN | flag::RST, 0];
    for flags in others {
        assert_eq!(gate.verdict(&Segment { flags, ..syn() }), PASS, "flags {flags:#x}");
    }
    assert_eq!(gate.passed_for(Passed::NotNew), others.len() as u64);
    let elsewhere = [address("192.0.2.80:81"), address("192.0.2.81:80")];
    for destination in elsewhere {
        let opening = Segment::syn(address(CLIENT), destination);
        assert_eq!(gate.verdict(&opening), PASS);
        assert_eq!(gate.verdict(&Segment { flags: flag::ACK, ..opening }), PASS);
    }
    let passed = [Passed::NotProtected, Passed::NotNew].map(|reason| gate.passed_for(reason));
    assert_eq!(passed, [2, others.len() as u64 + 2]);
    let expected = GateCounts {
        offered: 2,
        unique_offered: 2,
        dropped: 2,
        tiers: unranked(2, 0),
        ..GateCounts::default()
    };
    assert_eq!(gate.counts(), expected);
}

#[test]
fn services_share_a_ceiling_and_are_refused_and_counted_each_by_itself() {
    let Some(mut gate) = require_closed("a shared ceiling", ExcessTreatment::Drop) else { return };
    let first = gate.services[0].clone();
    let second = Service { endpoints: vec![address("192.0.2.80:81")], ..first.clone() };
    gate.set_services(vec![first, second]).expect("services");
    // Its own ceiling would let it in.
    let charged = ServicePlan { charged_to: Some(0), ..open_to(0.0, 1_000, ExcessTreatment::Reset) };
    let open_to_three = open_to(1_000.0, 3, ExcessTreatment::Drop);
    gate.apply(&[open_to_three, charged]).expect("a plan");
    gate.tell(2 * SECOND_NS);
    let elsewhere = Segment { destination: address("192.0.2.80:81"), ..syn() };
    let verdicts = [&syn(), &elsewhere, &elsewhere, &elsewhere, &syn()].map(|segment| gate.verdict(segment));
    assert_eq!(verdicts, [PASS, PASS, PASS, SEND_BACK, DROP]);
    let counts = gate.counters().expect("counters");
    assert_eq!((counts[0].admitted, counts[0].dropped), (1, 1));
    assert_eq!((counts[1].admitted, counts[1].reset), (2, 1));
    // And no more once each has its own again.
    gate.apply(&[open_to_three, ServicePlan { refusal: ExcessTreatment::Drop, ..ServicePlan::default() }])
        .expect("a plan");
    assert_eq!([gate.verdict(&syn()), gate.verdict(&elsewhere)], [DROP, PASS]);
    let nowhere = ServicePlan { charged_to: Some(2), ..open_to_three };
    let error = gate.apply(&[open_to_three, nowhere]).expect_err("there are two");
    assert_eq!(error.to_string(), "connections charged to service 2, where there are 2");
}

#[test]
fn an_unspecified_address_stands_for_its_family() {
    let Some(mut gate) = require_closed("every address", ExcessTreatment::Drop) else { return };
    let mut service = gate.services[0].clone();
    service.endpoints = vec![address("0.0.0.0:80")];
    gate.set_services(vec![service.clone()]).expect("a service");
    gate.apply(&[closed(ExcessTreatment::Drop)]).expect("a plan");
    assert_eq!([gate.verdict(&syn()), gate.verdict(&syn_v6())], [DROP, PASS]);
    service.endpoints = vec![address("[::]:80")];
    gate.set_services(vec![service]).expect("a service");
    gate.apply(&[closed(ExcessTreatment::Drop)]).expect("a plan");
    assert_eq!([gate.verdict(&syn()), gate.verdict(&syn_v6())], [PASS, DROP]);
}

#[test]
fn a_reset_has_the_numbers_of_the_rfc_and_keeps_the_frame() {
    let Some(gate) = require_closed("reset", ExcessTreatment::Reset) else { return };
    for opening in [syn(), syn_v6(), Segment { vlan_tags: vec![7, 0x2009], ..syn() }] {
        for (opening, taken) in [(opening.clone(), 1), (opening.carrying(b"early").flagged(flag::FIN), 7)] {
            let reset = gate.reply(&opening);
            // RFC 9293 §3.10.7.1: no acknowledgement came, so sequence 0, and what came is acknowledged.
            assert_eq!((reset.sequence, reset.acknowledgement), (0, opening.sequence + taken));
            assert_eq!(reset.flags, flag::RST | flag::ACK);
            assert_eq!((reset.source, reset.destination), (opening.destination, opening.source));
            assert_eq!(reset.stations, [opening.stations[1], opening.stations[0]]);
            assert_eq!(reset.vlan_tags, opening.vlan_tags);
            assert!(reset.payload.is_empty() && reset.tcp_options.is_empty());
        }
    }
    assert_eq!((gate.counts().reset, gate.counts().offered), (6, 6));
}

#[test]
fn a_retransmission_of_a_refused_attempt_is_not_unique() {
    let Some(mut gate) = require_closed("retransmissions", ExcessTreatment::Drop) else { return };
    let seen = |gate: &KernelGate| (gate.counts().offered, gate.counts().unique_offered);
    gate.verdict(&syn());
    gate.verdict(&syn());
    assert_eq!(seen(&gate), (2, 1));
    // Another connection of the same client, and the same after it is forgotten.
    gate.verdict(&Segment { sequence: 5, ..syn() });
    assert_eq!(seen(&gate), (3, 2));
    gate.tell(66 * SECOND_NS);
    gate.verdict(&syn());
    assert_eq!(seen(&gate), (4, 3));
    // Let in at last, the attempt is over.
    gate.apply(&[ServicePlan::default()]).expect("a plan");
    assert_eq!(gate.verdict(&syn()), PASS);
    assert_eq!(gate.verdict(&syn()), PASS);
    assert_eq!((seen(&gate), gate.counts().admitted), ((6, 4), 2));
}

#[test]
fn preferred_networks_have_a_bucket_of_their_own() {
    let Some(mut gate) = require_closed("preferred networks", ExcessTreatment::Drop) else { return };
    let network = |text: &str, bits| (text.parse::<IpAddr>().expect("an address"), bits);
    gate.prefer(&[network("198.51.100.0", 24), network("2001:db8:1::", 48)]).expect("networks");
    let preferring = ServicePlan { preferred: None, ..closed(ExcessTreatment::Drop) };
    gate.apply(&[preferring]).expect("a plan");
    assert_eq!([gate.verdict(&syn()), gate.verdict(&syn_v6())], [PASS, PASS]);
    assert_eq!(gate.verdict(&Segment::syn(client(1), address(SERVER))), DROP);
    let counts = gate.counts();
    assert_eq!((counts.preferred_offered, counts.preferred_admitted, counts.offered), (2, 2, 3));
    // All of IPv6 is not IPv4, although its first 0 bits are the same.
    gate.prefer(&[network("::", 0)]).expect("networks");
    assert_eq!([gate.verdict(&syn()), gate.verdict(&syn_v6())], [DROP, PASS]);
    gate.prefer(&[]).expect("networks");
    assert_eq!(gate.verdict(&syn_v6()), DROP);
    assert!(matches!(gate.prefer(&[network("10.0.0.0", 33)]), Err(crate::gate::GateError::Network(33))));
}

#[test]
fn a_purged_source_is_dropped_until_its_time_is_over() {
    let Some(mut gate) = require_closed("purged sources", ExcessTreatment::Answer) else { return };
    gate.apply(&[open_to(1_000.0, 10, ExcessTreatment::Answer)]).expect("a plan");
    gate.tell(2 * SECOND_NS);
    gate.purge(address(CLIENT).ip(), Duration::from_secs(5)).expect("a purge");
    assert_eq!(gate.verdict(&syn()), DROP);
    assert_eq!(gate.verdict(&Segment::syn(client(1), address(SERVER))), PASS);
    assert_eq!((gate.counts().purged, gate.counts().admitted, gate.counts().unique_offered), (1, 1, 1));
    gate.tell(7 * SECOND_NS);
    assert_eq!(gate.verdict(&syn()), PASS);
}

/// Goal: a client that hops from address to address within its /64 stays one source, and its neighbours are
/// others.
#[test]
fn a_purged_source_of_ipv6_is_its_64() {
    let Some(mut gate) = require_closed("purged sources of IPv6", ExcessTreatment::Answer) else { return };
    gate.apply(&[open_to(1_000.0, 10, ExcessTreatment::Answer)]).expect("a plan");
    gate.tell(2 * SECOND_NS);
    gate.purge(address(CLIENT_V6).ip(), Duration::from_secs(5)).expect("a purge");
    let from = |client: &str| Segment::syn(address(client), address(SERVER_V6));
    let verdicts = ["[2001:db8:1::7]:1", "[2001:db8:1::beef:1]:1", "[2001:db8:1:1::7]:1", "[2001:db8::7]:1"]
        .map(|client| gate.verdict(&from(client)));
    assert_eq!(verdicts, [DROP, DROP, PASS, PASS]);
    assert_eq!(gate.verdict(&syn()), PASS, "all of IPv4 is no /64");
}

#[test]
fn a_source_is_pardoned_by_itself_or_with_all_others() {
    let Some(mut gate) = require_closed("pardons", ExcessTreatment::Drop) else { return };
    gate.apply(&[open_to(1_000.0, 100, ExcessTreatment::Drop)]).expect("a plan");
    gate.tell(2 * SECOND_NS);
    let opening = |number| Segment::syn(client(number), address(SERVER));
    (0..4).for_each(|number| gate.purge(client(number).ip(), Duration::from_secs(60)).expect("a purge"));
    gate.pardon(client(1).ip()).expect("one that is purged");
    gate.pardon(client(77).ip()).expect("one that is not");
    let verdicts = [0, 1, 2, 3].map(|number| gate.verdict(&opening(number)));
    assert_eq!(verdicts, [DROP, PASS, DROP, DROP]);
    gate.pardon_all().expect("all");
    assert_eq!([0, 2, 3].map(|number| gate.verdict(&opening(number))), [PASS; 3]);
}

#[test]
fn in_shadow_everything_passes_and_is_counted() {
    let Some(mut gate) = require_closed("shadow", ExcessTreatment::Reset) else { return };
    gate.apply(&[ServicePlan { shadow: true, ..closed(ExcessTreatment::Reset) }]).expect("a plan");
    assert_eq!([gate.verdict(&syn()), gate.verdict(&syn())], [PASS, PASS]);
    let expected = GateCounts {
        offered: 2,
        unique_offered: 2,
        admitted: 2,
        shadowed: 2,
        tiers: unranked(2, 2),
        ..GateCounts::default()
    };
    assert_eq!(gate.counts(), expected);
}

#[test]
fn silence_of_user_space_opens_the_gate_unless_told_otherwise() {
    let Some(mut gate) = require_closed("silence", ExcessTreatment::Drop) else { return };
    gate.tell(10 * SECOND_NS);
    gate.tell_only(13 * SECOND_NS);
    assert_eq!(gate.verdict(&syn()), DROP);
    gate.tell_only(13 * SECOND_NS + 1);
    assert_eq!(gate.verdict(&syn()), PASS);
    assert_eq!(gate.counts().failed_open, 1);
    gate.fail_closed(true).expect("a flag");
    assert_eq!(gate.verdict(&syn()), DROP);
    gate.fail_closed(false).expect("a flag");
    gate.beat().expect("a beat");
    assert_eq!(gate.verdict(&syn()), DROP);
}

#[test]
fn a_gate_that_was_not_told_the_time_goes_by_the_kernels_clock() {
    if require("the clock of a kernel gate").is_none() {
        return;
    }
    let mut gate = KernelGate::load().expect("as before");
    let service = Service { endpoints: vec![address(SERVER)], speaks_tls: false, page: Page::default() };
    gate.set_services(vec![service]).expect("a service");
    gate.apply(&[closed(ExcessTreatment::Drop)]).expect("a plan");
    gate.beat().expect("a beat");
    // Were this the time, user space would have been silent for centuries.
    gate.tell_only(u64::MAX);
    assert_eq!(gate.verdict(&syn()), DROP);
}

#[test]
fn tls_gets_a_reset_where_others_get_an_answer() {
    let Some(mut gate) = require_closed("TLS", ExcessTreatment::Answer) else { return };
    let mut service = gate.services[0].clone();
    service.speaks_tls = true;
    gate.set_services(vec![service]).expect("a service");
    gate.apply(&[closed(ExcessTreatment::Answer)]).expect("a plan");
    assert_eq!(gate.reply(&syn()).flags, flag::RST | flag::ACK);
    assert_eq!((gate.counts().reset, gate.counts().answered), (1, 0));
}

#[test]
fn what_does_not_fit_the_tables_is_refused_by_name() {
    let Some(mut gate) = require("too many services") else { return };
    let service = Service { endpoints: vec![address(SERVER)], speaks_tls: false, page: Page::default() };
    let error = gate.set_services(vec![service.clone(); 65]).expect_err("too many");
    assert_eq!(error.to_string(), "services: 65 are more than the kernel's table holds, 64");
    let many = Service { endpoints: vec![address(SERVER); 257], ..service };
    assert!(gate.set_services(vec![many]).is_err());
    let error = gate.apply(&[ServicePlan::default()]).expect_err("no services");
    assert_eq!(error.to_string(), "a plan for 1 services, where there are 0");
    let short = gate.try_frame(&[0; ETHERNET_BYTES - 1], 1);
    assert!(matches!(short, Err(crate::program::LoadError::NotRun(_))));
}

#[test]
fn sources_that_come_once_leave_nothing_behind() {
    use libbpf_rs::MapCore as _;
    let Some(gate) = require_closed("spoofed sources", ExcessTreatment::Answer) else { return };
    let entries = || {
        ["endpoints", "preferred", "purged"].map(|name| gate.program.map(name).expect("a map").keys().count())
    };
    let before = entries();
    for number in 0..20_000 {
        assert_eq!(gate.verdict(&Segment::syn(client(number), address(SERVER))), SEND_BACK);
    }
    assert_eq!((entries(), gate.counts().answered), (before, 20_000));
}
