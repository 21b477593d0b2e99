//! Ports chosen late: when a connection is made, not when the socket gets its address.
//!
//! `bind` to an address and port 0 takes a port that no other socket at that address has, even one with
//! another destination: some 28,000, and then no more connections, those closed within the last minute
//! included. Where the port is chosen by `connect`, only the whole of both ends has to be unique, and a port
//! can serve for many destinations.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// Lets `connect` choose the port of a socket that is bound to an address and port 0 after this call
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7); Linux 4.2 and later). Costs one system call.
///
/// # Errors
/// Errors of `setsockopt`: not an internet socket, or a kernel that does not know the option.
pub fn choose_port_late(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open for as long as `socket` is borrowed; the pointer is to an integer that
    // outlives the call, and its size goes with it, so the kernel reads nothing beyond it.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            // Of IPv6 sockets too: the kernel hands this level on.
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, SockAddr, Socket, Type};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_port_is_chosen_when_the_connection_is_made() {
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let any_port = SocketAddr::new(address, 0);
            let listener = TcpListener::bind(any_port).expect("bind");
            let socket = Socket::new(Domain::for_address(any_port), Type::STREAM, None).expect("socket");
            let port = || socket.local_addr().ok().and_then(|name| name.as_socket()).map(|name| name.port());
            choose_port_late(&socket).expect("a kernel that knows the option");
            socket.bind(&any_port.into()).expect("bind");
            assert_eq!(port(), Some(0), "{address}");
            socket.connect(&SockAddr::from(listener.local_addr().expect("address"))).expect("connect");
            assert_ne!(port(), Some(0), "{address}");
        }
    }

    #[test]
    fn a_socket_without_ports_is_an_error() {
        let (one, _other) = UnixStream::pair().expect("pair");
        assert!(choose_port_late(&one).is_err());
    }
}
