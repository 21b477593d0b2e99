//! The handshake, its retries, and the ways in which a flow ends.

use crate::network::tools::{Pair, wide};
use flashweir_core::{Duration, Instant};
use flashweir_sim::network::{
    Answer, Direction, FlowEnd, Happening, LinkSettings, NoStage, Packet, PacketKind, TcpSettings, Watch,
};

const DELAY: Duration = Duration::from_millis(20);

/// Goal: SYNs are repeated on schedule. Method: a stage drops them all and notes when they came.
fn syn_times_s(tcp: &TcpSettings) -> (Vec<u64>, FlowEnd, u64) {
    let link = wide(1_000_000_000, DELAY);
    let mut pair = Pair::new(1, &link, &link);
    pair.network.watch(pair.up, Watch::Entering).unwrap();
    pair.open(Instant::ZERO, tcp, 1_000);
    let mut times = Vec::new();
    let mut stage = |now: Instant, _: Direction, packet: &Packet| {
        assert_eq!(packet.kind, PacketKind::Syn);
        times.push(now.as_nanos() / 1_000_000_000);
        Answer::Drop
    };
    let happening = pair.network.next(&mut stage, Instant::from_secs(1_000)).unwrap();
    let Some((now, Happening::Ended(record))) = happening else { panic!("{happening:?}") };
    assert_eq!(record.syn_tries as usize, times.len());
    assert_eq!(pair.network.link(pair.up).refused, times.len() as u64);
    assert_eq!(pair.network.flows(), 0, "nothing is left of a flow that never connected");
    (times, record.end.unwrap(), now.as_nanos() / 1_000_000_000)
}

#[test]
fn syns_are_repeated_with_growing_gaps() {
    assert_eq!(
        syn_times_s(&TcpSettings::modern()),
        (vec![0, 1, 3, 7, 15, 31, 63], FlowEnd::NotConnected, 127)
    );
    assert_eq!(
        syn_times_s(&TcpSettings::of_2003()),
        (vec![0, 3, 9, 21, 45, 93], FlowEnd::NotConnected, 157) // 48 · 2 = 96, capped at 64 s
    );
}

#[test]
fn a_dropped_syn_costs_its_timeout() {
    let link = wide(1_000_000_000, DELAY);
    let mut pair = Pair::new(1, &link, &link);
    pair.network.watch(pair.up, Watch::Leaving).unwrap();
    pair.open(Instant::ZERO, &TcpSettings::modern(), 5_000);
    let mut syns = 0;
    let mut stage = |_: Instant, _: Direction, packet: &Packet| {
        syns += u32::from(packet.kind == PacketKind::Syn);
        if packet.kind == PacketKind::Syn && syns == 1 { Answer::Drop } else { Answer::Pass }
    };
    let happening = pair.network.next(&mut stage, Instant::from_secs(10)).unwrap();
    let Some((_, Happening::Ended(record))) = happening else { panic!("{happening:?}") };
    assert_eq!(record.syn_tries, 2);
    // A second for the SYN, two round trips for the rest, less than a millisecond of sending.
    assert_eq!(record.duration().unwrap().as_millis(), 1_080);
    assert_eq!(record.established.unwrap().as_nanos() / 1_000_000, 1_040);
}

#[test]
fn a_small_response_takes_two_round_trips_and_leaves_nothing_behind() {
    let link = wide(1_000_000_000, DELAY);
    let mut pair = Pair::new(1, &link, &link);
    pair.open(Instant::from_millis(5), &TcpSettings::modern(), 14_600);
    let ended = pair.run(Instant::from_secs(100));
    assert_eq!(ended.len(), 1);
    let record = ended[0];
    assert_eq!(
        (record.end, record.response_bytes, record.retransmissions),
        (Some(FlowEnd::Completed), 14_600, 0)
    );
    assert_eq!(record.duration().unwrap().as_millis(), 80);
    assert_eq!(record.request_received.unwrap().as_nanos() / 1_000_000, 65);
    assert_eq!(pair.network.flows(), 0);
    assert_eq!(pair.network.packets().held, 0);
}

#[test]
fn a_larger_response_doubles_its_window_each_round_trip() {
    let link = wide(1_000_000_000, DELAY);
    let mut pair = Pair::new(1, &link, &link);
    // 10, 20 and 40 segments: two more round trips than the first window alone.
    pair.open(Instant::ZERO, &TcpSettings::modern(), 70 * 1_460);
    let ended = pair.run(Instant::from_secs(100));
    assert_eq!(ended[0].duration().unwrap().as_millis(), 80 + 2 * 40);
}

#[test]
fn an_abandoned_flow_stops_the_server() {
    let link = wide(10_000_000, DELAY);
    let mut pair = Pair::new(1, &link, &link);
    let flow = pair.open(Instant::ZERO, &TcpSettings::modern(), u64::MAX);
    assert!(pair.run(Instant::from_secs(3)).is_empty());
    assert!(pair.network.abandon(Instant::from_secs(3), flow).unwrap());
    let happening = pair.network.next(&mut NoStage, Instant::from_secs(1_000)).unwrap();
    let Some((at, Happening::Ended(record))) = happening else { panic!("{happening:?}") };
    assert_eq!((at, record.end), (Instant::from_secs(3), Some(FlowEnd::Abandoned)));
    // 10 Mb/s for three seconds, less slow start and headers.
    assert!((3_300_000..3_750_000).contains(&record.response_bytes), "{}", record.response_bytes);
    let sent_before = pair.network.link(pair.down).delivered_bytes;
    pair.run(Instant::from_secs(1_000));
    assert_eq!(pair.network.flows(), 0);
    let sent_after = pair.network.link(pair.down).delivered_bytes - sent_before;
    // A large window's worth was under way; nothing new followed.
    assert!(sent_after < 2_100 * 1_500, "{sent_after}");
    assert!(!pair.network.respond(Instant::from_secs(2_000), flow, 1).unwrap(), "its id names none any more");
}

#[test]
fn a_server_whose_packets_all_vanish_gives_up_and_leaves_nothing() {
    let link = wide(10_000_000, DELAY);
    let mut pair = Pair::new(1, &link, &link);
    pair.network.watch(pair.down, Watch::Entering).unwrap();
    pair.open(Instant::ZERO, &TcpSettings { timeouts: 3, ..TcpSettings::modern() }, 20_000);
    let mut stage = |_: Instant, _: Direction, packet: &Packet| {
        if packet.kind == PacketKind::Data { Answer::Drop } else { Answer::Pass }
    };
    let happening = pair.network.next(&mut stage, Instant::from_secs(1_000)).unwrap();
    let Some((_, Happening::Ended(record))) = happening else { panic!("{happening:?}") };
    assert_eq!((record.end, record.response_bytes), (Some(FlowEnd::GivenUp), 0));
    assert_eq!(pair.network.flows(), 0);
}

#[test]
fn settings_out_of_range_say_which_and_what_was_expected() {
    let link = LinkSettings { loss: 1.5, ..wide(1, DELAY) };
    let mut network = flashweir_sim::network::Network::new(1);
    let (one, other) = (network.add_node().unwrap(), network.add_node().unwrap());
    let error = network.add_link(one, other, &link).unwrap_err();
    assert_eq!(error.to_string(), "link loss is 1.5; expected a probability from 0 to 1");
    let tcp = TcpSettings { segment_bytes: 0, ..TcpSettings::modern() };
    let error = network.add_tcp(tcp).unwrap_err();
    assert_eq!(error.to_string(), "TCP segment_bytes is 0; expected 1 to 65535 with its header");
}
