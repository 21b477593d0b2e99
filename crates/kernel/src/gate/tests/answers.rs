//! The response of the kernel's own, segment by segment.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use flashweir_testkit::packet::flag;
use libbpf_rs::{MapCore as _, MapFlags};

use super::*;
use crate::plain::bytes_of;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";

fn body(reply: &Segment) -> String {
    String::from_utf8(reply.payload.clone()).expect("text")
}

#[test]
fn a_request_is_answered_with_nothing_remembered() {
    let Some(gate) = require_closed("answer", ExcessTreatment::Answer) else { return };
    for opening in [syn(), syn_v6(), Segment { vlan_tags: vec![3], ..syn() }] {
        let accepted = gate.reply(&opening);
        assert_eq!(accepted.flags, flag::SYN | flag::ACK);
        assert_eq!(accepted.acknowledgement, opening.sequence + 1);
        assert_eq!(accepted.tcp_options, [2, 4, 0x04, 0xc4], "a segment of 1,220 bytes");
        assert_eq!(accepted.vlan_tags, opening.vlan_tags);
        let acknowledging = opening.after(&accepted);
        assert_eq!(gate.verdict(&acknowledging), DROP, "the end of the handshake is ours");
        let request = acknowledging.clone().carrying(GET);
        let response = gate.reply(&request);
        assert_eq!(response.flags, flag::ACK | flag::PSH | flag::FIN);
        assert_eq!(
            (response.sequence, response.acknowledgement),
            (request.acknowledgement, request.next_sequence())
        );
        assert!(body(&response).starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{}", body(&response));
        assert!(body(&response).ends_with("\r\n\r\nToo busy: please try again shortly.\n"));
        assert_eq!(gate.reply(&request), response, "again, if it was lost");
        // The client reads to the end, closes, and everything it says is heard.
        let read = request.after(&response);
        assert_eq!(gate.verdict(&read), DROP);
        let last = gate.reply(&read.clone().flagged(flag::FIN));
        assert_eq!((last.flags, last.sequence), (flag::ACK, read.acknowledgement));
        assert_eq!(last.acknowledgement, read.sequence + 1);
        assert_eq!(gate.verdict(&read.clone().flagged(flag::RST)), DROP);
        assert_eq!(gate.reply(&read.carrying(b"more")).flags, flag::RST);
    }
    let expected = GateCounts {
        offered: 3,
        // The one with a VLAN tag is the first again.
        unique_offered: 2,
        answered: 3,
        tiers: unranked(3, 0),
        responses: 6,
        absorbed: 12,
        late_resets: 3,
        ..GateCounts::default()
    };
    assert_eq!(gate.counts(), expected);
}

/// Processors' clocks agree only nearly: one may look at what another noted a moment ahead of it.
#[test]
fn a_processor_whose_clock_is_a_little_behind_goes_on_with_an_answer() {
    let Some(mut gate) = require_closed("answer, clocks", ExcessTreatment::Answer) else { return };
    gate.tell(10 * SECOND_NS);
    let acknowledging = syn().after(&gate.reply(&syn()));
    gate.tell_only(10 * SECOND_NS - 1_000);
    assert_eq!(gate.verdict(&acknowledging), DROP);
    let response = gate.reply(&acknowledging.carrying(GET));
    assert!(body(&response).starts_with("HTTP/1.1 503 "));
    assert_eq!(gate.passed_for(Passed::NotNew), 0);
}

#[test]
fn long_after_the_last_answer_segments_pass_unread() {
    let Some(mut gate) = require_closed("answer, long ago", ExcessTreatment::Answer) else { return };
    let acknowledging = syn().after(&gate.reply(&syn()));
    gate.tell_only(60 * SECOND_NS);
    assert_eq!(gate.verdict(&acknowledging), DROP);
    gate.tell_only(77 * SECOND_NS);
    assert_eq!(gate.verdict(&acknowledging), PASS);
}

#[test]
fn odd_headers_are_answered_plainly() {
    let Some(gate) = require_closed("answer, odd headers", ExcessTreatment::Answer) else { return };
    let extension = |kind| (kind, vec![0; 7]);
    let odd = [
        Segment { ip_options: vec![1; 40], ..syn() },
        Segment { tcp_options: [2, 4, 5, 0xb4, 4, 2, 8, 10].into_iter().chain([7; 32]).collect(), ..syn() },
        Segment { tcp_options: vec![0xff; 8], ..syn() },
        Segment { extension_headers: vec![extension(0), extension(60), extension(43)], ..syn_v6() },
        Segment { fragment: 0x2000, ..syn() },
    ];
    for opening in odd {
        let accepted = gate.reply(&opening);
        assert_eq!((accepted.flags, accepted.acknowledgement), (flag::SYN | flag::ACK, opening.sequence + 1));
        let response = gate.reply(&opening.after(&accepted).carrying(GET));
        assert!(response.payload.starts_with(b"HTTP/1.1 503 "));
    }
}

#[test]
fn every_length_of_request_gets_the_whole_response() {
    let Some(gate) = require_closed("answer, lengths", ExcessTreatment::Answer) else { return };
    let accepted = gate.reply(&syn());
    let first = gate.reply(&syn().after(&accepted).carrying(b"G"));
    for length in (1..1_400).step_by(37) {
        let request = syn().after(&accepted).carrying(&vec![b'G'; length]);
        let response = gate.reply(&request);
        assert_eq!(response.payload, first.payload, "{length}");
        assert_eq!(response.acknowledgement, request.next_sequence());
    }
    assert_eq!(gate.counts().unsent, 0);
}

#[test]
fn the_methods_and_protocols_that_need_something_else_get_it() {
    let Some(gate) = require_closed("answer, protocols", ExcessTreatment::Answer) else { return };
    let accepted = gate.reply(&syn());
    let say = |bytes: &[u8]| gate.reply(&syn().after(&accepted).carrying(bytes));
    let head = say(b"HEAD / HTTP/1.1\r\n\r\n");
    assert!(body(&head).ends_with("\r\n\r\n"), "{}", body(&head));
    assert!(body(&head).contains("Content-Length: 36\r\n"));
    let read = syn().after(&accepted).carrying(b"HEAD / HTTP/1.1\r\n\r\n").after(&head);
    assert_eq!(gate.verdict(&read), DROP, "the end of a head is known too");
    for other in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], b"\x16\x03\x01\x02\x00\x01"] {
        let reset = say(other);
        assert_eq!((reset.flags, reset.sequence), (flag::RST, accepted.sequence + 1));
    }
    // An end without a request.
    assert_eq!(gate.reply(&syn().after(&accepted).flagged(flag::FIN)).flags, flag::RST);
    assert_eq!(gate.counts().late_resets, 3);
}

#[test]
fn clients_are_told_to_come_back_at_different_times() {
    let Some(gate) = require_closed("answer, Retry-After", ExcessTreatment::Answer) else { return };
    let mut seconds: Vec<u32> = (0..64)
        .map(|number| {
            let opening = Segment::syn(client(number), address(SERVER));
            let response = gate.reply(&opening.after(&gate.reply(&opening)).carrying(GET));
            let text = body(&response);
            let line = text.lines().find_map(|line| line.strip_prefix("Retry-After:")).expect("a field");
            line.trim().parse().expect("a number")
        })
        .collect();
    seconds.sort_unstable();
    assert!(seconds[0] >= 10 && seconds[63] <= 20, "{seconds:?}");
    seconds.dedup();
    assert!(seconds.len() > 5, "{seconds:?}");
}

#[test]
fn an_answer_tells_whose_limit_was_met_and_a_connection_goes_on_when_that_changes() {
    let Some(mut gate) = require_closed("answer, reasons", ExcessTreatment::Answer) else { return };
    let accepted = gate.reply(&syn());
    let request = syn().after(&accepted).carrying(GET);
    let first = gate.reply(&request);
    assert!(body(&first).contains(" kernel; reason=flash_crowd\r\n"), "{}", body(&first));
    let plan = ServicePlan { reason: Reason::Capacity, ..closed(ExcessTreatment::Answer) };
    gate.apply(&[plan]).expect("a plan");
    let second = gate.reply(&request);
    assert!(body(&second).contains(" kernel; reason=capacity\r\n"), "{}", body(&second));
    assert_eq!(first.payload.len(), second.payload.len());
    assert_eq!(gate.verdict(&request.after(&first)), DROP, "the end of the first is known all the same");
}

/// Goal: a client that is answered while the answers are rewritten gets one of them whole, or one that its
/// kernel discards. Method: another thread writes without a pause; segments whose checksum is wrong are
/// counted, and seldom.
#[test]
fn an_answer_that_is_written_anew_meanwhile_is_never_a_mixture() {
    let Some(gate) = require_closed("answer, rewritten", ExcessTreatment::Answer) else { return };
    let answers = [Reason::FlashCrowd, Reason::Capacity]
        .map(|reason| Page::default().answers(Duration::from_secs(10), reason));
    let written = gate.program.map("answers").expect("a map");
    let request = syn().after(&gate.reply(&syn())).carrying(GET);
    let (over, mut seen) = (AtomicBool::new(false), BTreeMap::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (index, answer) in answers.iter().flat_map(|answers| (0u32..).zip(answers)) {
                    written.update(bytes_of(&index), bytes_of(answer), MapFlags::ANY).expect("a place");
                }
            }
        });
        // Until both were seen: a busy machine may not let the other thread write for a while.
        for number in 0..1_000_000 {
            if number >= 5_000 && seen.len() > 1 {
                break;
            }
            let run = gate.try_frame(&request.frame(), 1).expect("a run");
            let text = Segment::read(&run.packet).map_or("(wrong checksum)".to_owned(), |read| body(&read));
            *seen.entry(text).or_insert(0) += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    let torn: i32 = seen.remove("(wrong checksum)").unwrap_or_default();
    let whole = seen.values().sum::<i32>();
    println!("{torn} answers were torn, {whole} whole");
    assert!(torn < whole / 10, "{torn} of {whole}");
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.keys().all(|text| text.matches("reason=").count() == 1 && text.ends_with("shortly.\n")));
}

#[test]
fn a_segment_that_only_looks_answered_passes() {
    let Some(gate) = require_closed("answer, forgeries", ExcessTreatment::Answer) else { return };
    let accepted = gate.reply(&syn());
    let request = syn().after(&accepted).carrying(GET);
    let forged = [
        Segment { acknowledgement: request.acknowledgement + 1, ..request.clone() },
        Segment { acknowledgement: request.acknowledgement ^ 0x8000, ..request.clone() },
        Segment { source: client(9), ..request.clone() },
        Segment { destination: address("192.0.2.80:81"), ..request.clone() },
        Segment { flags: flag::PSH, ..request.clone() },
    ];
    for segment in forged {
        assert_eq!(gate.verdict(&segment), PASS, "{segment:?}");
    }
    assert_eq!(gate.reply(&request).flags & flag::FIN, flag::FIN);
}

#[test]
fn a_handshake_survives_one_change_of_keys_and_a_plan_that_opens_but_not_two_changes() {
    let Some(mut gate) = require_closed("answer, keys", ExcessTreatment::Answer) else { return };
    gate.tell(SECOND_NS);
    let accepted = gate.reply(&syn());
    let request = syn().after(&accepted).carrying(GET);
    gate.tell(65 * SECOND_NS);
    gate.apply(&[ServicePlan::default()]).expect("a plan");
    assert_eq!(gate.reply(&request).flags & flag::FIN, flag::FIN);
    gate.apply(&[closed(ExcessTreatment::Answer)]).expect("a plan");
    let renewed = gate.reply(&syn());
    assert_ne!(renewed.sequence & 1, accepted.sequence & 1, "the lowest bit names the key");
    gate.tell(129 * SECOND_NS);
    assert_eq!(gate.verdict(&request), PASS);
    assert_eq!(gate.reply(&syn().after(&renewed).carrying(GET)).flags & flag::FIN, flag::FIN);
}

#[test]
fn without_a_refusal_of_late_nothing_is_looked_at() {
    let Some(mut gate) = require_closed("answer, long ago", ExcessTreatment::Answer) else { return };
    gate.tell(SECOND_NS);
    let request = syn().after(&gate.reply(&syn())).carrying(GET);
    gate.tell(60 * SECOND_NS);
    assert_eq!(gate.verdict(&request), SEND_BACK);
    gate.tell_only(77 * SECOND_NS);
    assert_eq!(gate.verdict(&request), PASS);
}

#[test]
fn a_living_connection_is_left_alone_even_if_its_numbers_match() {
    let Some(mut gate) = require_closed("answer, living connections", ExcessTreatment::Answer) else {
        return;
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let server = listener.local_addr().expect("an address");
    let mut service = gate.services[0].clone();
    service.endpoints = vec![server];
    gate.set_services(vec![service]).expect("a service");
    gate.apply(&[closed(ExcessTreatment::Answer)]).expect("a plan");
    let stream = TcpStream::connect(server).expect("a connection");
    let opening = Segment::syn(stream.local_addr().expect("an address"), server);
    let request = opening.after(&gate.reply(&opening)).carrying(GET);
    assert_eq!(gate.verdict(&request), PASS);
    // Its neighbour, which does not live, is answered, although the listener would take it.
    let mut other = opening.clone();
    other.source.set_port(1);
    assert_eq!(gate.verdict(&other.after(&gate.reply(&other)).carrying(GET)), SEND_BACK);
}
