//! Behaviour of the classifier, by test runs of its program: no interface is needed.

mod differential;
mod frames;
mod orders;

use std::net::SocketAddr;

use flashweir_testkit::packet::{Segment, flag};

use super::{FlowKey, LinkClassifier, LinkOrders};

/// Return values of the program (linux/pkt_cls.h): `TC_ACT_UNSPEC`, the next filter is asked; `TC_ACT_SHOT`.
const NEXT: u32 = u32::MAX;
const DROPPED: u32 = 2;

/// The key of all test runs.
const KEY: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];
const ALWAYS: u32 = u32::MAX;

/// A loaded classifier with orders to do nothing, or a loud line.
fn require(test: &str, key: FlowKey) -> Option<LinkClassifier> {
    match LinkClassifier::load_with_key(key, KEY) {
        Ok(mut classifier) => {
            classifier.apply(LinkOrders::default()).expect("orders");
            Some(classifier)
        }
        Err(error) if error.is_unavailable() => {
            flashweir_testkit::skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Data from a client of this number.
fn data(client: u16) -> Segment {
    let source = SocketAddr::new([198, 51, (client >> 8) as u8, client as u8].into(), 40_000);
    Segment { flags: flag::ACK, ..Segment::new(source, address("192.0.2.80:80")) }.carrying(&[b'x'; 100])
}

fn data_v6() -> Segment {
    let segment = Segment::new(address("[2001:db8:1:2::7]:40000"), address("[2001:db8::80]:80"));
    Segment { flags: flag::ACK, ..segment }.carrying(&[b'x'; 100])
}

impl LinkClassifier {
    /// Shows it a frame once; the verdict.
    fn judges(&self, frame: &[u8]) -> u32 {
        self.try_frame(frame, 1).expect("a run").verdict
    }

    /// The flow of a frame, which passes.
    fn flow_of(&mut self, frame: &[u8]) -> u64 {
        self.read().expect("a reading");
        assert_eq!(self.judges(frame), NEXT);
        let flows = self.read().expect("a reading").flows;
        let [(flow, bytes)] = flows[..] else { panic!("{flows:?}") };
        assert_eq!(bytes, frame.len() as u64);
        flow
    }
}

#[test]
fn the_tables_have_the_sizes_that_are_named() {
    use libbpf_rs::MapCore as _;
    let Some(classifier) = require("sizes of the classifier's tables", FlowKey::FiveTuple) else { return };
    let expected = [
        ("orders", 1, 24),
        ("sketches", 8, 12_288),
        ("flow_sets", 1_024, 200),
        ("cut_sets", 512, 96),
        ("counts", 4, 64),
    ];
    for (name, entries, bytes) in expected {
        let map = classifier.program.map(name).expect("a map");
        assert_eq!((map.max_entries(), map.value_size()), (entries, bytes), "{name}");
    }
    let memory_bytes = classifier.memory_bytes().expect("the kernel says");
    assert!((300_000..800_000).contains(&memory_bytes), "{memory_bytes}");
}
