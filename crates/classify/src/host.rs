//! The host a request is for, and the service that has it.

use flashweir_config::{HostPattern, Service};
use flashweir_core::Hasher64;
use flashweir_core::limits::HOST_BYTES;
use flashweir_http1::head::{KnownField, RequestView};
use std::collections::HashMap;

/// A request's host in lower case and without the port; a longer one than any name can be is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host<'a>(&'a [u8]);

impl<'a> Host<'a> {
    pub(super) fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// As the rules compare it: a name may be written with the root's dot at its end (RFC 1034 §3.1).
    pub(super) fn name(self) -> &'a [u8] {
        self.0.strip_suffix(b".").unwrap_or(self.0)
    }
}

/// Properties of a host under one configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostProperties {
    /// The service that has it.
    pub(super) service: usize,
    /// Hash of service and host.
    pub(super) key: u64,
    /// Hasher of its families of URLs, where one was asked for.
    pub(super) family: Option<Hasher64>,
}

/// Host of the request before, with its properties: that of the next request is mostly the same.
#[derive(Debug, Default)]
pub(super) struct LastHost {
    /// As the request has it; grows to the longest.
    written: Vec<u8>,
    host: Vec<u8>,
    properties: Option<HostProperties>,
}

impl LastHost {
    /// Host of a request, with its properties, found by `find` unless it is written as the last one was;
    /// `None` if it has none. HTTP/2 carries the host in the target.
    #[inline]
    pub(super) fn of(
        &mut self,
        head: RequestView<'_>,
        find: impl FnOnce(Host<'_>) -> Option<HostProperties>,
    ) -> (Host<'_>, Option<&mut HostProperties>) {
        let named = head.fields().get(KnownField::Host);
        let written = named.or_else(|| head.target_authority().map(without_user)).unwrap_or_default();
        if self.properties.is_none() || self.written != written {
            self.written.clear();
            self.written.extend_from_slice(written);
            let host = without_port(written);
            self.host.clear();
            self.host.extend_from_slice(&host[..host.len().min(HOST_BYTES)]);
            self.host.make_ascii_lowercase();
            self.properties = find(Host(&self.host));
        }
        (Host(&self.host), self.properties.as_mut())
    }
}

fn without_user(authority: &[u8]) -> &[u8] {
    let start = authority.iter().rposition(|&byte| byte == b'@').map_or(0, |at| at + 1);
    &authority[start..]
}

pub(super) fn without_port(host: &[u8]) -> &[u8] {
    let mut end = None;
    for (place, &byte) in host.iter().enumerate() {
        match byte {
            b':' => end = end.or(Some(place)),
            // The colons of an IPv6 literal stand within brackets.
            b']' => end = None,
            _ => {}
        }
    }
    &host[..end.unwrap_or(host.len())]
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
