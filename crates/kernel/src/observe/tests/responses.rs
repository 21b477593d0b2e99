//! Responses: their beginning, their end, and the rate at which they count.

use super::*;

/// Number of responses, of connections from before the plan and since.
fn responses(observed: &Observed) -> [u64; 2] {
    [observed.rates[0].responses(), observed.rates[1].responses()]
}

#[test]
fn a_response_counts_once_under_its_latest_rate() {
    let Some(mut observer) = require_corrected("rates") else { return };
    for opening in [syn(), syn_v6()] {
        observer.tell(SECOND_NS);
        observer.sees_to_server(&opening);
        for step in 1..=50 {
            observer.tell(SECOND_NS + step * 10 * MILLISECOND_NS);
            observer.sees_to_client(&data(&opening, 1_000));
        }
    }
    // 100,000 bytes a second since the SYN; the bucket from 98,304 to 100,351.
    let observed = observer.reading();
    assert_eq!((used(&observed.rates[0]), used(&observed.rates[1])), (vec![], vec![(98_304, 2)]));
    // Silent in the next interval; slower in the one after that: (rate + 1,000) / 3 after two seconds of
    // silence.
    assert_eq!(responses(&observer.reading()), [0, 0]);
    observer.tell(SECOND_NS + 2_500 * MILLISECOND_NS);
    observer.sees_to_client(&data(&syn(), 1_000));
    assert_eq!(used(&observer.reading().rates[1]), [(32_768, 1)]);
}

#[test]
fn as_published_a_short_response_reads_as_its_size() {
    let test = "rates as published";
    let Some(mut observer) = require(test, 4_096, Reading::AsPublished) else { return };
    observer.sees_to_server(&syn());
    // A server that takes its time changes nothing: the window begins with the data.
    for step in 0..10 {
        observer.tell(30 * SECOND_NS + step * 10 * MILLISECOND_NS);
        observer.sees_to_client(&data(&syn(), 1_000));
    }
    // 10,000 bytes in 90 ms, 9,567 bytes a second; the bucket from 9,472 to 9,727.
    assert_eq!(used(&observer.reading().rates[1]), [(9_472, 1)]);
}

#[test]
fn handshakes_acknowledgements_and_resets_are_no_responses() {
    let Some(mut observer) = require_corrected("packets without a response") else { return };
    observer.sees_to_server(&syn());
    let packet = |flags, bytes| Segment { flags, ..data(&syn(), bytes) };
    for segment in [
        packet(flag::SYN | flag::ACK, 0),
        packet(flag::SYN | flag::ACK, 100),
        packet(flag::ACK, 0),
        packet(flag::RST | flag::ACK, 100),
        packet(flag::FIN | flag::ACK, 0),
        Segment { source: address("192.0.2.80:81"), ..data(&syn(), 100) },
    ] {
        observer.sees_to_client(&segment);
    }
    // Nor is what a client sends.
    observer.sees_to_server(&Segment { flags: flag::ACK, ..syn() }.carrying(b"GET / HTTP/1.1\r\n\r\n"));
    let observed = observer.reading();
    assert_eq!((responses(&observed), observed.completed, observed.flows.begun), ([0, 0], 0, 1));
}

#[test]
fn a_response_is_complete_with_the_servers_fin_and_only_once() {
    let Some(mut observer) = require_corrected("ends of responses") else { return };
    let ends = |opening: &Segment, bytes| data(opening, bytes).flagged(flag::FIN);
    let mut check = |packets: &[Segment], expected| {
        packets.iter().for_each(|packet| observer.sees_to_client(packet));
        assert_eq!(observer.reading().completed, expected, "{packets:?}");
    };
    let from = |number| Segment::syn(client(number), address(SERVER));
    check(&[data(&from(1), 10), ends(&from(1), 0)], 1);
    // Sent again, with data or without.
    check(&[ends(&from(1), 0), ends(&from(1), 10), data(&from(1), 10)], 0);
    check(&[ends(&from(2), 10), ends(&from(3), 10)], 2);
    check(&[data(&from(4), 10), Segment { flags: flag::RST, ..data(&from(4), 0) }], 0);
    // Of the client, not of the server.
    let clients = Segment { flags: flag::ACK | flag::FIN, ..from(5) };
    check(&[data(&from(5), 10), clients], 0);
}

#[test]
fn connections_from_before_a_plan_are_told_apart() {
    let Some(mut observer) = require_corrected("responses before and since a plan") else { return };
    let [old, new] = [1, 2].map(|number| Segment::syn(client(number), address(SERVER)));
    let unknown = Segment::syn(client(3), address(SERVER));
    observer.sees_to_server(&old);
    observer.tell(2 * SECOND_NS);
    observer.plan_changed().expect("a moment");
    observer.sees_to_server(&new);
    for opening in [&old, &new, &unknown] {
        observer.sees_to_client(&data(opening, 500));
    }
    assert_eq!(responses(&observer.reading()), [2, 1]);
    observer.tell(3 * SECOND_NS);
    observer.plan_changed().expect("a moment");
    for opening in [&old, &new, &unknown] {
        observer.sees_to_client(&data(opening, 500));
    }
    assert_eq!(responses(&observer.reading()), [3, 0]);
}

#[test]
fn a_plan_that_changes_amid_an_interval_takes_a_response_along_with_its_next_packet() {
    let Some(mut observer) = require_corrected("a plan amid an interval") else { return };
    observer.sees_to_server(&syn());
    observer.sees_to_client(&data(&syn(), 500));
    observer.tell(2 * SECOND_NS);
    observer.plan_changed().expect("a moment");
    observer.sees_to_client(&data(&syn(), 500));
    assert_eq!(responses(&observer.reading()), [1, 0]);
}

#[test]
fn a_flow_that_was_silent_for_a_minute_is_measured_anew() {
    let Some(mut observer) = require_corrected("silent flows") else { return };
    observer.sees_to_server(&syn());
    observer.sees_to_client(&data(&syn(), 1_000));
    observer.tell(66 * SECOND_NS);
    observer.sees_to_client(&data(&syn(), 1_000));
    let observed = observer.reading();
    assert_eq!((observed.flows.begun, observed.flows.expired), (2, 1));
    // 1,000 bytes in 10 ms, each time; but the second time the start is unknown.
    assert_eq!((used(&observed.rates[0]), used(&observed.rates[1])), (vec![(98_304, 1)], vec![(98_304, 1)]));
    assert_eq!(observed.flows.tracked, 1);
}

#[test]
fn rates_beyond_all_buckets_count_in_the_last() {
    let Some(mut observer) = require_corrected("rates beyond measure") else { return };
    let frame = data(&syn(), 1_400).frame();
    // 280 MB in no time, so in 10 ms; then 28 GB/s must not wrap.
    observer.try_frame(Direction::ToClient, &frame, 200_000).expect("a run");
    let observed = observer.reading();
    assert_eq!(observed.rates[0].buckets().next_back().map(|bucket| bucket.highest), Some((1 << 34) - 1));
    // It comes down again.
    observer.tell(60 * SECOND_NS);
    observer.sees_to_client(&data(&syn(), 1_400));
    let lowest = observer.reading().rates[0].buckets().next().map(|bucket| bucket.lowest);
    assert!(lowest.is_some_and(|lowest| lowest < (1 << 34) / 59), "{lowest:?}");
}

#[test]
fn a_table_that_is_full_forgets_those_longest_silent() {
    let Some(mut observer) = require("flows without room", 1, Reading::Corrected) else { return };
    observer.sees_to_client(&data(&syn(), 100));
    for number in 0..5_000 {
        observer.sees_to_server(&Segment::syn(client(number), address(SERVER)));
        // This one is never silent.
        observer.sees_to_client(&data(&syn(), 100));
    }
    let observed = observer.reading();
    assert_eq!((observed.flows.begun, observed.flows.tracked), (5_001, 1_024));
    assert_eq!((observed.flows.evicted, observed.flows.left_out), (5_001 - 1_024, 0));
    assert_eq!(responses(&observed), [1, 0], "it was measured all the while");
    observer.sees_to_server(&Segment::syn(client(9), address(SERVER)));
    assert_eq!(observer.reading().flows.evicted, 1);
}
