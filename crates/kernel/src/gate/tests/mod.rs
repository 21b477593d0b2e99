//! Behaviour of the gate, seen through test runs of its program: no interface is needed, and the test sets
//! the time.

mod answers;
mod differential;
mod frames;
mod fuzz;
mod refusals;
mod takeover;
mod tiers;

use std::net::SocketAddr;

use flashweir_core::kernel_counts::{GateCounts, TierCounts};
use flashweir_core::{Duration, Rate, Reason};
use flashweir_testkit::packet::Segment;

use super::{Ceiling, ExcessTreatment, KernelGate, Page, Passed, Ranks, Service, ServicePlan, TIERS, Tiers};

/// Return values of the program (linux/bpf.h, `enum xdp_action`).
const DROP: u32 = 1;
const PASS: u32 = 2;
const SEND_BACK: u32 = 3;

const SERVER: &str = "192.0.2.80:80";
const SERVER_V6: &str = "[2001:db8::80]:80";
const CLIENT: &str = "198.51.100.7:40000";
const CLIENT_V6: &str = "[2001:db8:1::7]:40000";

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A gate whose time the test sets, or a loud line.
fn require(test: &str) -> Option<KernelGate> {
    match KernelGate::load_over(&[], true) {
        Ok(gate) => Some(gate),
        Err(error) if error.is_unavailable() => {
            flashweir_testkit::skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// One service at both addresses, and a plan for it that lets nothing in.
fn require_closed(test: &str, refusal: ExcessTreatment) -> Option<KernelGate> {
    let mut gate = require(test)?;
    let service = Service {
        endpoints: vec![address(SERVER), address(SERVER_V6)],
        speaks_tls: false,
        page: Page::default(),
    };
    gate.tell(SECOND_NS);
    gate.set_services(vec![service]).expect("a service");
    gate.apply(&[closed(refusal)]).expect("a plan");
    Some(gate)
}

fn closed(refusal: ExcessTreatment) -> ServicePlan {
    let ceiling = Ceiling { rate: Rate::ZERO, burst: 1 };
    ServicePlan {
        tiers: Tiers::one(ceiling),
        preferred: Some(ceiling),
        refusal,
        retry_after: Duration::from_secs(10),
        ..ServicePlan::default()
    }
}

fn open_to(rate_per_s: f64, burst: u32, refusal: ExcessTreatment) -> ServicePlan {
    let ceiling = Ceiling { rate: Rate::from_per_second(rate_per_s), burst };
    ServicePlan { tiers: Tiers::one(ceiling), ..closed(refusal) }
}

impl KernelGate {
    /// Sets the time, and gives a sign of life of user space.
    fn tell(&mut self, now_ns: u64) {
        self.tell_only(now_ns);
        self.beat().expect("a beat");
    }

    fn tell_only(&mut self, now_ns: u64) {
        self.control.test_now_ns = now_ns;
        self.write_control().expect("the time");
    }

    fn verdict(&self, segment: &Segment) -> u32 {
        self.try_frame(&segment.frame(), 1).expect("a run").verdict
    }

    /// The gate's reply.
    fn reply(&self, segment: &Segment) -> Segment {
        let run = self.try_frame(&segment.frame(), 1).expect("a run");
        assert_eq!(run.verdict, SEND_BACK, "{segment:?}");
        Segment::read(&run.packet).unwrap_or_else(|wrong| panic!("{wrong}: {:02x?}", run.packet))
    }

    fn counts(&self) -> GateCounts {
        self.counters().expect("counters")[0]
    }

    fn passed_for(&self, reason: Passed) -> u64 {
        let passed = self.passed().expect("counters");
        passed.iter().find(|(of, _)| *of == reason).expect("every reason").1
    }
}

/// Connections of the rank that all have by default.
fn unranked(offered: u64, admitted: u64) -> [TierCounts; TIERS] {
    let mut tiers = [TierCounts::default(); TIERS];
    tiers[TIERS - 1] = TierCounts { offered, admitted };
    tiers
}

fn syn() -> Segment {
    Segment::syn(address(CLIENT), address(SERVER))
}

fn syn_v6() -> Segment {
    Segment::syn(address(CLIENT_V6), address(SERVER_V6))
}

/// Distinct clients without end.
fn client(number: u16) -> SocketAddr {
    SocketAddr::new([198, 51, (number >> 8) as u8, number as u8].into(), 40_000)
}

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn the_tables_have_the_sizes_that_are_named() {
    use flashweir_core::limits;
    use libbpf_rs::MapCore as _;
    let expected = [
        ("plans", limits::KERNEL_SERVICES),
        ("counts", limits::KERNEL_SERVICES),
        ("answers", limits::KERNEL_SERVICES * super::abi::ANSWER_VARIANTS),
        ("endpoints", limits::KERNEL_ENDPOINTS),
        ("preferred", limits::KERNEL_PREFERRED_NETWORKS),
        ("tier_networks", limits::KERNEL_TIER_NETWORKS),
        ("purged", limits::KERNEL_PURGED_SOURCES),
        ("attempts", limits::REFUSED_ATTEMPTS),
        ("passes", Passed::ALL.len()),
    ];
    let Some(gate) = require("sizes of the gate's tables") else { return };
    for (name, entries) in expected {
        let map = gate.program.map(name).expect("a map");
        assert_eq!(map.max_entries() as usize, entries, "{name}");
    }
    for (name, bytes) in
        [("control", 152), ("plans", 168), ("answers", 520), ("counts", 248), ("buckets", 176)]
    {
        assert_eq!(gate.program.map(name).expect("a map").value_size(), bytes, "{name}");
    }
}
