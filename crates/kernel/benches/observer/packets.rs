//! The programs by themselves, on packets that no client sent (BPF_PROG_TEST_RUN): no driver, no copy, warm
//! caches.

use std::net::SocketAddr;

use flashweir_core::{Rate, limits};
use flashweir_kernel::PacketRun;
use flashweir_kernel::gate::{Ceiling, ExcessTreatment, KernelGate, Page, Service, ServicePlan, Tiers};
use flashweir_kernel::observe::{Direction, Observer};
use flashweir_testkit::packet::{Segment, flag};

use super::{load, median, zero};

/// Runs of one packet in a row, and rows of which the median counts.
const TIMES: u32 = 200_000;
const ROWS: usize = 9;
/// Maximum cost of a packet in both programs together, ns.
const BAR_NS: u128 = 250;

pub(crate) fn measure() {
    println!("Gate and observer by themselves, ns per packet (median of {ROWS} rows of {TIMES})");
    let Some(mut observer) = load(limits::KERNEL_FLOWS_DEFAULT) else { return };
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let (client, server) = (address("198.51.100.7:40000"), address("192.0.2.80:80"));
    observer.watch(&[server]).expect("an address");
    let without_ceiling = open_gate(server, Tiers::OPEN);
    let everybody = Ceiling { rate: Rate::MAX, burst: 1_000_000 };
    let under_ceiling = open_gate(server, Tiers::one(everybody));

    let syn = Segment::syn(client, server);
    let from_server = Segment { flags: flag::ACK, ..Segment::new(server, client) };
    let stranger = Segment { source: address("192.0.2.81:80"), ..from_server.clone() };
    let full = vec![b'x'; 1_448];
    let [xdp_ns, tc_ns] = zero::of_runs(&syn.frame());
    println!(
        "  taken off: {xdp_ns} and {tc_ns} ns that a run takes of programs that do nothing, at XDP and at tc"
    );
    let (of_gate, of_observer) = (
        |gate: &KernelGate, segment: &Segment| of_gate(gate, segment).saturating_sub(xdp_ns),
        |way, segment: &Segment| of_observer(&observer, way, segment).saturating_sub(tc_ns),
    );
    let to_server = [
        ("SYN, seen before, no ceiling in force", &without_ceiling, syn.clone()),
        ("SYN, seen before, under a ceiling", &under_ceiling, syn.clone()),
        ("acknowledgement", &under_ceiling, Segment { flags: flag::ACK, ..syn.clone() }),
        ("data", &under_ceiling, Segment { flags: flag::ACK, ..syn.clone() }.carrying(&full)),
    ];
    for (what, gate, segment) in to_server {
        let (before, behind) = (of_gate(gate, &segment), of_observer(Direction::ToServer, &segment));
        show(&format!("to a server: {what}"), &[("gate", before), ("observer", behind)]);
    }
    let to_client = [
        ("acknowledgement", from_server.clone()),
        ("data", from_server.carrying(&full)),
        ("data of a server that is not watched", stranger.carrying(&full)),
    ];
    for (what, segment) in to_client {
        let cost = of_observer(Direction::ToClient, &segment);
        show(&format!("to a client: {what}"), &[("observer", cost)]);
    }
}

/// A gate without a ceiling, or with one that is never reached.
fn open_gate(server: SocketAddr, tiers: Tiers) -> KernelGate {
    let mut gate = KernelGate::load().expect("what loads the observer loads the gate");
    let service = Service { endpoints: vec![server], speaks_tls: false, page: Page::default() };
    gate.set_services(vec![service]).expect("a service");
    gate.fail_closed(true).expect("a flag");
    gate.apply(&[ServicePlan { tiers, refusal: ExcessTreatment::Drop, ..ServicePlan::default() }])
        .expect("a plan");
    gate
}

fn of_gate(gate: &KernelGate, segment: &Segment) -> u128 {
    let frame = segment.frame();
    in_rows(|| gate.try_frame(&frame, TIMES).expect("a run"))
}

fn of_observer(observer: &Observer, direction: Direction, segment: &Segment) -> u128 {
    let frame = segment.frame();
    in_rows(|| observer.try_frame(direction, &frame, TIMES).expect("a run"))
}

fn in_rows(run: impl Fn() -> PacketRun) -> u128 {
    median((0..ROWS).map(|_| run().took.as_nanos()).collect())
}

fn show(what: &str, parts: &[(&str, u128)]) {
    let sum: u128 = parts.iter().map(|(_, cost_ns)| cost_ns).sum();
    let parts: Vec<_> = parts.iter().map(|(part, cost_ns)| format!("{part} {cost_ns}")).collect();
    let verdict = if sum <= BAR_NS { "met" } else { "MISSED" };
    println!("  {sum:>5}  {what} ({}); at most {BAR_NS}: {verdict}", parts.join(" + "));
}
