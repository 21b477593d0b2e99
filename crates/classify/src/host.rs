//! The host a request is for, and the service that has it.

use flashweir_config::{HostPattern, Service};
use flashweir_core::limits::HOST_BYTES;
use flashweir_http1::head::{KnownField, RequestView};
use std::collections::HashMap;

/// A request's host in lower case and without the port; a longer one than any name can be is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    bytes: [u8; HOST_BYTES],
    length: usize,
}

impl Host {
    /// HTTP/2 carries it in the target.
    pub(super) fn of(head: RequestView<'_>) -> Self {
        let named = head.fields().get(KnownField::Host);
        let host =
            without_port(named.or_else(|| head.target_authority().map(without_user)).unwrap_or_default());
        let mut bytes = [0; HOST_BYTES];
        let length = host.len().min(HOST_BYTES);
        bytes[..length].copy_from_slice(&host[..length]);
        bytes[..length].make_ascii_lowercase();
        Self { bytes, length }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// As the rules compare it: a name may be written with the root's dot at its end (RFC 1034 §3.1).
    pub(super) fn name(&self) -> &[u8] {
        let bytes = self.as_bytes();
        bytes.strip_suffix(b".").unwrap_or(bytes)
    }
}

fn without_user(authority: &[u8]) -> &[u8] {
    let start = authority.iter().rposition(|&byte| byte == b'@').map_or(0, |at| at + 1);
    &authority[start..]
}

pub(super) fn without_port(host: &[u8]) -> &[u8] {
    // The colons of an IPv6 literal stand within brackets.
    let name_end = host.iter().rposition(|&byte| byte == b']').map_or(0, |bracket| bracket + 1);
    match host[name_end..].iter().position(|&byte| byte == b':') {
        Some(colon) => &host[..name_end + colon],
        None => host,
    }
}

/// Hosts of services. The maps' own hash is keyed, so that no client can choose hosts that collide.
#[derive(Debug, Default)]
pub(super) struct HostTable {
    exact: HashMap<Box<[u8]>, usize>,
    below: HashMap<Box<[u8]>, usize>,
    /// The service for all other hosts.
    rest: Option<usize>,
}

impl HostTable {
    pub(super) fn new(services: &[Service]) -> Self {
        let rest = services.iter().position(|service| service.hosts.is_empty());
        let mut table = Self { rest, ..Self::default() };
        for (index, service) in services.iter().enumerate() {
            for host in &service.hosts {
                match host {
                    HostPattern::Exact(name) => table.exact.insert(name.as_bytes().into(), index),
                    HostPattern::Below(name) => table.below.insert(name.as_bytes().into(), index),
                };
            }
        }
        table
    }

    /// The whole host first, then what it lies below, the longest first; `None` for an unknown host. Nothing
    /// is hashed while there is one service for all. `host` is a [`Host::name`], which bounds the search.
    pub(super) fn find(&self, host: &[u8]) -> Option<usize> {
        if !self.exact.is_empty()
            && let Some(&index) = self.exact.get(host)
        {
            return Some(index);
        }
        if self.below.is_empty() {
            return self.rest;
        }
        let dots = host.iter().enumerate().filter(|(_, byte)| **byte == b'.');
        let found = dots.filter_map(|(dot, _)| self.below.get(&host[dot + 1..])).next();
        found.copied().or(self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_config::Config;

    #[test]
    fn the_longest_host_that_fits_has_the_request_and_the_first_service_the_rest() {
        let servers = "upstream.urls = ['http://a']\n";
        let services = "[[service]]\nname = 'shop'\nhosts = ['shop.example', '*.shop.example']\nupstream.urls = ['http://b']\n\
                    [[service]]\nname = 'api'\nhosts = ['*.api.shop.example', 'api.example']\nupstream.urls = ['http://c']\n";
        let table = |toml: &str| {
            HostTable::new(&Config::from_toml(toml, "test.toml").expect("a valid configuration").services)
        };
        let (with_rest, without) = (table(&format!("{servers}{services}")), table(services));
        for (host, index) in [
            ("shop.example", 1),
            ("www.shop.example", 1),
            ("api.shop.example", 1),
            ("v1.api.shop.example", 2),
            ("a.b.api.shop.example", 2),
            ("api.example", 2),
            ("x.api.example", 0),
            ("notshop.example", 0),
            ("example", 0),
            ("", 0),
            (".", 0),
            ("..", 0),
        ] {
            assert_eq!(with_rest.find(host.as_bytes()), Some(index), "{host}");
            assert_eq!(without.find(host.as_bytes()), index.checked_sub(1), "{host}");
        }
    }
}
