//! The flow of two Linux kernels' TCP through a token bucket: server – long wire – router – slow link –
//! client.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flashweir_kernel::tcp_info;
use flashweir_testkit::{PATIENCE, Testbed, TokenBucket};

use crate::point::{FRAME_BYTES, Flow, LOOK_EVERY, Point, REQUEST_BYTES, goodputs, looks};

/// Part of today's Linux that is used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    /// The simulator's part: Reno with NewReno's recovery, no SACK, no timestamps, no probes of a tail.
    Plain,
    /// Reno with everything else as Linux ships it.
    Shipped,
}

/// Settings of both ends for either stack: windows never limit the flow, and no flow learns from one before
/// it.
const ALWAYS: [(&str, &str); 5] = [
    ("tcp_congestion_control", "reno"),
    ("tcp_no_metrics_save", "1"),
    ("tcp_ecn", "0"),
    ("tcp_rmem", "4096 4194304 8388608"),
    ("tcp_wmem", "4096 4194304 8388608"),
];
/// Settings that turn off what the simulator does without.
const PLAIN: [(&str, &str); 6] = [
    ("tcp_sack", "0"),
    ("tcp_dsack", "0"),
    ("tcp_timestamps", "0"),
    ("tcp_recovery", "0"),
    ("tcp_early_retrans", "0"),
    ("tcp_frto", "0"),
];
/// Two frames: with one, every late timer would cost rate.
const BURST_BYTES: u32 = 2 * FRAME_BYTES;

/// `None` after a line that says what the machine lacks.
pub(crate) fn run(point: Point, stack: Stack, length: Duration) -> Option<Flow> {
    let mut testbed = Testbed::require("a real flow", &["client", "router", "server"])?;
    let server = connect(&mut testbed, point);
    let bucket = TokenBucket {
        rate_bits_per_s: point.rate_bits_per_s(),
        burst_bytes: BURST_BYTES,
        limit_bytes: point.buffer_bytes(),
    };
    testbed.shape("router", "client", bucket);
    let plain = PLAIN.iter().filter(|_| stack == Stack::Plain);
    for (setting, value) in ALWAYS.iter().chain(plain) {
        for end in ["client", "server"] {
            testbed.set(end, &format!("net/ipv4/{setting}"), value);
        }
    }
    let flow = measure(&testbed, server, length);
    let lost = testbed.lost_on_long_links();
    assert_eq!(lost, 0, "the machine was too busy to carry {lost} packets: the run says nothing");
    Some(flow)
}

/// The server's address.
fn connect(testbed: &mut Testbed, point: Point) -> Ipv4Addr {
    let [client, inner] = testbed.link("client", "router");
    let [outer, server] = if point.round_trip_ms == 0 {
        testbed.link("router", "server")
    } else {
        testbed.long_link("router", "server", point.one_way())
    };
    testbed.set("router", "net/ipv4/ip_forward", "1");
    testbed.route("client", server, inner);
    testbed.route("server", client, outer);
    server
}

fn measure(testbed: &Testbed, address: Ipv4Addr, length: Duration) -> Flow {
    let listener = testbed.inside("server", || TcpListener::bind((address, 0))).expect("an address");
    let target = listener.local_addr().expect("an address");
    let begun = Instant::now();
    let connect = || TcpStream::connect_timeout(&target, PATIENCE);
    let client = testbed.inside("client", connect).expect("a connection");
    (&client).write_all(&[0; REQUEST_BYTES]).expect("room for the request");
    let (server, _) = listener.accept().expect("the connection");
    let received = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| answer(&server));
        scope.spawn(|| count(&client, &received));
        let looks = looks(length);
        let (mut waiting, mut half) = (0, 0);
        for look in 1..=looks {
            wait_until(begun + LOOK_EVERY * look);
            waiting += testbed.queue("router", "client").waiting;
            if look == looks / 2 {
                half = received.load(Ordering::Relaxed);
            }
        }
        let (bytes, took) = ([half, received.load(Ordering::Relaxed)], begun.elapsed());
        let info = tcp_info(&server).expect("a TCP socket");
        let books = testbed.queue("router", "client");
        // Both threads end with their next call.
        for socket in [&server, &client] {
            let _ = socket.shutdown(Shutdown::Both);
        }
        let [goodput_bits_per_s, later_bits_per_s] = goodputs(bytes, took.as_secs_f64());
        Flow {
            goodput_bits_per_s,
            later_bits_per_s,
            retransmissions: info.retransmitted_segments.into(),
            dropped: books.dropped,
            waiting: waiting as f64 / f64::from(looks),
        }
    })
}

fn wait_until(moment: Instant) {
    // Waking for no reason is allowed.
    while let Some(wait) = moment.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero()) {
        std::thread::park_timeout(wait);
    }
}

/// Writes until the socket is shut down.
fn answer(mut server: &TcpStream) {
    let block = [0; 1 << 16];
    if server.read_exact(&mut [0; REQUEST_BYTES]).is_ok() {
        while server.write_all(&block).is_ok() {}
    }
}

/// Reads until the socket is shut down.
fn count(mut client: &TcpStream, received: &AtomicU64) {
    let mut block = [0; 1 << 16];
    while let Ok(length @ 1..) = client.read(&mut block) {
        received.fetch_add(length as u64, Ordering::Relaxed);
    }
}
