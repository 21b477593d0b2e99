//! Addresses of the hosts of a target, looked up again and again: several servers behind one name are several
//! nodes.

use crate::target::{RoutedTarget, Server};
use flashweir_core::Duration;
use flashweir_http::dial::look_up_servers;
use http::Uri;
use http::uri::Scheme;
use std::net::{IpAddr, SocketAddr};
use std::rc::Weak;
use tokio::time::{sleep, timeout};

/// Interval between two look-ups of names. The time to live of DNS records is not known here; most are a
/// minute or less.
const EVERY: Duration = Duration::from_secs(10);
/// The same while a target has no server.
const EVERY_WITHOUT: Duration = Duration::from_secs(1);
/// Timeout of one look-up.
const WITHIN: Duration = Duration::from_secs(5);

/// The server of a URL whose host is an address.
fn literal(url: &Uri) -> Option<SocketAddr> {
    let address: IpAddr = host(url).parse().ok()?;
    Some(SocketAddr::new(address, port(url)))
}

fn host(url: &Uri) -> &str {
    url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

fn port(url: &Uri) -> u16 {
    url.port_u16().unwrap_or(if url.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 })
}

/// Looks all hosts of a target up; those that fail keep the addresses they had. Whether there is any server.
pub(crate) async fn resolve(target: &RoutedTarget, known: &mut Vec<Server>) -> bool {
    let mut servers: Vec<Server> = Vec::new();
    for url in &target.config.urls {
        let before = known.iter().filter(|server| server.url == *url).map(|server| server.address);
        let before: Vec<SocketAddr> = before.collect();
        let found: Vec<SocketAddr> = match literal(url) {
            Some(address) => vec![address],
            None => match timeout(WITHIN, look_up_servers(host(url), port(url), &before)).await {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(_)) | Err(_) => Vec::new(),
            },
        };
        let addresses = if found.is_empty() { before } else { found };
        for address in addresses {
            let server = Server { url: url.clone(), address };
            // A name may be listed twice, and a resolver may give an address once for each kind of socket.
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
    }
    // The order of a resolver's answers changes and means nothing.
    servers.sort_by_key(|server| server.address);
    if servers != *known {
        if let Err(error) = target.set_servers(servers.clone()) {
            tracing::error!(to = target.config.name.as_str(), %error, "a server cannot be used");
        }
        tracing::info!(to = target.config.name.as_str(), servers = servers.len(), "servers of the target");
        *known = servers;
    }
    !known.is_empty()
}

/// Keeps a target's servers up to date for as long as it is there.
pub(crate) async fn keep(target: Weak<RoutedTarget>, mut known: Vec<Server>) {
    let mut is_missing_logged = false;
    loop {
        let wait = if known.is_empty() { EVERY_WITHOUT } else { EVERY };
        let all_literal =
            target.upgrade().is_none_or(|target| target.config.urls.iter().all(|url| literal(url).is_some()));
        if all_literal {
            return;
        }
        if known.is_empty() && !is_missing_logged {
            is_missing_logged = true;
            let name = target.upgrade().map(|target| target.config.name.clone());
            tracing::warn!(to = name, "no host of the target has an address; it is looked up each second");
        }
        sleep(wait).await;
        let Some(target) = target.upgrade() else { return };
        resolve(&target, &mut known).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_no_resolver() {
        let of = |url: &str| literal(&url.parse().unwrap()).map(|address| address.to_string());
        assert_eq!(of("http://127.0.0.1:9001").as_deref(), Some("127.0.0.1:9001"));
        assert_eq!(of("https://[::1]").as_deref(), Some("[::1]:443"));
        assert_eq!(of("http://api.internal:80"), None);
    }
}
