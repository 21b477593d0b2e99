//! Two users on every path: what is made for one never reaches the other. A private answer in the wrong hands
//! is the worst bug there is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flashweir_testkit::{Client, Latch, PRIVATE, Upstream, eventually, is_made_for, private_case};

use crate::cache::scene::{cache_status, caching, get, head, number, numbered};

/// A server that says all of them, by the number in the target.
fn scripted() -> Upstream {
    numbered(|request| (200, PRIVATE[private_case(request)].0.to_owned()))
}

/// Both users ask several times, in turn, and get their own answers only.
fn check_users(mut first: Client, mut second: Client, index: usize) {
    let (_, a, b) = PRIVATE[index];
    let mut numbers = Vec::new();
    for (is_first, fields) in [(true, a), (false, b), (true, a), (false, b), (false, "")] {
        let client = if is_first { &mut first } else { &mut second };
        let answer = get(client, &format!("/{index}"), fields);
        assert_eq!(answer.status(), 200);
        assert!(is_made_for(&answer, fields), "case {index}: {fields} got {}", answer.text());
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

/// An answer for all that came first goes to users, and theirs to no other.
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
            assert!(is_made_for(&answer, fields), "case {index}: {fields} got {}", answer.text());
            numbers.push(number(&answer));
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), users.len(), "case {index}: an answer for two");
    }
}

/// The answer that was stored for a user's request is not found by another key that looks alike.
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

/// A document that was for all becomes one user's own when it is validated: by a 304, by a new answer, and by
/// a refresh for which no request waits. The old answer is for all; the new ones reach the user that they
/// were made for.
#[test]
fn what_becomes_private_when_it_is_validated_reaches_no_other() {
    let for_all = ["max-age=1", "max-age=1, stale-while-revalidate=600", "max-age=1, stale-if-error=600"];
    let then = [
        (304, "Set-Cookie: of="),
        (200, "Set-Cookie: of="),
        (304, "Cache-Control: private, of="),
        (200, "Cache-Control: private, of="),
    ];
    std::thread::scope(|scope| {
        for (first, then) in for_all.into_iter().flat_map(|first| then.map(|then| (first, then))) {
            scope.spawn(move || check_becoming_private(first, then));
        }
    });
}

fn check_becoming_private(first: &'static str, (status, field): (u16, &'static str)) {
    let is_first = AtomicBool::new(true);
    let upstream = numbered(move |request| {
        if is_first.swap(false, Ordering::SeqCst) {
            return (200, format!("Cache-Control: {first}\r\nETag: \"1\"\r\n"));
        }
        let status = if request.fields.has("if-none-match") { status } else { 200 };
        let of = request.field("cookie").unwrap_or("-").replace('=', "-");
        (status, format!("ETag: \"1\"\r\n{field}{of}\r\n"))
    });
    let gateway = caching(&upstream).start();
    let mut clients = [gateway.connect(), gateway.connect(), gateway.connect()];
    assert_eq!(number(&get(&mut clients[2], "/", "")), 1);
    let mut own = 0;
    let begun = Instant::now();
    eventually("answers of the users' own", || {
        for (client, (fields, of)) in
            clients.iter_mut().zip([("Cookie: id=a\r\n", "id-a"), ("Cookie: id=b\r\n", "id-b"), ("", "-")])
        {
            let answer = get(client, "/", fields);
            let context =
                format!("{first}, {status} {field}: {fields} got {} {}", head(&answer), answer.text());
            assert_eq!(answer.status(), 200, "{context}");
            let others: Vec<&str> = ["of=id-a", "of=id-b", "of=-"]
                .into_iter()
                .filter(|it| *it != format!("of={of}") && head(&answer).contains(it))
                .collect();
            assert!(others.is_empty(), "{context}");
            assert!(number(&answer) == 1 || is_made_for(&answer, fields), "{context}");
            own += usize::from(number(&answer) > 1);
        }
        // Both users and the third have theirs, some time after the second in which the first answer is
        // fresh.
        (own >= 6 && begun.elapsed() > Duration::from_secs(1)).then_some(())
    });
}
