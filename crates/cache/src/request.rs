//! Part that a request may take in the cache, read off its head before anything is looked up.

use crate::directives::Directives;
use flashweir_core::Hasher64;
use flashweir_http1::head::{Field, FieldSet, FieldsView, KnownField};
use http::HeaderName;

/// Properties of a request that the cache may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestPart {
    /// It is a HEAD: a stored response to GET answers it, and it waits for none.
    pub is_head: bool,
    /// It asks for a part of the document: it may be answered from the store, and fetches for itself alone.
    pub has_range: bool,
    /// It has a cookie.
    pub has_cookie: bool,
    /// Its response may be stored and answer others: a GET for the whole document.
    pub may_lead: bool,
    /// It has a field by which an origin may choose its response: that is stored only if its `Vary` names the
    /// field, and is waited for by requests with the same fields alone ([`unknown_fields`]).
    pub has_unknown_fields: bool,
    /// `only-if-cached` (RFC 9111 §5.2.1.7): 504 where the store has no answer.
    pub only_if_cached: bool,
}

/// Reason for which a request bypasses the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// It is neither GET nor HEAD.
    Method,
    /// It has credentials.
    Authorization,
    /// It has a body, or wants another protocol.
    Body,
    /// It is for a certain version of the document (`If-Match`, `If-Unmodified-Since`): the origin's to
    /// judge.
    Precondition,
    /// Its host is not written in the usual form (lower case, no dot at the end): two servers may disagree
    /// whose it is.
    Host,
}

/// Fields by which no origin is expected to choose a response without saying so in `Vary`, or that this
/// gateway writes itself. A response to a request with any other field (`X-Original-URL`, `X-Host`, `Origin`,
/// …) is stored only if `Vary` names the field: this is how caches are poisoned.
const HARMLESS: FieldSet = FieldSet::of(&[
    KnownField::Host,
    KnownField::UserAgent,
    KnownField::Accept,
    KnownField::AcceptEncoding,
    KnownField::AcceptLanguage,
    KnownField::Connection,
    KnownField::CacheControl,
    KnownField::Pragma,
    KnownField::Cookie,
    // Met here, before the origin is asked; without content it means nothing (RFC 9110 §10.1.1).
    KnownField::Expect,
    KnownField::Referer,
    KnownField::Te,
    KnownField::Via,
    KnownField::Forwarded,
    KnownField::IfNoneMatch,
    KnownField::IfModifiedSince,
    KnownField::MaxForwards,
    KnownField::XForwardedFor,
    KnownField::XForwardedProto,
    KnownField::XForwardedHost,
    KnownField::KeepAlive,
    KnownField::Priority,
    KnownField::SecFetchDest,
]);
/// The same of fields that are known for nothing else.
const HARMLESS_NAMES: [&str; 3] = ["accept-charset", "dnt", "upgrade-insecure-requests"];
/// The same by how they begin: what browsers say of themselves and of why they ask.
const HARMLESS_BEGINNINGS: [&str; 3] = ["sec-fetch-", "sec-ch-ua", "sec-gpc"];

impl RequestPart {
    /// Of a request; `has_body` says whether one is to come, `extra` are further harmless fields.
    ///
    /// # Errors
    /// [`Bypass`] where the cache has nothing to do with it. Then nothing of it is looked up, stored or
    /// waited for.
    pub fn of<'a>(
        method: &[u8],
        fields: impl Into<FieldsView<'a>>,
        host: &[u8],
        has_body: bool,
        extra: &[HeaderName],
    ) -> Result<Self, Bypass> {
        let fields = fields.into();
        let is_head = method == b"HEAD";
        if !is_head && method != b"GET" {
            return Err(Bypass::Method);
        }
        let mut part = Self {
            is_head,
            has_range: false,
            has_cookie: false,
            may_lead: !is_head,
            has_unknown_fields: false,
            only_if_cached: false,
        };
        let mut has_directives = false;
        // One pass over the names costs less than looking up each that matters.
        for field in fields.iter() {
            match field.known {
                KnownField::Authorization => return Err(Bypass::Authorization),
                KnownField::TransferEncoding | KnownField::Upgrade => return Err(Bypass::Body),
                // An empty body is none.
                KnownField::ContentLength => {}
                KnownField::IfMatch | KnownField::IfUnmodifiedSince => return Err(Bypass::Precondition),
                KnownField::Range => (part.has_range, part.may_lead) = (true, false),
                KnownField::Cookie => part.has_cookie = true,
                KnownField::CacheControl => has_directives = true,
                _ => part.has_unknown_fields |= !is_harmless(&field, extra),
            }
        }
        if has_body {
            return Err(Bypass::Body);
        }
        if host.is_empty() || host.iter().any(u8::is_ascii_uppercase) || has_final_dot(host) {
            return Err(Bypass::Host);
        }
        if has_directives {
            // The others are wishes that a cache need not follow (§5.2.1): in a crowd `no-cache` would open
            // the way around it.
            let (only_if_cached, no_store) = Directives::of_request(fields);
            part.only_if_cached = only_if_cached;
            part.may_lead &= !no_store;
        }
        Ok(part)
    }

    /// Returns whether it may wait for a response that another request fetches.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        !self.is_head
    }
}

/// The fields of a request by which an origin may choose its response, as a number; 0 where it has none. Two
/// requests that agree in it get one response of their document, as far as their other fields do not select
/// another. O(fields).
#[must_use]
pub fn unknown_fields<'a>(fields: impl Into<FieldsView<'a>>, extra: &[HeaderName], hasher: &Hasher64) -> u64 {
    let unknown = fields.into().iter().filter(|field| !may_be_left_out(field, extra));
    let sum = unknown.fold(None, |before: Option<u64>, field| {
        let before = before.unwrap_or_default().to_le_bytes();
        Some(hasher.hash(&[&before, &field.name.to_ascii_lowercase(), field.value]))
    });
    // 0 is taken.
    sum.map_or(0, |sum| sum.max(1))
}

/// Returns whether a field needs no place in the key of a response.
pub(crate) fn may_be_left_out(field: &Field<'_>, extra: &[HeaderName]) -> bool {
    // Requests that bypass the cache were excluded before: this is the length of an empty body.
    is_harmless(field, extra) || matches!(field.known, KnownField::ContentLength | KnownField::Range)
}

fn is_harmless(field: &Field<'_>, extra: &[HeaderName]) -> bool {
    let is = |name: &str| field.name.eq_ignore_ascii_case(name.as_bytes());
    let begins = |beginning: &&str| {
        field.name.get(..beginning.len()).is_some_and(|name| name.eq_ignore_ascii_case(beginning.as_bytes()))
    };
    HARMLESS.contains(field.known)
        || HARMLESS_NAMES.iter().any(|name| is(name))
        || HARMLESS_BEGINNINGS.iter().any(begins)
        || extra.iter().any(|name| is(name.as_str()))
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
    use http::header::EXPECT;
    use http::{HeaderMap, HeaderValue, Method};

    fn part_of(method: Method, lines: &[(&'static str, &'static str)]) -> Result<RequestPart, Bypass> {
        let fields: HeaderMap = lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        RequestPart::of(
            method.as_str().as_bytes(),
            &fields,
            b"shop.example",
            false,
            &[HeaderName::from_static("x-real-ip")],
        )
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
        assert!(part.may_lead && part.has_cookie && part.may_wait());
        assert!(!part.only_if_cached && !part.has_unknown_fields);
        assert!(!part_of(Method::HEAD, &browser).expect("a part").may_lead);
    }

    #[test]
    fn what_may_be_private_or_is_no_question_goes_around() {
        for (name, value, why) in [
            ("authorization", "Basic eDp5", Bypass::Authorization),
            ("transfer-encoding", "chunked", Bypass::Body),
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
        assert_eq!(RequestPart::of(b"GET", &HeaderMap::new(), b"a", true, &[]), Err(Bypass::Body));
    }

    /// RFC 9110 §10.1.1: an expectation is about content, and there is none; `Max-Forwards` is for TRACE and
    /// OPTIONS (§7.6.2).
    #[test]
    fn fields_that_say_nothing_about_the_document_do_not_count() {
        for (name, value) in [
            ("expect", "100-continue"),
            ("upgrade-insecure-requests", "1"),
            ("max-forwards", "3"),
            ("te", "trailers"),
            ("content-length", "0"),
        ] {
            let part = part_of(Method::GET, &[(name, value)]).expect("a part");
            assert!(part.may_lead && !part.has_unknown_fields, "{name}");
        }
        let with_body = HeaderMap::from_iter([(EXPECT, HeaderValue::from_static("100-continue"))]);
        assert_eq!(RequestPart::of(b"GET", &with_body, b"a", true, &[]), Err(Bypass::Body));
    }

    #[test]
    fn a_field_by_which_an_origin_may_choose_is_known_for_one() {
        for name in [
            "x-original-url",
            "x-rewrite-url",
            "x-host",
            "origin",
            "x-http-method-override",
            "x-requested-with",
        ] {
            let part = part_of(Method::GET, &[(name, "x")]).expect("a part");
            assert!(part.may_lead && part.has_unknown_fields, "{name}");
        }
        assert!(!part_of(Method::GET, &[("range", "bytes=0-1")]).expect("a part").may_lead);
        assert!(!part_of(Method::GET, &[("cache-control", "no-store")]).expect("a part").may_lead);
        assert!(part_of(Method::GET, &[("cache-control", "Only-If-Cached")]).expect("a part").only_if_cached);
    }

    #[test]
    fn requests_that_differ_in_an_unknown_field_have_different_numbers() {
        let hasher = Hasher64::new(1, 2);
        let of = |lines: &[(&'static str, &'static str)]| {
            let fields: HeaderMap = lines
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect();
            unknown_fields(&fields, &[HeaderName::from_static("x-real-ip")], &hasher)
        };
        let harmless =
            [("host", "a"), ("cookie", "b=c"), ("x-real-ip", "192.0.2.1"), ("content-length", "0")];
        assert_eq!(of(&harmless), 0);
        let one = of(&[("origin", "http://a.example"), ("accept", "*/*")]);
        assert_eq!(one, of(&[("origin", "http://a.example"), ("cookie", "b=c")]));
        for other in [
            &[("origin", "http://b.example")][..],
            &[("x-origin", "http://a.example")],
            &[("origin", "http://a.example"), ("x-host", "a")],
            &[("origin", "")],
        ] {
            assert!(of(other) != one && of(other) != 0, "{other:?}");
        }
    }

    #[test]
    fn a_host_in_an_unusual_form_goes_around() {
        let of = |host: &str| RequestPart::of(b"GET", &HeaderMap::new(), host.as_bytes(), false, &[]);
        for host in ["", "Shop.example", "shop.example.", "shop.example.:80"] {
            assert_eq!(of(host), Err(Bypass::Host), "{host}");
        }
        for host in ["shop.example", "shop.example:80", "[::1]", "[::1]:8080", "localhost"] {
            assert!(of(host).is_ok(), "{host}");
        }
    }
}
