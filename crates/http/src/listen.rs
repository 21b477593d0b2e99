//! Listening sockets: one for each worker and address, sharing the port; or those that the process
//! inherited, which all workers share.

use flashweir_core::limits::ACCEPT_BACKLOG;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use tokio::net::{TcpListener, TcpStream};

/// Reason for which an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process has the port.
    #[error("cannot listen on {address}: address in use by another process")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// A port below 1024, without the right to it.
    #[error(
        "cannot listen on {address}: ports below 1024 take the capability CAP_NET_BIND_SERVICE: \
         `setcap cap_net_bind_service+ep` for the program's file, AmbientCapabilities= in a unit of systemd, or root"
    )]
    Privileged {
        /// The address.
        address: SocketAddr,
    },
    /// Anything else: no such address.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
}

/// The listening sockets of one worker, in the order of the addresses.
#[derive(Debug, Default)]
pub struct WorkerListeners {
    sockets: Vec<StdTcpListener>,
    /// The service manager has the sockets too: connections that are queued wait there for the next process.
    are_inherited: bool,
}

/// Binds every address once for each worker, before any worker runs: either all is bound or nothing is.
///
/// With SO_REUSEPORT the kernel spreads connections over the workers' sockets, and would as readily share the
/// port with a stranger who also set it; so each address is first bound without, which fails if the port is
/// in use. Port 0 means one free port, the same for all workers.
///
/// # Errors
/// [`ListenError`] naming the first address that cannot be had.
pub fn bind(addresses: &[SocketAddr], workers: usize) -> Result<Vec<WorkerListeners>, ListenError> {
    let has_ipv4 = addresses.iter().any(SocketAddr::is_ipv4);
    let mut listeners: Vec<_> = (0..workers).map(|_| WorkerListeners::default()).collect();
    for &address in addresses {
        // An IPv6 wildcard would otherwise claim the IPv4 addresses that are listed by themselves.
        let is_only_ipv6 = address.is_ipv6() && has_ipv4;
        let mut actual = address;
        drop(open(address, false, is_only_ipv6).map_err(|source| explain(address, source))?);
        for worker in &mut listeners {
            let listener = open(actual, true, is_only_ipv6).map_err(|source| explain(actual, source))?;
            actual = listener.local_addr().map_err(|source| explain(address, source))?;
            worker.sockets.push(listener);
        }
    }
    Ok(listeners)
}

/// Shares out sockets that listen already among the workers. The kernel wakes all of them for a
/// connection, and one gets it: with many workers that costs more than [`bind`]'s.
///
/// # Errors
/// Errors of the sockets; none is expected.
pub fn share(sockets: &[StdTcpListener], workers: usize) -> io::Result<Vec<WorkerListeners>> {
    let of_one = || {
        let sockets = sockets.iter().map(|socket| {
            socket.set_nonblocking(true)?;
            socket.try_clone()
        });
        Ok(WorkerListeners { sockets: sockets.collect::<io::Result<_>>()?, are_inherited: true })
    };
    (0..workers).map(|_| of_one()).collect()
}

impl WorkerListeners {
    /// The addresses bound, with the port the kernel chose where 0 was asked for.
    ///
    /// # Errors
    /// Errors of the sockets; none is expected.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.sockets.iter().map(StdTcpListener::local_addr).collect()
    }

    /// Returns whether connections that are queued when the process ends wait for the next one.
    #[must_use]
    pub fn outlive_the_process(&self) -> bool {
        self.are_inherited
    }

    /// Registers the sockets with the current runtime.
    ///
    /// # Errors
    /// Errors of the runtime's registration.
    pub fn into_tokio(self) -> io::Result<Vec<TcpListener>> {
        self.sockets.into_iter().map(TcpListener::from_std).collect()
    }
}

/// Accepts one connection with TCP_NODELAY set: an intermediary must not hold back what it was given.
///
/// # Errors
/// Errors of `accept(2)`: most concern one connection only, but EMFILE and the like want a pause before the
/// next call. A connection that broke before it was accepted is an error too.
pub async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, peer))
}

fn open(address: SocketAddr, shares_port: bool, is_only_ipv6: bool) -> io::Result<StdTcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for old connections' TIME_WAIT; on Linux this admits no second listener.
    socket.set_reuse_address(true)?;
    if is_only_ipv6 {
        socket.set_only_v6(true)?;
    }
    if shares_port {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    // Without SO_REUSEPORT the conflict may show only here.
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket.into())
}

fn explain(address: SocketAddr, source: io::Error) -> ListenError {
    match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { address },
        io::ErrorKind::PermissionDenied if address.port() < 1024 => ListenError::Privileged { address },
        _ => ListenError::Bind { address, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_to_a_low_port_is_named() {
        let said = |address: &str| {
            let address = address.parse().expect("an address");
            explain(address, io::ErrorKind::PermissionDenied.into()).to_string()
        };
        assert!(
            said("[::]:80").starts_with("cannot listen on [::]:80: ports below 1024 take the capability")
        );
        assert_eq!(said("127.0.0.1:8080"), "cannot listen on 127.0.0.1:8080: permission denied");
    }
}
