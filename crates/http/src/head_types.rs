//! Heads that were read as spans, as the types of the crate `http`; and the fields of those, written.

use bytes::Bytes;
use flashweir_http1::body::{LAST_CHUNK, NO_TRAILERS};
use flashweir_http1::head::{Fields, RequestHead, ResponseHead, Version};
use flashweir_http1::write::write_field;
use http::uri::Uri;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::ext::ReasonPhrase;

/// Fields that a request gets on its way, at most as a rule: four of forwarding, `Via`, a deadline.
const ADDED_TO_REQUEST: usize = 6;
/// The same of a response: `Via`, `Date`.
const ADDED_TO_RESPONSE: usize = 2;

/// A request's head; `bytes` are those that it was read from, which its target and values keep. None if the
/// types cannot hold it.
pub(crate) fn request_of(head: &RequestHead<'_>, bytes: &Bytes) -> Option<Request<()>> {
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(head.method_name()).ok()?;
    *request.uri_mut() = Uri::from_maybe_shared(bytes.slice_ref(head.target())).ok()?;
    *request.version_mut() = version_of(head.version());
    *request.headers_mut() = fields_of(head.fields(), bytes, ADDED_TO_REQUEST)?;
    Some(request)
}

/// The same of a response.
pub(crate) fn response_of(head: &ResponseHead<'_>, bytes: &Bytes) -> Option<Response<()>> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(head.status()).ok()?;
    *response.version_mut() = version_of(head.version());
    *response.headers_mut() = fields_of(head.fields(), bytes, ADDED_TO_RESPONSE)?;
    let usual = response.status().canonical_reason().unwrap_or_default();
    if head.reason() != usual.as_bytes()
        && let Ok(reason) = ReasonPhrase::try_from(head.reason())
    {
        response.extensions_mut().insert(reason);
    }
    Some(response)
}

/// Fields, in their order within one name.
pub(crate) fn map_of(fields: Fields<'_>, bytes: &Bytes) -> Option<HeaderMap> {
    fields_of(fields, bytes, 0)
}

/// The same, with room for more: to grow costs as much as to fill.
fn fields_of(fields: Fields<'_>, bytes: &Bytes, added: usize) -> Option<HeaderMap> {
    let mut map = HeaderMap::with_capacity(fields.len() + added);
    for field in fields.iter() {
        let name = match field.known.http_name() {
            Some(name) => name.clone(),
            None => HeaderName::from_bytes(field.name).ok()?,
        };
        map.append(name, HeaderValue::from_maybe_shared(bytes.slice_ref(field.value)).ok()?);
    }
    Some(map)
}

/// Writes the last chunk and trailers.
pub(crate) fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    out.extend_from_slice(LAST_CHUNK);
    for (name, value) in trailers {
        write_field(out, name.as_str().as_bytes(), value.as_bytes());
    }
    out.extend_from_slice(NO_TRAILERS);
}

pub(crate) fn version_of(version: Version) -> http::Version {
    match version {
        Version::Http10 => http::Version::HTTP_10,
        Version::Http11 => http::Version::HTTP_11,
    }
}
