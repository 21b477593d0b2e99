//! Datagrams of upstreams: received on the control thread, and kept by service until its planner takes them.

use crate::shared::Shared;
use flashweir_config::{Config, Service};
use flashweir_core::limits::FEEDBACK_DATAGRAMS;
use flashweir_feedback::{DATAGRAM_BYTES, Datagram};
use flashweir_telemetry::EgressDatagram;
use http::Uri;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// After a failed read: trying again at once would only use the processor.
const PAUSE_AFTER_FAILURE: std::time::Duration = std::time::Duration::from_millis(20);

/// One service's datagrams that its planner has not seen. At most [`FEEDBACK_DATAGRAMS`].
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Vec<UpstreamDatagram>>);

/// Content of a datagram about one upstream, unverified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamDatagram {
    pub(crate) upstream: usize,
    /// The address that its server was signed for.
    pub(crate) address: SocketAddr,
    pub(crate) field: Box<[u8]>,
}

impl Inbox {
    /// Returns whether there was room.
    fn push(&self, datagram: UpstreamDatagram) -> bool {
        // A writer that panicked leaves whole datagrams.
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = waiting.len() < FEEDBACK_DATAGRAMS;
        if has_room {
            waiting.push(datagram);
        }
        has_room
    }

    /// The datagrams that arrived since the last call.
    pub(crate) fn take(&self) -> Vec<UpstreamDatagram> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes datagrams in for as long as the gateway lives.
pub(crate) async fn receive(socket: UdpSocket, shared: Arc<Shared>) {
    // One byte more: a datagram that fills it is too long.
    let mut buffer = [0; DATAGRAM_BYTES + 1];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(length) => {
                let outcome = take(&buffer[..length], &shared);
                if let Some(outcome) = outcome {
                    shared.telemetry.control().feedback_datagrams.increment(outcome);
                }
            }
            Err(_) => sleep(PAUSE_AFTER_FAILURE).await,
        }
    }
}

/// Outcome of a datagram; none where its service's planner reports the outcome.
fn take(bytes: &[u8], shared: &Shared) -> Option<EgressDatagram> {
    let Some(datagram) = Datagram::parse(bytes) else { return Some(EgressDatagram::Malformed) };
    let live = shared.live.load();
    let mut is_known = false;
    for (service, sentry) in live.config.services.iter().zip(&live.sentries) {
        let Some(upstream) = upstream_of(&live.config, service, &datagram) else { continue };
        let Some(sentry) = sentry else { continue };
        is_known = true;
        let field = datagram.field.into();
        if !sentry.inbox.push(UpstreamDatagram { upstream, address: datagram.address, field }) {
            shared.telemetry.control().feedback_datagrams.increment(EgressDatagram::Dropped);
        }
    }
    (!is_known).then_some(EgressDatagram::Unknown)
}

/// The upstream of a service that a datagram speaks of, if it is for this gateway.
fn upstream_of(config: &Config, service: &Service, datagram: &Datagram<'_>) -> Option<usize> {
    let node = config.feedback.upstream_names.get(&service.name).unwrap_or(&service.name);
    if datagram.sender != config.gateway.name || datagram.node != node {
        return None;
    }
    service.upstream.urls.iter().position(|url| address_of(url) == Some(datagram.address))
}

/// The address of a URL that has one in place of a name.
fn address_of(url: &Uri) -> Option<SocketAddr> {
    const HTTP: u16 = 80;
    const HTTPS: u16 = 443;
    let host = url.host()?.trim_start_matches('[').trim_end_matches(']');
    let address: IpAddr = host.parse().ok()?;
    let usual = if url.scheme_str() == Some("https") { HTTPS } else { HTTP };
    Some(SocketAddr::new(address, url.port_u16().unwrap_or(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_url_is_that_of_its_server() {
        let of = |url: &'static str| address_of(&Uri::from_static(url)).map(|address| address.to_string());
        assert_eq!(of("http://10.0.0.5").as_deref(), Some("10.0.0.5:80"));
        assert_eq!(of("https://10.0.0.5").as_deref(), Some("10.0.0.5:443"));
        assert_eq!(of("http://[::1]:9000").as_deref(), Some("[::1]:9000"));
        assert_eq!(of("http://api.internal:9000"), None);
    }

    #[test]
    fn a_full_inbox_takes_no_more_until_it_is_emptied() {
        let inbox = Inbox::default();
        let datagram = UpstreamDatagram {
            upstream: 0,
            address: "10.0.0.5:80".parse().unwrap(),
            field: (*b":AAAA:").into(),
        };
        let taken = (0..FEEDBACK_DATAGRAMS + 3).filter(|_| inbox.push(datagram.clone())).count();
        assert_eq!((taken, inbox.take().len()), (FEEDBACK_DATAGRAMS, FEEDBACK_DATAGRAMS));
        assert!(inbox.push(datagram));
    }
}
