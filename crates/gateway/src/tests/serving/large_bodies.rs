//! Bodies that are large enough to go from socket to socket through a pipe: every duty towards them is that
//! towards small ones.
//!
//! The path orders the origin's answer: `/<length>/<piece>` is a body of that length, written in pieces; a
//! third number ends the connection after that number of bytes, a fourth makes it silent instead. Each byte
//! is a function of its place.

use crate::tests::serving::common::client::Client;
use crate::tests::serving::common::{Running, eventually};
use flashweir_core::{Rng, limits};
use socket2::SockRef;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Bytes that no socket buffers on loopback take.
const MORE_THAN_BUFFERS: usize = 64 << 20;

/// An origin that listens until the test process ends.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    address
}

fn serve(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let mut words = head.split(' ');
        let is_head = words.next()? == "HEAD";
        let numbers: Vec<usize> = words.next()?.split('/').filter_map(|number| number.parse().ok()).collect();
        let (length, piece) = (numbers[0], numbers[1]);
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").ok()?;
        let cut = numbers.get(2).copied();
        let end = if is_head { 0 } else { cut.unwrap_or(length) };
        for start in (0..end).step_by(piece) {
            stream.write_all(&body(start, piece.min(end - start))).ok()?;
        }
        if cut.is_some() {
            // The other side closes first, or what is on its way would be lost with a reset.
            if numbers.len() < 4 {
                let _ = stream.shutdown(std::net::Shutdown::Write);
            }
            let _ = reader.read(&mut [0]);
            return None;
        }
    }
}

/// Bytes of a body from this place on.
fn body(start: usize, length: usize) -> Vec<u8> {
    (start..start + length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

/// Reads as many bytes, and sees that they are those of a body from `start` on.
fn read_body(client: &mut Client, start: usize, length: usize) {
    let mut read = vec![0; length];
    client.stream.read_exact(&mut read).expect("the body");
    assert!(read == body(start, length), "from {start}");
}

/// Reads a head byte by byte, so that nothing of the body is read.
fn read_head(client: &mut Client) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.stream.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    String::from_utf8(head).expect("ascii")
}

#[test]
fn bodies_of_any_size_and_pieces_arrive_as_they_were_sent() {
    let gateway = Running::start(origin(), "");
    let (mut client, mut rng) = (gateway.connect(), Rng::new(7));
    let mut sent = 0;
    for around in [1, 16 << 10, 32 << 10, 48 << 10, 64 << 10, 128 << 10, 1 << 20] {
        for _ in 0..6 {
            let length = around + rng.below(around as u64 / 2 + 300) as usize - around / 4;
            let piece = 1 << rng.below(18);
            let piece = piece.max(length / 2_000 + 1);
            let response = client.get(&format!("/{length}/{piece}"));
            assert!(response.complete && response.body == body(0, length), "{length} bytes by {piece}");
            sent += length;
        }
    }
    gateway.await_metric("flashweir_requests_completed_total", 42.0);
    assert_eq!(gateway.metric("flashweir_connections_opened_total"), 1.0, "every response left it alive");
    drop(client);
    eventually("every byte is counted", || gateway.metric("flashweir_sent_bytes_total") >= sent as f64);
}

#[test]
fn requests_behind_one_another_get_their_own_bodies() {
    let gateway = Running::start(origin(), "");
    let mut client = gateway.connect();
    let lengths = [300_000, 10, 200_000, 70_000];
    client.send(&lengths.map(|length| format!("GET /{length}/50000 HTTP/1.1\r\nhost: a\r\n\r\n")).concat());
    for length in lengths {
        let response = client.response();
        assert!(response.complete && response.body == body(0, length), "{length} bytes");
    }
    client.send("HEAD /300000/1000 HTTP/1.1\r\nhost: a\r\n\r\nGET /5/5 HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(read_head(&mut client).to_ascii_lowercase().contains("content-length: 300000"));
    assert_eq!(client.response().body, body(0, 5), "no body behind the head alone");
}

#[test]
fn a_client_that_pauses_gets_all_of_it_and_holds_the_origin_back() {
    let gateway = Running::start(origin(), "");
    let mut client = gateway.connect();
    client.send(&format!("GET /{MORE_THAN_BUFFERS}/65536 HTTP/1.1\r\nhost: a\r\n\r\n"));
    read_head(&mut client);
    gateway.await_metric("flashweir_requests_in_flight", 1.0);
    let part = MORE_THAN_BUFFERS / 64;
    for number in 0..64 {
        // Takes longer than the origin needs to fill the buffers again.
        assert_eq!(gateway.admin("/metrics").0, 200);
        read_body(&mut client, number * part, part);
    }
    gateway.await_metric("flashweir_requests_completed_total", 1.0);
    gateway.await_metric("flashweir_responses_measured_total", 1.0);
    assert_eq!(client.get("/5/5").body, body(0, 5), "the connection goes on");
}

#[test]
fn an_origin_that_breaks_off_or_falls_silent_cuts_the_client() {
    let gateway = Running::start(origin(), "upstream.body_idle_timeout = '1s'");
    for (number, sent) in [200_000, 100_000, 1].into_iter().enumerate() {
        let mut client = gateway.connect();
        let response = client.get(&format!("/300000/40000/{sent}"));
        assert!(!response.complete && response.body == body(0, sent), "{sent}: {}", response.body.len());
        gateway.await_metric("flashweir_requests_failed_total", number as f64 + 1.0);
    }
    // A client of HTTP/1.0 takes the connection's end for the body's, where it does not count: it must see a
    // reset.
    let mut old = gateway.connect();
    old.send("GET /300000/40000/200000 HTTP/1.0\r\nhost: a\r\n\r\n");
    let end = old.stream.read_to_end(&mut Vec::new());
    assert_eq!(end.expect_err("no clean end").kind(), ErrorKind::ConnectionReset);

    let mut client = gateway.connect();
    client.send("GET /1000000/50000/500000/1 HTTP/1.1\r\nhost: a\r\n\r\n");
    let response = client.response();
    assert!(!response.complete && response.body == body(0, 500_000), "{}", response.body.len());
    gateway.await_metric("flashweir_upstream_failures_total{kind=\"body_timeout\"}", 1.0);
}

#[test]
fn a_client_that_resets_or_stops_reading_ends_the_exchange() {
    let gateway = Running::start(origin(), "bounds.write_stall_timeout = '1s'");
    let mut client = gateway.connect();
    client.send(&format!("GET /{MORE_THAN_BUFFERS}/65536 HTTP/1.1\r\nhost: a\r\n\r\n"));
    read_head(&mut client);
    read_body(&mut client, 0, 1 << 20);
    gateway.await_metric("flashweir_requests_in_flight", 1.0);
    // Closed with bytes unread, the socket is reset.
    drop(client);
    gateway.await_metric("flashweir_requests_abandoned_total", 1.0);
    gateway.await_metric("flashweir_requests_in_flight", 0.0);

    let mut stalled = gateway.connect();
    stalled.send(&format!("GET /{MORE_THAN_BUFFERS}/65536 HTTP/1.1\r\nhost: a\r\n\r\n"));
    gateway.await_metric("flashweir_connections_failed_total{kind=\"write_stall\"}", 1.0);
    gateway.await_metric("flashweir_requests_in_flight", 0.0);
}

/// Goal: the bound on pipes holds, is counted when met, and only decides the way of the bytes. Method: more
/// clients than a worker has pipes, none of which reads.
#[test]
fn without_a_pipe_to_be_had_bodies_are_copied() {
    let gateway = Running::start(origin(), "sentry.policing = 'off'");
    let hits = "flashweir_bound_hits_total{bound=\"pipes\"}";
    let get = "GET /12000000/65536 HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut clients: Vec<Client> = (0..limits::PIPES_PER_WORKER + 4).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        // Takes less than the kernel keeps for it.
        SockRef::from(&client.stream).set_recv_buffer_size(32 << 10).expect("a small buffer");
        client.send(get);
    }
    eventually("all pipes are full", || gateway.metric(hits) >= 1.0);
    // The last ones are among those that got none.
    for client in clients.iter_mut().rev().take(8) {
        read_head(client);
        read_body(client, 0, 12_000_000);
    }
    gateway.await_metric("flashweir_requests_completed_total", 8.0);
    drop(clients);
    gateway.await_metric("flashweir_requests_in_flight", 0.0);
    let hits_before = gateway.metric(hits);
    assert_eq!(gateway.connect().get("/12000000/65536").body, body(0, 12_000_000));
    assert_eq!(gateway.metric(hits), hits_before, "the pipes came back");
}
