//! Frames sent past the stack: what a machine with more clients than this one would be sent.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use flashweir_core::Rng;
use flashweir_kernel::gate::KernelGate;
use flashweir_testkit::packet::{Segment, flag};

use crate::arena::{SERVER, pin};
use crate::clients::GET;

/// The SYNs of some thousand clients.
pub(crate) fn openings(server: SocketAddr) -> Vec<Vec<u8>> {
    (0..4_096).map(|number| opening(number, server).frame()).collect()
}

/// SYNs from all over the address space: one from each source.
pub(crate) fn spoofed(server: SocketAddr, count: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let mut source = || {
        let [_, b, c, d] = (rng.next_u64() as u32).to_be_bytes();
        // Benchmarking's network is 198.18.0.0/15 (RFC 2544); these reach as far as one that routes nothing can.
        SocketAddr::from(([198, 18 | b & 1, c, d], 1_024 + rng.below(60_000) as u16))
    };
    (0..count).map(|_| Segment::syn(source(), server).frame()).collect()
}

/// What some thousand clients send, one after the other: four packets each, as the counters of the gate say that real
/// clients send. To be answered, each needs the number that the gate gives it; the gate says it in a test run.
pub(crate) fn exchanges(gate: &KernelGate, server: SocketAddr) -> Vec<Vec<u8>> {
    let of_one = |number: u16| {
        let opening = opening(number, server);
        let reply = |segment: &Segment| {
            let packet = gate.try_frame(&segment.frame(), 1).expect("a run").packet;
            Segment::read(&packet).expect("a segment")
        };
        let accepted = opening.after(&reply(&opening));
        let request = accepted.clone().carrying(GET);
        let closed = request.after(&reply(&request)).flagged(flag::FIN);
        [opening, accepted, request, closed].map(|segment| segment.frame())
    };
    (0..4_096).flat_map(of_one).collect()
}

fn opening(number: u16, server: SocketAddr) -> Segment {
    let [high, low] = number.to_be_bytes();
    Segment::syn(SocketAddr::from(([198, 18, high, low], 40_000)), server)
}

/// Sends frames over and over, from the second processor, with at least `pause` between two.
pub(crate) fn flood(frames: &[Vec<u8>], during: Duration, pause: Duration) {
    pin(0, 1);
    let socket = socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None).expect("root");
    let interface = std::ffi::CString::new(SERVER).expect("no zero in it");
    // SAFETY: the pointer is to a string that ends in zero.
    let index = unsafe { libc::if_nametoindex(interface.as_ptr()) };
    let mut address = socket2::SockAddrStorage::zeroed();
    // SAFETY: a `sockaddr_ll` fits the storage, and every pattern of bits is a value of it.
    let link = unsafe { address.view_as::<libc::sockaddr_ll>() };
    link.sll_family = libc::AF_PACKET as u16;
    link.sll_ifindex = index.cast_signed();
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the storage holds an address of this family and length.
    let address = unsafe { socket2::SockAddr::new(address, length) };
    let begin = Instant::now();
    let mut due = Duration::ZERO;
    for frame in frames.iter().cycle() {
        while let Some(wait) = due.checked_sub(begin.elapsed()).filter(|wait| !wait.is_zero()) {
            std::thread::park_timeout(wait);
        }
        if begin.elapsed() >= during {
            return;
        }
        due += pause;
        // Refused when the queue is full: what counts is what arrives.
        let _ = socket.send_to(frame, &address);
    }
}
