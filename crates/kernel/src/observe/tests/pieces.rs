//! Packets that lie in pieces, as some drivers deliver them: of the first piece not even the headers are
//! whole.

use std::os::fd::AsRawFd as _;
use std::process::Command;

use flashweir_testkit::Testbed;
use socket2::{Domain, Protocol, Socket, Type};

use super::*;
use crate::interface::index_of;

/// Bytes of the first piece: Ethernet, and some of IP.
const FIRST_BYTES: u8 = 20;
/// Below a page the kernel would put everything into one piece.
const PAYLOAD_BYTES: usize = 5_000;

/// Goal: headers are found wherever they lie. Method: the kernel splits what a packet socket sends where a
/// header before the frame says (packet(7), linux/virtio_net.h).
#[test]
fn headers_in_pieces_are_put_together() {
    let test = "an observer of packets in pieces";
    let Some(mut observer) = require(test, 1_024, Reading::Corrected) else { return };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    testbed.link("client", "server");
    for (namespace, interface) in [("client", "server"), ("server", "client")] {
        let name = testbed.full_name(namespace);
        let arguments = ["-n", &name, "link", "set", interface, "mtu", "9000"];
        assert!(Command::new("ip").args(arguments).status().expect("ip runs").success());
    }
    let frames = [data(&syn(), PAYLOAD_BYTES), data(&syn_v6(), PAYLOAD_BYTES)].map(|segment| segment.frame());
    let _attachment = testbed.inside("server", || {
        let attachment = observer.attach("client").expect("an interface");
        for frame in &frames {
            send(frame);
        }
        attachment
    });
    let observed = observer.reading();
    // 5,000 bytes in 10 ms, each.
    assert_eq!(used(&observed.rates[0]), [(499_712, 2)], "{observed:?}");
}

/// Sends a frame in two pieces out of the interface of this namespace.
fn send(frame: &[u8]) {
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0))).expect("root");
    let on: libc::c_int = 1;
    let bytes = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the pointer is to a number of the size given.
    let status = unsafe {
        let value = (&raw const on).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, value, bytes)
    };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: an address of zeros is a value of it.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index_of("client").expect("an interface");
    // `struct virtio_net_hdr`: of its ten bytes only the length of the headers is said.
    let before = [0, 0, FIRST_BYTES, 0, 0, 0, 0, 0, 0, 0];
    let whole = [before.as_slice(), frame].concat();
    let bytes = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointers are to the frame and to the address, each with its own size.
    let sent = unsafe {
        let to = (&raw const address).cast();
        libc::sendto(socket.as_raw_fd(), whole.as_ptr().cast(), whole.len(), 0, to, bytes)
    };
    assert_eq!(sent, whole.len() as isize, "{}", std::io::Error::last_os_error());
}
