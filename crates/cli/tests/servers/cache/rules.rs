//! Requirements of RFC 9111 on a shared cache, one by one, as a client and an origin see them.

use flashweir_testkit::{Client, Upstream, eventually};

use crate::cache::scene::{binary, cache_status, caching, get, head, is_cached, number, numbered, saying};
use flashweir_testkit::GatewayBuilder;

#[test]
fn it_is_off_out_of_the_box() {
    let upstream = saying("public, max-age=60");
    let gateway = GatewayBuilder::new(&binary()).upstream(&upstream.url()).start();
    let mut client = gateway.connect();
    let answers = [(); 2].map(|()| get(&mut client, "/", ""));
    assert_eq!(answers.each_ref().map(number), [1, 2]);
    assert!(answers.iter().all(|answer| !answer.fields.has("cache-status") && !answer.fields.has("age")));
}

#[test]
fn in_calm_a_cache_for_crowds_stores_nothing() {
    let upstream = saying("public, max-age=60");
    let gateway = caching(&upstream).text("cache.mode", "crowd").start();
    let mut client = gateway.connect();
    assert_eq!([(); 3].map(|()| number(&get(&mut client, "/", ""))), [1, 2, 3]);
    assert_eq!(gateway.status()["cache"]["used_bytes"], 0);
}

#[test]
fn a_fresh_answer_is_reused_with_its_age_and_takes_no_room_at_the_service() {
    let upstream = saying("max-age=60");
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let first = get(&mut client, "/page", "");
    assert_eq!((number(&first), cache_status(&first).as_str()), (1, "flashweir; fwd=uri-miss; stored"));
    for _ in 0..9 {
        let copy = get(&mut client, "/page", "");
        assert_eq!((copy.status(), number(&copy), cache_status(&copy).as_str()), (200, 1, "flashweir; hit"));
        let age: u64 = copy.field("age").and_then(|age| age.parse().ok()).expect("an age");
        assert!(age < 60 && copy.fields.has("date") && copy.fields.has("via"), "{}", head(&copy));
    }
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_cache_answers_total{how=\"hit\"}"), 9.0);
    assert_eq!(metrics.value("flashweir_cache_answers_total{how=\"fetched\"}"), 1.0);
    for (name, count) in
        [("offered", 10.0), ("admitted", 10.0), ("completed", 10.0), ("unique_offered", 10.0)]
    {
        let series = format!("flashweir_requests_{name}_total");
        gateway.wait_metric(&series, count);
        assert_eq!(gateway.metrics().value(&series), count, "{name}");
    }
    gateway.wait_in_flight(0);
    let at_origin = "flashweir_class_completed_total{service=\"default\",class=\"default\"}";
    gateway.wait_metric(at_origin, 1.0);
    assert_eq!(gateway.metrics().value(at_origin), 1.0, "the sentry saw one request");
}

/// §3: what may be stored.
#[test]
fn only_what_the_origin_makes_fresh_for_all_is_stored() {
    let upstream = numbered(|request| {
        let target = request.start.split(' ').nth(1).unwrap_or_default();
        let fields = match target {
            "/max-age" => "Cache-Control: MAX-AGE=\"60\"\r\n",
            "/s-maxage" => "Cache-Control: max-age=0, s-maxage=60\r\n",
            "/expires" => "Expires: Wed, 01 Jan 2200 00:00:00 GMT\r\n",
            "/quiet" => "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "/expired" => "Expires: 0\r\n",
            "/no-store" => "Cache-Control: no-store, max-age=60\r\n",
            "/no-cache" => "Cache-Control: no-cache, max-age=60\r\n",
            "/private" => "Cache-Control: public, max-age=60\r\nCache-Control: Private\r\n",
            "/private-field" => "Cache-Control: private=\"x-name\", max-age=60\r\n",
            "/conflict" => "Cache-Control: max-age=60, max-age=90\r\n",
            "/garbage" => "Cache-Control: max-age=60 public\r\n",
            "/vary-all" => "Cache-Control: max-age=60\r\nVary: *\r\n",
            "/aged" => "Cache-Control: max-age=60\r\nAge: 60\r\n",
            "/aged-twice" => "Cache-Control: max-age=60\r\nAge: 9\r\nAge: 60\r\n",
            "/cdn" => "Cache-Control: max-age=0\r\nCDN-Cache-Control: max-age=60\r\n",
            "/cdn-private" => "Cache-Control: public, max-age=60\r\nCDN-Cache-Control: private\r\n",
            other => panic!("{other}"),
        };
        (200, fields.to_owned())
    });
    let gateway = caching(&upstream).start();
    for target in ["/max-age", "/s-maxage", "/expires", "/aged-twice", "/cdn"] {
        assert!(is_cached(&gateway, target, ""), "{target}");
    }
    for target in [
        "/quiet",
        "/expired",
        "/no-store",
        "/no-cache",
        "/private",
        "/private-field",
        "/conflict",
        "/garbage",
        "/vary-all",
        "/aged",
        "/cdn-private",
    ] {
        assert!(!is_cached(&gateway, target, ""), "{target}");
    }
    let metrics = gateway.metrics();
    for (why, count) in
        [("no_store", 1.0), ("for_one_user", 3.0), ("doubtful", 1.0), ("vary", 1.0), ("not_fresh", 4.0)]
    {
        let series = format!("flashweir_cache_not_stored_total{{why=\"{why}\"}}");
        assert_eq!(metrics.value(&series), count, "{why}: once each, then it is known");
    }
}

/// §3.1, §5.2: directives and fields that mean nothing here pass, both ways, and are stored with the rest;
/// the body is not touched.
#[test]
fn directives_and_unknown_fields_pass_and_are_kept() {
    const DIRECTIVES: &str = "max-age=60, no-transform, future-word=\"a, b\"";
    let upstream = numbered(|request| {
        let directives = request.field("cache-control").unwrap_or("-");
        let fields = format!("Cache-Control: {DIRECTIVES}\r\nX-Unknown: a; b\r\nX-Told: {directives}\r\n");
        (200, format!("{fields}Connection: X-Hop\r\nX-Hop: 1\r\nCache-Status: origin; hit\r\n"))
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let asked = "Cache-Control: max-stale=7, future-word\r\n";
    let (first, copy) = (get(&mut client, "/page", asked), get(&mut client, "/page", asked));
    assert_eq!(cache_status(&copy), "origin; hit", "the first member is that of the cache behind");
    assert_eq!((number(&copy), copy.text()), (1, first.text()));
    for answer in [&first, &copy] {
        assert_eq!(answer.field("cache-control"), Some(DIRECTIVES), "{}", head(answer));
        assert_eq!(answer.field("x-unknown"), Some("a; b"), "{}", head(answer));
        assert_eq!(answer.field("x-told"), Some("max-stale=7, future-word"), "{}", head(answer));
        assert!(!answer.fields.has("x-hop"), "{}", head(answer));
        let text = head(answer).to_ascii_lowercase();
        let members: Vec<_> = text.lines().filter(|line| line.starts_with("cache-status:")).collect();
        assert!(members.len() == 2 && members[1].contains("flashweir; "), "{text}");
    }
}

/// §4: a stored answer to GET answers HEAD, conditional requests and ranges.
#[test]
fn head_conditions_and_ranges_are_answered_from_the_store() {
    let upstream = numbered(|_| {
        let fields =
            "Cache-Control: max-age=60\r\nETag: \"7\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        (200, fields.to_owned())
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let whole = get(&mut client, "/page", "If-None-Match: \"7\"\r\n");
    assert_eq!(whole.status(), 304, "fetched whole for the store, and the client has it");
    for (fields, status) in [
        ("If-None-Match: W/\"7\"\r\n", 304),
        ("If-None-Match: \"8\"\r\nIf-Modified-Since: Sun, 06 Nov 2094 08:49:37 GMT\r\n", 200),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 304),
        ("Range: bytes=0-4\r\n", 206),
        ("Range: bytes=0-4\r\nIf-Range: \"8\"\r\n", 200),
        ("Range: bytes=900-\r\n", 416),
    ] {
        let answer = get(&mut client, "/page", fields);
        assert_eq!((answer.status(), cache_status(&answer).as_str()), (status, "flashweir; hit"), "{fields}");
        assert_eq!(answer.body.is_empty(), matches!(status, 304 | 416), "{fields}");
    }
    let part = get(&mut client, "/page", "Range: bytes=2-4\r\n");
    assert_eq!((part.text().as_str(), part.field("content-length")), ("for", Some("3")));
    client.send("HEAD /page HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let only_head = client.response_to_head().expect("a head");
    assert_eq!((only_head.status(), cache_status(&only_head).as_str()), (200, "flashweir; hit"));
    assert_eq!(upstream.request_count(), 1);
    assert!(!upstream.last_request().fields.has("if-none-match"));
}

/// §4.1.
#[test]
fn vary_keeps_variants_apart() {
    let upstream =
        numbered(|_| (200, "Cache-Control: max-age=60\r\nVary: Accept-Language, accept\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let mut ask = |fields: &str| number(&get(&mut client, "/", fields));
    let (de, en, none) = ("Accept-Language: de\r\n", "Accept-Language: en\r\n", "");
    assert_eq!([ask(de), ask(en), ask(none)], [1, 2, 3]);
    assert_eq!([ask(de), ask(en), ask(none)], [1, 2, 3]);
    assert_eq!(ask("Accept-Language: de\r\nAccept: text/html\r\n"), 4);
}

/// §4.1: a response that names the field by which it was chosen is for all requests with the same in it.
/// Fonts and JSON for other sites have `Vary: Origin`.
#[test]
fn a_response_that_varies_by_origin_is_stored_for_each_origin() {
    let upstream = numbered(|request| {
        let origin = request.field("origin").unwrap_or("none");
        let allowed = format!("Access-Control-Allow-Origin: {origin}\r\n");
        (200, format!("Cache-Control: max-age=60\r\nVary: Accept, Origin\r\n{allowed}"))
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let (one, other) = ("Origin: https://a.example\r\n", "Origin: https://b.example\r\n");
    for (fields, number_of, allowed) in [
        (one, 1, "https://a.example"),
        (other, 2, "https://b.example"),
        ("", 3, "none"),
        (one, 1, "https://a.example"),
        (other, 2, "https://b.example"),
        ("", 3, "none"),
    ] {
        let answer = get(&mut client, "/font.woff2", fields);
        let for_it = answer.field("access-control-allow-origin");
        assert_eq!((number(&answer), for_it), (number_of, Some(allowed)), "{fields}");
    }
    // A field beside it that `Vary` does not name may have chosen the response.
    let beside =
        [(); 2].map(|()| number(&get(&mut client, "/data.json", &format!("{one}X-Host: evil.example\r\n"))));
    assert_eq!(beside, [4, 5]);
}

/// §4.1 with RFC 9110 §12.5.3: spaces, case, order and `q=1` mean nothing in `Accept-Encoding`.
#[test]
fn accept_encoding_is_compared_by_its_meaning() {
    let upstream = numbered(|_| (200, "Cache-Control: max-age=60\r\nVary: Accept-Encoding\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let mut ask = |codings: &str| number(&get(&mut client, "/", &format!("Accept-Encoding: {codings}\r\n")));
    assert_eq!(["gzip, br", "gzip,br", "BR;q=1.0 , GZIP"].map(&mut ask), [1, 1, 1]);
    assert_eq!(["GZIP", "gzip", "x-gzip"].map(&mut ask), [2, 2, 2]);
    assert_eq!(ask("gzip, br;q=0.5"), 3);
}

/// RFC 9110 §10.1.1: an expectation is about content. Without any it changes nothing, and the origin does not
/// see it.
#[test]
fn an_expectation_without_content_changes_nothing() {
    let upstream = saying("max-age=60");
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    for fields in ["Expect: 100-continue\r\n", "", "Expect: 100-continue\r\n"] {
        let answer = get(&mut client, "/", fields);
        assert_eq!((answer.status(), number(&answer)), (200, 1), "{fields}");
    }
    assert!(!upstream.last_request().fields.has("expect"));
    let unknown = get(&mut client, "/", "Expect: tea\r\n");
    assert_eq!(unknown.status(), 417);
}

/// §4.3: a stale answer is asked about, and a 304 makes it fresh.
#[test]
fn a_stale_answer_is_validated_and_freshened() {
    let upstream = numbered(|request| match request.field("if-none-match") {
        Some("\"7\"") => {
            let fields = "Cache-Control: max-age=60\r\nETag: \"7\"\r\nX-New: yes\r\nContent-Foo: new\r\n";
            (304, fields.to_owned())
        }
        // Fresh for an instant.
        _ => {
            let fields = "Cache-Control: max-age=1\r\nAge: 0\r\nETag: \"7\"\r\nContent-Foo: old\r\n";
            (200, fields.to_owned())
        }
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(number(&get(&mut client, "/", "")), 1);
    let fresh = eventually("its second to pass", || {
        let answer = get(&mut client, "/", "");
        (cache_status(&answer) == "flashweir; fwd=stale; fwd-status=304; stored").then_some(answer)
    });
    assert_eq!((fresh.status(), number(&fresh), fresh.field("x-new")), (200, 1, Some("yes")));
    let copy = get(&mut client, "/", "");
    assert_eq!(
        (number(&copy), cache_status(&copy).as_str(), copy.field("x-new")),
        (1, "flashweir; hit", Some("yes"))
    );
    assert_eq!(copy.field("content-foo"), Some("new"), "§3.2: a field of any name is replaced");
    assert_eq!(upstream.request_count(), 2);
}

/// §4.3.3: a 304 that makes nothing fresh is an answer all the same: the origin is not asked again for what
/// it called unchanged.
#[test]
fn a_stale_answer_that_is_unchanged_and_stale_again_is_sent() {
    let upstream = numbered(|request| match request.field("if-none-match") {
        Some("\"7\"") => (304, "Cache-Control: max-age=0\r\nETag: \"7\"\r\n".to_owned()),
        _ => (200, "Cache-Control: max-age=1\r\nETag: \"7\"\r\n".to_owned()),
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(number(&get(&mut client, "/", "")), 1);
    eventually("its second to pass", || {
        (get(&mut client, "/", "Cache-Control: only-if-cached\r\n").status() == 504).then_some(())
    });
    for requests in [2, 3] {
        let answer = get(&mut client, "/", "");
        assert_eq!(
            (answer.status(), number(&answer), cache_status(&answer).as_str()),
            (200, 1, "flashweir; fwd=stale; fwd-status=304; stored")
        );
        assert_eq!(upstream.request_count(), requests);
    }
}

/// §4.4: the places that the answer names of the same origin are invalidated, too.
#[test]
fn a_change_invalidates_what_its_answer_names_of_the_same_origin() {
    let upstream = numbered(|request| match request.start.split(' ').next() {
        Some("GET") => (200, "Cache-Control: max-age=60\r\n".to_owned()),
        _ => {
            let fields = "Location: http://shop.example/new?a=b#c\r\nContent-Location: /list\r\n";
            (201, fields.to_owned())
        }
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let other =
        |client: &mut Client| number(&client.ask("GET /new?a=b HTTP/1.1\r\nHost: other.example\r\n\r\n"));
    let targets = ["/form", "/new?a=b", "/list", "/new"];
    assert_eq!(targets.map(|target| number(&get(&mut client, target, ""))), [1, 2, 3, 4]);
    assert_eq!(other(&mut client), 5);
    client.ask("POST /form HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(targets.map(|target| number(&get(&mut client, target, ""))), [7, 8, 9, 4]);
    client.ask("POST /form HTTP/1.1\r\nHost: third.example\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(
        targets.map(|target| number(&get(&mut client, target, ""))),
        [7, 8, 9, 4],
        "another origin's word"
    );
    assert_eq!(other(&mut client), 5);
}

/// §4.4.
#[test]
fn a_request_that_changes_something_invalidates_and_one_that_fails_does_not() {
    let upstream = numbered(|request| match request.start.split(' ').next() {
        Some("GET") => (200, "Cache-Control: max-age=60\r\n".to_owned()),
        Some("DELETE") => (403, String::new()),
        _ => (204, String::new()),
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(number(&get(&mut client, "/a?b", "")), 1);
    client.ask("DELETE /a?b HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    client.ask("POST /a HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(number(&get(&mut client, "/a?b", "")), 1, "refused, or another URL");
    let changed = "PUT /a?b HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\nhi";
    client.send(changed);
    assert_eq!(client.response_to_head().expect("an answer").status(), 204);
    assert_eq!(number(&get(&mut client, "/a?b", "")), 5);
    assert_eq!(gateway.metrics().value("flashweir_cache_invalidated_total"), 1.0);
}

/// §5.2.1: requests' wishes are advice; the two that concern others are followed.
#[test]
fn a_client_cannot_go_around_the_cache_but_for_its_own_answer() {
    let upstream = saying("max-age=60");
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let missing = get(&mut client, "/", "Cache-Control: only-if-cached\r\n");
    assert_eq!((missing.status(), upstream.request_count()), (504, 0));
    assert_eq!(number(&get(&mut client, "/", "Cache-Control: no-store\r\n")), 1);
    assert_eq!(number(&get(&mut client, "/", "")), 2, "the first was not stored");
    for wish in ["no-cache", "max-age=0", "min-fresh=900"] {
        assert_eq!(number(&get(&mut client, "/", &format!("Cache-Control: {wish}\r\n"))), 2, "{wish}");
    }
    assert_eq!(number(&get(&mut client, "/", "Cache-Control: only-if-cached\r\n")), 2);
    assert_eq!(number(&get(&mut client, "/", "Pragma: no-cache\r\n")), 2);
}

/// §3.3: an incomplete answer is not stored, even with fields that allow it.
#[test]
fn half_an_answer_is_nobodys() {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.read_request() {
            let target = request.start.split(' ').nth(1).unwrap_or_default().to_owned();
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
            match target.as_str() {
                "/cut" => {
                    connection.send(format!("{head}Content-Length: 100\r\n\r\nonly this"));
                    return;
                }
                "/close" => {
                    connection.send(format!("{head}Connection: close\r\n\r\nuntil the end"));
                    return;
                }
                _ => {
                    let chunks = "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n";
                    connection.send(format!("{head}{chunks}"));
                }
            }
        }
    });
    let gateway = caching(&upstream).start();
    assert_eq!(gateway.get("/cut").status(), 502, "nothing of it was passed on yet");
    for _ in 0..2 {
        assert_eq!(gateway.get("/close").text(), "until the end");
        let asks = "GET /trailers HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: TE\r\n\r\n";
        let with_trailers = gateway.connect().ask(asks);
        assert_eq!(
            (with_trailers.text().as_str(), with_trailers.trailers.first("x-sum")),
            ("hello", Some("1"))
        );
    }
    assert_eq!(upstream.request_count(), 5);
    assert_eq!(gateway.status()["cache"]["responses"], 0);
}

#[test]
fn large_and_endless_answers_are_passed_on_and_not_stored() {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.read_request() {
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
            if request.start.contains("/large") {
                let body = "x".repeat(300_000);
                connection.send(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
                continue;
            }
            // Chunks without end, until the other side has had enough.
            let chunk = format!("1000\r\n{}\r\n", "y".repeat(0x1000));
            connection.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
            while connection.send(&chunk) {}
            return;
        }
    });
    let gateway = caching(&upstream).text("cache.max_object", "128KiB").start();
    let mut client = gateway.connect();
    for _ in 0..2 {
        assert_eq!(get(&mut client, "/large", "").body.len(), 300_000);
    }
    let mut endless = gateway.connect();
    endless.send("GET /endless HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert!(endless.read_exactly(2 << 20).iter().filter(|&&byte| byte == b'y').count() > 1 << 20);
    drop(endless);
    gateway.wait_in_flight(0);
    assert_eq!(upstream.request_count(), 3);
    let used = gateway.status()["cache"]["used_bytes"].as_u64();
    assert_eq!(used, Some(0));
}

#[test]
fn memory_stays_within_its_bound() {
    let upstream = Upstream::start(|connection| {
        while connection.read_request().is_some() {
            connection.answer(200, "Cache-Control: max-age=60\r\n", vec![b'x'; 900_000]);
        }
    });
    let gateway = caching(&upstream).text("cache.memory", "8MiB").start();
    let mut client = gateway.connect();
    for round in 0..40 {
        assert_eq!(get(&mut client, &format!("/{round}"), "").body.len(), 900_000);
        let status = gateway.status();
        let used = status["cache"]["used_bytes"].as_u64().expect("bytes");
        assert!((900_000..=8 << 20).contains(&used), "{status}");
    }
    assert!(gateway.metrics().value("flashweir_cache_evicted_total") >= 29.0);
    let last = get(&mut client, "/39", "");
    assert_eq!(cache_status(&last), "flashweir; hit");
}

#[test]
fn a_reload_that_switches_it_off_lets_everything_go() {
    let upstream = saying("max-age=60");
    let mut gateway = caching(&upstream).start();
    assert!(is_cached(&gateway, "/", ""));
    gateway.configure(&[("cache.mode", Some("\"off\""))]);
    gateway.reload();
    eventually("the reload", || (gateway.get("/").field("cache-status").is_none()).then_some(()));
    eventually("what was stored to go", || (gateway.status()["cache"]["used_bytes"] == 0).then_some(()));
    gateway.configure(&[("cache.mode", Some("\"always\""))]);
    gateway.reload();
    eventually("the reload", || gateway.get("/").fields.has("cache-status").then_some(()));
    assert_ne!(number(&get(&mut gateway.connect(), "/", "")), 1, "the copy from before is gone");
}
