//! Feedback over UDP, for paths on which few responses come: the same message, outside of a response.
//!
//! ```text
//! Flashweir-Overload/1 <sender> <node> <address:port of the server>\n
//! :<base64>:\n
//! ```
//!
//! The address is that by which the sender reaches the server, and part of what is signed: `sender>node@address:port`. A datagram without
//! a tag is never believed. One that names another sender, or a node that is not known, is counted and dropped; so is a lost one, which the
//! next refresh repeats. Cost: one HMAC for each datagram that names a known node.

use crate::target::Target;
use flashweir_telemetry::{EgressDatagram, EgressDatagrams};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// Two names of 63 bytes, an address and a field fit twice.
const DATAGRAM_BYTES: usize = 512;
/// After a failed read: trying again at once would only burn the core.
const PAUSE_AFTER_FAILURE: std::time::Duration = std::time::Duration::from_millis(20);
const LABEL: &str = "Flashweir-Overload/1";

/// A datagram's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Datagram<'a> {
    sender: &'a str,
    node: &'a str,
    address: SocketAddr,
    field: &'a str,
}

/// Takes datagrams in for as long as the process lives.
pub(crate) async fn receive(
    socket: UdpSocket,
    name: String,
    targets: Rc<[Rc<Target>]>,
    counts: Arc<EgressDatagrams>,
) {
    // One byte more: a datagram that fills it is too long.
    let mut buffer = [0; DATAGRAM_BYTES + 1];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(length) => counts.increment(take(&buffer[..length], &name, &targets)),
            Err(_) => sleep(PAUSE_AFTER_FAILURE).await,
        }
    }
}

fn take(bytes: &[u8], name: &str, targets: &[Rc<Target>]) -> EgressDatagram {
    let Some(datagram) = parse(bytes) else { return EgressDatagram::Malformed };
    let of_node = |target: &&Rc<Target>| target.config.node == datagram.node;
    let known = targets.iter().filter(of_node).flat_map(|target| target.view.known());
    let mut nodes =
        known.filter(|(address, _)| *address == datagram.address && datagram.sender == name).peekable();
    if nodes.peek().is_none() {
        return EgressDatagram::Unknown;
    }
    // Two targets may have the same server, with keys of their own.
    let heard = nodes.map(|(address, caller)| caller.node().hear(datagram.field.as_bytes(), address).is_ok());
    match heard.fold(false, |any, is_heard| any | is_heard) {
        true => EgressDatagram::Heard,
        false => EgressDatagram::Refused,
    }
}

fn parse(bytes: &[u8]) -> Option<Datagram<'_>> {
    if bytes.len() > DATAGRAM_BYTES {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (head, field) = text.split_once('\n')?;
    let mut words = head.split(' ');
    let (label, sender, node, address) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_whole = label == LABEL && words.next().is_none() && !sender.is_empty() && !node.is_empty();
    let address = address.parse().ok()?;
    is_whole.then_some(Datagram { sender, node, address, field })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_two_lines() {
        let parsed = parse(b"Flashweir-Overload/1 shop api 10.0.0.5:80\n:AAAA:\n").unwrap();
        assert_eq!((parsed.sender, parsed.node, parsed.field), ("shop", "api", ":AAAA:"));
        assert_eq!(parsed.address, "10.0.0.5:80".parse().unwrap());
        for wrong in [
            &b""[..],
            b"Flashweir-Overload/1 shop api 10.0.0.5:80\n:AAAA:",
            b"Flashweir-Overload/2 shop api 10.0.0.5:80\n:AAAA:\n",
            b"Flashweir-Overload/1 shop api 10.0.0.5\n:AAAA:\n",
            b"Flashweir-Overload/1 shop api 10.0.0.5:80 x\n:AAAA:\n",
            b"Flashweir-Overload/1  api 10.0.0.5:80\n:AAAA:\n",
            b"\xff\xfe\n\n",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
        assert_eq!(parse(&[b'a'; DATAGRAM_BYTES + 1]), None);
    }
}
