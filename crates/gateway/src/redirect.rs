//! `listen.redirect`: a request in the clear is sent to the same URL over TLS.
//!
//! Challenges of ACME (RFC 8555 §8.3) come to port 80 and are for the service: they are passed on.

use crate::bad_request::answer_unfit;
use crate::body::Body;
use crate::context::WorkerContext;
use bytes::Bytes;
use flashweir_http::fields::FieldsError;
use flashweir_http::head::ReceivedHead;
use flashweir_http1::head::{KnownField, RequestView, is_authority};
use flashweir_telemetry::StatusClass;
use http::header::{CONNECTION, CONTENT_LENGTH, LOCATION};
use http::{HeaderValue, Method, Response, StatusCode, Version};

/// Port that a URL of HTTPS leaves out.
const HTTPS_PORT: u16 = 443;
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

/// The answer to a request of a listener that redirects; `None` for a challenge, which goes on in the clear.
pub(crate) fn redirect(worker: &WorkerContext, head: &ReceivedHead) -> Option<Response<Body>> {
    let view = head.view();
    if is_challenge(view.path()) {
        return None;
    }
    let port = worker.shared.listening_on.first().map_or(HTTPS_PORT, |address| address.port());
    let mut response = match location(view, &head.method(), port) {
        Ok(location) => {
            worker.metrics.requests.redirected.increment();
            worker.metrics.responses.by_class.increment(StatusClass::Redirection);
            let mut response = Response::new(Body::own(Bytes::new()));
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().insert(LOCATION, location);
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            response
        }
        Err(error) => answer_unfit(&worker.metrics, error, &head.method()),
    };
    if head.version() < Version::HTTP_2 {
        // The client goes on elsewhere.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Some(response)
}

/// Returns whether a path is that of a challenge: behind the prefix there is a token and nothing else, so
/// that no other path of the service can be reached in the clear.
fn is_challenge(path: &[u8]) -> bool {
    let is_of_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    path.strip_prefix(CHALLENGES).is_some_and(|token| !token.is_empty() && token.iter().all(is_of_token))
}

/// The same URL over TLS, at `port`.
fn location(head: RequestView<'_>, method: &Method, port: u16) -> Result<HeaderValue, FieldsError> {
    if matches!(*method, Method::CONNECT | Method::TRACE) {
        return Err(FieldsError::Method);
    }
    // A target that names the host overrides the field (RFC 9112 §3.2.2).
    let authority = head.target_authority().or_else(|| head.fields().get(KnownField::Host));
    let authority = authority.filter(|authority| is_authority(authority)).ok_or(FieldsError::Host)?;
    let target = head.path_and_query();
    if !target.starts_with(b"/") {
        return Err(FieldsError::Target);
    }
    let mut location = [b"https://", without_port(authority)].concat();
    if port != HTTPS_PORT {
        location.extend_from_slice(format!(":{port}").as_bytes());
    }
    location.extend_from_slice(target);
    HeaderValue::from_bytes(&location).map_err(|_| FieldsError::Target)
}

/// An authority without its port; the colons of an IPv6 address stand within brackets.
fn without_port(authority: &[u8]) -> &[u8] {
    match authority.iter().rposition(|&byte| byte == b':') {
        Some(colon) if !authority[colon..].contains(&b']') => &authority[..colon],
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_taken_off_and_a_challenge_is_a_token_alone() {
        for (authority, host) in [
            ("shop.example", "shop.example"),
            ("shop.example:80", "shop.example"),
            ("[2001:db8::7]", "[2001:db8::7]"),
            ("[2001:db8::7]:80", "[2001:db8::7]"),
        ] {
            assert_eq!(without_port(authority.as_bytes()), host.as_bytes());
        }
        for (path, expected) in [
            ("/.well-known/acme-challenge/LoqXcYV8-q_1", true),
            ("/.well-known/acme-challenge/", false),
            ("/.well-known/acme-challenge/../../admin", false),
            ("/.well-known/acme-challenge/a/b", false),
            ("/.well-known/acme-challenge/%2e%2e", false),
            ("/.well-known/security.txt", false),
        ] {
            assert_eq!(is_challenge(path.as_bytes()), expected, "{path}");
        }
    }
}
