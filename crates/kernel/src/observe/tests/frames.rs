//! Frames of every kind, hostile ones included: none is touched, none is counted for what it is not.

use flashweir_core::{Duration, Rate, Rng};
use flashweir_testkit::packet::ETHERNET_BYTES;

use super::*;
use crate::gate::{Ceiling, ExcessTreatment, KernelGate, Page, Service, ServicePlan, Tiers};

const IP: usize = ETHERNET_BYTES;
const TCP: usize = IP + 20;

/// Shows a frame to both programs. The kernel refuses to run a program on some frames that no interface
/// delivers.
fn sees_both_ways(observer: &Observer, frame: &[u8]) -> bool {
    let mut ran = true;
    for direction in [Direction::ToServer, Direction::ToClient] {
        match observer.try_frame(direction, frame, 1) {
            Ok(run) => assert_eq!((run.verdict, &run.packet[..]), (NEXT, frame), "{direction:?}"),
            Err(_) => ran = false,
        }
    }
    ran
}

fn changed(mut frame: Vec<u8>, changes: &[(usize, u8)]) -> Vec<u8> {
    for &(at, value) in changes {
        frame[at] = value;
    }
    frame
}

#[test]
fn everything_that_is_tcp_is_found() {
    let Some(mut observer) = require_corrected("frames that are counted") else { return };
    let extension = |kind, length: u8| (kind, [vec![length], vec![0; 6 + usize::from(length) * 8]].concat());
    let fragment = (44, vec![0x77, 0, 0, 0, 0, 0, 1]);
    let kinds = |segment: Segment, segment_v6: Segment| {
        [
            Segment { vlan_tags: vec![1], ..segment.clone() },
            Segment { vlan_tags: vec![1, 2], ..segment_v6.clone() },
            Segment { ip_options: vec![7; 40], ..segment.clone() },
            Segment { tcp_options: vec![9; 40], ..segment.clone() },
            Segment { extension_headers: vec![extension(0, 0), extension(60, 3)], ..segment_v6.clone() },
            Segment { extension_headers: vec![fragment.clone()], ..segment_v6 },
            Segment { fragment: 0x2000, ..segment },
        ]
    };
    for segment in kinds(syn(), syn_v6()) {
        observer.sees_to_server(&segment);
    }
    for segment in kinds(data(&syn(), 100), data(&syn_v6(), 100)) {
        observer.sees_to_client(&segment);
    }
    let observed = observer.reading();
    assert_eq!((observed.offered, observed.unique_offered), (7, 2));
    // Seven packets of 100 bytes in 10 ms, of two connections.
    assert_eq!(used(&observed.rates[1]), [(29_696, 1), (39_936, 1)]);
}

#[test]
fn bytes_that_only_fill_a_short_frame_are_no_data() {
    let Some(mut observer) = require_corrected("padding") else { return };
    let mut acknowledgement = data(&syn(), 0).frame();
    acknowledgement.resize(60, 0xee);
    assert!(sees_both_ways(&observer, &acknowledgement));
    let mut one_byte = data(&syn(), 1).frame();
    one_byte.resize(60, 0xee);
    assert!(sees_both_ways(&observer, &one_byte));
    // One byte in 10 ms; the bucket of 98 and 99.
    assert_eq!(used(&observer.reading().rates[0]), [(98, 1)]);
}

#[test]
fn what_is_cut_off_lies_or_is_no_tcp_counts_nothing() {
    let Some(mut observer) = require_corrected("frames that are not counted") else { return };
    let extended = |segment| Segment { extension_headers: vec![(60, vec![0; 7])], ..segment };
    let whole = [syn(), data(&syn(), 200), extended(syn_v6()), extended(data(&syn_v6(), 200))];
    let whole = whole.map(|segment| segment.frame());
    let mut ran = 0;
    for frame in &whole {
        for length in ETHERNET_BYTES..frame.len() {
            ran += usize::from(sees_both_ways(&observer, &frame[..length]));
        }
    }
    for changes in [
        // Another version; an IP header too short, too long; a packet longer than the frame, shorter than its
        // headers.
        [(IP, 0x65)].as_slice(),
        &[(IP, 0x44)],
        &[(IP, 0x4f)],
        &[(IP + 2, 0xff)],
        &[(IP + 3, 39), (IP + 2, 0)],
        // Another protocol; a later fragment; TCP headers of no possible length.
        &[(IP + 9, 17)],
        &[(IP + 7, 1)],
        &[(TCP + 12, 0x40)],
        &[(12, 0x86)],
        &[(0, 0xff)],
    ] {
        for frame in &whole[..2] {
            ran += usize::from(sees_both_ways(&observer, &changed(frame.clone(), changes)));
        }
    }
    assert!(ran > 500, "the kernel ran few of them: {ran}");
    assert_eq!(observer.reading(), Observed { queue: None, ..Observed::default() });
}

/// Goal: a frame of any content passes untouched, and is an attempt to the observer exactly if it is one to
/// the gate. Method: frames with random bytes changed, so that most get deep into the parser.
#[test]
fn random_damage_is_read_as_the_gate_reads_it() {
    let Some(mut observer) = require_corrected("random frames to an observer") else { return };
    let mut gate = KernelGate::load().expect("what loads the observer loads the gate");
    let endpoints = vec![address(SERVER), address(SERVER_V6)];
    gate.set_services(vec![Service { endpoints, speaks_tls: false, page: Page::default() }])
        .expect("a service");
    let tiers = Tiers::one(Ceiling { rate: Rate::ZERO, burst: 1 });
    let plan = ServicePlan { tiers, refusal: ExcessTreatment::Pass, ..ServicePlan::default() };
    gate.apply(&[ServicePlan { retry_after: Duration::from_secs(1), ..plan }]).expect("a plan");
    let seeds = [
        syn().frame(),
        Segment { vlan_tags: vec![1], ip_options: vec![1; 8], ..syn() }.frame(),
        Segment { extension_headers: vec![(0, vec![0; 7]), (44, vec![0; 7])], ..syn_v6() }.frame(),
        data(&syn(), 40).frame(),
    ];
    let mut rng = Rng::new(9);
    let mut ran = 0;
    for _ in 0..10_000 {
        let mut frame = seeds[rng.below(4) as usize].clone();
        for _ in 0..rng.below(4) {
            let at = rng.below(frame.len() as u64) as usize;
            frame[at] = rng.below(256) as u8;
        }
        frame.truncate(14 + rng.below(2 * frame.len() as u64) as usize);
        if sees_both_ways(&observer, &frame) {
            gate.try_frame(&frame, 1).expect("a run");
            ran += 1;
        }
    }
    let offered = gate.counters().expect("counters")[0].offered;
    assert_eq!(observer.reading().offered, offered);
    assert!(ran > 8_000 && offered > 1_000, "{ran} runs, {offered} attempts");
}
