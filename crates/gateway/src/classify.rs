//! What the gate needs to know of a request: numbers made from its head, without allocating.

use flashweir_admission::flash_crowd::GateRequest;
use flashweir_core::Hasher64;
use flashweir_telemetry::Unmeasured;
use http::header::{CACHE_CONTROL, COOKIE, HOST, RANGE, USER_AGENT};
use http::{HeaderMap, Method, StatusCode, Uri, request};
use std::net::IpAddr;

/// Hosts longer than a domain name can be (RFC 1035: 253 characters) are told apart by their beginning.
const HOST_BYTES_MAX: usize = 255;

/// Makes keys; `hasher`'s own key is drawn at start, so clients cannot choose colliding names.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    hasher: Hasher64,
    /// Unkeyed on purpose: what was learned for a URL class is kept across restarts, so its number must be, too. A
    /// client that provokes collisions only mixes its own URLs' latencies.
    url_hasher: Hasher64,
    service: String,
}

/// A request as the gate and the measurements see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Classified {
    /// Hot-spot and person.
    pub(crate) gate: GateRequest,
    /// Hash of method and path, query left out: requests of one class cost about the same.
    pub(crate) url_class: u32,
    /// Why the response will say nothing about how well the service serves, as far as the request tells
    /// (docs/algorithms/news.md).
    pub(crate) unmeasured: Option<Unmeasured>,
}

impl Classifier {
    /// `service` names what is protected; the same host on another service is another hot-spot.
    pub(crate) fn new(hasher: Hasher64, service: &str) -> Self {
        Self { hasher, url_hasher: Hasher64::new(0, 0), service: service.to_owned() }
    }

    /// A few short hashes: below 200 ns for an ordinary head.
    pub(crate) fn classify(&self, head: &request::Parts, client: IpAddr) -> Classified {
        let method = head.method.as_str().as_bytes();
        let field =
            |name| head.headers.get(name).map_or(&[][..], |value: &http::HeaderValue| value.as_bytes());
        let octets = match client {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        let target = head.uri.path_and_query().map_or("", |target| target.as_str()).as_bytes();
        let person_key = self.hasher.hash(&[&octets, field(USER_AGENT), field(COOKIE), method, target]);
        Classified {
            gate: GateRequest { host_key: self.host_key(&head.headers, &head.uri), person_key },
            url_class: self.url_hasher.hash(&[method, head.uri.path().as_bytes()]) as u32,
            unmeasured: of_request(head),
        }
    }

    /// Hash of service and host, in lower case and without the port. HTTP/2 carries the host in the target.
    fn host_key(&self, headers: &HeaderMap, uri: &Uri) -> u64 {
        let named = headers.get(HOST).map(|value| value.as_bytes());
        let host = without_port(named.or_else(|| uri.host().map(str::as_bytes)).unwrap_or_default());
        let mut lower = [0; HOST_BYTES_MAX];
        let length = host.len().min(HOST_BYTES_MAX);
        lower[..length].copy_from_slice(&host[..length]);
        lower[..length].make_ascii_lowercase();
        self.hasher.hash(&[self.service.as_bytes(), &lower[..length]])
    }
}

fn without_port(host: &[u8]) -> &[u8] {
    // The colons of an IPv6 literal stand within brackets.
    let name_end = host.iter().rposition(|&byte| byte == b']').map_or(0, |bracket| bracket + 1);
    match host[name_end..].iter().position(|&byte| byte == b':') {
        Some(colon) => &host[..name_end + colon],
        None => host,
    }
}

fn of_request(head: &request::Parts) -> Option<Unmeasured> {
    if head.method == Method::HEAD {
        Some(Unmeasured::Empty)
    } else if head.headers.contains_key(RANGE) {
        Some(Unmeasured::Partial)
    } else {
        None
    }
}

/// Why a response with this status would not count.
pub(crate) fn of_response(status: StatusCode) -> Option<Unmeasured> {
    match status {
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => Some(Unmeasured::Empty),
        StatusCode::PARTIAL_CONTENT => Some(Unmeasured::Partial),
        StatusCode::SWITCHING_PROTOCOLS => Some(Unmeasured::Tunnel),
        status if status.is_client_error() || status.is_server_error() => Some(Unmeasured::Error),
        _ => None,
    }
}

/// Fields that no answer of our own may be cached under.
pub(crate) const NO_STORE: (http::HeaderName, http::HeaderValue) =
    (CACHE_CONTROL, http::HeaderValue::from_static("no-store"));

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn classified(request: request::Builder, client: &str) -> Classified {
        let (head, ()) = request.body(()).expect("request").into_parts();
        Classifier::new(Hasher64::new(1, 2), "shop").classify(&head, client.parse().expect("address"))
    }

    fn host_key(host: &str) -> u64 {
        classified(Request::get("/").header("host", host), "192.0.2.1").gate.host_key
    }

    #[test]
    fn a_host_is_the_same_in_any_case_and_with_any_port() {
        assert_eq!(host_key("Example.ORG:8080"), host_key("example.org"));
        assert_eq!(host_key("[2001:DB8::1]:443"), host_key("[2001:db8::1]"));
        assert_ne!(host_key("a.example.org"), host_key("b.example.org"));
        assert_ne!(host_key("[2001:db8::1]"), host_key("[2001:db8::2]"));
        let http2 =
            classified(Request::get("http://example.org:1/").version(http::Version::HTTP_2), "192.0.2.1");
        assert_eq!(http2.gate.host_key, host_key("example.org"));
    }

    #[test]
    fn a_host_of_absurd_length_does_no_harm() {
        assert_eq!(host_key(&"a".repeat(5_000)), host_key(&"a".repeat(6_000)));
    }

    #[test]
    fn a_person_is_address_agent_cookie_and_target() {
        let request = || Request::get("/cart?id=1").header("user-agent", "x").header("cookie", "s=1");
        let same = classified(request(), "192.0.2.1").gate.person_key;
        assert_eq!(classified(request().header("accept", "*/*"), "192.0.2.1").gate.person_key, same);
        assert_ne!(classified(request(), "192.0.2.2").gate.person_key, same);
        assert_ne!(classified(request().uri("/cart?id=2"), "192.0.2.1").gate.person_key, same);
        assert_ne!(classified(request().method("POST"), "192.0.2.1").gate.person_key, same);
        let other_cookie = Request::get("/cart?id=1").header("user-agent", "x").header("cookie", "s=2");
        assert_ne!(classified(other_cookie, "192.0.2.1").gate.person_key, same);
    }

    #[test]
    fn a_url_class_leaves_the_query_out() {
        let class = |uri: &str| classified(Request::get(uri), "192.0.2.1").url_class;
        assert_eq!(class("/a?x=1"), class("/a?x=2"));
        assert_ne!(class("/a"), class("/b"));
        assert_ne!(class("/a"), classified(Request::post("/a"), "192.0.2.1").url_class);
    }

    #[test]
    fn what_cannot_be_measured_is_known_from_head_or_status() {
        let of = |request| classified(request, "192.0.2.1").unmeasured;
        assert_eq!(of(Request::get("/")), None);
        assert_eq!(of(Request::head("/")), Some(Unmeasured::Empty));
        assert_eq!(of(Request::get("/").header("range", "bytes=0-1")), Some(Unmeasured::Partial));
        let statuses = [(200, None), (301, None), (204, Some(Unmeasured::Empty))];
        let more = [(304, Unmeasured::Empty), (206, Unmeasured::Partial), (404, Unmeasured::Error)];
        let last = [(503, Unmeasured::Error), (101, Unmeasured::Tunnel)];
        let rest = more.into_iter().chain(last).map(|(status, why)| (status, Some(why)));
        for (status, why) in statuses.into_iter().chain(rest) {
            assert_eq!(of_response(StatusCode::from_u16(status).expect("status")), why, "{status}");
        }
    }
}
