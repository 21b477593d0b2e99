//! Frames of every kind, hostile ones included: what has no flow passes, and all is counted.

use flashweir_core::Rng;

use super::*;

#[test]
fn what_is_not_ip_passes_whatever_the_orders() {
    let Some(mut classifier) = require("frames without a flow", FlowKey::FiveTuple) else { return };
    classifier.apply(LinkOrders { mark: ALWAYS, cuts: &[] }).expect("orders");
    let mut arp = data(1).frame();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let mut wrong_version = data(1).frame();
    wrong_version[14] = 0x65;
    let mut short_header = data(1).frame();
    short_header[14] = 0x44;
    let mut three_tags = Segment { vlan_tags: vec![1, 2], ..data(1) }.frame();
    three_tags[20..22].copy_from_slice(&[0x81, 0x00]);
    for frame in [&arp, &wrong_version, &short_header, &three_tags] {
        assert_eq!(classifier.judges(frame), NEXT, "{frame:02x?}");
    }
    let counts = classifier.read().expect("a reading").counts;
    assert_eq!((counts.unread_frames, counts.offered_packets), (4, 0));
}

/// Goal: no bytes can make the program fail, and offered = purged + refused + sent holds for all. Method:
/// valid frames with random bytes changed, and cut off anywhere, under orders that do everything half of
/// the time.
#[test]
fn random_frames_are_counted_once_each() {
    let Some(mut classifier) = require("random frames at a link", FlowKey::FiveTuple) else { return };
    classifier.apply(LinkOrders { mark: 1 << 31, cuts: &[] }).expect("orders");
    let extension = |kind, length: u8| (kind, [vec![length], vec![0; 6 + usize::from(length) * 8]].concat());
    let v6 = Segment { extension_headers: vec![extension(0, 0), extension(60, 1)], ..data_v6() };
    let seeds =
        [data(3).frame(), data_v6().frame(), v6.frame(), Segment { vlan_tags: vec![7], ..data(4) }.frame()];
    let mut rng = Rng::new(5);
    let (mut shown, mut dropped) = (0, 0);
    for round in 0..4_000 {
        let mut frame = seeds[round % seeds.len()].clone();
        for _ in 0..rng.next_u64() % 8 {
            let at = 12 + (rng.next_u64() % 60) as usize;
            frame[at] = rng.next_u64() as u8;
        }
        if round % 3 == 0 {
            frame.truncate(14 + (rng.next_u64() as usize) % (frame.len() - 13));
        }
        // The kernel does not run a program on some frames that no interface delivers.
        if let Ok(run) = classifier.try_frame(&frame, 1) {
            shown += 1;
            dropped += u64::from(run.verdict == DROPPED);
        }
    }
    let counts = classifier.read().expect("a reading").counts;
    assert!(shown > 2_000 && dropped > 100, "{shown} {dropped}");
    assert_eq!(counts.offered_packets + counts.unread_frames, shown);
    assert_eq!(counts.purged_packets + counts.refused_packets, dropped);
}
