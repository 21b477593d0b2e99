//! Feedback over UDP, for paths on which few responses come: the same message, outside of a response.
//!
//! [`Datagram`] says how one looks. One that names another sender, or a node that is not known, is counted
//! and dropped. The next refresh repeats a lost one. Cost: one HMAC for each datagram that names a known
//! node.

use crate::target::RoutedTarget;
use flashweir_telemetry::{EgressDatagram, EgressDatagrams};
use flashweir_tower::client::{DATAGRAM_BYTES, Datagram};
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// After a failed read: trying again at once would only burn the core.
const PAUSE_AFTER_FAILURE: std::time::Duration = std::time::Duration::from_millis(20);

/// Takes datagrams in for as long as the process lives.
pub(crate) async fn receive(
    socket: UdpSocket,
    name: String,
    targets: Rc<[Rc<RoutedTarget>]>,
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

fn take(bytes: &[u8], name: &str, targets: &[Rc<RoutedTarget>]) -> EgressDatagram {
    let Some(datagram) = Datagram::parse(bytes) else { return EgressDatagram::Malformed };
    let of_node = |target: &&Rc<RoutedTarget>| target.config.node == datagram.node;
    let known = targets.iter().filter(of_node).flat_map(|target| target.view.known());
    let mut nodes =
        known.filter(|(address, _)| *address == datagram.address && datagram.sender == name).peekable();
    if nodes.peek().is_none() {
        return EgressDatagram::Unknown;
    }
    // Two targets may have the same server, with keys of their own.
    let heard = nodes.map(|(address, caller)| caller.node().hear(datagram.field, address).is_ok());
    match heard.fold(false, |any, is_heard| any | is_heard) {
        true => EgressDatagram::Heard,
        false => EgressDatagram::Refused,
    }
}
