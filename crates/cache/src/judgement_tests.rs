//! The rules of storing, one test for each requirement (the names are those of `docs/cache.md`).

use super::*;
use proptest::prelude::*;

/// Sun, 06 Nov 1994 08:49:37 GMT.
const NOW_UNIX_S: u64 = 784_111_777;

fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        fields.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    fields
}

fn check_status(status: u16, request: &[(&str, &str)], response: &[(&str, &str)]) -> Judgement {
    with_exchange(status, request, response, |exchange| judge(exchange, &Hasher64::new(1, 2)))
}

fn with_exchange<T>(
    status: u16,
    request: &[(&str, &str)],
    response: &[(&str, &str)],
    judged: impl FnOnce(&Exchange<'_>) -> T,
) -> T {
    let (request, response) = (fields(request), fields(response));
    let part = RequestPart::of(b"GET", &request, b"shop.example", false, &[]).unwrap_or(RequestPart {
        is_head: false,
        has_range: false,
        has_cookie: false,
        may_lead: false,
        has_unknown_fields: false,
        only_if_cached: false,
    });
    let exchange = Exchange {
        part,
        request: (&request).into(),
        harmless: &[],
        sent_at: Instant::from_secs(98),
        status: StatusCode::from_u16(status).expect("a status"),
        response: &response,
        received: Received { at: Instant::from_secs(100), unix_s: NOW_UNIX_S },
        is_delimited: true,
    };
    judged(&exchange)
}

fn check(request: &[(&str, &str)], response: &[(&str, &str)]) -> Judgement {
    check_status(200, request, response)
}

fn fresh_s(response: &[(&str, &str)]) -> Option<u64> {
    match check(&[], response) {
        Judgement::Store(lifetime) => Some(lifetime.fresh.as_secs()),
        _ => None,
    }
}

const MINUTE: (&str, &str) = ("cache-control", "max-age=60");

#[test]
fn explicit_freshness_is_taken_in_the_standards_order() {
    assert_eq!(fresh_s(&[MINUTE]), Some(60));
    assert_eq!(fresh_s(&[("cache-control", "max-age=60, s-maxage=30")]), Some(30));
    let expires = ("expires", "Sun, 06 Nov 1994 08:50:37 GMT");
    assert_eq!(fresh_s(&[expires, ("date", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(60));
    assert_eq!(fresh_s(&[expires]), Some(60), "a response without a date is as old as its arrival");
    assert_eq!(fresh_s(&[expires, ("cache-control", "max-age=10")]), Some(10));
}

#[test]
fn without_explicit_freshness_nothing_is_stored() {
    let quiet = ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    for response in
        [&[][..], &[quiet], &[("cache-control", "public")], &[("expires", "0")], &[("expires", "-1")]]
    {
        assert_eq!(check(&[], response), Judgement::Grace(NotStored::NotFresh), "{response:?}");
    }
    for conflict in ["max-age=60, max-age=30", "max-age=x", "s-maxage=, max-age=60"] {
        let response = [("cache-control", conflict)];
        assert_eq!(check(&[], &response), Judgement::Grace(NotStored::NotFresh), "{conflict}");
    }
}

#[test]
fn a_response_that_says_no_is_never_shared() {
    for (says, why) in [
        ("no-store, max-age=60", NotStored::NoStore),
        ("PRIVATE, max-age=60", NotStored::Private),
        ("public, private, s-maxage=60", NotStored::Private),
        ("private=\"x-name\", public, max-age=60", NotStored::Private),
        ("must-understand, no-store, max-age=60", NotStored::NoStore),
        ("max-age=60 private", NotStored::Doubtful),
    ] {
        assert_eq!(check(&[], &[("cache-control", says)]), Judgement::Never(why), "{says}");
    }
}

/// RFC 9213 §2.2: `CDN-Cache-Control` counts in place of `Cache-Control` and `Expires`.
#[test]
fn what_is_said_to_shared_caches_counts_before_what_is_said_to_all() {
    let expires = ("expires", "Sun, 06 Nov 1994 08:50:37 GMT");
    let targeted = |general: &'static str, says: &'static str| {
        check(&[], &[("cache-control", general), ("cdn-cache-control", says), expires])
    };
    for (says, why) in
        [("private", NotStored::Private), ("no-store", NotStored::NoStore), ("PRIVATE", NotStored::Private)]
    {
        assert_eq!(targeted("public, max-age=60", says), Judgement::Never(why), "{says}");
    }
    for (says, why) in [
        ("no-cache", NotStored::NoCache),
        ("max-age=0", NotStored::NotFresh),
        ("public", NotStored::NotFresh),
    ] {
        assert_eq!(targeted("public, max-age=60", says), Judgement::Grace(why), "{says}");
        assert_eq!(
            targeted("private", says),
            Judgement::Never(why),
            "{says}: no grace against the other field"
        );
    }
    for general in ["no-store", "private", "max-age=0", "max-age=60 private"] {
        let Judgement::Store(lifetime) = targeted(general, "max-age=30") else { panic!("{general}") };
        assert_eq!(lifetime.fresh.as_secs(), 30, "{general}");
    }
    let with_cookie = [("cookie", "id=7")];
    let response = [("cdn-cache-control", "max-age=30"), ("cache-control", "public, s-maxage=60")];
    assert_eq!(check(&with_cookie, &response), Judgement::Never(NotStored::Cookie));
}

/// RFC 9111 §4.3.3: what its origin has just called unchanged answers the request that asked, fresh or not.
#[test]
fn a_validated_response_need_not_be_fresh() {
    let validated = |request: &[(&str, &str)], response: &[(&str, &str)]| {
        with_exchange(200, request, response, |exchange| judge_validated(exchange, &Hasher64::new(1, 2)))
    };
    assert_eq!(validated(&[], &[MINUTE]).map(|lifetime| lifetime.is_fresh_on_arrival()), Ok(true));
    let stale = validated(&[], &[("cache-control", "max-age=60"), ("age", "90")]).expect("stored");
    assert_eq!((stale.fresh.as_secs(), stale.initial_age.as_secs()), (60, 92));
    assert!(!stale.is_fresh_on_arrival() && !stale.may_have_grace);
    assert!(validated(&[], &[]).is_ok());
    for (says, why) in [
        ("private", NotStored::Private),
        ("no-store", NotStored::NoStore),
        ("no-cache, max-age=60", NotStored::NoCache),
    ] {
        assert_eq!(validated(&[], &[("cache-control", says)]), Err(why), "{says}");
    }
    let with_cookie = [("cookie", "id=7")];
    assert_eq!(validated(&with_cookie, &[("cache-control", "max-age=0")]), Err(NotStored::Cookie));
}

#[test]
fn a_response_that_sets_a_cookie_is_never_shared() {
    for name in ["set-cookie", "Set-Cookie2"] {
        let response = [("cache-control", "public, s-maxage=60"), (name, "a=1")];
        assert_eq!(check(&[], &response), Judgement::Never(NotStored::SetCookie));
    }
}

#[test]
fn a_response_to_credentials_is_never_shared() {
    let request = [("authorization", "Basic eDp5")];
    let response = [("cache-control", "public, s-maxage=60")];
    assert_eq!(check(&request, &response), Judgement::Never(NotStored::Authorization));
}

#[test]
fn a_request_with_a_cookie_needs_the_origins_word() {
    let request = [("cookie", "id=7")];
    assert_eq!(check(&request, &[MINUTE]), Judgement::Never(NotStored::Cookie));
    assert_eq!(check(&request, &[]), Judgement::Never(NotStored::NotFresh), "and has no grace");
    for says in ["public, max-age=60", "s-maxage=60"] {
        let response = [("cache-control", says)];
        let Judgement::Store(lifetime) = check(&request, &response) else { panic!("{says}") };
        assert!(!lifetime.may_have_grace);
        let varied = [("cache-control", says), ("vary", "Cookie")];
        assert_eq!(check(&request, &varied), Judgement::Never(NotStored::Cookie));
    }
}

#[test]
fn vary_that_selects_nothing_is_never_shared() {
    for vary in ["*", "Accept, *", "x-forwarded-for"] {
        assert_eq!(check(&[], &[MINUTE, ("vary", vary)]), Judgement::Never(NotStored::Vary), "{vary}");
    }
}

#[test]
fn a_field_by_which_the_origin_may_have_chosen_must_be_in_vary() {
    for name in ["x-host", "origin", "x-original-url", "x-http-method-override"] {
        let request = [(name, "evil.example")];
        assert_eq!(check(&request, &[MINUTE]), Judgement::Never(NotStored::RequestFields), "{name}");
        assert_eq!(
            check(&request, &[]),
            Judgement::Never(NotStored::RequestFields),
            "{name}: no grace either"
        );
        assert!(matches!(check(&request, &[MINUTE, ("vary", name)]), Judgement::Store(_)), "{name}");
    }
}

#[test]
fn only_statuses_that_are_understood_are_stored() {
    for status in UNDERSTOOD {
        assert!(matches!(check_status(status, &[], &[MINUTE]), Judgement::Store(_)), "{status}");
    }
    for status in [206, 304, 400, 401, 403, 416, 418, 429, 500, 502, 503, 504] {
        assert_eq!(check_status(status, &[], &[MINUTE]), Judgement::Never(NotStored::Status), "{status}");
    }
    assert_eq!(check_status(404, &[], &[]), Judgement::Never(NotStored::NotFresh), "no grace for an error");
}

/// RFC 9111 §4.2.3 and §5.1: `Age` is one number; of several the first counts, in one line or in several, and
/// no number is no age.
#[test]
fn age_on_arrival_counts() {
    // The request was sent two seconds before the response came.
    let age = |response: &[(&str, &str)]| match check(&[], response) {
        Judgement::Store(lifetime) => Some(lifetime.initial_age.as_secs()),
        _ => None,
    };
    assert_eq!(age(&[MINUTE]), Some(2));
    assert_eq!(age(&[MINUTE, ("age", "10")]), Some(12));
    assert_eq!(age(&[MINUTE, ("age", "x")]), Some(2));
    assert_eq!(age(&[MINUTE, ("age", "10, 90")]), Some(12));
    assert_eq!(age(&[MINUTE, ("age", "10"), ("age", "90")]), Some(12));
    assert_eq!(age(&[MINUTE, ("age", "90"), ("age", "10")]), None, "stale when it came");
    assert_eq!(age(&[MINUTE, ("age", "0"), ("age", "0")]), Some(2));
    assert_eq!(age(&[MINUTE, ("date", "Sun, 06 Nov 1994 08:49:07 GMT")]), Some(30));
    assert_eq!(age(&[MINUTE, ("age", "58")]), None, "stale when it came");
    assert_eq!(age(&[MINUTE, ("date", "Sun, 06 Nov 1994 09:49:37 GMT")]), Some(2), "a clock ahead is no age");
}

#[test]
fn stale_windows_end_where_revalidation_is_required() {
    let windows = |says: &str| match check(&[], &[("cache-control", says)]) {
        Judgement::Store(l) => {
            (l.stale_while_revalidate.as_secs(), l.stale_if_error.as_secs(), l.may_have_grace)
        }
        other => panic!("{says}: {other:?}"),
    };
    assert_eq!(windows("max-age=60, stale-while-revalidate=5, stale-if-error=9"), (5, 9, true));
    let both = "max-age=60, stale-while-revalidate=5, stale-if-error=9, ";
    assert_eq!(windows(&format!("{both}must-revalidate")), (0, 0, false));
    assert_eq!(windows(&format!("{both}proxy-revalidate")), (0, 0, false));
    assert_eq!(windows(&format!("{both}s-maxage=60")), (0, 0, true));
}

#[test]
fn grace_needs_more_than_the_standard_forbids() {
    for says in ["no-cache", "max-age=0"] {
        assert!(matches!(check(&[], &[("cache-control", says)]), Judgement::Grace(_)), "{says}");
    }
    for says in
        ["private", "no-store", "max-age=0, must-revalidate", "no-cache, proxy-revalidate", "no-cache=\""]
    {
        assert!(matches!(check(&[], &[("cache-control", says)]), Judgement::Never(_)), "{says}");
    }
    assert!(matches!(check(&[("cookie", "a=1")], &[("cache-control", "no-cache")]), Judgement::Never(_)));
    assert!(matches!(check(&[], &[("vary", "*")]), Judgement::Never(_)));
    assert!(matches!(check(&[], &[("set-cookie", "a=1")]), Judgement::Never(_)));
}

#[test]
fn conflicting_dates_are_doubt() {
    for name in ["expires", "date"] {
        let response = [MINUTE, (name, "1"), (name, "2")];
        assert_eq!(check(&[], &response), Judgement::Never(NotStored::Doubtful), "{name}");
    }
}

proptest! {
    /// Goal: with any other fields of a response, `private`, `no-store` and a cookie keep it for its own
    /// client.
    #[test]
    fn no_company_makes_a_private_response_public(
        before in "(public|s-maxage=9|max-age=9|immutable|x=\"a,b\"|, )?",
        behind in "(public|s-maxage=9|max-age=9|stale-if-error=9)?",
        word in "(private|PRIVATE|no-store|No-Store|private=\"a, b\")",
        in_two_lines in any::<bool>(),
    ) {
        let line = format!("{before}, {word}, {behind}");
        let mut response = vec![("cache-control", line.as_str())];
        if in_two_lines {
            response.insert(0, ("cache-control", "public, max-age=60"));
        }
        prop_assert!(matches!(check(&[], &response), Judgement::Never(_)));
    }
}
