//! Makes the types of the crate `http` out of a response's head that was read as spans.

use bytes::Bytes;
use flashweir_http1::head::{Fields, ResponseHead, Version};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use hyper::ext::ReasonPhrase;

/// The head; `bytes` are those that it was read from, and its values keep them. None if a value has a byte
/// that those types do not hold.
pub(super) fn of(head: &ResponseHead<'_>, bytes: &Bytes) -> Option<Response<()>> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(head.status()).ok()?;
    *response.version_mut() = match head.version() {
        Version::Http10 => http::Version::HTTP_10,
        Version::Http11 => http::Version::HTTP_11,
    };
    *response.headers_mut() = map_of(head.fields(), bytes)?;
    let usual = response.status().canonical_reason().unwrap_or_default();
    if head.reason() != usual.as_bytes()
        && let Ok(reason) = ReasonPhrase::try_from(head.reason())
    {
        response.extensions_mut().insert(reason);
    }
    Some(response)
}

/// The fields, in their order within one name.
pub(super) fn map_of(fields: Fields<'_>, bytes: &Bytes) -> Option<HeaderMap> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields.iter() {
        let name = match field.known.http_name() {
            Some(name) => name.clone(),
            None => HeaderName::from_bytes(field.name).ok()?,
        };
        map.append(name, HeaderValue::from_maybe_shared(bytes.slice_ref(field.value)).ok()?);
    }
    Some(map)
}
