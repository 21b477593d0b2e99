//! One form of target and host, for every version of HTTP.

use super::FieldsError;
use flashweir_http1::head::is_authority;
use http::header::{HOST, HeaderValue};
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{Method, Version, request};

/// Turns absolute-form and HTTP/2 pseudo-fields into origin-form and `Host` (RFC 9112 §3.2, RFC 9113 §8.3.1).
///
/// An HTTP/1 absolute-form target overrides `Host`, as the RFC wants; in HTTP/2 a `Host` that disagrees with
/// `:authority` is refused.
pub(super) fn normalize(parts: &mut request::Parts) -> Result<(), FieldsError> {
    if matches!(parts.method, Method::CONNECT | Method::TRACE) {
        return Err(FieldsError::Method);
    }
    let Some(authority) = parts.uri.authority() else { return check_origin_form(parts) };
    let is_web = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
    if !parts.uri.scheme().is_some_and(is_web) {
        return Err(FieldsError::Target);
    }
    if !is_authority(authority.as_str().as_bytes()) {
        return Err(FieldsError::Host);
    }
    let is_http2 = parts.version == Version::HTTP_2;
    let disagrees = |host: &HeaderValue| !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes());
    if is_http2 && parts.headers.get_all(HOST).iter().any(disagrees) {
        return Err(FieldsError::Host);
    }
    // "?q" alone is short for "/?q" behind an authority only, not in `:path` (RFC 9113 §8.3.1).
    if is_http2 && parts.uri.path_and_query().is_some_and(|path| path.as_str().starts_with('?')) {
        return Err(FieldsError::Target);
    }
    let host = HeaderValue::from_str(authority.as_str()).map_err(|_| FieldsError::Host)?;
    let path = match parts.uri.path_and_query() {
        // An empty path reads as "/" here, but would be written as nothing. "OPTIONS http://host" asks about
        // the server as a whole (RFC 9112 §3.2.4): the client's own "/" looks the same, and the difference is
        // harmless.
        None => PathAndQuery::from_static("/"),
        Some(path) if path.as_str() == "/" => PathAndQuery::from_static("/"),
        Some(path) => path.clone(),
    };
    check_path(&parts.method, path.path())?;
    parts.headers.insert(HOST, host);
    parts.uri = Uri::from(path);
    Ok(())
}

fn check_origin_form(parts: &request::Parts) -> Result<(), FieldsError> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => return Err(FieldsError::Host),
        (None, None) if parts.version == Version::HTTP_2 => return Err(FieldsError::Host),
        _ => {}
    }
    check_path(&parts.method, parts.uri.path())
}

fn check_path(method: &Method, path: &str) -> Result<(), FieldsError> {
    match path {
        "*" if *method == Method::OPTIONS => Ok(()),
        path if path.starts_with('/') => Ok(()),
        _ => Err(FieldsError::Target),
    }
}
