//! Cost of the classifier of a link: nanoseconds per packet over an empty program (BPF_PROG_TEST_RUN), and a
//! reading.

#[path = "../shared/programs.rs"]
mod programs;
#[path = "../observer/zero.rs"]
mod zero;

use std::net::SocketAddr;
use std::time::Instant;

use flashweir_kernel::LoadError;
use flashweir_kernel::link::{FlowKey, LinkClassifier, LinkOrders};
use flashweir_testkit::packet::{Segment, flag};

/// Runs of one packet in a row, and rows of which the median counts.
const TIMES: u32 = 200_000;
const ROWS: usize = 9;
/// Maximum cost of a packet, ns.
const BAR_NS: u128 = 200;
/// Readings of which the median counts.
const READINGS: usize = 41;

fn main() {
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let full = vec![b'x'; 1_448];
    let data = |source: &str, destination: &str| {
        Segment { flags: flag::ACK, ..Segment::new(address(source), address(destination)) }.carrying(&full)
    };
    let v4 = data("198.51.100.7:40000", "192.0.2.80:80");
    let v6 = data("[2001:db8:1::7]:40000", "[2001:db8::80]:80");
    let tagged = Segment { vlan_tags: vec![1, 2], ..v6.clone() };
    let marked = Segment { traffic_class: 2, ..v4.clone() };
    println!("Classifier of a link, ns per packet over an empty program (median of {ROWS} rows of {TIMES})");
    let keys =
        [("5-tuple", FlowKey::FiveTuple), ("source", FlowKey::Source), ("prefix", FlowKey::SourcePrefix)];
    for (key_name, key) in keys {
        let mut classifier = match LinkClassifier::load(key) {
            Ok(classifier) => classifier,
            Err(error) => return skip(&error),
        };
        let mut show = |what: &str, segment: &Segment, mark: u32, is_cut: bool| {
            let frame = segment.frame();
            cut(&mut classifier, &frame, mark, is_cut);
            let [_, empty_ns] = zero::of_runs(&frame);
            let cost_ns = cost_ns(&classifier, &frame).saturating_sub(empty_ns);
            let verdict = if cost_ns <= BAR_NS { "met" } else { "MISSED" };
            println!("  {cost_ns:>5}  {key_name}: {what}; at most {BAR_NS}: {verdict}");
        };
        show("IPv4, passes", &v4, 0, false);
        show("IPv6, passes", &v6, 0, false);
        show("IPv6 behind two VLAN tags, passes", &tagged, 0, false);
        show("IPv4 of a flow that is cut, passes", &v4, 1 << 20, true);
        show("IPv4, marked every second time", &marked, 1 << 31, false);
    }
    reading();
}

fn skip(error: &LoadError) {
    println!("  skipped: {error}");
}

/// Puts orders into force; the flow of the frame is cut, so little that it always passes.
fn cut(classifier: &mut LinkClassifier, frame: &[u8], mark: u32, is_cut: bool) {
    classifier.apply(LinkOrders::default()).expect("orders");
    classifier.read().expect("a reading");
    classifier.try_frame(frame, 1).expect("a run");
    let flows = classifier.read().expect("a reading").flows;
    let cuts: Vec<_> = flows.iter().filter(|_| is_cut).map(|(flow, _)| (*flow, 1)).collect();
    classifier.apply(LinkOrders { mark, cuts: &cuts }).expect("orders");
}

fn cost_ns(classifier: &LinkClassifier, frame: &[u8]) -> u128 {
    let row = |_| classifier.try_frame(frame, TIMES).expect("a run").took.as_nanos();
    let mut rows: Vec<_> = (0..ROWS).map(row).collect();
    rows.sort_unstable();
    rows[ROWS / 2]
}

fn reading() {
    let mut classifier = LinkClassifier::load(FlowKey::FiveTuple).expect("loaded before");
    let mut times: Vec<_> = (0..READINGS)
        .map(|_| {
            let began = Instant::now();
            classifier.read().expect("a reading");
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    let memory = classifier.memory_bytes().expect("the kernel says");
    println!("  a reading takes {:?}; {} KB of kernel memory", times[READINGS / 2], memory >> 10);
}
