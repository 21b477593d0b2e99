//! Receives datagrams of upstreams, on the control thread, for the inboxes of the services they are about.

use super::inbox::UpstreamDatagram;
use crate::shared::Shared;
use flashweir_config::{Config, Service};
use flashweir_feedback::{DATAGRAM_BYTES, Datagram};
use flashweir_telemetry::EgressDatagram;
use http::Uri;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// After a failed read: trying again at once would only use the processor.
const PAUSE_AFTER_FAILURE: std::time::Duration = std::time::Duration::from_millis(20);

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
}
