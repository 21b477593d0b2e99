//! The host a request is for, and the service that has it.

use core::cmp::Reverse;
use flashweir_config::{Glob, HostPattern, Service};
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
    /// Host of a request, with its properties, found by `find` unless it is written as the last one was and
    /// they depend on nothing else; `None` if it has none. HTTP/2 carries the host in the target.
    #[inline]
    pub(super) fn of(
        &mut self,
        head: RequestView<'_>,
        depends_on_path: bool,
        find: impl FnOnce(Host<'_>) -> Option<HostProperties>,
    ) -> (Host<'_>, Option<&mut HostProperties>) {
        let named = head.fields().get(KnownField::Host);
        let written = named.or_else(|| head.target_authority().map(without_user)).unwrap_or_default();
        if self.properties.is_none() || depends_on_path || self.written != written {
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
    exact: HashMap<Box<[u8]>, HostServices>,
    below: HashMap<Box<[u8]>, HostServices>,
    /// The service for all other hosts.
    rest: Option<usize>,
    has_paths: bool,
}

/// Services of one host.
#[derive(Debug, Default)]
struct HostServices {
    /// Services with paths, the longest path first: at most
    /// [`SERVICE_PATHS`](flashweir_core::limits::SERVICE_PATHS).
    by_path: Vec<(Glob, usize)>,
    /// The service for all other paths.
    rest: Option<usize>,
}

impl HostTable {
    pub(super) fn new(services: &[Service]) -> Self {
        let rest = services.iter().position(|service| service.hosts.is_empty());
        let has_paths = services.iter().any(|service| !service.paths.is_empty());
        let mut table = Self { rest, has_paths, ..Self::default() };
        for (index, service) in services.iter().enumerate() {
            for host in &service.hosts {
                let (hosts, name) = match host {
                    HostPattern::Exact(name) => (&mut table.exact, name),
                    HostPattern::Below(name) => (&mut table.below, name),
                };
                hosts.entry(name.as_bytes().into()).or_default().add(index, &service.paths);
            }
        }
        table
    }

    /// Returns whether a service may depend on the path as well as on the host.
    #[inline]
    pub(super) fn has_paths(&self) -> bool {
        self.has_paths
    }

    /// The whole host first, then what it lies below, the longest first; at each the longest path that fits.
    /// `None` if no service has the request. Nothing is hashed while there is one service for all. `host` is
    /// a [`Host::name`], which bounds the search; `path` is in normal form.
    pub(super) fn find(&self, host: &[u8], path: &[u8]) -> Option<usize> {
        if !self.exact.is_empty()
            && let Some(index) = self.exact.get(host).and_then(|services| services.find(path))
        {
            return Some(index);
        }
        if self.below.is_empty() {
            return self.rest;
        }
        let dots = host.iter().enumerate().filter(|(_, byte)| **byte == b'.');
        let found = dots.filter_map(|(dot, _)| self.below.get(&host[dot + 1..])?.find(path)).next();
        found.or(self.rest)
    }
}

impl HostServices {
    fn add(&mut self, index: usize, paths: &[Glob]) {
        if paths.is_empty() {
            self.rest = Some(index);
        }
        self.by_path.extend(paths.iter().map(|path| (path.clone(), index)));
        // The star of a path that ends in `/` is not counted: what fits both is longer than the folder.
        self.by_path.sort_by_key(|(path, _)| Reverse(path.as_str().trim_end_matches('*').len()));
    }

    fn find(&self, path: &[u8]) -> Option<usize> {
        let found = self.by_path.iter().find(|(glob, _)| glob.matches(path));
        found.map(|(_, index)| *index).or(self.rest)
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
            assert_eq!(with_rest.find(host.as_bytes(), b"/"), Some(index), "{host}");
            assert_eq!(without.find(host.as_bytes(), b"/"), index.checked_sub(1), "{host}");
        }
    }

    #[test]
    fn at_the_longest_host_the_longest_path_has_the_request() {
        let text = "upstream.urls = ['http://a']\n\
                    [[service]]\nname = 'api'\nhosts = ['shop.example', '*.shop.example']\npaths = '/api/'\nupstream.urls = ['http://b']\n\
                    [[service]]\nname = 'v2'\nhosts = 'shop.example'\npaths = ['/api/v2/', '/api/new']\nupstream.urls = ['http://c']\n\
                    [[service]]\nname = 'wide'\nhosts = '*.example'\nupstream.urls = ['http://d']\n";
        let config = Config::from_toml(text, "test.toml").expect("a valid configuration");
        let table = HostTable::new(&config.services);
        assert!(table.has_paths());
        for (host, path, index) in [
            ("shop.example", "/api/", 1),
            ("shop.example", "/api/x", 1),
            ("shop.example", "/api/v2", 1),
            ("shop.example", "/api/v2/", 2),
            ("shop.example", "/api/v2/x", 2),
            ("shop.example", "/api/new", 2),
            ("shop.example", "/api/newer", 1),
            // None of the host's services has these: the wider host's has, and at last the one for the rest.
            ("shop.example", "/api", 3),
            ("shop.example", "/apis/x", 3),
            ("shop.example", "/", 3),
            ("shop.example", "*", 3),
            ("www.shop.example", "/api/v2/x", 1),
            ("www.shop.example", "/", 3),
            ("other.test", "/api/x", 0),
        ] {
            assert_eq!(table.find(host.as_bytes(), path.as_bytes()), Some(index), "{host} {path}");
        }
        let alone = "[[service]]\nname = 'api'\nhosts = 'shop.example'\npaths = '/api/'\nupstream.urls = ['http://b']\n";
        let config = Config::from_toml(alone, "test.toml").expect("a valid configuration");
        let table = HostTable::new(&config.services);
        assert_eq!(table.find(b"shop.example", b"/api/x"), Some(0));
        assert_eq!(table.find(b"shop.example", b"/"), None);
    }
}
