//! Purges: what the operator wants to be gone, by URL or by tag, on the admin listener.
//!
//! `DELETE`, because no page on the web can make a browser send that to another site without asking first.

use super::purge_query::PurgeQuery;
use crate::shared::Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};
use flashweir_cache::{Key, tag_hash};
use flashweir_runtime::problem;
use http::Uri;
use http::header::RETRY_AFTER;
use serde_json::json;
use std::sync::PoisonError;

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
    fn the_default_port_may_be_written_or_not() {
        assert_eq!(same_hosts(b"a", false), [b"a".to_vec(), b"a:80".to_vec()]);
        assert_eq!(same_hosts(b"a:80", false), [b"a:80".to_vec(), b"a".to_vec()]);
        assert_eq!(same_hosts(b"a:443", true), [b"a:443".to_vec(), b"a".to_vec()]);
        assert_eq!(same_hosts(b"a:8080", false), [b"a:8080".to_vec(), b"a:8080:80".to_vec()]);
    }
}
