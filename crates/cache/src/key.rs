//! Key of a stored response: scheme, host and target, byte by byte as they were sent.

use flashweir_core::Hasher64;

/// Names one document. Nothing is normalised: what two servers could read as two documents has two keys. A
/// host that is not in its usual form (lower case, no dot at the end) has none, see
/// [`RequestPart`](crate::RequestPart).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The client's connection was encrypted.
    pub is_https: bool,
    /// With the port, where one was sent.
    pub host: &'a [u8],
    /// Path and query.
    pub target: &'a [u8],
}

impl<'a> Key<'a> {
    /// Under the gateway's keyed hash: two keys that collide cannot be chosen by a client.
    #[must_use]
    pub fn hash(&self, hasher: &Hasher64) -> u64 {
        hasher.hash(&[self.scheme(), self.host, self.target])
    }

    fn scheme(&self) -> &'static [u8] {
        if self.is_https { b"https" } else { b"http" }
    }

    /// As it is kept with a response. The parts are delimited by a byte that none of them can contain.
    pub(crate) fn to_bytes(self) -> Box<[u8]> {
        [self.scheme(), self.host, self.target].join(&DELIMITER).into()
    }

    /// Returns whether a response that is kept under `bytes` is this document. Always asked: a hash may
    /// collide.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        let rest = bytes.strip_prefix(self.scheme()).and_then(|rest| rest.strip_prefix(&[DELIMITER]));
        let rest = rest.and_then(|rest| rest.strip_prefix(self.host));
        rest.and_then(|rest| rest.strip_prefix(&[DELIMITER])) == Some(self.target)
    }

    /// The key of an absolute URL, as an operator writes it; none where it is not one of http or https.
    #[must_use]
    pub fn of_url(url: &'a http::Uri) -> Option<Self> {
        let is_https = match url.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let host = url.authority()?.as_str().as_bytes();
        let target = url.path_and_query().map_or("/", |target| target.as_str()).as_bytes();
        Some(Self { is_https, host, target: if target.is_empty() { b"/" } else { target } })
    }
}

/// No host, path or query has a line feed: heads with one are refused.
const DELIMITER: u8 = b'\n';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_anywhere_differ() {
        let key = Key { is_https: false, host: b"shop.example", target: b"/a?b=1&c=2" };
        let others = [
            Key { is_https: true, ..key },
            Key { host: b"shop.example:80", ..key },
            Key { host: b"shop.exampl", target: b"e/a?b=1&c=2", ..key },
            Key { target: b"/a?c=2&b=1", ..key },
            Key { target: b"/a", ..key },
            Key { target: b"/a?b=1&c=2&", ..key },
            Key { target: b"/%61?b=1&c=2", ..key },
        ];
        let hasher = Hasher64::new(1, 2);
        assert!(key.is(&key.to_bytes()));
        for other in others {
            assert!(!other.is(&key.to_bytes()) && !key.is(&other.to_bytes()), "{other:?}");
            assert_ne!(key.hash(&hasher), other.hash(&hasher), "{other:?}");
        }
    }

    #[test]
    fn a_url_has_the_key_of_a_request_for_it() {
        for (url, is_https, host, target) in [
            ("http://shop.example/a?b", false, "shop.example", "/a?b"),
            ("https://shop.example:8443", true, "shop.example:8443", "/"),
        ] {
            let url = url.parse().expect("a URL");
            let key = Key { is_https, host: host.as_bytes(), target: target.as_bytes() };
            assert_eq!(Key::of_url(&url), Some(key));
        }
        for url in ["/a", "ftp://shop.example/", "*"] {
            assert_eq!(Key::of_url(&url.parse().expect("a URL")), None, "{url}");
        }
    }
}
