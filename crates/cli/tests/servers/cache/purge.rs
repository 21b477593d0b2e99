//! Purges by URL and by tag, and a flood of them.

use flashweir_testkit::{Client, Gateway, Message};

use crate::cache::scene::{caching, get, number, numbered};

fn purge(gateway: &Gateway, query: &str) -> Message {
    let request = format!("DELETE /cache?{query} HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
    Client::connect(gateway.admin()).ask(&request)
}

fn purged(gateway: &Gateway, query: &str) -> u64 {
    let answer = purge(gateway, query);
    assert_eq!(answer.status(), 200, "{query}: {}", answer.text());
    answer.json()["purged"].as_u64().expect("a number")
}

#[test]
fn what_is_named_is_gone_on_every_worker_and_the_rest_stays() {
    let upstream = numbered(|request| {
        let target = request.start.split(' ').nth(1).unwrap_or_default();
        let tags = if target.starts_with("/news") { "news front" } else { "shop" };
        (200, format!("Cache-Control: max-age=60\r\nSurrogate-Key: {tags}\r\nCache-Tag: all, x y\r\n"))
    });
    let gateway = caching(&upstream).set("gateway.workers", "2").start();
    // Some connections go to one worker, some to the other.
    let mut clients: Vec<Client> = (0..12).map(|_| gateway.connect()).collect();
    let mut ask = |target: &str| -> usize {
        let mut numbers: Vec<usize> =
            clients.iter_mut().map(|client| number(&get(client, target, ""))).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), 1, "{target}: all workers have one answer: {numbers:?}");
        numbers[0]
    };
    assert_eq!([ask("/news/1?a=b"), ask("/news/2"), ask("/shop")], [1, 2, 3]);
    assert_eq!(purged(&gateway, "url=http://shop.example/news/1?a=b"), 1);
    assert_eq!([ask("/news/1?a=b"), ask("/news/2"), ask("/shop")], [4, 2, 3]);
    assert_eq!(purged(&gateway, "url=http://SHOP.example:80/news/1?a=b"), 1);
    assert_eq!(purged(&gateway, "url=https://shop.example/news/2"), 0, "another scheme");
    assert_eq!(ask("/news/1?a=b"), 5);
    assert_eq!(purged(&gateway, "tag=NEWS"), 2);
    assert_eq!([ask("/news/1?a=b"), ask("/news/2"), ask("/shop")], [6, 7, 3]);
    assert_eq!((purged(&gateway, "tag=new"), purged(&gateway, "tag=x%20y")), (0, 3));
    assert_eq!(ask("/shop"), 8);
    assert_eq!(purged(&gateway, "all=true"), 1);
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_cache_purges_total"), 7.0);
    assert_eq!(metrics.value("flashweir_cache_purged_total"), 8.0);
}

#[test]
fn what_cannot_be_purged_is_told_so() {
    let upstream = numbered(|_| (200, String::new()));
    let gateway = caching(&upstream).start();
    for (query, expected) in [
        ("", "expected one of url=URL, tag=TAG and all=true"),
        ("all=false", "expected one of"),
        ("url=/page", "http://shop.example/page"),
        ("url=ftp://shop.example/", "http://shop.example/page"),
        ("tag=%zz", "%"),
    ] {
        let answer = purge(&gateway, query);
        assert_eq!(answer.status(), 400, "{query}");
        assert!(answer.text().contains(expected), "{query}: {}", answer.text());
    }
    // A page on the web can make a browser send GET and POST to any address.
    for method in ["GET", "POST"] {
        let request = format!(
            "{method} /cache?all=true HTTP/1.1\r\nHost: admin\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        assert_eq!(Client::connect(gateway.admin()).ask(&request).status(), 405, "{method}");
    }
}

/// RFC 6454 §7.3: a browser says in `Origin` which page sends a request that changes something. A `Host`
/// without a dot may be a page's, too.
#[test]
fn a_web_page_purges_nothing() {
    let upstream = numbered(|_| (200, "Cache-Control: max-age=60\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    assert_eq!(number(&get(&mut gateway.connect(), "/", "")), 1);
    for origin in ["http://evil.example", "http://localhost:9900", "null", ""] {
        let request = format!(
            "DELETE /cache?all=true HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nConnection: close\r\n\r\n"
        );
        let answer = Client::connect(gateway.admin()).ask(&request);
        assert_eq!(answer.status(), 403, "{origin}");
        assert!(answer.text().contains("Origin"), "{}", answer.text());
    }
    assert_eq!(number(&get(&mut gateway.connect(), "/", "")), 1);
    assert_eq!(purged(&gateway, "all=true"), 1);
}

#[test]
fn a_flood_of_purges_is_bounded_and_the_gateway_serves_on() {
    let upstream = numbered(|_| (200, "Cache-Control: max-age=60\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    let mut admin = Client::connect(gateway.admin());
    let statuses: Vec<u16> =
        (0..400).map(|_| admin.ask("DELETE /cache?tag=x HTTP/1.1\r\nHost: admin\r\n\r\n").status()).collect();
    let refused = statuses.iter().filter(|&&status| status == 429).count();
    let made = statuses.iter().filter(|&&status| status == 200).count();
    assert!(made >= 100 && made + refused == 400, "{made} made, {refused} refused");
    assert_eq!(gateway.metrics().value("flashweir_cache_purges_refused_total"), refused as f64);
    assert_eq!(number(&get(&mut gateway.connect(), "/", "")), 1);
}
