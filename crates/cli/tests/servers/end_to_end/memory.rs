//! Memory that clients can make the gateway keep is bounded, and given back.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use flashweir_testkit::{Client, Connection, Gateway, Http2Client, StreamEnd, Upstream, frame, until};

use crate::end_to_end::support::before;

const GET: &[(&str, &[u8])] =
    &[(":method", b"GET"), (":scheme", b"http"), (":path", b"/bytes/20000000"), (":authority", b"a")];

/// Resident memory, kilobytes.
fn resident_kb(gateway: &Gateway) -> u64 {
    let path = format!("/proc/{}/status", gateway.process().id());
    let status = std::fs::read_to_string(path).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A response of which there is always more.
fn endless() -> Upstream {
    Upstream::start(|connection: &mut Connection| {
        if connection.read_request().is_none() {
            return;
        }
        connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
        while connection.send(vec![b'x'; 64 << 10]) {}
    })
}

#[test]
fn a_reader_that_does_not_read_costs_little() {
    const READERS: u64 = 60;
    let upstream = endless();
    let gateway = before(&upstream).text("sentry.policing", "off").start();
    let base = resident_kb(&gateway);
    let mut readers: Vec<Client> = (0..READERS).map(|_| gateway.connect()).collect();
    readers.iter_mut().for_each(|client| client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    gateway.wait_in_flight(READERS);
    let each = settled(|| resident_kb(&gateway).saturating_sub(base) / READERS);
    assert!(each <= 200, "{each} KB for each reader that does not read");
}

/// The value once it stands still.
fn settled(mut look: impl FnMut() -> u64) -> u64 {
    let mut before = u64::MAX;
    until("memory at rest", Duration::from_secs(20), || {
        std::thread::park_timeout(Duration::from_millis(500));
        let now = look();
        let rests = now.abs_diff(before) <= 2;
        before = now;
        rests.then_some(now)
    })
}

/// Goal: thousands of people who only keep a connection open cost little (docs/config.md has the number).
/// Method: each has been answered once.
#[test]
fn an_idle_connection_costs_little() {
    const IDLE: u64 = 1_000;
    const BYTES_MAX: u64 = 12 << 10;
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).start();
    (0..50).for_each(|_| assert_eq!(gateway.get("/").status(), 200));
    let base = resident_kb(&gateway);
    let mut idle: Vec<TcpStream> = Vec::new();
    for _ in 0..IDLE {
        let mut stream = TcpStream::connect(gateway.address()).expect("a connection");
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        let mut answer = [0; 4_096];
        let length = stream.read(&mut answer).expect("an answer");
        assert!(answer[..length].starts_with(b"HTTP/1.1 200 "));
        idle.push(stream);
    }
    let each = (settled(|| resident_kb(&gateway)) - base) * 1_024 / IDLE;
    println!("{each} bytes for each idle connection");
    assert!(each <= BYTES_MAX, "{each} bytes for each idle connection");
}

#[test]
fn memory_comes_back_after_a_flood_of_connections() {
    const FLOOD: usize = 1_500;
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).start();
    assert_eq!(gateway.get("/").status(), 200);
    let base = resident_kb(&gateway);
    let connect = |address: SocketAddr| TcpStream::connect(address).expect("a connection");
    let flood: Vec<TcpStream> = (0..FLOOD).map(|_| connect(gateway.address())).collect();
    for mut stream in &flood {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    }
    gateway.wait_metric("flashweir_connections_open", FLOOD as f64);
    let peak = settled(|| resident_kb(&gateway));
    drop(flood);
    until("memory given back", Duration::from_secs(40), || {
        let kept = resident_kb(&gateway).saturating_sub(base);
        (kept < 16_000 && kept * 3 < peak - base).then_some(())
    });
}

#[test]
fn a_reader_below_the_floor_is_cut_and_one_above_is_not() {
    let upstream = endless();
    let gateway =
        before(&upstream).text("bounds.write_stall_timeout", "1s").text("sentry.policing", "off").start();
    let mut slow = Http2Client::connect_from(Ipv4Addr::new(127, 3, 3, 3), gateway.address());
    slow.request(1, GET, frame::END_STREAM);
    slow.request(3, GET, frame::END_STREAM);
    assert_eq!(slow.outcome(1), StreamEnd::Status(200));
    let begun = Instant::now();
    let (mut dripped_ended, mut fed_ended) = (false, false);
    while begun.elapsed() < Duration::from_secs(8) && !dripped_ended {
        // Each stream gets room for what it is to take: 10 bytes, and 10,000.
        for (stream, room) in [(0, 10_010_u32), (1, 10), (3, 10_000)] {
            slow.send_frame(frame::WINDOW_UPDATE, 0, stream, &room.to_be_bytes());
        }
        match slow.ended_within(Duration::from_millis(200)) {
            Some(1) => dripped_ended = true,
            Some(_) => fed_ended = true,
            None => {}
        }
    }
    assert!(dripped_ended, "50 bytes a second are held for ever");
    assert!(!fed_ended, "a client that reads was cut with it");
    gateway.wait_metric("flashweir_connections_failed_total{kind=\"slow_reader\"}", 1.0);
}
