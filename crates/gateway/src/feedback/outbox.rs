//! Sends datagrams to nodes in front.

use crate::shared::Shared;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// A socket for each family, opened when the first datagram goes. What cannot be sent at once is dropped: the
/// next refresh says the same.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Outbox {
    /// Sends one, if that is possible now.
    pub(crate) fn send(&mut self, to: SocketAddr, datagram: &[u8], shared: &Shared) {
        let sent = self.socket(to).and_then(|socket| socket.send_to(datagram, to));
        if sent.is_ok() {
            shared.telemetry.control().feedback_datagrams_sent.increment();
        }
    }

    fn socket(&mut self, to: SocketAddr) -> io::Result<&UdpSocket> {
        let (socket, any) = match to {
            SocketAddr::V4(_) => (&mut self.v4, IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            SocketAddr::V6(_) => (&mut self.v6, IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        };
        if socket.is_none() {
            let new = UdpSocket::bind((any, 0))?;
            new.set_nonblocking(true)?;
            *socket = Some(new);
        }
        socket.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))
    }
}
