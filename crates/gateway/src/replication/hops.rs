//! Ends circles: a request passes two nodes of a cluster at most, distributor and redirector.
//!
//! Each node that passes a request on says how many it has passed, in the field `Flashweir-Hops`; one that
//! redirects says it in the last parameter of the URL, which is the only thing that a client brings along.
//! The next node takes both away before anything else reads the request, so that neither cache nor origin
//! sees them. A client that sets them makes its own request fail and no other.

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Uri, request};

/// Nodes that a request has passed before this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hops(pub(crate) u8);

/// Distributor and redirector: with more there is a circle.
pub(crate) const HOPS_MAX: u8 = 2;
const FIELD: HeaderName = HeaderName::from_static("flashweir-hops");
const PARAMETER: &str = "flashweir-hops=";

impl Hops {
    /// Reads them off a request, and takes them away.
    pub(super) fn take(head: &mut request::Parts) -> Self {
        let mut hops = 0;
        for value in head.headers.get_all(FIELD) {
            hops = hops.max(number(value.as_bytes()));
        }
        head.headers.remove(FIELD);
        if let Some((target, of_target)) = head.uri.path_and_query().and_then(without_parameter) {
            hops = hops.max(of_target);
            let mut parts = head.uri.clone().into_parts();
            parts.path_and_query = Some(target);
            if let Ok(uri) = Uri::from_parts(parts) {
                head.uri = uri;
            }
        }
        Self(hops)
    }

    /// Writes the field for the next node into a head that is sent on, where the request is one of a
    /// cluster's.
    pub(crate) fn pass_on(head: &mut request::Parts) {
        if let Some(Self(passed)) = head.extensions.remove() {
            head.headers.insert(FIELD, HeaderValue::from(u16::from(passed.saturating_add(1))));
        }
    }

    /// The URL of this target on another node.
    pub(super) fn redirect(self, base: &str, target: &PathAndQuery) -> Option<HeaderValue> {
        let joint = if target.query().is_some() { '&' } else { '?' };
        let next = self.0.saturating_add(1);
        HeaderValue::try_from(format!("{base}{target}{joint}{PARAMETER}{next}")).ok()
    }
}

/// One digit; anything else counts as too many.
fn number(text: &[u8]) -> u8 {
    match text {
        [digit @ b'0'..=b'9'] => digit - b'0',
        _ => u8::MAX,
    }
}

/// The target without the parameter, and its number; none where it is not the last parameter.
fn without_parameter(target: &PathAndQuery) -> Option<(PathAndQuery, u8)> {
    let query = target.query()?;
    let (rest, value) = match query.strip_prefix(PARAMETER) {
        Some(value) if !value.contains('&') => (None, value),
        _ => {
            let (rest, last) = query.rsplit_once('&')?;
            (Some(rest), last.strip_prefix(PARAMETER)?)
        }
    };
    let text = rest.map_or_else(|| target.path().to_owned(), |rest| format!("{}?{rest}", target.path()));
    Some((text.parse().ok()?, number(value.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn taken(uri: &str, field: Option<&'static str>) -> (String, u8, bool) {
        let (mut head, ()) = Request::get(uri).body(()).unwrap().into_parts();
        if let Some(field) = field {
            head.headers.insert(FIELD, HeaderValue::from_static(field));
        }
        let hops = Hops::take(&mut head);
        (head.uri.to_string(), hops.0, head.headers.contains_key(FIELD))
    }

    #[test]
    fn hops_are_read_and_no_later_phase_sees_them() {
        for (uri, field, expected) in [
            ("/a", None, ("/a", 0)),
            ("/a?b=1", Some("1"), ("/a?b=1", 1)),
            ("/a?flashweir-hops=2", None, ("/a", 2)),
            ("/a?b=1&flashweir-hops=1", Some("2"), ("/a?b=1", 2)),
            ("/a?flashweir-hops=1&b=1", None, ("/a?flashweir-hops=1&b=1", 0)),
            ("/a?b&flashweir-hops=x", None, ("/a?b", u8::MAX)),
            ("/a", Some("17"), ("/a", u8::MAX)),
            ("/a?", None, ("/a?", 0)),
        ] {
            let (uri_left, hops, has_field) = taken(uri, field);
            assert_eq!((uri_left.as_str(), hops), expected, "{uri}");
            assert!(!has_field);
        }
    }

    #[test]
    fn a_redirect_brings_back_the_same_target() {
        for target in ["/", "/a?b=1&c=2", "//other.example/x", "/a?flashweir-hops=1&b"] {
            let parsed: PathAndQuery = target.parse().unwrap();
            let location = Hops(0).redirect("http://replica:81", &parsed).unwrap();
            let uri: Uri = location.to_str().unwrap().parse().unwrap();
            assert_eq!(uri.authority().unwrap().as_str(), "replica:81", "{target}");
            let (back, hops) = without_parameter(uri.path_and_query().unwrap()).unwrap();
            assert_eq!((back.as_str(), hops), (target, 1));
        }
    }
}
