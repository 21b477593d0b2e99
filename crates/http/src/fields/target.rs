//! One form of target and host, whichever the client's protocol used.

use super::FieldsError;
use http::header::{HOST, HeaderValue};
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{Method, Version, request};

/// Turns absolute-form and HTTP/2 pseudo-fields into origin-form and `Host` (RFC 9112 §3.2, RFC 9113 §8.3.1).
///
/// An HTTP/1 absolute-form target overrides `Host`, as the RFC wants; in HTTP/2 a `Host` that disagrees with
/// `:authority` is refused.
pub(super) fn normalize(parts: &mut request::Parts) -> Result<(), FieldsError> {
    if parts.method == Method::CONNECT {
        return Err(FieldsError::Connect);
    }
    let Some(authority) = parts.uri.authority() else { return check_origin_form(parts) };
    let is_web = |scheme: &Scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
    if !parts.uri.scheme().is_some_and(is_web) {
        return Err(FieldsError::Target);
    }
    if authority.as_str().contains('@') {
        return Err(FieldsError::Host);
    }
    let is_http2 = parts.version == Version::HTTP_2;
    let disagrees = |host: &HeaderValue| !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes());
    if is_http2 && parts.headers.get_all(HOST).iter().any(disagrees) {
        return Err(FieldsError::Host);
    }
    let host = HeaderValue::from_str(authority.as_str()).map_err(|_| FieldsError::Host)?;
    let path = match parts.uri.path_and_query() {
        // "OPTIONS http://host" asks about the server as a whole (RFC 9112 §3.2.4). The client's own "/" looks
        // the same here, and the difference is harmless.
        Some(path) if !path.as_str().is_empty() => path.clone(),
        _ => PathAndQuery::from_static("/"),
    };
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
    match parts.uri.path() {
        "*" if parts.method == Method::OPTIONS => Ok(()),
        path if path.starts_with('/') => Ok(()),
        _ => Err(FieldsError::Target),
    }
}
