//! Packets that are attempts to connect, and the new ones among them.

use flashweir_core::limits;

use super::*;

/// Checks that some segments are attempts, each another one, and nothing else happens.
fn check(observer: &mut Observer, attempts: &[Segment], others: &[Segment]) {
    for segment in attempts.iter().chain(others) {
        observer.sees_to_server(segment);
    }
    let observed = observer.reading();
    let count = attempts.len() as u64;
    assert_eq!((observed.offered, observed.unique_offered, observed.flows.begun), (count, count, count));
    assert_eq!((observed.completed, observed.rates.map(|rates| rates.responses())), (0, [0, 0]));
}

#[test]
fn a_syn_to_a_watched_server_is_an_attempt_and_nothing_else_is() {
    let Some(mut observer) = require_corrected("attempts") else { return };
    let flags =
        [flag::ACK, flag::SYN | flag::ACK, flag::RST, flag::SYN | flag::RST, flag::FIN | flag::ACK, 0];
    let mut others = flags.map(|flags| Segment { flags, ..syn() }).to_vec();
    others.push(Segment::syn(address(CLIENT), address("192.0.2.80:81")));
    others.push(Segment::syn(address(CLIENT), address("192.0.2.81:80")));
    others.push(Segment::syn(address(SERVER), address(CLIENT)));
    check(&mut observer, &[syn(), syn_v6()], &others);
    // Nor are they when they go the other way.
    for segment in [syn(), syn_v6()] {
        observer.sees_to_client(&segment);
    }
    assert_eq!(observer.reading().offered, 0);
}

#[test]
fn an_unspecified_address_stands_for_its_family() {
    let Some(mut observer) = require_corrected("every address") else { return };
    let attempts = [syn(), Segment::syn(client(1), address("192.0.2.81:80"))];
    observer.watch(&[address("0.0.0.0:80")]).expect("an address");
    check(&mut observer, &attempts, &[syn_v6()]);
    observer.watch(&[address("[::]:80")]).expect("an address");
    check(&mut observer, &[syn_v6()], &attempts);
    observer.watch(&[]).expect("no address");
    check(&mut observer, &[], &[syn_v6(), syn()]);
}

#[test]
fn a_repeated_syn_is_offered_again_but_not_unique() {
    let Some(mut observer) = require_corrected("retransmissions") else { return };
    let seen = |observer: &mut Observer| {
        let observed = observer.reading();
        (observed.offered, observed.unique_offered, observed.flows.begun)
    };
    for second in [1, 2, 4, 8] {
        observer.tell(second * SECOND_NS);
        observer.sees_to_server(&syn());
    }
    assert_eq!(seen(&mut observer), (4, 1, 1));
    // Another connection from the same port; the first one's SYN is then of another connection again.
    observer.sees_to_server(&Segment { sequence: 7, ..syn() });
    observer.sees_to_server(&Segment { sequence: 7, ..syn() });
    observer.sees_to_server(&syn());
    assert_eq!(seen(&mut observer), (3, 2, 2));
    // No client goes on sending for this time.
    observer.tell(73 * SECOND_NS);
    observer.sees_to_server(&syn());
    assert_eq!(seen(&mut observer), (1, 1, 1));
    // The answer in between changes nothing.
    observer.sees_to_client(&Segment { flags: flag::SYN | flag::ACK, ..data(&syn(), 0) });
    observer.sees_to_server(&syn());
    assert_eq!(seen(&mut observer), (1, 0, 0));
}

#[test]
fn destinations_are_told_busiest_first_and_begin_anew_with_every_reading() {
    let Some(mut observer) = require_corrected("destinations") else { return };
    let busy = address("192.0.2.81:80");
    observer.watch(&[address("0.0.0.0:80"), address(SERVER_V6)]).expect("addresses");
    for number in 0..5 {
        observer.sees_to_server(&Segment::syn(client(number), busy));
    }
    for segment in [syn(), syn(), syn_v6()] {
        observer.sees_to_server(&segment);
    }
    let destinations = observer.reading().destinations;
    let destinations: Vec<_> =
        destinations.iter().map(|at| (at.destination, at.offered, at.unique_offered)).collect();
    assert_eq!(destinations, [(busy, 5, 5), (address(SERVER), 2, 1), (address(SERVER_V6), 1, 1)]);
    observer.sees_to_server(&syn());
    let destinations = observer.reading().destinations;
    assert_eq!((destinations.len(), destinations[0].offered, destinations[0].unique_offered), (1, 1, 0));
}

#[test]
fn more_destinations_than_there_is_room_for_are_counted_together() {
    let Some(mut observer) = require_corrected("many destinations") else { return };
    observer.watch(&[address("0.0.0.0:80")]).expect("an address");
    let to = |number: u16| SocketAddr::new([192, 0, (number >> 8) as u8, number as u8].into(), 80);
    for number in 0..600 {
        observer.sees_to_server(&Segment::syn(client(1), to(number)));
    }
    observer.sees_to_server(&Segment::syn(client(2), to(500)));
    let observed = observer.reading();
    assert_eq!((observed.offered, observed.attempts_left_out), (601, 600 - 512));
    assert_eq!(observed.destinations.len(), limits::HOT_SPOT_ENTRIES);
    assert_eq!((observed.destinations[0].destination, observed.destinations[0].offered), (to(500), 2));
    for number in 600..700 {
        observer.sees_to_server(&Segment::syn(client(1), to(number)));
    }
    assert_eq!(observer.reading().attempts_left_out, 0);
}
