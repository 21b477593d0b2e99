//! Purges: what the operator wants to be gone, by URL or by tag, on the admin listener.
//!
//! `DELETE`, because no page on the web can make a browser send that to another site without asking first.

use crate::shared::Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};
use flashweir_cache::{Key, tag_hash};
use flashweir_runtime::problem;
use http::Uri;
use http::header::RETRY_AFTER;
use serde_json::json;
use std::fmt;
use std::sync::PoisonError;

/// Selection of the responses to purge: one of these.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PurgeQuery {
    /// An absolute URL; with and without the default port are the same.
    Url(String),
    /// A tag of `Surrogate-Key` or `Cache-Tag`.
    Tag(String),
    /// Everything.
    All,
}

impl fmt::Display for PurgeQuery {
    /// As it is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => write!(f, "url={url}"),
            Self::Tag(tag) => {
                f.write_str("tag=")?;
                tag.bytes().try_for_each(|byte| write!(f, "%{byte:02x}"))
            }
            Self::All => f.write_str("all=true"),
        }
    }
}

impl PurgeQuery {
    /// From the query of a request: `url=URL`, `tag=TAG` or `all=true`. The value of the first two is
    /// everything behind the `=`, so that the URL's own query needs no escapes; a value that begins with an
    /// escaped scheme is decoded once.
    pub(crate) fn parse(query: &str) -> Result<Self, String> {
        if query.len() > NAME_BYTES_MAX {
            return Err(format!("`url` or `tag` is too long, expected at most {NAME_BYTES_MAX} bytes"));
        }
        let named = query.split_once('=').filter(|(_, value)| !value.is_empty());
        match named {
            Some(("url", url)) if url.contains("://") => Ok(Self::Url(url.to_owned())),
            Some(("url", url)) => Ok(Self::Url(decoded(url)?)),
            Some(("tag", tag)) => Ok(Self::Tag(decoded(tag)?)),
            Some(("all", "true")) => Ok(Self::All),
            _ => Err("nothing to purge is named, expected one of url=URL, tag=TAG and all=true".to_owned()),
        }
    }
}

/// Percent-decoded once.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(format!("`{text}` has a `%` without two digits"));
        };
        // Two hexadecimal digits fit a byte.
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| format!("`{text}` is no text once it is decoded"))
}

/// Bytes of a URL or tag: what a request line may have.
const NAME_BYTES_MAX: usize = 8_192;

/// Purges, and says how many responses there were.
pub(crate) fn purge(shared: &Shared, query: &PurgeQuery) -> Response {
    let now = shared.clock.now();
    let may = shared.cache.purges.lock().unwrap_or_else(PoisonError::into_inner).admit(now);
    if !may {
        shared.telemetry.control().count_purge(None);
        let text = "too many purges at once, expected at most 20 a second; purge by tag instead";
        let mut response = problem(StatusCode::TOO_MANY_REQUESTS, text);
        response.headers_mut().insert(RETRY_AFTER, 1.into());
        return response;
    }
    match invalidate(shared, query) {
        Ok(purged) => {
            shared.telemetry.control().count_purge(Some(purged as u64));
            // A redirector has no copies itself.
            match shared.replication.order_purge(query) {
                Some(replicas) => {
                    Json(json!({ "purged": purged, "replicas_ordered": replicas })).into_response()
                }
                None => Json(json!({ "purged": purged })).into_response(),
            }
        }
        Err(text) => problem(StatusCode::BAD_REQUEST, &text),
    }
}

/// Invalidates what is named, here. How many responses there were.
///
/// # Errors
/// Describes the fault of the query.
pub(crate) fn invalidate(shared: &Shared, query: &PurgeQuery) -> Result<usize, String> {
    let directory = &shared.cache.directory;
    Ok(match query {
        PurgeQuery::Url(url) => {
            let parsed = url.parse::<Uri>().ok();
            let Some(key) = parsed.as_ref().and_then(Key::of_url) else {
                return Err(format!("`url` is none, expected one like http://shop.example/page: `{url}`"));
            };
            // A name may be written in capitals; the response to a request with such a host is never stored.
            let host = key.host.to_ascii_lowercase();
            let spellings = same_hosts(&host, key.is_https);
            let keys = spellings.iter().map(|host| Key { host, ..key });
            keys.map(|key| directory.invalidate(key.hash(&shared.hasher), &key)).sum()
        }
        PurgeQuery::Tag(tag) => {
            let tag = tag_hash(&shared.hasher, tag.as_bytes());
            directory.purge(|stored| stored.has_tag(tag))
        }
        PurgeQuery::All => directory.purge(|_| true),
    })
}

/// Invalidates a document by host and target, as nodes of a cluster name it, under both schemes.
pub(crate) fn invalidate_document(shared: &Shared, name: &str) -> usize {
    let Some((host, _)) = name.split_once('/') else { return 0 };
    let (host, target) = (host.as_bytes(), &name.as_bytes()[host.len()..]);
    let keys = [false, true].map(|is_https| Key { is_https, host, target });
    keys.iter().map(|key| shared.cache.directory.invalidate(key.hash(&shared.hasher), key)).sum()
}

/// A host with and without the default port of its scheme.
fn same_hosts(host: &[u8], is_https: bool) -> Vec<Vec<u8>> {
    let port: &[u8] = if is_https { b":443" } else { b":80" };
    match host.strip_suffix(port) {
        Some(name) => vec![host.to_vec(), name.to_vec()],
        None => vec![host.to_vec(), [host, port].concat()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_purged_is_read_off_the_query() {
        let of = PurgeQuery::parse;
        let url = || PurgeQuery::Url("http://shop.example/a?b=1&c=%20".to_owned());
        assert_eq!(of("url=http://shop.example/a?b=1&c=%20"), Ok(url()));
        assert_eq!(of("url=http%3A%2F%2Fshop.example%2Fa%3Fb%3D1%26c%3D%2520"), Ok(url()));
        assert_eq!(of("tag=front%20page"), Ok(PurgeQuery::Tag("front page".to_owned())));
        assert_eq!(of("all=true"), Ok(PurgeQuery::All));
        for query in [url(), PurgeQuery::Tag("fr\u{f6}nt %page".to_owned()), PurgeQuery::All] {
            assert_eq!(of(&query.to_string()), Ok(query));
        }
        for wrong in ["", "url=", "url", "tag=", "tag=%2", "tag=%zz", "tag=%ff", "all=false", "page=1"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_default_port_may_be_written_or_not() {
        assert_eq!(same_hosts(b"a", false), [b"a".to_vec(), b"a:80".to_vec()]);
        assert_eq!(same_hosts(b"a:80", false), [b"a:80".to_vec(), b"a".to_vec()]);
        assert_eq!(same_hosts(b"a:443", true), [b"a:443".to_vec(), b"a".to_vec()]);
        assert_eq!(same_hosts(b"a:8080", false), [b"a:8080".to_vec(), b"a:8080:80".to_vec()]);
    }
}
