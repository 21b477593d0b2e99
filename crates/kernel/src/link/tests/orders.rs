//! Dropped and marked packets, by the orders in force.

use super::*;

const NOT_CAPABLE: u8 = 0;
const CAPABLE: u8 = 2;
const MARKED: u8 = 3;

fn with_ecn(segment: Segment, ecn: u8) -> Vec<u8> {
    Segment { traffic_class: ecn, ..segment }.frame()
}

fn ecn_of(packet: &[u8], is_ipv6: bool) -> u8 {
    if is_ipv6 { packet[15] >> 4 & 3 } else { packet[15] & 3 }
}

#[test]
fn flows_that_are_cut_are_dropped_and_no_others() {
    let Some(mut classifier) = require("flows that are cut", FlowKey::FiveTuple) else { return };
    let (cut, other) = (data(1).frame(), data(2).frame());
    let flow = classifier.flow_of(&cut);
    classifier.apply(LinkOrders { mark: 0, cuts: &[(flow, ALWAYS)] }).expect("orders");
    classifier.read().expect("a reading");
    assert_eq!((classifier.judges(&cut), classifier.judges(&other)), (DROPPED, NEXT));
    let reading = classifier.read().expect("a reading");
    // What is dropped is measured all the same (P-10 of the rules).
    assert_eq!(reading.flows.len(), 2);
    let counts = reading.counts;
    assert_eq!((counts.offered_packets, counts.purged_packets, counts.refused_packets), (2, 1, 0));
    assert_eq!(counts.survived_bytes(), other.len() as u64);
    classifier.apply(LinkOrders::default()).expect("orders");
    assert_eq!(classifier.judges(&cut), NEXT);

    // Half of the time: the kernel's randomness decides.
    classifier.apply(LinkOrders { mark: 0, cuts: &[(flow, 1 << 31)] }).expect("orders");
    classifier.read().expect("a reading");
    classifier.try_frame(&cut, 10_000).expect("runs");
    let purged = classifier.read().expect("a reading").counts.purged_packets;
    assert!((4_500..5_500).contains(&purged), "{purged} of 10000");
}

#[test]
fn the_price_marks_those_who_understand_and_drops_the_others() {
    let Some(mut classifier) = require("marks", FlowKey::FiveTuple) else { return };
    classifier.apply(LinkOrders { mark: ALWAYS, cuts: &[] }).expect("orders");
    for (segment, is_ipv6) in [(data(1), false), (data_v6(), true)] {
        classifier.read().expect("a reading");
        for ecn in [CAPABLE, 1, MARKED] {
            let run = classifier.try_frame(&with_ecn(segment.clone(), ecn), 1).expect("a run");
            assert_eq!((run.verdict, ecn_of(&run.packet, is_ipv6)), (NEXT, MARKED), "{ecn} {segment:?}");
            let checked = Segment::read(&run.packet).expect("a right checksum");
            assert_eq!(checked.payload, segment.payload);
        }
        assert_eq!(classifier.judges(&with_ecn(segment.clone(), NOT_CAPABLE)), DROPPED);
        let counts = classifier.read().expect("a reading").counts;
        assert_eq!((counts.marked_packets, counts.refused_packets), (3, 1));
        assert_eq!(counts.survived_bytes() - counts.sent_bytes(), counts.offered_bytes / 4);
    }
}

#[test]
fn orders_that_have_expired_let_everything_pass() {
    let Some(mut classifier) = require("expired orders", FlowKey::FiveTuple) else { return };
    let frame = data(1).frame();
    let flow = classifier.flow_of(&frame);
    classifier.apply(LinkOrders { mark: ALWAYS, cuts: &[(flow, ALWAYS)] }).expect("orders");
    assert_eq!(classifier.judges(&frame), DROPPED);
    classifier.orders.expires_ns = 1;
    classifier.write_orders().expect("orders");
    assert_eq!(classifier.judges(&frame), NEXT);
}

#[test]
fn more_cuts_than_a_set_has_places_are_left_out() {
    let Some(mut classifier) = require("too many cuts", FlowKey::FiveTuple) else { return };
    let cuts: Vec<_> = (1..=9).map(|way| (way << 9 | 5, way as u32)).collect();
    classifier.apply(LinkOrders { mark: 0, cuts: &cuts }).expect("orders");
    assert_eq!(classifier.cuts[5].drop, [1, 2, 3, 4, 5, 6, 7, 8]);
    classifier.apply(LinkOrders { mark: 0, cuts: &cuts[8..] }).expect("orders");
    assert_eq!((classifier.cuts[5].flow[0], classifier.cuts[5].drop[1]), (9 << 9 | 5, 0));
}
