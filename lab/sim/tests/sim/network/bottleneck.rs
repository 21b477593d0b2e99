//! Long flows that share one slow link: utilisation, fairness, and what the disciplines do to the queue.

use crate::network::tools::{Pair, wide};
use flashweir_core::measure::jain_index;
use flashweir_core::{Duration, Instant};
use flashweir_sim::network::{Buffer, DatagramSettings, Discipline, LinkSettings, Red, Rem, TcpSettings};

const RATE: u64 = 10_000_000;
const DELAY: Duration = Duration::from_millis(50);
/// Rate times round trip, in full packets.
const BANDWIDTH_DELAY_PACKETS: u32 = 83;

fn long_lived() -> TcpSettings {
    TcpSettings { window_receiver: 1_000, ..TcpSettings::of_2003() }
}

fn slow(discipline: Discipline, packets: u32) -> LinkSettings {
    LinkSettings { discipline, ..LinkSettings::drop_tail(RATE, DELAY, Buffer::Packets(packets)) }
}

/// Shares between 40 s and 120 s, when the first overshoot is long over.
struct Share {
    /// Part of the time that the link was sending.
    used: f64,
    /// Bytes that each flow's client received.
    bytes: Vec<u64>,
    /// Packets that waited, on average.
    waiting: f64,
    marked: u64,
    overflowed: u64,
    dropped_early: u64,
}

fn share(link: &LinkSettings, tcp: &TcpSettings, flows: u64) -> Share {
    let mut pair = Pair::new(1, &wide(1_000_000_000, DELAY), link);
    let opened: Vec<_> =
        (0..flows).map(|flow| pair.open(Instant::from_millis(37 * flow), tcp, u64::MAX)).collect();
    let bytes = |pair: &Pair| -> Vec<u64> {
        opened.iter().map(|&flow| pair.network.flow(flow).unwrap().response_bytes).collect()
    };
    pair.run(Instant::from_secs(40));
    let (bytes_before, before) = (bytes(&pair), pair.network.link(pair.down));
    let mut waiting = 0;
    for tenth in 1..=800 {
        pair.run(Instant::from_secs(40) + Duration::from_millis(100) * tenth);
        waiting += pair.network.waiting(pair.down);
    }
    let after = pair.network.link(pair.down);
    Share {
        used: (after.busy_ns - before.busy_ns) as f64 / 80e9,
        bytes: bytes(&pair).iter().zip(&bytes_before).map(|(after, before)| after - before).collect(),
        waiting: waiting as f64 / 800.0,
        marked: after.marked - before.marked,
        overflowed: after.overflowed - before.overflowed,
        dropped_early: after.dropped_early - before.dropped_early,
    }
}

#[test]
fn a_buffer_of_one_bandwidth_delay_product_keeps_the_link_busy() {
    let link = slow(Discipline::DropTail, BANDWIDTH_DELAY_PACKETS);
    let Share { used, bytes, overflowed, .. } = share(&link, &long_lived(), 1);
    assert!((0.95..=1.0).contains(&used), "{used}");
    // The application gets what the headers leave.
    let goodput = bytes[0] as f64 * 8.0 / 80.0 / RATE as f64;
    assert!((0.92..=0.974).contains(&goodput), "{goodput}");
    // One loss for each tooth of some 25 s.
    assert!((2..=5).contains(&overflowed), "{overflowed}");
    // With a tenth of the buffer the link idles at times: the buffer is what helps.
    let starved = share(&slow(Discipline::DropTail, BANDWIDTH_DELAY_PACKETS / 10), &long_lived(), 1);
    assert!(starved.used < 0.92, "{}", starved.used);
}

/// Jain's index. Random drops decouple the flows; with drop-tail, flows in step may stay unequal for long.
#[test]
fn equal_flows_share_equally() {
    let red = Discipline::Red(Red {
        threshold_low: 20.0,
        threshold_high: 60.0,
        probability_max: 0.05,
        weight: 0.002,
        packet_bytes: 1_500,
        marks: false,
    });
    for (flows, least) in [(2, 0.97), (8, 0.96)] {
        let Share { used, bytes, .. } = share(&slow(red.clone(), 120), &long_lived(), flows);
        let fairness = jain_index(bytes.iter().map(|&bytes| bytes as f64)).unwrap_or(0.0);
        println!("{flows} flows: fairness {fairness:.4}, used {used:.3}");
        assert!(fairness > least, "{flows} flows: {fairness} from {bytes:?}");
        assert!(used > 0.9, "{flows} flows: {used}");
    }
}

#[test]
fn rem_holds_the_queue_at_its_target_by_marks_alone() {
    let rem = Discipline::Rem(Rem { packet_bytes: 1_500, ..Rem::default() });
    let tcp = TcpSettings { ecn: true, ..long_lived() };
    let Share { used, waiting, marked, overflowed, .. } = share(&slow(rem, 400), &tcp, 20);
    println!("REM: used {used:.3}, mean queue {waiting:.1}, {marked} marked");
    assert!((15.0..25.0).contains(&waiting), "target 20, mean {waiting}");
    assert!(used > 0.95, "{used}");
    assert!(marked > 100 && overflowed == 0, "{marked} marked, {overflowed} overflowed");
    // The same flows fill a drop-tail buffer of that size.
    let full = share(&slow(Discipline::DropTail, 400), &tcp, 20);
    assert!(full.waiting > 250.0 && full.marked == 0, "{}", full.waiting);
}

#[test]
fn red_with_ecn_marks_and_without_it_drops() {
    let red = |marks| {
        Discipline::Red(Red {
            threshold_low: 20.0,
            threshold_high: 60.0,
            probability_max: 0.1,
            weight: 0.002,
            packet_bytes: 1_500,
            marks,
        })
    };
    let tcp = TcpSettings { ecn: true, ..long_lived() };
    let marks = share(&slow(red(true), 400), &tcp, 10);
    println!("RED, marks: used {:.3}, mean queue {:.1}", marks.used, marks.waiting);
    assert!(marks.used > 0.95 && (10.0..60.0).contains(&marks.waiting), "{} {}", marks.used, marks.waiting);
    assert!(marks.marked > 100 && marks.overflowed + marks.dropped_early == 0, "{}", marks.marked);
    let drops = share(&slow(red(false), 400), &tcp, 10);
    assert!(drops.marked == 0 && drops.dropped_early > 100, "{}", drops.dropped_early);
}

#[test]
fn datagrams_keep_their_rate_and_half_of_a_flood_arrives() {
    // Datagrams go up.
    let mut pair = Pair::new(1, &slow(Discipline::DropTail, 83), &wide(1_000_000_000, DELAY));
    let route = pair.route;
    let settings = DatagramSettings {
        route,
        packet_bytes: 1_000,
        rate_bits_per_s: RATE * 3 / 10,
        from: Instant::from_secs(1),
        until: Instant::from_secs(61),
    };
    let source = pair.network.add_datagrams(settings).unwrap();
    pair.run(Instant::from_secs(100));
    let books = pair.network.datagrams(source);
    // 3 Mb/s for 60 s in packets of 8 kbit, all of them delivered.
    assert_eq!((books.sent, books.delivered), (22_500, 22_500));
    assert_eq!(books.delivered_bytes, 22_500_000);
    // Twice the link's rate: half of it arrives.
    let flood = DatagramSettings {
        rate_bits_per_s: 2 * RATE,
        from: Instant::from_secs(100),
        until: Instant::from_secs(110),
        ..settings
    };
    let flood = pair.network.add_datagrams(flood).unwrap();
    pair.run(Instant::from_secs(120));
    let books = pair.network.datagrams(flood);
    let share = books.delivered as f64 / books.sent as f64;
    assert!((0.499..0.51).contains(&share), "{share}");
}
