//! Requests made to leave something bad in the cache for others.

use flashweir_testkit::{Client, Message, Upstream, eventually};

use crate::cache::scene::{cache_status, caching, get, number, numbered};

/// A server that reflects what it is asked, as careless ones do, and lets all of it be cached.
fn careless() -> Upstream {
    Upstream::start(|connection| {
        let mut count = 0;
        while let Some(request) = connection.read_request() {
            count += 1;
            let body = format!("{count} {}", String::from_utf8_lossy(&request.head));
            if !connection.answer(200, "Cache-Control: public, max-age=60\r\n", body) {
                return;
            }
        }
    })
}

const EVIL: &str = "evil.example";

#[test]
fn fields_that_are_no_part_of_the_key_leave_nothing_behind() {
    let upstream = careless();
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    for (index, field) in [
        "X-Forwarded-Host",
        "X-Host",
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Forwarded-Scheme",
        "X-HTTP-Method-Override",
        "Forwarded",
        "X_Forwarded_Host",
        "Origin",
        "Proxy",
        "True-Client-IP",
        "Transfer-Encoding-Hint",
    ]
    .iter()
    .enumerate()
    {
        let target = format!("/{index}");
        let value = if *field == "Forwarded" { format!("host={EVIL}") } else { EVIL.to_owned() };
        get(&mut client, &target, &format!("{field}: {value}\r\n"));
        let innocent = get(&mut client, &target, "");
        assert!(!innocent.text().contains(EVIL), "{field}: {}", innocent.text());
    }
}

/// RFC 9111 §7.2: a request whose response may be another one's says nothing about what is stored: it does
/// not validate it, and does not end it, nor does it make others wait or go to the origin.
#[test]
fn a_request_with_unknown_fields_neither_validates_nor_ends_a_stale_answer() {
    let upstream = numbered(|request| match (request.field("x-host"), request.field("if-none-match")) {
        (Some(_), _) => (200, "Cache-Control: no-store\r\n".to_owned()),
        (None, Some("\"7\"")) => (304, "Cache-Control: max-age=60\r\nETag: \"7\"\r\n".to_owned()),
        (None, _) => (200, "Cache-Control: max-age=1\r\nETag: \"7\"\r\n".to_owned()),
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(number(&get(&mut client, "/", "")), 1);
    eventually("its second to pass", || {
        (get(&mut client, "/", "Cache-Control: only-if-cached\r\n").status() == 504).then_some(())
    });
    assert_eq!(number(&get(&mut client, "/", &format!("X-Host: {EVIL}\r\n"))), 2);
    assert!(!upstream.last_request().fields.has("if-none-match"), "it asks for its own");
    let validated = get(&mut client, "/", "");
    assert_eq!(
        (number(&validated), cache_status(&validated).as_str()),
        (1, "flashweir; fwd=stale; fwd-status=304; stored")
    );
}

#[test]
fn a_field_that_the_operator_knows_to_be_harmless_is() {
    let upstream = careless();
    let gateway = caching(&upstream).set("cache.request_fields", "[\"X-Real-IP\"]").start();
    let mut client = gateway.connect();
    let answers = [(); 2].map(|()| number(&get(&mut client, "/", "X-Real-IP: 192.0.2.1\r\n")));
    assert_eq!(answers, [1, 1]);
}

fn ask(client: &mut Client, target: &str, host: &str) -> Message {
    client.ask(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

#[test]
fn each_host_scheme_path_and_query_is_a_document_of_its_own() {
    let upstream = careless();
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let documents = [
        ("/a?b=1&c=2", "shop.example"),
        ("/a?c=2&b=1", "shop.example"),
        ("/a?b=1&c=2&", "shop.example"),
        ("/a?b=1", "shop.example"),
        ("/a", "shop.example"),
        ("/A", "shop.example"),
        ("/%61", "shop.example"),
        ("//a", "shop.example"),
        ("/a/", "shop.example"),
        ("/a?b=1&c=2", "shop.example:8080"),
        ("/a?b=1&c=2", "other.example"),
    ];
    let numbers: Vec<usize> =
        documents.iter().map(|(target, host)| number(&ask(&mut client, target, host))).collect();
    let again: Vec<usize> =
        documents.iter().map(|(target, host)| number(&ask(&mut client, target, host))).collect();
    assert_eq!(numbers, (1..=documents.len()).collect::<Vec<_>>());
    assert_eq!(again, numbers);
}

#[test]
fn hosts_in_an_unusual_form_are_neither_stored_nor_answered() {
    let upstream = careless();
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    for (index, host) in ["SHOP.example", "shop.example.", "shop.example.:80"].iter().enumerate() {
        let target = format!("/{index}");
        let first = number(&ask(&mut client, &target, host));
        assert_ne!(number(&ask(&mut client, &target, host)), first, "{host}");
        let text = ask(&mut client, &target, "shop.example").text();
        assert!(
            !text.contains(&format!("Host: {host}\r\n")) && !text.contains(&format!("host: {host}\r\n")),
            "{text}"
        );
    }
}

#[test]
fn an_absolute_target_and_its_host_are_one_document() {
    let upstream = careless();
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let absolute = client.ask("GET http://shop.example/page HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(number(&absolute), 1);
    assert_eq!(number(&ask(&mut client, "/page", "shop.example")), 1);
    // The target counts, not the field beside it (RFC 9112 §3.2.2).
    let lying = client.ask(&format!("GET http://shop.example/other HTTP/1.1\r\nHost: {EVIL}\r\n\r\n"));
    assert!(!lying.text().contains(EVIL), "{}", lying.text());
    assert!(!ask(&mut client, "/other", EVIL).text().contains("shop.example"));
}

/// A trusted proxy's words about a request reach the origin, so they are a part of the key or keep it out of
/// the cache.
#[test]
fn what_a_trusted_proxy_passes_on_leaves_nothing_behind() {
    let upstream = careless();
    let gateway = caching(&upstream).set("client.trusted_proxies", "[\"127.0.0.0/8\"]").start();
    let mut client = gateway.connect();
    for (index, field) in [
        format!("X-Forwarded-Host: {EVIL}"),
        format!("Forwarded: host={EVIL}"),
        "X-Forwarded-Proto: evil".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let target = format!("/{index}");
        get(&mut client, &target, &format!("{field}\r\n"));
        let innocent = get(&mut client, &target, "");
        assert!(!innocent.text().to_lowercase().contains("evil"), "{field}: {}", innocent.text());
    }
    let proto = |scheme: &str| format!("X-Forwarded-Proto: {scheme}\r\nX-Forwarded-Host: shop.example\r\n");
    let numbers =
        ["http", "https", "http", "https"].map(|scheme| number(&get(&mut client, "/page", &proto(scheme))));
    assert_eq!((numbers[0], numbers[1]), (numbers[2], numbers[3]), "each is cached");
    assert_ne!(numbers[0], numbers[1], "two schemes are two documents");
}

#[test]
fn an_encoded_answer_without_vary_is_only_for_those_who_asked_for_it() {
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.read_request() {
            let is_encoded = request.field("accept-encoding").is_some_and(|wanted| wanted.contains("gzip"));
            let (field, body) =
                if is_encoded { ("Content-Encoding: gzip\r\n", "zipped") } else { ("", "plain") };
            connection.answer(200, &format!("Cache-Control: max-age=60\r\n{field}"), body);
        }
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(get(&mut client, "/", "Accept-Encoding: gzip\r\n").text(), "zipped");
    assert_eq!(get(&mut client, "/", "").text(), "plain");
    assert_eq!(get(&mut client, "/", "Accept-Encoding: br\r\n").text(), "plain");
}
