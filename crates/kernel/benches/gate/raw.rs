//! Frames sent past the stack: what a machine with more clients than this one would be sent.

use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use flashweir_core::Rng;
use flashweir_kernel::gate::KernelGate;
use flashweir_testkit::packet::{Segment, flag};

use crate::arena::{SERVER, index_of, pin};
use crate::clients::GET;

/// Frames handed to the kernel in one call: enough that the server's thread is never out of work.
const AT_ONCE: usize = 64;

/// The SYNs of some thousand clients.
pub(crate) fn openings(server: SocketAddr) -> Vec<Vec<u8>> {
    (0..4_096).map(|number| opening(number, server).frame()).collect()
}

/// SYNs from all over the address space: one from each source.
pub(crate) fn spoofed(server: SocketAddr, count: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(1);
    let mut source = || {
        let [_, b, c, d] = (rng.next_u64() as u32).to_be_bytes();
        // Benchmarking's network is 198.18.0.0/15 (RFC 2544); these reach as far as one that routes nothing
        // can.
        SocketAddr::from(([198, 18 | b & 1, c, d], 1_024 + rng.below(60_000) as u16))
    };
    (0..count).map(|_| Segment::syn(source(), server).frame()).collect()
}

/// Packets of some thousand clients, one after the other: four packets each, as the counters of the gate say
/// that real clients send. To be answered, each needs the number that the gate gives it; the gate says it in
/// a test run.
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

/// Sends frames over and over, from the second processor: as many at once as the server's thread can be kept
/// busy with, or one after the other with at least `pause` between two.
pub(crate) fn flood(frames: &[Vec<u8>], during: Duration, pause: Duration) {
    pin(0, 1);
    let mut address = address_of(SERVER);
    let socket = open();
    let mut parts: Vec<_> = frames
        .iter()
        .map(|frame| libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() })
        .collect();
    let mut messages: Vec<_> = parts.iter_mut().map(|part| message(part, &mut address)).collect();
    let at_once = if pause.is_zero() { AT_ONCE } else { 1 };
    let begin = Instant::now();
    let mut due = Duration::ZERO;
    loop {
        for batch in messages.chunks_mut(at_once) {
            while let Some(wait) = due.checked_sub(begin.elapsed()).filter(|wait| !wait.is_zero()) {
                std::thread::park_timeout(wait);
            }
            if begin.elapsed() >= during {
                return;
            }
            due += pause;
            // SAFETY: the messages, their parts, the frames and the address outlive the call. Refused when
            // the queue is full: what counts is what arrives.
            unsafe { libc::sendmmsg(socket.as_raw_fd(), batch.as_mut_ptr(), batch.len() as u32, 0) };
        }
    }
}

/// A socket whose frames go to the interface and into no queue before it.
fn open() -> socket2::Socket {
    let socket = socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None).expect("root");
    let on: libc::c_int = 1;
    let (level, option, bytes) = (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, size_of_val(&on));
    // SAFETY: the pointer is to a number of the size given.
    let status = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const on).cast(), bytes as libc::socklen_t)
    };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    socket
}

fn address_of(interface: &str) -> libc::sockaddr_ll {
    // SAFETY: integers, for all of which zeros are a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index_of(interface).cast_signed();
    address
}

fn message(part: &mut libc::iovec, address: &mut libc::sockaddr_ll) -> libc::mmsghdr {
    // SAFETY: integers and pointers, for all of which zeros are a value.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_name = std::ptr::from_mut(address).cast();
    message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
    message.msg_hdr.msg_iov = part;
    message.msg_hdr.msg_iovlen = 1;
    message
}
