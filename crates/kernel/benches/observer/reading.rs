//! A reading with a hundred flows in the table and with a million, all of which send; what a flow takes; and
//! what a packet costs when its flow is nowhere near the processor.

use std::net::SocketAddr;
use std::time::Instant;

use flashweir_core::limits;
use flashweir_kernel::observe::{Direction, Observer};
use flashweir_testkit::packet::{ETHERNET_BYTES, Segment, flag};

use super::{load, median};

const READINGS: usize = 25;
const FEW: u32 = 100;
/// Maximum time of a reading at a million flows, ms.
const BAR_MS: f64 = 5.0;
/// Packets that are run one by one, each once.
const SINGLE: u32 = 150_000;

pub(crate) fn measure() {
    println!("A reading (median and longest of {READINGS}), and memory");
    let Some(mut observer) = load(limits::KERNEL_FLOWS) else { return };
    let server: SocketAddr = "192.0.2.80:80".parse().expect("an address");
    observer.watch(&[server]).expect("an address");
    let mut packet = Packet::new(server);
    println!("  {} bytes read from maps at most", Observer::READING_BYTES);
    for flows in [FEW, 1_000_000] {
        (0..flows).for_each(|flow| {
            packet.runs(&observer, flow);
        });
        let observed = observer.read().expect("a reading");
        // The first hundred sent in the interval before.
        assert_eq!(observed.rates[0].responses(), u64::from(flows));
        let times_ms: Vec<f64> = (0..READINGS).map(|_| reading_ms(&mut observer)).collect();
        let longest_ms = times_ms.iter().copied().fold(0.0, f64::max);
        let median_ms = median(times_ms);
        let verdict = if median_ms <= BAR_MS { "within" } else { "ABOVE" };
        println!("  {median_ms:>6.3} ms (at most {longest_ms:.3}) with {flows} flows; {verdict} {BAR_MS}");
    }
    let bytes = observer.memory_bytes().expect("the kernel answers");
    let (whole_mb, each) = (bytes as f64 / 1e6, bytes as f64 / f64::from(limits::KERNEL_FLOWS));
    println!("  {whole_mb:.0} MB for room for {} flows, {each:.0} bytes each", limits::KERNEL_FLOWS);

    println!("Data of a response, run once each, ns (median of {SINGLE}; with the costs of a first run)");
    let same = median((0..SINGLE).map(|_| packet.runs(&observer, 1)).collect());
    // Far from each other, so that none is in a cache.
    let others = median((0..SINGLE).map(|number| packet.runs(&observer, number * 47 % 1_000_000)).collect());
    println!("  {same:>5}  of one flow");
    println!("  {others:>5}  of another of a million each time");
    // Two thirds of these find the table full: a place is taken from a flow long silent.
    let new = median((0..SINGLE).map(|number| packet.runs(&observer, 2_000_000 + number * 8)).collect());
    println!("  {new:>5}  of a new flow each time");
}

fn reading_ms(observer: &mut Observer) -> f64 {
    let begun = Instant::now();
    observer.read().expect("a reading");
    begun.elapsed().as_secs_f64() * 1e3
}

/// Data from the server to any client: a frame of which only the receiver changes (no program checks sums).
struct Packet {
    frame: Vec<u8>,
}

impl Packet {
    fn new(server: SocketAddr) -> Self {
        let client = "198.18.0.0:1".parse().expect("an address");
        let segment = Segment { flags: flag::ACK, ..Segment::new(server, client) }.carrying(&[b'x'; 100]);
        Self { frame: segment.frame() }
    }

    /// Runs it for one flow, ns.
    fn runs(&mut self, observer: &Observer, flow: u32) -> u128 {
        let [_, network, high, low] = flow.to_be_bytes();
        let to = ETHERNET_BYTES + 16;
        self.frame[to + 1..to + 4].copy_from_slice(&[network, high, low]);
        observer.try_frame(Direction::ToClient, &self.frame, 1).expect("a run").took.as_nanos()
    }
}
