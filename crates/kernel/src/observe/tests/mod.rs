//! Observations in test runs of the observer's programs: no interface is needed, and the test sets the time.

mod attachments;
mod attempts;
mod differential;
mod frames;
mod pieces;
mod responses;

use std::net::SocketAddr;

use flashweir_testkit::packet::{Segment, flag};

use super::{Direction, Observed, Observer, RateHistogram, Reading};

/// Return values of the programs (linux/pkt_cls.h, `TC_ACT_UNSPEC`): the next filter is asked.
const NEXT: u32 = u32::MAX;

const SERVER: &str = "192.0.2.80:80";
const SERVER_V6: &str = "[2001:db8::80]:80";
const CLIENT: &str = "198.51.100.7:40000";
const CLIENT_V6: &str = "[2001:db8:1::7]:40000";

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// An observer of both servers whose time the test sets, or a loud line.
fn require(test: &str, flows: u32, reading: Reading) -> Option<Observer> {
    match Observer::load_with_clock(flows, reading, true) {
        Ok(mut observer) => {
            observer.watch(&[address(SERVER), address(SERVER_V6)]).expect("few addresses");
            observer.tell(SECOND_NS);
            Some(observer)
        }
        Err(error) if error.is_unavailable() => {
            flashweir_testkit::skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn require_corrected(test: &str) -> Option<Observer> {
    require(test, 4_096, Reading::Corrected)
}

impl Observer {
    fn tell(&mut self, now_ns: u64) {
        self.watching.test_now_ns = now_ns;
        self.write_watching().expect("the time");
    }

    /// Shows it a packet, which must stay as it is.
    fn sees(&self, direction: Direction, segment: &Segment) {
        let frame = segment.frame();
        let run = self.try_frame(direction, &frame, 1).expect("a run");
        assert_eq!((run.verdict, run.packet), (NEXT, frame), "{segment:?}");
    }

    fn sees_to_server(&self, segment: &Segment) {
        self.sees(Direction::ToServer, segment);
    }

    fn sees_to_client(&self, segment: &Segment) {
        self.sees(Direction::ToClient, segment);
    }

    fn reading(&mut self) -> Observed {
        self.read().expect("a reading")
    }
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

/// Data that a server sends to the client that opened.
fn data(opening: &Segment, bytes: usize) -> Segment {
    Segment { flags: flag::ACK, ..Segment::new(opening.destination, opening.source) }
        .carrying(&vec![b'x'; bytes])
}

/// The buckets in use: where each begins, and how many responses it has.
fn used(rates: &RateHistogram) -> Vec<(u64, u32)> {
    rates.buckets().map(|bucket| (bucket.lowest, bucket.responses)).collect()
}

#[test]
fn the_tables_have_the_sizes_that_are_named() {
    use flashweir_core::limits;
    use libbpf_rs::MapCore as _;
    let Some(observer) = require("sizes of the observer's tables", 1, Reading::Corrected) else { return };
    let expected = [
        ("flows", 1_024, 48),
        ("endpoints", limits::KERNEL_ENDPOINTS, 4),
        ("destinations", limits::KERNEL_DESTINATIONS, 16),
        ("histograms", 8, 7_680),
        ("seen", 4, 64),
        ("watching", 1, 24),
    ];
    for (name, entries, bytes) in expected {
        let map = observer.program.map(name).expect("a map");
        assert_eq!((map.max_entries() as usize, map.value_size()), (entries, bytes), "{name}");
    }
    assert!(observer.memory_bytes().expect("the kernel answers") > 1_024 * 84);
}

#[test]
fn more_addresses_than_there_is_room_for_are_refused_by_number() {
    let Some(mut observer) = require_corrected("too many addresses to watch") else { return };
    let error = observer.watch(&vec![address(SERVER); 257]).expect_err("too many");
    let expected = "addresses to watch: 257 are more than the kernel's table holds, 256";
    assert_eq!(error.to_string(), expected);
}
