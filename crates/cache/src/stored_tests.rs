//! Answers of a stored response.

use super::*;
use crate::gauge::Gauge;
use http::header::{IF_NONE_MATCH, RANGE};
use std::sync::Arc;

const KEY: Key<'static> = Key { is_https: false, host: b"shop.example", target: b"/page" };
/// Sun, 06 Nov 1994 08:49:37 GMT.
const NOW_UNIX_S: u64 = 784_111_777;

fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

/// A response that came at second 100, 5 s old.
fn stored(
    status: u16,
    response: &[(&'static str, &'static str)],
    lifetime: Lifetime,
    is_http: bool,
) -> Stored {
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = StatusCode::from_u16(status).expect("a status");
    head.headers = fields(response);
    let none = HeaderMap::new();
    let parts = Parts {
        key: KEY,
        service: 1,
        host_key: 2,
        request: (&none).into(),
        head: &head,
        body: Bytes::from_static(b"0123456789"),
        received: Received { at: Instant::from_secs(100), unix_s: NOW_UNIX_S },
        lifetime,
        is_http,
    };
    let gauge = Arc::new(Gauge::new(1 << 20));
    let reserved = gauge.reserve(parts.bytes()).expect("room");
    Stored::new(parts, &Hasher64::new(1, 2), reserved).expect("storable")
}

const LIFETIME: Lifetime = Lifetime {
    fresh: Duration::from_secs(60),
    initial_age: Duration::from_secs(5),
    stale_while_revalidate: Duration::from_secs(10),
    stale_if_error: Duration::from_secs(20),
    may_have_grace: true,
};

fn field<'a>(response: &'a Response<Bytes>, name: &str) -> &'a str {
    response.headers().get(name).map_or("(absent)", |value| value.to_str().expect("ascii"))
}

#[test]
fn age_grows_and_the_windows_end_in_order() {
    let stored = stored(200, &[], LIFETIME, true);
    for (second, age, state, may_serve_error, is_within) in [
        (100, 5, State::Fresh, true, true),
        (154, 59, State::Fresh, true, true),
        (155, 60, State::WhileRevalidate, true, true),
        (156, 61, State::WhileRevalidate, true, true),
        (157, 62, State::WhileRevalidate, true, false),
        (164, 69, State::WhileRevalidate, true, false),
        (165, 70, State::Stale, true, false),
        (174, 79, State::Stale, true, false),
        (175, 80, State::Stale, false, false),
    ] {
        let now = Instant::from_secs(second);
        assert_eq!((stored.age(now).as_secs(), stored.state(now)), (age, state), "{second}");
        assert_eq!(stored.may_serve_error(now), may_serve_error, "{second}");
        assert_eq!(stored.is_within(Duration::from_secs(2), now), is_within, "{second}");
    }
    assert_eq!(
        stored.age(Instant::from_secs(90)).as_secs(),
        5,
        "a clock that goes back makes nothing younger"
    );
}

#[test]
fn what_only_a_grace_allows_is_never_fresh() {
    let stored = stored(200, &[], Lifetime { initial_age: Duration::from_secs(900), ..LIFETIME }, false);
    let now = Instant::from_secs(101);
    assert_eq!(stored.state(now), State::Stale);
    assert!(!stored.may_serve_error(now) && stored.is_within(Duration::from_secs(2), now));
    assert!(!stored.is_within(Duration::from_secs(2), Instant::from_secs(102)));
    assert!(!stored.is_within(Duration::ZERO, now), "no grace is configured");
    let answer = stored.answer(now, false, &HeaderMap::new(), CacheStatus::Grace);
    assert_eq!(field(&answer, "cache-status"), "flashweir; hit; ttl=-901; detail=grace");
}

#[test]
fn an_answer_has_its_age_its_date_and_how_it_came() {
    let stored = stored(200, &[("age", "3"), ("server-timing", "cpu;dur=1"), ("x-a", "b")], LIFETIME, true);
    let answer = stored.answer(Instant::from_secs(110), false, &HeaderMap::new(), CacheStatus::Hit);
    assert_eq!((answer.status().as_u16(), &answer.body()[..]), (200, &b"0123456789"[..]));
    assert_eq!((field(&answer, "age"), field(&answer, "content-length")), ("15", "10"));
    assert_eq!(field(&answer, "cache-status"), "flashweir; hit; ttl=45");
    assert_eq!(field(&answer, "date"), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!((field(&answer, "server-timing"), field(&answer, "x-a")), ("(absent)", "b"));
    let head = stored.answer(Instant::from_secs(110), true, &HeaderMap::new(), CacheStatus::Hit);
    assert_eq!((field(&head, "content-length"), head.body().len()), ("10", 0));
}

#[test]
fn the_whole_says_the_same_as_lines() {
    let fields = [("age", "3"), ("x-a", "b"), ("x-a", "c"), ("etag", "\"1\"")];
    let stored = stored(200, &fields, LIFETIME, true);
    let now = Instant::from_secs(110);
    for is_head in [false, true] {
        let answer = stored.answer(now, is_head, &HeaderMap::new(), CacheStatus::Hit);
        let whole = stored.whole(now, is_head, &HeaderMap::new(), CacheStatus::Hit).expect("the whole");
        let mut lines = String::from_utf8(whole.lines.to_vec()).expect("text");
        lines += &format!("content-length: {}\r\nage: {}\r\n", whole.length, whole.age_s);
        lines += &format!("cache-status: {}\r\n", whole.cache_status);
        let mut lines: Vec<&str> = lines.lines().collect();
        let text = |value: &HeaderValue| value.to_str().expect("text").to_owned();
        let expected = answer.headers().iter().map(|(name, value)| format!("{name}: {}", text(value)));
        let mut expected: Vec<String> = expected.collect();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected);
        assert_eq!(whole.body, *answer.body());
    }
    let asks = |name, value| HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
    for request in [asks(IF_NONE_MATCH, "\"1\""), asks(RANGE, "bytes=0-1")] {
        assert!(stored.whole(now, false, &request, CacheStatus::Hit).is_none());
    }
}

/// RFC 9211 §2: `hit` and `fwd` exclude each other, and what is said of a request that went forward is said
/// of no other.
#[test]
fn each_way_is_told_as_the_standard_has_it() {
    use CacheStatus::{Collapsed, Fetched, Grace, Hit, IfError, Revalidated, WhileRevalidate};
    let stored = stored(200, &[("cache-status", "origin; hit")], LIFETIME, true);
    for how in [Hit, WhileRevalidate, IfError, Grace, Fetched, Revalidated, Collapsed] {
        let answer = stored.answer(Instant::from_secs(110), false, &HeaderMap::new(), how);
        let members: Vec<_> = answer.headers().get_all("cache-status").iter().collect();
        let [before, own] = members[..] else { panic!("{members:?}") };
        assert_eq!(before, "origin; hit", "caches nearer to the origin come first, and stay");
        let mut parts = own.to_str().expect("ascii").split("; ");
        assert_eq!(parts.next(), Some("flashweir"), "a token");
        let names: Vec<_> = parts.map(|part| part.split('=').next().unwrap_or(part)).collect();
        let has = |name: &str| names.contains(&name);
        assert_ne!(has("hit"), has("fwd"), "{own:?}");
        let of_forwarded = ["fwd-status", "stored", "collapsed"];
        assert!(has("fwd") || !of_forwarded.into_iter().any(has), "{own:?}");
        let known = ["hit", "fwd", "fwd-status", "ttl", "stored", "collapsed", "key", "detail"];
        assert!(names.iter().all(|name| known.contains(name)), "{own:?}");
        assert_eq!(matches!(how, Hit | WhileRevalidate | IfError | Grace), has("hit"), "{own:?}");
    }
}

#[test]
fn a_client_that_has_it_gets_304_and_one_that_wants_a_part_gets_that() {
    let response = [("etag", "\"1\""), ("content-type", "text/plain"), ("cache-control", "max-age=60")];
    let stored = stored(200, &response, LIFETIME, true);
    let ask = |lines: &[(&'static str, &'static str)]| {
        stored.answer(Instant::from_secs(100), false, &fields(lines), CacheStatus::Hit)
    };
    let not_modified = ask(&[("if-none-match", "\"1\""), ("range", "bytes=0-1")]);
    assert_eq!((not_modified.status().as_u16(), not_modified.body().len()), (304, 0));
    assert_eq!(
        (field(&not_modified, "etag"), field(&not_modified, "cache-control")),
        ("\"1\"", "max-age=60")
    );
    assert_eq!(
        (field(&not_modified, "content-length"), field(&not_modified, "content-type")),
        ("(absent)", "(absent)")
    );
    let part = ask(&[("range", "bytes=2-4")]);
    assert_eq!((part.status().as_u16(), &part.body()[..]), (206, &b"234"[..]));
    assert_eq!((field(&part, "content-range"), field(&part, "content-length")), ("bytes 2-4/10", "3"));
    let beyond = ask(&[("range", "bytes=10-")]);
    assert_eq!((beyond.status().as_u16(), field(&beyond, "content-range")), (416, "bytes */10"));
    assert_eq!(ask(&[("range", "bytes=0-1,3-4")]).status(), 200);
}

#[test]
fn parts_are_not_made_of_errors_nor_where_the_origin_has_none() {
    let range = fields(&[("range", "bytes=0-1")]);
    let ask =
        |stored: &Stored| stored.answer(Instant::from_secs(100), false, &range, CacheStatus::Hit).status();
    assert_eq!(ask(&stored(404, &[], LIFETIME, true)), 404);
    assert_eq!(ask(&stored(200, &[("accept-ranges", "none")], LIFETIME, true)), 200);
}

#[test]
fn only_its_own_requests_get_it_and_none_after_its_end() {
    let stored = stored(200, &[("vary", "accept-language")], LIFETIME, true);
    assert!(stored.answers(&KEY, 1, &HeaderMap::new()));
    assert!(!stored.answers(&KEY, 2, &HeaderMap::new()), "another service");
    assert!(!stored.answers(&Key { host: b"other.example", ..KEY }, 1, &HeaderMap::new()));
    assert!(!stored.answers(&KEY, 1, &fields(&[("accept-language", "de")])));
    stored.invalidate();
    assert!(!stored.answers(&KEY, 1, &HeaderMap::new()));
}

#[test]
fn a_request_that_the_origin_may_answer_in_another_way_renews_nothing() {
    let stored = stored(200, &[("vary", "origin")], LIFETIME, true);
    let harmless = [HeaderName::from_static("x-real-ip")];
    for lines in [&[][..], &[("origin", "a"), ("accept", "b"), ("x-real-ip", "c")]] {
        assert!(stored.may_be_renewed_by(&fields(lines), &harmless), "{lines:?}");
    }
    assert!(!stored.may_be_renewed_by(&fields(&[("origin", "a"), ("x-host", "b")]), &harmless));
}

/// RFC 9111 §3.2: every field that the 304 has replaces the stored one, but those that describe the stored
/// bytes.
#[test]
fn a_304_freshens_the_head_and_leaves_what_describes_the_body() {
    let response = [
        ("etag", "\"1\""),
        ("content-type", "text/plain"),
        ("content-foo", "old"),
        ("content-encoding", "gzip"),
        ("content-digest", "sha-256=:old:"),
        ("x-a", "old"),
        ("x-b", "old"),
        ("cache-control", "max-age=1"),
    ];
    let stored = stored(200, &response, LIFETIME, true);
    let mut request = fields(&[("if-none-match", "\"client\"")]);
    assert!(stored.ask_whether_changed(&mut request));
    assert_eq!(request, fields(&[("if-none-match", "\"1\"")]));
    let not_modified = fields(&[
        ("etag", "W/\"1\""),
        ("content-type", "text/html"),
        ("content-foo", "new"),
        ("content-location", "/new"),
        ("content-length", "3"),
        ("content-encoding", "br"),
        ("content-digest", "sha-256=:new:"),
        ("x-a", "new"),
        ("cache-control", "max-age=9"),
    ]);
    let head = stored.freshened(&not_modified).expect("the same version");
    let get = |name: &str| head.headers.get(name).map(|value| value.to_str().expect("ascii"));
    for (name, value) in [
        ("content-type", "text/html"),
        ("content-foo", "new"),
        ("content-location", "/new"),
        ("content-length", "10"),
        ("content-encoding", "gzip"),
        ("content-digest", "sha-256=:old:"),
        ("x-a", "new"),
        ("x-b", "old"),
        ("cache-control", "max-age=9"),
    ] {
        assert_eq!(get(name), Some(value), "{name}");
    }
    assert!(stored.freshened(&fields(&[("etag", "\"2\"")])).is_none(), "another version");
}
