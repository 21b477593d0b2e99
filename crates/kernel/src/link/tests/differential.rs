//! The classifier in C against `flashweir_aqm`: the same packets must be the same flows, by the same hashes,
//! in the same sketch.

use flashweir_aqm::{FlowHasher, FlowIdentity, MinSketch, PacketHeader};
use flashweir_core::Rng;

use super::*;

const KEYS: [(FlowKey, FlowIdentity); 3] = [
    (FlowKey::FiveTuple, FlowIdentity::FiveTuple),
    (FlowKey::Source, FlowIdentity::Source),
    (FlowKey::SourcePrefix, FlowIdentity::SourcePrefix),
];

fn header(segment: &Segment) -> PacketHeader {
    PacketHeader {
        source: segment.source.ip(),
        destination: segment.destination.ip(),
        protocol: 6,
        ports: Some((segment.source.port(), segment.destination.port())),
        is_fragment: false,
    }
}

fn hash(identity: FlowIdentity, header: &PacketHeader) -> u64 {
    FlowHasher::new(KEY[0], KEY[1], identity).hash(header)
}

#[test]
fn packets_have_the_flows_that_the_rules_say() {
    for (key, identity) in KEYS {
        let Some(mut classifier) = require("hashes of flows", key) else { return };
        let extension =
            |kind, length: u8| (kind, [vec![length], vec![0; 6 + usize::from(length) * 8]].concat());
        let (v4, v6) = (data(7), data_v6());
        let segments = [
            v4.clone(),
            Segment { vlan_tags: vec![1], ..v4.clone() },
            Segment { vlan_tags: vec![1, 2], ..v6.clone() },
            Segment { ip_options: vec![7; 40], ..v4.clone() },
            Segment { traffic_class: 0xff, ..v6.clone() },
            Segment { extension_headers: vec![extension(0, 0), extension(60, 3)], ..v6.clone() },
            // A datagram in one piece behind a fragment header is no fragment.
            Segment { extension_headers: vec![(44, vec![0, 0, 0, 0, 0, 0, 1])], ..v6.clone() },
            v6.clone(),
        ];
        for segment in segments {
            let expected = hash(identity, &header(&segment));
            assert_eq!(classifier.flow_of(&segment.frame()), expected, "{key:?} {segment:?}");
        }
        // Fragments of one datagram, the first with ports and a later one without.
        for fragment in [0x2000, 0x2010, 0x0020] {
            let segment = Segment { fragment, ..v4.clone() };
            let expected = hash(identity, &PacketHeader { is_fragment: true, ..header(&segment) });
            assert_eq!(classifier.flow_of(&segment.frame()), expected, "{key:?} {fragment:x}");
        }
        for place in [[0, 1], [0, 9]] {
            let fragment = vec![0, place[0], place[1], 0, 0, 0, 1];
            let segment = Segment { extension_headers: vec![(44, fragment)], ..v6.clone() };
            let expected = hash(identity, &PacketHeader { is_fragment: true, ..header(&segment) });
            assert_eq!(classifier.flow_of(&segment.frame()), expected, "{key:?} {place:?}");
        }
        // Other protocols, with ports and without.
        for (protocol, has_ports) in
            [(17, true), (132, true), (33, true), (136, true), (1, false), (47, false)]
        {
            let mut frame = v4.frame();
            frame[14 + 9] = protocol;
            let ports = header(&v4).ports.filter(|_| has_ports);
            let expected = hash(identity, &PacketHeader { protocol, ports, ..header(&v4) });
            assert_eq!(classifier.flow_of(&frame), expected, "{key:?} protocol {protocol}");
        }
    }
}

#[test]
fn random_flows_give_the_same_sketch_and_their_bytes() {
    let Some(mut classifier) = require("the sketch of flows", FlowKey::Source) else { return };
    let mut rng = Rng::new(11);
    let (mut sketch, mut sent) = (MinSketch::new(), 0);
    for _ in 0..3_000 {
        let segment = data((rng.next_u64() >> 40) as u16);
        let frame = segment.frame();
        assert_eq!(classifier.judges(&frame), NEXT);
        sketch.insert(hash(FlowIdentity::Source, &header(&segment)));
        sent += frame.len() as u64;
    }
    let reading = classifier.read().expect("a reading");
    let mut merged = MinSketch::new();
    reading.sketches.iter().for_each(|residues| merged.merge_residues(&residues[..]));
    assert_eq!(merged, sketch);
    assert_eq!((reading.counts.offered_packets, reading.counts.offered_bytes), (3_000, sent));
    let in_table: u64 = reading.flows.iter().map(|(_, bytes)| bytes).sum();
    assert!(reading.flows.len() > 2_000 && in_table <= sent, "{} flows", reading.flows.len());

    // The next interval begins with nothing, and so does the one after it, in the same half.
    for _ in 0..2 {
        let reading = classifier.read().expect("a reading");
        assert_eq!((reading.flows.len(), reading.counts.offered_packets), (0, 0));
        assert!(
            reading.sketches.iter().all(|residues| residues.iter().flatten().all(|&free| free == u32::MAX))
        );
    }
}

/// Goal: flows whose hashes end alike cannot push a heavy one out. Method: far more of them than a set has
/// places; the heavy one sends a quarter of all bytes.
#[test]
fn a_heavy_flow_keeps_its_place_among_many_of_its_set() {
    let Some(mut classifier) = require("a set of flows", FlowKey::Source) else { return };
    let set = |segment: &Segment| hash(FlowIdentity::Source, &header(segment)) & 511;
    let heavy = data(0);
    let others: Vec<_> =
        (1..=u16::MAX).map(data).filter(|other| set(other) == set(&heavy)).take(60).collect();
    assert!(others.len() > 40, "{} others", others.len());
    let heavy_frame = heavy.frame();
    for other in others.iter().cycle().take(600) {
        classifier.judges(&other.frame());
        for _ in 0..2 {
            classifier.judges(&heavy_frame);
        }
    }
    let reading = classifier.read().expect("a reading");
    let expected = (hash(FlowIdentity::Source, &header(&heavy)), 1_200 * heavy_frame.len() as u64);
    assert_eq!(reading.flows.len(), 8);
    assert!(reading.flows.contains(&expected), "{:?}", reading.flows);
    // No flow is said to have sent more than it did: a newcomer inherits a rank and no bytes.
    let others = reading.flows.iter().filter(|(flow, _)| *flow != expected.0);
    for (flow, bytes) in others {
        assert!(*bytes <= 20 * heavy_frame.len() as u64, "{flow:x} {bytes}");
    }
}
