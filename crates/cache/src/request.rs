//! Which part a request may take in the cache, read off its head before anything is looked up.

use crate::directives::Directives;
use http::header::{
    ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION,
    CONTENT_LENGTH, COOKIE, DNT, EXPECT, FORWARDED, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE, MAX_FORWARDS, PRAGMA, RANGE, REFERER, TE, TRANSFER_ENCODING, UPGRADE,
    UPGRADE_INSECURE_REQUESTS, USER_AGENT, VIA,
};
use http::{HeaderMap, HeaderName, Method};

/// Properties of a request that the cache may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPart {
    /// It is a HEAD: a stored response to GET answers it, and it waits for none.
    pub is_head: bool,
    /// It asks for a part of the document: it may be answered from the store, and fetches for itself alone.
    pub has_range: bool,
    /// It has a cookie.
    pub has_cookie: bool,
    /// Its response may be stored and answer others: a GET for the whole document whose fields, but for those
    /// that are known to be harmless, choose no other response.
    pub may_lead: bool,
    /// `only-if-cached` (RFC 9111 §5.2.1.7): 504 where the store has no answer.
    pub only_if_cached: bool,
}

/// Why a request goes around the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// It is neither GET nor HEAD.
    Method,
    /// It has credentials.
    Authorization,
    /// It has a body, expects something first, or wants another protocol.
    Body,
    /// It is for a certain version of the document (`If-Match`, `If-Unmodified-Since`): the origin's to judge.
    Precondition,
    /// Its host is not written in the usual form (lower case, no dot at the end): two servers may disagree whose it is.
    Host,
}

/// Fields by which no origin is expected to choose a response without saying so in `Vary`, or that this gateway writes itself. A
/// request with any other field (`X-Original-URL`, `X-Host`, `Origin`, …) leads no flight, and its response is stored only if
/// `Vary` names the field: this is how caches are poisoned.
const HARMLESS: [HeaderName; 24] = [
    HOST,
    USER_AGENT,
    ACCEPT,
    ACCEPT_ENCODING,
    ACCEPT_LANGUAGE,
    ACCEPT_CHARSET,
    CONNECTION,
    CACHE_CONTROL,
    PRAGMA,
    COOKIE,
    DNT,
    REFERER,
    TE,
    VIA,
    FORWARDED,
    UPGRADE_INSECURE_REQUESTS,
    IF_NONE_MATCH,
    IF_MODIFIED_SINCE,
    MAX_FORWARDS,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("priority"),
];
/// The same by how they begin: what browsers say of themselves and of why they ask.
const HARMLESS_BEGINNINGS: [&str; 3] = ["sec-fetch-", "sec-ch-ua", "sec-gpc"];

impl RequestPart {
    /// Of a request; `has_body` says whether one is to come, `extra` are further harmless fields.
    ///
    /// # Errors
    /// [`Bypass`] where the cache has nothing to do with it. Then nothing of it is looked up, stored or waited for.
    pub fn of(
        method: &Method,
        fields: &HeaderMap,
        host: &[u8],
        has_body: bool,
        extra: &[HeaderName],
    ) -> Result<Self, Bypass> {
        let is_head = *method == Method::HEAD;
        if !is_head && *method != Method::GET {
            return Err(Bypass::Method);
        }
        let mut part =
            Self { is_head, has_range: false, has_cookie: false, may_lead: !is_head, only_if_cached: false };
        let mut has_directives = false;
        // One pass over the names costs less than looking up each that matters.
        for name in fields.keys() {
            match *name {
                AUTHORIZATION => return Err(Bypass::Authorization),
                TRANSFER_ENCODING | EXPECT | UPGRADE => return Err(Bypass::Body),
                // An empty body is none.
                CONTENT_LENGTH => {}
                IF_MATCH | IF_UNMODIFIED_SINCE => return Err(Bypass::Precondition),
                RANGE => (part.has_range, part.may_lead) = (true, false),
                COOKIE => part.has_cookie = true,
                CACHE_CONTROL => has_directives = true,
                _ => part.may_lead &= is_harmless(name, extra),
            }
        }
        if has_body {
            return Err(Bypass::Body);
        }
        if host.is_empty() || host.iter().any(u8::is_ascii_uppercase) || has_final_dot(host) {
            return Err(Bypass::Host);
        }
        if has_directives {
            // The others are wishes that a cache need not follow (§5.2.1): in a crowd `no-cache` would open the way around it.
            let (only_if_cached, no_store) = Directives::of_request(fields);
            part.only_if_cached = only_if_cached;
            part.may_lead &= !no_store;
        }
        Ok(part)
    }

    /// Whether it may wait for a response that another request fetches.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        !self.is_head
    }
}

pub(crate) fn is_harmless(name: &HeaderName, extra: &[HeaderName]) -> bool {
    HARMLESS.contains(name)
        || HARMLESS_BEGINNINGS.iter().any(|beginning| name.as_str().starts_with(beginning))
        || extra.contains(name)
}

fn has_final_dot(host: &[u8]) -> bool {
    let end = host.iter().rposition(|&byte| byte == b':' || byte == b']');
    let name = match end {
        Some(colon) if host[colon] == b':' => &host[..colon],
        _ => host,
    };
    name.ends_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn part_of(method: Method, lines: &[(&'static str, &'static str)]) -> Result<RequestPart, Bypass> {
        let fields: HeaderMap = lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        RequestPart::of(&method, &fields, b"shop.example", false, &[HeaderName::from_static("x-real-ip")])
    }

    #[test]
    fn an_ordinary_get_may_fetch_for_others() {
        let browser = [
            ("host", "shop.example"),
            ("user-agent", "Mozilla/5.0"),
            ("accept", "*/*"),
            ("accept-encoding", "gzip"),
            ("sec-fetch-mode", "navigate"),
            ("sec-ch-ua-platform", "Linux"),
            ("cookie", "a=1"),
            ("cache-control", "no-cache"),
            ("if-none-match", "\"1\""),
            ("x-real-ip", "192.0.2.1"),
        ];
        let part = part_of(Method::GET, &browser).expect("a part");
        assert!(part.may_lead && part.has_cookie && part.may_wait() && !part.only_if_cached);
        assert!(!part_of(Method::HEAD, &browser).expect("a part").may_lead);
    }

    #[test]
    fn what_may_be_private_or_is_no_question_goes_around() {
        for (name, value, why) in [
            ("authorization", "Basic eDp5", Bypass::Authorization),
            ("transfer-encoding", "chunked", Bypass::Body),
            ("expect", "100-continue", Bypass::Body),
            ("upgrade", "websocket", Bypass::Body),
            ("if-match", "\"1\"", Bypass::Precondition),
            ("if-unmodified-since", "x", Bypass::Precondition),
        ] {
            assert_eq!(part_of(Method::GET, &[(name, value)]), Err(why), "{name}");
        }
        for method in
            [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::from_bytes(b"get").unwrap()]
        {
            assert_eq!(part_of(method, &[]), Err(Bypass::Method));
        }
        assert_eq!(RequestPart::of(&Method::GET, &HeaderMap::new(), b"a", true, &[]), Err(Bypass::Body));
    }

    #[test]
    fn a_field_by_which_an_origin_may_choose_leads_no_flight() {
        for name in [
            "x-original-url",
            "x-rewrite-url",
            "x-host",
            "origin",
            "x-http-method-override",
            "x-requested-with",
        ] {
            let part = part_of(Method::GET, &[(name, "x")]).expect("a part");
            assert!(!part.may_lead, "{name}");
        }
        assert!(!part_of(Method::GET, &[("range", "bytes=0-1")]).expect("a part").may_lead);
        assert!(!part_of(Method::GET, &[("cache-control", "no-store")]).expect("a part").may_lead);
        assert!(part_of(Method::GET, &[("cache-control", "Only-If-Cached")]).expect("a part").only_if_cached);
    }

    #[test]
    fn a_host_in_an_unusual_form_goes_around() {
        let of = |host: &str| RequestPart::of(&Method::GET, &HeaderMap::new(), host.as_bytes(), false, &[]);
        for host in ["", "Shop.example", "shop.example.", "shop.example.:80"] {
            assert_eq!(of(host), Err(Bypass::Host), "{host}");
        }
        for host in ["shop.example", "shop.example:80", "[::1]", "[::1]:8080", "localhost"] {
            assert!(of(host).is_ok(), "{host}");
        }
    }
}
