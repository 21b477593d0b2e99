//! Frames of every kind, hostile ones included: what is not understood passes, and is counted.

use flashweir_testkit::packet::ETHERNET_BYTES;

use super::*;

const IP: usize = ETHERNET_BYTES;
const TCP: usize = IP + 20;

fn frame_verdict(gate: &KernelGate, frame: &[u8]) -> u32 {
    gate.try_frame(frame, 1).expect("a run").verdict
}

/// Checks that a frame passes for a reason.
fn check(gate: &KernelGate, frame: &[u8], reason: Passed) {
    let before = gate.passed_for(reason);
    assert_eq!(frame_verdict(gate, frame), PASS, "{frame:02x?}");
    assert_eq!(gate.passed_for(reason), before + 1, "{reason:?}: {:?} {frame:02x?}", gate.passed());
}

/// A SYN's frame with some bytes changed.
fn changed(segment: &Segment, changes: &[(usize, u8)]) -> Vec<u8> {
    let mut frame = segment.frame();
    for &(at, value) in changes {
        frame[at] = value;
    }
    frame
}

#[test]
fn everything_that_is_tcp_is_found() {
    let Some(gate) = require_closed("frames that are judged", ExcessTreatment::Drop) else { return };
    let extension = |kind, length: u8| (kind, [vec![length], vec![0; 6 + usize::from(length) * 8]].concat());
    // The length of an authentication header counts otherwise; that of a fragment header is no length.
    let authentication = (51, [vec![4], vec![0; 22]].concat());
    let fragment = (44, vec![0x77, 0, 0, 0, 0, 0, 1]);
    let judged = [
        syn(),
        syn_v6(),
        Segment { vlan_tags: vec![1], ..syn() },
        Segment { vlan_tags: vec![1, 2], ..syn_v6() },
        Segment { ip_options: vec![7; 40], ..syn() },
        Segment { tcp_options: vec![9; 40], ..syn() },
        Segment { tcp_options: Vec::new(), ..syn() },
        Segment { extension_headers: vec![extension(0, 0), extension(60, 3), extension(43, 2)], ..syn_v6() },
        Segment { extension_headers: vec![authentication, fragment], ..syn_v6() },
        Segment { extension_headers: vec![extension(60, 20); 6], ..syn_v6() },
        syn().carrying(b"early data"),
        Segment { fragment: 0x2000, ..syn() },
    ];
    for segment in &judged {
        assert_eq!(gate.verdict(segment), DROP, "{segment:?}");
    }
    let mut padded = syn().frame();
    padded.resize(64, 0xee);
    assert_eq!(frame_verdict(&gate, &padded), DROP);
    let with_service_tag = changed(&Segment { vlan_tags: vec![1], ..syn() }, &[(12, 0x88), (13, 0xa8)]);
    assert_eq!(frame_verdict(&gate, &with_service_tag), DROP);
    assert_eq!(gate.counts().offered, judged.len() as u64 + 2);
}

#[test]
fn what_is_not_tcp_over_ip_passes() {
    let Some(gate) = require_closed("other frames", ExcessTreatment::Drop) else { return };
    check(&gate, &[0; 14], Passed::NotIp);
    check(&gate, &changed(&syn(), &[(12, 0x08), (13, 0x06)]), Passed::NotIp);
    check(&gate, &Segment { vlan_tags: vec![1, 2, 3], ..syn() }.frame(), Passed::NotIp);
    check(&gate, &changed(&syn(), &[(IP + 9, 17)]), Passed::NotTcp);
    check(&gate, &changed(&syn(), &[(0, 0xff)]), Passed::NotTcp);
    check(&gate, &changed(&syn_v6(), &[(IP + 6, 58)]), Passed::NotTcp);
    check(&gate, &changed(&syn_v6(), &[(IP + 6, 59)]), Passed::NotTcp);
    check(&gate, &Segment { fragment: 0x2001, ..syn() }.frame(), Passed::Fragment);
    check(&gate, &Segment { fragment: 1, ..syn() }.frame(), Passed::Fragment);
    let later_fragment = vec![(44, vec![0, 0, 8, 0, 0, 0, 1])];
    check(&gate, &Segment { extension_headers: later_fragment, ..syn_v6() }.frame(), Passed::Fragment);
    let chain = vec![(60, vec![0; 7]); 7];
    check(&gate, &Segment { extension_headers: chain, ..syn_v6() }.frame(), Passed::TooManyHeaders);
    assert_eq!(gate.counts(), GateCounts::default());
}

#[test]
fn lengths_that_lie_pass() {
    let Some(gate) = require_closed("lengths that lie", ExcessTreatment::Answer) else { return };
    for changes in [
        // IPv4: another version, a header too short, too long; a packet longer than the frame, shorter than
        // its headers, empty.
        [(IP, 0x65)].as_slice(),
        &[(IP, 0x44)],
        &[(IP, 0x4f)],
        &[(IP + 2, 0xff)],
        &[(IP + 3, 39)],
        &[(IP + 3, 0)],
        // TCP: a header of less than 20 bytes, of more than there are.
        &[(TCP + 12, 0x40)],
        &[(TCP + 12, 0x00)],
        &[(TCP + 12, 0xf0)],
    ] {
        check(&gate, &changed(&syn(), changes), Passed::Malformed);
    }
    for changes in
        [[(IP, 0x45)].as_slice(), &[(IP + 4, 0xff)], &[(IP + 5, 19)], &[(IP + 5, 0)], &[(IP + 40 + 12, 0xf0)]]
    {
        check(&gate, &changed(&syn_v6(), changes), Passed::Malformed);
    }
    // An extension header that ends behind the packet.
    let extended = Segment { extension_headers: vec![(60, vec![0; 7])], ..syn_v6() };
    check(&gate, &changed(&extended, &[(IP + 41, 0xff)]), Passed::Malformed);
    assert_eq!(gate.counts(), GateCounts::default());
}

#[test]
fn a_frame_cut_anywhere_passes() {
    let Some(gate) = require_closed("truncated frames", ExcessTreatment::Answer) else { return };
    let extension = (60, vec![0; 7]);
    let segments = [
        Segment { vlan_tags: vec![1], ip_options: vec![1; 8], ..syn() },
        Segment { vlan_tags: vec![1, 2], extension_headers: vec![extension], ..syn_v6() }.carrying(b"x"),
    ];
    for frame in segments.map(|segment| segment.frame()) {
        assert_eq!(frame_verdict(&gate, &frame), SEND_BACK);
        for length in ETHERNET_BYTES..frame.len() {
            assert_eq!(frame_verdict(&gate, &frame[..length]), PASS, "{length} bytes");
        }
    }
}
