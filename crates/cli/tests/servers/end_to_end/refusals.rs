//! Answers to a person or a program when there is no room.

use flashweir_testkit::{Client, Gateway, Latch, Upstream};

use crate::end_to_end::support::{before, binary, get_with, holding};

/// A gateway whose only place is taken, so that every other request is refused.
struct Full {
    latch: Latch,
    _upstream: Upstream,
    gateway: Gateway,
    _inside: Client,
}

impl Full {
    fn new() -> Self {
        let latch = Latch::new();
        let upstream = holding(&latch);
        let gateway = before(&upstream).set("bounds.max_requests_in_flight", "1").start();
        let mut inside = gateway.connect();
        inside.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n");
        gateway.wait_in_flight(1);
        Self { latch, _upstream: upstream, gateway, _inside: inside }
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        self.latch.open();
    }
}

#[test]
fn a_program_gets_a_problem_document_a_person_a_page_and_others_a_line() {
    let full = Full::new();
    let mut client = full.gateway.connect();
    let mut ask = |accept: &str| client.ask(&get_with("/", &format!("Accept: {accept}")));

    let problem = ask("application/json");
    assert_eq!((problem.status(), problem.field("content-type")), (503, Some("application/problem+json")));
    let document = problem.json();
    assert_eq!(document["status"], 503);
    assert_eq!(document["reason"], "requests_in_flight");
    assert!(document["type"].as_str().is_some_and(|kind| kind.contains("http-problem-types#")), "{document}");

    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
    let page = ask(browser);
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    assert!(
        page.text().starts_with("<!doctype html>") && !page.text().contains("<script"),
        "{}",
        page.text()
    );

    let line = ask("*/*");
    assert!(line.field("content-type").is_some_and(|kind| kind.starts_with("text/plain")), "{line:?}");

    for response in [&problem, &page, &line] {
        let (id, reason) = response
            .field("flashweir-decision")
            .and_then(|field| field.split_once("; "))
            .expect("a decision");
        assert_eq!((id.len(), reason), (13, "reason=requests_in_flight"));
        let seconds: u32 = response.field("retry-after").expect("a time").parse().expect("whole seconds");
        assert!(seconds >= 1);
        assert_eq!(response.field("cache-control"), Some("no-store"));
        assert!(response.text().contains(id), "the body names the decision too: {}", response.text());
    }
}

#[test]
fn head_is_refused_without_a_body() {
    let full = Full::new();
    let mut client = full.gateway.connect();
    client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response_to_head().expect("a response");
    assert_eq!(response.status(), 503);
    assert!(response.fields.has("flashweir-decision"));
    assert_eq!(
        client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status(),
        503,
        "the connection is still in step"
    );
}

#[test]
fn a_body_nobody_wants_is_not_asked_for() {
    let full = Full::new();
    let mut client = full.gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.response().status(), 503, "no 100 before it");
}

#[test]
fn a_small_body_that_came_along_does_not_cost_the_connection() {
    let full = Full::new();
    let mut client = full.gateway.connect();
    for _ in 0..2 {
        let response = client.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(response.status(), 503);
        assert!(!response.fields.has("connection"), "{response:?}");
    }
}

#[test]
fn a_client_still_sending_a_large_body_gets_to_read_its_refusal() {
    let full = Full::new();
    let mut client = full.gateway.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    let _ = client.try_send(vec![b'x'; 100_000]);
    let response = client.response();
    assert_eq!((response.status(), response.field("connection")), (503, Some("close")));
}

#[test]
fn a_refusal_explains_itself_to_the_operator() {
    let full = Full::new();
    let refused = full.gateway.connect().ask("GET /private?token=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    let id = refused
        .field("flashweir-decision")
        .and_then(|field| field.split(';').next())
        .expect("a decision")
        .to_owned();

    let explained = full.gateway.ask_admin(&format!("/explain/{id}"));
    assert_eq!(explained.status(), 200);
    let document = explained.json();
    assert_eq!(
        (&document["decision"], &document["reason"]),
        (&id.as_str().into(), &"requests_in_flight".into())
    );
    assert!(document["plan"]["mode"].is_string() && document["text"].is_string(), "{document}");
    assert!(!explained.text().contains("token"), "the URL is not remembered");

    let admin = full.gateway.admin().to_string();
    let explained = binary().run(["explain", &id, "--admin", &admin]);
    assert_eq!(explained.code(), Some(0), "{}", explained.stderr);
    assert!(
        explained.stdout.contains(&id) && explained.stdout.contains("max_requests_in_flight"),
        "{}",
        explained.stdout
    );
    let shouted = binary().run(["explain", &id.to_uppercase(), "--admin", &admin]);
    assert_eq!(shouted.code(), Some(0), "ids survive being read aloud: {}", shouted.stderr);
}

#[test]
fn an_id_that_names_nothing_is_told_so() {
    let full = Full::new();
    let admin = full.gateway.admin().to_string();
    assert_eq!(full.gateway.ask_admin("/explain/0000000000000").status(), 404);
    assert_eq!(full.gateway.ask_admin("/explain/not-an-id").status(), 400);
    let unknown = binary().run(["explain", "0000000000000", "--admin", &admin]);
    assert_eq!(unknown.code(), Some(1));
    assert!(unknown.stderr.contains("no such decision"), "{}", unknown.stderr);
    let malformed = binary().run(["explain", "hello", "--admin", &admin]);
    assert_eq!(malformed.code(), Some(64), "{}", malformed.stderr);
    let unreachable = binary().run([
        "explain",
        "0000000000000",
        "--admin",
        &flashweir_testkit::reserve_address().to_string(),
    ]);
    assert_eq!(unreachable.code(), Some(1));
    assert!(unreachable.stderr.contains("--admin"), "{}", unreachable.stderr);
}
