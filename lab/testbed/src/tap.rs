//! Packets that come into a namespace, as an observer sees them who has no part in anything.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_recv_buffer_size_force, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketType, eth, recv, socket};

use crate::TestbedError;
use crate::namespace::Namespace;

/// Room for packets that come while no call reads, bytes.
const ROOM_BYTES: usize = 8 << 20;
/// Time that a read waits for a packet.
const WAIT: Duration = Duration::from_millis(100);

/// Reads the IPv4 packets that come into a namespace by any of its interfaces, each without its link's
/// header. Those that leave it are not seen.
#[derive(Debug)]
pub struct Tap(OwnedFd);

impl Tap {
    pub(crate) fn new(namespace: &Namespace) -> Result<Self, TestbedError> {
        let open = || {
            let tap = socket(AddressFamily::PACKET, SocketType::DGRAM, Some(eth::IP))?;
            set_socket_recv_buffer_size_force(&tap, ROOM_BYTES)?;
            set_socket_timeout(&tap, Timeout::Recv, Some(WAIT))?;
            Ok(tap)
        };
        let tap: rustix::io::Result<OwnedFd> = namespace.inside(open)?;
        tap.map(Self)
            .map_err(|error| TestbedError::kernel(format!("{}: packets", namespace.role()))(error.into()))
    }

    /// The beginning of the next packet, written over `room`; none if none comes within a tenth of a second.
    pub fn next<'a>(&self, room: &'a mut [u8]) -> Option<&'a [u8]> {
        // An error is the end of the wait; an interface that goes away is reported once and matters no more.
        let (length, _) = recv(&self.0, &mut *room, RecvFlags::empty()).ok()?;
        room.get(..length)
    }
}
