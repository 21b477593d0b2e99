//! Two users on every path: what is made for one never reaches the other. A private answer in the wrong hands is the worst bug there
//! is.

use flashweir_testkit::{Client, Latch, Message, Upstream};

use crate::scene::{cache_status, caching, get, number, numbered};

/// Answers of which each is for one user, whatever the origin says of caching. Field lines of the answer, and of both users.
const PRIVATE: [(&str, &str, &str); 11] = [
    ("Cache-Control: private, max-age=60\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: no-store\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: public, s-maxage=60\r\nSet-Cookie: id=1\r\n", "", ""),
    ("Cache-Control: max-age=60\r\nVary: *\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: max-age=60\r\n", "Authorization: Basic YTph\r\n", "Authorization: Basic Yjpi\r\n"),
    (
        "Cache-Control: public, s-maxage=60\r\n",
        "Authorization: Basic YTph\r\n",
        "Authorization: Basic Yjpi\r\n",
    ),
    // The origin forgot to say that it depends on the cookie.
    ("Cache-Control: max-age=60\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: public, max-age=60\r\nVary: Cookie\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: no-cache\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
    ("Cache-Control: public, max-age=60, private=\"x\"\r\n", "Cookie: id=a\r\n", "Cookie: id=b\r\n"),
];

/// A server that says all of them, by the number in the target.
fn scripted() -> Upstream {
    numbered(|request| {
        let target = request.start.split(' ').nth(1).unwrap_or_default();
        let index: usize = target.trim_start_matches('/').parse().expect("a number");
        (200, PRIVATE[index].0.to_owned())
    })
}

fn is_for(answer: &Message, fields: &str) -> bool {
    let value = fields.trim().split_once(": ").map_or("-", |(_, value)| value).to_owned();
    let text = answer.text();
    match fields.starts_with("Authorization") {
        true => text.ends_with(&format!("authorization={value}")),
        false => text.contains(&format!("cookie={value};")),
    }
}

/// Both users ask several times, in turn, and get their own answers only.
fn check_users(mut first: Client, mut second: Client, index: usize) {
    let (_, a, b) = PRIVATE[index];
    let mut numbers = Vec::new();
    for (is_first, fields) in [(true, a), (false, b), (true, a), (false, b), (false, "")] {
        let client = if is_first { &mut first } else { &mut second };
        let answer = get(client, &format!("/{index}"), fields);
        assert_eq!(answer.status(), 200);
        assert!(is_for(&answer, fields), "case {index}: {fields} got {}", answer.text());
        numbers.push(number(&answer));
    }
    numbers[..4].sort_unstable();
    numbers[..4].windows(2).for_each(|pair| assert_ne!(pair[0], pair[1], "case {index}: an answer for two"));
}

#[test]
fn one_after_the_other() {
    let upstream = scripted();
    let gateway = caching(&upstream).start();
    for index in 0..PRIVATE.len() {
        check_users(gateway.connect(), gateway.connect(), index);
    }
}

/// An answer for all that came first goes to users, and theirs to nobody.
#[test]
fn a_user_may_get_what_is_for_all_and_gives_nothing_to_others() {
    let upstream = numbered(|_| (200, "Cache-Control: max-age=60\r\n".to_owned()));
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let own = get(&mut client, "/", "Cookie: id=a\r\n");
    assert!(own.text().contains("cookie=id=a"));
    let anonymous = get(&mut client, "/", "");
    assert_eq!(number(&anonymous), 2, "the user's answer was kept from others");
    let copy = get(&mut client, "/", "Cookie: id=b\r\n");
    assert_eq!((number(&copy), cache_status(&copy).as_str()), (2, "flashweir; hit"));
    let credentials = get(&mut client, "/", "Authorization: Basic YTph\r\n");
    assert_eq!(number(&credentials), 3, "credentials go to the origin");
}

/// Single flight: the second user waits for the first one's answer, which turns out to be private.
#[test]
fn at_the_same_time() {
    for (index, workers) in (0..PRIVATE.len()).flat_map(|index| [(index, "1"), (index, "2")]) {
        let latch = Latch::new();
        let opened = latch.clone();
        let upstream = numbered(move |_| {
            opened.wait();
            (200, PRIVATE[index].0.to_owned())
        });
        let gateway = caching(&upstream).set("gateway.workers", workers).start();
        let (_, a, b) = PRIVATE[index];
        let mut users: Vec<(Client, &str)> =
            [a, b, a, b, a, b].iter().map(|&fields| (gateway.connect(), fields)).collect();
        for (client, fields) in &mut users {
            client.send(format!("GET /page HTTP/1.1\r\nHost: shop.example\r\n{fields}\r\n"));
        }
        // All have arrived: they wait for a flight or are at the server.
        gateway.wait_metric("flashweir_requests_offered_total", users.len() as f64);
        latch.open();
        let mut numbers = Vec::new();
        for (client, fields) in &mut users {
            let answer = client.response();
            assert_eq!(answer.status(), 200, "case {index}");
            assert!(is_for(&answer, fields), "case {index}: {fields} got {}", answer.text());
            numbers.push(number(&answer));
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), users.len(), "case {index}: an answer for two");
    }
}

/// What a user's answer was stored for is not found by another key that looks alike.
#[test]
fn a_request_that_changes_the_users_state_leaves_no_answer() {
    let upstream = numbered(|request| match request.start.starts_with("POST") {
        true => (200, "Cache-Control: public, max-age=60\r\n".to_owned()),
        false => (200, "Cache-Control: no-store\r\n".to_owned()),
    });
    let gateway = caching(&upstream).start();
    let mut client = gateway.connect();
    let post = client.ask("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(number(&post), 1);
    assert_eq!(number(&get(&mut client, "/", "")), 2);
    let fat = client.ask("GET / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(number(&fat), 3, "a GET with a body is its own");
}
