//! Three losses in one window, followed packet by packet against RFC 6582 worked out by hand.

use crate::network::tools::{Pair, wide};
use flashweir_core::{Duration, Instant};
use flashweir_sim::network::{Answer, Direction, Happening, Packet, PacketKind, TcpSettings, Watch};

/// The window starts at 32, so 0 to 31 go out; 5, 10 and 15 are lost. Five acknowledgements (0 to 4) open it
/// to 37: 32 to 41 follow. Two duplicates let out 42 and 43 (RFC 3042), the third repeats 5: 39 are on their
/// way, so the threshold is 19 and the window 22. The other 33 duplicates inflate it to 55: up to 59 go out.
/// A round trip later 10 is acknowledged and repeated; the window shrinks by 5 and grows by 1, to 51: 60 goes
/// out. The 16 duplicates of 44 to 59 inflate it to 67: up to 76 go out, until 15 is acknowledged and
/// repeated, a round trip later.
#[test]
fn newreno_repairs_one_loss_each_round_trip() {
    let link = wide(10_000_000_000, Duration::from_millis(50));
    let mut pair = Pair::new(1, &link, &link);
    pair.network.watch(pair.down, Watch::Entering).unwrap();
    let tcp = TcpSettings {
        window_initial: 32,
        acknowledgement_delay: None,
        timeout_min: Duration::from_secs(1),
        ..TcpSettings::modern()
    };
    pair.open(Instant::ZERO, &tcp, 90 * 1_460);
    let mut highest = 0;
    let mut repeated = Vec::new();
    let mut stage = |now: Instant, _: Direction, packet: &Packet| {
        if packet.kind != PacketKind::Data {
            return Answer::Pass;
        }
        let first_time = packet.sequence == 0 || packet.sequence > highest;
        if !first_time {
            repeated.push((packet.sequence, highest, now.as_nanos() / 1_000_000));
        }
        highest = highest.max(packet.sequence);
        if first_time && [5, 10, 15].contains(&packet.sequence) { Answer::Drop } else { Answer::Pass }
    };
    let happening = pair.network.next(&mut stage, Instant::from_secs(60)).unwrap();
    let Some((_, Happening::Ended(record))) = happening else { panic!("{happening:?}") };
    // The request arrives at 150 ms, the duplicates at 250 ms.
    assert_eq!(repeated, [(5, 43, 250), (10, 59, 350), (15, 76, 450)]);
    assert_eq!((record.retransmissions, record.response_bytes), (3, 90 * 1_460));
}
