//! Opens connections: a socket from the person's address, TCP, then TLS if the target speaks it.

use super::counts::{ConnectionCounts, LiveCounts, count};
use super::stream::Stream;
use super::tls::{self, ALPN_HTTP2};
use super::{Protocol, TransportOptions};
use crate::{ErrorKind, LoadError, LoadTarget};
use flashweir_kernel::{choose_port_late, tcp_info};
use rustls::pki_types::ServerName;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Opens connections to one target, for one thread.
pub(super) struct Dialler {
    addresses: Box<[SocketAddr]>,
    /// Connections begun: each goes to the next address.
    begun: AtomicUsize,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    /// The server must agree to HTTP/2 where it is asked (by TLS).
    protocol: Protocol,
    counts: LiveCounts,
}

impl Dialler {
    pub(super) fn new(target: &LoadTarget, options: &TransportOptions) -> Result<Self, LoadError> {
        let tls = if target.tls {
            let name = ServerName::try_from(target.server_name.clone()).map_err(|error| {
                LoadError::Plan(format!("no certificate can name \"{}\": {error}", target.server_name))
            })?;
            let config = tls::client_config(&options.tls, options.protocol)?;
            Some((TlsConnector::from(config), name))
        } else {
            None
        };
        Ok(Self {
            addresses: target.addresses.as_slice().into(),
            begun: AtomicUsize::new(0),
            tls,
            protocol: options.protocol,
            counts: LiveCounts::default(),
        })
    }

    /// Connects from `source`, or wherever the kernel pleases. Takes as long as the target does: the caller
    /// bounds it by dropping the future, which counts as given up.
    pub(super) async fn open(&self, source: Option<IpAddr>) -> Result<Stream, ErrorKind> {
        let tcp = self.connect(source).await?;
        let Some((connector, name)) = &self.tls else { return Ok(Stream::Left(tcp)) };
        let tls = connector.connect(name.clone(), tcp).await.map_err(|_| ErrorKind::Tls)?;
        if self.protocol == Protocol::Http2 && tls.get_ref().1.alpn_protocol() != Some(ALPN_HTTP2) {
            return Err(ErrorKind::Tls);
        }
        Ok(Stream::Right(Box::new(tls)))
    }

    pub(super) fn counts(&self) -> &LiveCounts {
        &self.counts
    }

    pub(super) fn look(&self) -> ConnectionCounts {
        self.counts.look()
    }

    async fn connect(&self, source: Option<IpAddr>) -> Result<TcpStream, ErrorKind> {
        let turn = self.begun.fetch_add(1, Ordering::Relaxed);
        let address = self.addresses[turn % self.addresses.len()];
        let socket = begin(address, source).inspect_err(|_| count(&self.counts.failed))?;
        let mut connecting = Connecting { socket: &socket, counts: &self.counts, over: false };
        let ended = socket.writable().await.and_then(|()| socket.take_error());
        connecting.over = true;
        drop(connecting);
        match ended {
            Ok(None) => {
                count(&self.counts.opened);
                Ok(socket)
            }
            Ok(Some(error)) | Err(error) => {
                count(&self.counts.failed);
                Err(connect_error(&error))
            }
        }
    }
}

/// A connection under way. When this is dropped, the kernel is asked how often it had to ask, whether the
/// attempt is over or a person lost patience with it.
struct Connecting<'a> {
    socket: &'a TcpStream,
    counts: &'a LiveCounts,
    over: bool,
}

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        if !self.over {
            count(&self.counts.given_up);
        }
        // So far only connection requests were sent, so every retransmission is one. Where the kernel says
        // nothing there is nothing to count.
        if let Ok(info) = tcp_info(self.socket) {
            let sent_again = info.retransmitted_segments.into();
            self.counts.syn_retransmissions.fetch_add(sent_again, Ordering::Relaxed);
        }
    }
}

/// Begins to connect and returns at once.
fn begin(address: SocketAddr, source: Option<IpAddr>) -> Result<TcpStream, ErrorKind> {
    let socket = new_socket(address, source).map_err(|_| ErrorKind::GeneratorSocket)?;
    match socket.connect(&address.into()) {
        Err(error) if !is_under_way(&error) => return Err(connect_error(&error)),
        _ => {}
    }
    TcpStream::from_std(socket.into()).map_err(|_| ErrorKind::GeneratorSocket)
}

fn new_socket(address: SocketAddr, source: Option<IpAddr>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), None)?;
    // Requests are written whole: waiting for more to send would only cost time.
    socket.set_tcp_nodelay(true)?;
    bind_to(&socket, source)?;
    Ok(socket)
}

/// Makes connections come from `source`, or from wherever the kernel pleases.
pub(super) fn bind_to(socket: &Socket, source: Option<IpAddr>) -> io::Result<()> {
    let Some(source) = source else { return Ok(()) };
    // A kernel that cannot has fewer ports for each source; that much it can tell when they run out.
    let _ = choose_port_late(socket);
    socket.bind(&SocketAddr::new(source, 0).into())
}

fn is_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(EINPROGRESS)
}

/// Kind of a failed connect: refused by the target or by this machine.
pub(super) fn connect_error(error: &io::Error) -> ErrorKind {
    let is_ours = matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse)
        || error.raw_os_error().is_some_and(|code| OUT_OF_SOCKETS.contains(&code));
    if is_ours { ErrorKind::GeneratorSocket } else { ErrorKind::Connect }
}

/// The connection is being made (errno of Linux, as are those below).
const EINPROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();
/// Too many open files, here or in the system; no memory for buffers.
const OUT_OF_SOCKETS: [i32; 4] = [
    rustix::io::Errno::MFILE.raw_os_error(),
    rustix::io::Errno::NFILE.raw_os_error(),
    rustix::io::Errno::NOBUFS.raw_os_error(),
    rustix::io::Errno::NOMEM.raw_os_error(),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A port then serves once for each address of the target, instead of once.
    #[test]
    fn a_source_takes_no_port_before_it_connects() {
        let source = IpAddr::from([127, 0, 0, 9]);
        let socket = new_socket(SocketAddr::from(([127, 0, 0, 1], 1)), Some(source)).unwrap();
        assert_eq!(socket.local_addr().unwrap().as_socket(), Some(SocketAddr::new(source, 0)));
    }

    #[test]
    fn what_the_machine_lacks_is_not_the_targets_fault() {
        let check = |errno: rustix::io::Errno, wanted| {
            assert_eq!(connect_error(&errno.into()), wanted, "{errno}");
        };
        check(rustix::io::Errno::MFILE, ErrorKind::GeneratorSocket);
        check(rustix::io::Errno::NFILE, ErrorKind::GeneratorSocket);
        check(rustix::io::Errno::NOBUFS, ErrorKind::GeneratorSocket);
        check(rustix::io::Errno::ADDRNOTAVAIL, ErrorKind::GeneratorSocket);
        check(rustix::io::Errno::ADDRINUSE, ErrorKind::GeneratorSocket);
        check(rustix::io::Errno::CONNREFUSED, ErrorKind::Connect);
        check(rustix::io::Errno::TIMEDOUT, ErrorKind::Connect);
        check(rustix::io::Errno::HOSTUNREACH, ErrorKind::Connect);
    }
}
