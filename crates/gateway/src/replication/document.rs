//! Documents and servers as numbers that are the same on all nodes of a cluster.
//!
//! The hash has a fixed key, unlike all others: nodes must agree. A client that makes two URLs collide makes
//! them share their placement, and nothing else: no answer is found by this hash.

use flashweir_core::Hasher64;
use flashweir_core::limits::REPLICATION_NAME_BYTES;
use http::header::{ETAG, HOST, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue, Uri, request};

/// "flashweir", "replica": any two numbers that all nodes have.
const KEYS: (u64, u64) = (0x666C_6173_6877_6569, 0x7265_706C_6963_6173);

/// A document as its request names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'a> {
    host: &'a [u8],
    target: &'a str,
}

pub(super) fn hasher() -> Hasher64 {
    Hasher64::new(KEYS.0, KEYS.1)
}

impl<'a> Document<'a> {
    /// Of a request; HTTP/2 carries the host in the target.
    pub(super) fn of(head: &'a request::Parts) -> Option<Self> {
        let host = match head.uri.authority() {
            Some(authority) => authority.as_str().as_bytes(),
            None => head.headers.get(HOST).map_or(&[][..], HeaderValue::as_bytes),
        };
        Some(Self { host, target: head.uri.path_and_query()?.as_str() })
    }

    /// Of an absolute URL.
    pub(super) fn of_url(url: &'a Uri) -> Option<Self> {
        Some(Self { host: url.authority()?.as_str().as_bytes(), target: url.path_and_query()?.as_str() })
    }

    pub(super) fn key(&self, hasher: &Hasher64) -> u64 {
        hasher.hash(&[self.host, self.target.as_bytes()])
    }

    /// Host and target; none where it is longer than names that are kept.
    pub(super) fn name(&self) -> Option<Box<str>> {
        let host = str::from_utf8(self.host).ok()?;
        let fits = host.len() + self.target.len() <= REPLICATION_NAME_BYTES;
        fits.then(|| format!("{host}{}", self.target).into())
    }

    /// The host.
    pub(super) fn host(&self) -> &'a [u8] {
        self.host
    }
}

/// A server by its URL: scheme, host in lower case, and port, written or not.
pub(super) fn server_name(hasher: &Hasher64, url: &Uri) -> u64 {
    let scheme = url.scheme_str().unwrap_or_default();
    let host = url.host().unwrap_or_default().to_ascii_lowercase();
    let port = url.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    hasher.hash(&[scheme.as_bytes(), host.as_bytes(), &port.to_be_bytes()])
}

/// A number for the version of a document that a response has; zero where the response does not say, or is
/// one variant of several, whose versions differ without fault.
pub(super) fn validator(hasher: &Hasher64, fields: &HeaderMap) -> u64 {
    if fields.contains_key(VARY) {
        return 0;
    }
    let value = |name| fields.get(name).map(HeaderValue::as_bytes);
    let version =
        value(ETAG).map(|tag| tag.strip_prefix(b"W/").unwrap_or(tag)).or_else(|| value(LAST_MODIFIED));
    version.map_or(0, |version| hasher.hash(&[version]).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_any_spelling_of_its_url() {
        let name = |url: &str| server_name(&hasher(), &url.parse().unwrap());
        assert_eq!(name("http://A.example"), name("http://a.example:80/"));
        assert_ne!(name("http://a.example"), name("https://a.example"));
    }

    #[test]
    fn versions_are_compared_by_tag_then_by_date_and_variants_not_at_all() {
        let of = |lines: &[(&'static str, &'static str)]| {
            let fields =
                lines.iter().map(|&(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
            validator(&hasher(), &fields.collect())
        };
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[("etag", "W/\"1\"")]), of(&[("etag", "\"1\""), ("last-modified", "x")]));
        assert_ne!(of(&[("etag", "\"1\"")]), of(&[("etag", "\"2\"")]));
        assert_eq!(of(&[("etag", "\"1\""), ("vary", "accept-encoding")]), 0);
    }

    #[test]
    fn a_long_name_is_not_kept() {
        let url: Uri = format!("http://a/{}", "x".repeat(600)).parse().unwrap();
        let document = Document::of_url(&url).unwrap();
        assert_eq!(document.name(), None);
        assert_ne!(document.key(&hasher()), 0);
    }
}
