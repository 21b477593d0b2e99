//! Loopback ports that belong to this process before any server gets them.
//!
//! A port is kept by a socket that is bound with `SO_REUSEADDR` and never listens. The kernel gives such a
//! port to no `bind` to port 0 and to no outgoing connection, and refuses a `bind` without that option. A
//! server that asks for this very port with the option, as servers do, gets it, also after a restart. While
//! none listens, connections to the port are refused.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum number of ports that one process reserves.
const RESERVED_MAX: usize = 4_096;
/// Open files that a process may need beside its reservations.
const OTHER_FILES: u64 = 2_048;
/// Attempts to find a row of ports, each at another place.
const ROW_TRIES: usize = 1_000;

/// Sockets that keep ports, until the process ends: a server that starts again finds its port free.
static RESERVED: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// Reserves one port of 127.0.0.1 until this process ends.
///
/// # Errors
/// When no port can be bound, or 4,096 ports are reserved.
pub fn reserve_address() -> io::Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, reserve_ports(1)?)))
}

/// Reserves `count` consecutive ports of 127.0.0.1 until this process ends; the first of them.
///
/// # Errors
/// When there is no such row, or 4,096 ports are reserved.
pub fn reserve_ports(count: u16) -> io::Result<u16> {
    let row = || -> io::Result<(u16, Vec<OwnedFd>)> {
        let (socket, first) = take(0)?;
        let others = (1..count).map(|offset| Ok(take(first.saturating_add(offset))?.0));
        let sockets = std::iter::once(Ok(socket)).chain(others).collect::<io::Result<_>>()?;
        Ok((first, sockets))
    };
    let found = (0..ROW_TRIES).find_map(|_| row().ok());
    let (first, sockets) =
        found.ok_or_else(|| io::Error::other(format!("no {count} free ports in a row on 127.0.0.1")))?;
    keep(sockets)?;
    Ok(first)
}

/// Binds the port (0: any) for this process.
fn take(port: u16) -> io::Result<(OwnedFd, u16)> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Set after the bind, which so fails where another process has reserved the port.
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    let address = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((socket, address.port()))
}

fn keep(sockets: Vec<OwnedFd>) -> io::Result<()> {
    let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    if reserved.is_empty() {
        raise_open_files();
    }
    if reserved.len() + sockets.len() > RESERVED_MAX {
        return Err(io::Error::other(format!("a process reserves at most {RESERVED_MAX} ports")));
    }
    reserved.extend(sockets);
    Ok(())
}

/// Raises the soft limit on open files where a shell's usual 1,024 would not do for all reservations.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = RESERVED_MAX as u64 + OTHER_FILES;
    if limit.current.is_some_and(|soft| soft < wanted) {
        let raised = limit.maximum.map_or(wanted, |hard| hard.min(wanted));
        // Not allowed: fewer ports can be reserved, and the failure to bind one says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// Goal: no stranger gets the port, and its server does. Method: strangers that ask for any port, one
    /// that asks for this port and shares none, then two servers one after the other.
    #[test]
    fn a_reserved_address_is_free_for_its_server_alone() {
        let address = reserve_address().expect("a port");
        assert_ne!(address, reserve_address().expect("another"));
        TcpStream::connect(address).expect_err("no server listens");
        let strangers: Vec<_> = (0..500).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        assert!(strangers.iter().all(|it| it.local_addr().expect("bound") != address));
        take(address.port()).expect_err("another process that reserves it is refused");
        for _ in 0..2 {
            let server = TcpListener::bind(address).expect("the port is this process's");
            TcpStream::connect(address).expect("a server listens");
            TcpListener::bind(address).expect_err("one server at a time");
            drop(server);
        }
    }

    #[test]
    fn ports_in_a_row_are_reserved_together() {
        let (first, other) = (reserve_ports(5).expect("a row"), reserve_ports(5).expect("another"));
        assert!(first.abs_diff(other) >= 5, "{first} and {other}");
        for port in first..first + 5 {
            take(port).expect_err("reserved");
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is this process's");
        }
    }
}
