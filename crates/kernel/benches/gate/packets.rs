//! The program by itself, on packets that no client sent (BPF_PROG_TEST_RUN): no driver, no copy, warm
//! caches.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use flashweir_core::Rate;
use flashweir_core::limits::KERNEL_TIER_NETWORKS as NETWORKS;
use flashweir_kernel::gate::{
    Ceiling, ExcessTreatment, KernelGate, Page, Ranks, Service, ServicePlan, TIERS, Tiers,
};
use flashweir_testkit::packet::Segment;

/// Runs of one packet in a row, and rows of which the median counts.
const TIMES: u32 = 200_000;
const ROWS: usize = 9;
/// Packets that are changed are run one by one.
const SINGLE: usize = 20_000;
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: curl/8.0\r\nAccept: */*\r\n\r\n";

pub(crate) fn measure() {
    println!("The gate's program by itself, ns per packet (median of {ROWS} rows of {TIMES})");
    let mut gate = match KernelGate::load() {
        Ok(gate) => gate,
        Err(error) => return println!("  skipped: {error}"),
    };
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let server = address("192.0.2.80:80");
    let service = Service { endpoints: vec![server], speaks_tls: false, page: Page::default() };
    gate.set_services(vec![service]).expect("a service");
    gate.fail_closed(true).expect("a flag");
    let syn = Segment::syn(address("198.51.100.7:40000"), server);
    let data = Segment { flags: 0x10, ..syn.clone() }.carrying(GET);
    let elsewhere = Segment::syn(address("198.51.100.7:40000"), address("192.0.2.81:80"));

    show("frame without IP passes", in_rows(&gate, &[0; 60]));
    show("SYN for an unprotected server passes", in_rows(&gate, &elsewhere.frame()));
    show("data of a connection passes", in_rows(&gate, &data.frame()));
    show("SYN is let in, no ceiling", in_rows(&gate, &syn.frame()));
    let everybody = Tiers::one(Ceiling { rate: Rate::MAX, burst: 1_000_000 });
    apply(&mut gate, everybody, ExcessTreatment::Drop);
    show("SYN is let in below a ceiling (lock, refill)", in_rows(&gate, &syn.frame()));
    show("the same on two processors at once, which the ceiling's rate bounds", on_two(&gate, &syn.frame()));
    let nothing = Tiers::one(Ceiling { rate: Rate::ZERO, burst: 1 });
    apply(&mut gate, nothing, ExcessTreatment::Drop);
    show("SYN is dropped", in_rows(&gate, &syn.frame()));
    show("the same on two processors at once, which nothing bounds", on_two(&gate, &syn.frame()));

    println!(
        "While some are refused, so that attempts are compared with those; by number of tiers and way to a rank"
    );
    let marked = Segment { traffic_class: 46 << 2, ..syn.clone() };
    for (count, what) in [(1, "one tier, "), (TIERS, "eight tiers, ")] {
        let tiers = |ceiling| Tiers::new(&vec![ceiling; count]).expect("room");
        for (networks, among) in [(Vec::new(), "no network"), (networks(), "one of 4,096 networks")] {
            gate.rank(Ranks { networks, marks: vec![(46, 3)], ..Ranks::default() }).expect("ranks");
            apply(&mut gate, tiers(Ceiling { rate: Rate::MAX, burst: 100_000 }), ExcessTreatment::Drop);
            let show = |of: &str, took_ns| show(&format!("{what}{among}: {of}"), took_ns);
            show("SYN of the last rank is let in", in_rows(&gate, &syn.frame()));
            show("SYN is let in by its mark", in_rows(&gate, &marked.frame()));
            apply(&mut gate, tiers(Ceiling { rate: Rate::ZERO, burst: 1 }), ExcessTreatment::Drop);
            show("SYN of the last rank is dropped", in_rows(&gate, &syn.frame()));
        }
    }
    gate.rank(Ranks::default()).expect("no ranks");
    apply(&mut gate, nothing, ExcessTreatment::Drop);

    println!("One by one, so with the costs of a first run (for comparison: the drop), median of {SINGLE}");
    show("SYN is dropped", one_by_one(&gate, &syn.frame()));
    apply(&mut gate, nothing, ExcessTreatment::Reset);
    show("SYN is reset", one_by_one(&gate, &syn.frame()));
    apply(&mut gate, nothing, ExcessTreatment::Answer);
    show("SYN is answered", one_by_one(&gate, &syn.frame()));
    let accepted = gate.try_frame(&syn.frame(), 1).expect("a run").packet;
    let acknowledging = syn.after(&Segment::read(&accepted).expect("a segment"));
    show("handshake's end is dropped", one_by_one(&gate, &acknowledging.frame()));
    show("request is answered", one_by_one(&gate, &acknowledging.carrying(GET).frame()));
    show("data of another connection passes meanwhile", in_rows(&gate, &data.frame()));
}

/// A full table of networks with ranks; the client is in the largest.
fn networks() -> Vec<(IpAddr, u8, u8)> {
    let small = (1..NETWORKS).map(|number| ([10, (number >> 8) as u8, number as u8, 0].into(), 24, 0));
    small.chain([([198, 51, 0, 0].into(), 16, TIERS as u8 - 1)]).collect()
}

fn apply(gate: &mut KernelGate, tiers: Tiers, refusal: ExcessTreatment) {
    let plan = ServicePlan { tiers, refusal, retry_after: Duration::from_secs(10), ..Default::default() };
    gate.apply(&[plan]).expect("a plan");
}

fn in_rows(gate: &KernelGate, frame: &[u8]) -> u128 {
    median((0..ROWS).map(|_| gate.try_frame(frame, TIMES).expect("a run").took.as_nanos()).collect())
}

/// The slower of two, beside one another on the same bucket.
fn on_two(gate: &KernelGate, frame: &[u8]) -> u128 {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| in_rows(gate, frame));
        in_rows(gate, frame).max(other.join().expect("no panic"))
    })
}

fn one_by_one(gate: &KernelGate, frame: &[u8]) -> u128 {
    median((0..SINGLE).map(|_| gate.try_frame(frame, 1).expect("a run").took.as_nanos()).collect())
}

fn median(mut values: Vec<u128>) -> u128 {
    values.sort_unstable();
    values[values.len() / 2]
}

fn show(what: &str, took_ns: u128) {
    println!("  {took_ns:>5}  {what}");
}
