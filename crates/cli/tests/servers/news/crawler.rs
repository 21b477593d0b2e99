//! People in sessions beside a crawler with an address for each request: fairness from end to end. Addresses
//! come by trusted forwarding fields.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `people_are_served_beside_a_crawler_of_ten_thousand_addresses`.

#![expect(clippy::disallowed_methods, reason = "clients keep a pace")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use flashweir_testkit::{Client, GatewayBuilder, until};

use crate::news::scene::{Scene, binary};

const PEOPLE: u64 = 20;
/// More than the gateway has places for requests that wait: fewer connections would never be refused.
const CRAWLERS: u64 = 240;
/// A page and its assets.
const REQUESTS_OF_A_PAGE: u64 = 4;
const TARGET: Duration = Duration::from_secs(1);
/// The people's part of what the origin can do, and the crawler's.
const PEOPLE_PART: f64 = 0.4;
const CRAWLER_TIMES: f64 = 4.0;
const ANSWERED_IN_TIME_MIN: f64 = 0.9;

#[derive(Default)]
struct Tally {
    asked: AtomicU64,
    in_time: AtomicU64,
}

/// Asks once, from this address of loopback; the status and the decision, if there is an answer.
fn ask(
    client: &mut Option<Client>,
    source: Ipv4Addr,
    gateway: SocketAddr,
    fields: &str,
) -> Option<(u16, Option<String>)> {
    let connection = client.get_or_insert_with(|| Client::connect_from(source, gateway));
    let request = format!("GET /work HTTP/1.1\r\nhost: shop.example\r\n{fields}\r\n");
    let answer = connection.try_send(&request).ok().and_then(|()| connection.try_response().ok());
    let Some(answer) = answer else {
        *client = None;
        return None;
    };
    if answer.field("connection") == Some("close") {
        *client = None;
    }
    Some((answer.status(), answer.field("flashweir-decision").map(str::to_owned)))
}

#[test]
#[ignore = "real load: make test-load"]
fn people_in_sessions_are_answered_beside_a_crawler_with_an_address_for_each_request_under_load() {
    let (status, decision) = crawl("[\"127.0.0.0/8\"]", &["fair_share"]);
    assert_eq!(status["fairness"]["demoted"]["address"], 0, "{status}");
    assert!(decision["demoted_by"].is_string(), "{decision}");
    assert!(decision["text"].as_str().is_some_and(|text| text.contains("fair share")), "{decision}");
}

/// Goal: forwarding fields of peers that are not trusted give a crawler no addresses. Method: it writes
/// another one into each request, and is refused by the rules for one address: the sentry's, or fairness's
/// where that comes first.
#[test]
#[ignore = "real load: make test-load"]
fn a_crawler_that_forges_forwarding_fields_is_one_address_under_load() {
    let (_, decision) = crawl("[\"192.0.2.1\"]", &["client_share", "fair_share"]);
    assert!(decision["reason"] == "client_share" || decision["demoted_by"] == "address", "{decision}");
}

/// Ends the clients' loops when it goes.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// People and a crawler behind a gateway that trusts these proxies: its status in the end, and its
/// explanation of a refusal for one of these reasons.
fn crawl(trusted_proxies: &str, reasons: &[&str]) -> (serde_json::Value, serde_json::Value) {
    let scene = Scene::with_the_sentry(&[]);
    let gateway = GatewayBuilder::new(&binary())
        .upstream(&scene.origin_url())
        .set("client.trusted_proxies", trusted_proxies)
        .start();
    let address = gateway.address();
    let (ends, crawls, counts) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    let (people, crawler) = (Tally::default(), Tally::default());
    let decision = Mutex::new(None);
    std::thread::scope(|scope| {
        // A failed assertion must not leave the clients at work.
        let _end = EndsOnDrop(&ends);
        for person in 0..PEOPLE {
            let (ends, counts, people) = (&ends, &counts, &people);
            let pause = Duration::from_secs_f64(
                (PEOPLE * REQUESTS_OF_A_PAGE) as f64 / (PEOPLE_PART * scene.capacity_rps),
            );
            scope.spawn(move || {
                let (mut client, source) = (None, Ipv4Addr::new(127, 1, person as u8, 1));
                while !ends.load(Relaxed) {
                    for request in 0..REQUESTS_OF_A_PAGE {
                        let asset = if request > 0 { "sec-fetch-dest: script\r\n" } else { "" };
                        let fields = format!(
                            "x-forwarded-for: 198.51.100.{person}\r\nuser-agent: Browser/{}\r\ncookie: sid=session-{person:08}\r\n\
                             referer: http://shop.example/\r\n{asset}",
                            person % 5
                        );
                        let began = Instant::now();
                        let answer = ask(&mut client, source, address, &fields);
                        if counts.load(Relaxed) {
                            people.asked.fetch_add(1, Relaxed);
                            let is_good =
                                answer.is_some_and(|(status, _)| status == 200) && began.elapsed() <= TARGET;
                            people.in_time.fetch_add(u64::from(is_good), Relaxed);
                        }
                    }
                    std::thread::sleep(pause);
                }
            });
        }
        for number in 0..CRAWLERS {
            let (ends, crawls, crawler, decision) = (&ends, &crawls, &crawler, &decision);
            let pause = Duration::from_secs_f64(CRAWLERS as f64 / (CRAWLER_TIMES * scene.capacity_rps));
            scope.spawn(move || {
                let (mut client, mut sent, source) = (None, number, Ipv4Addr::new(127, 9, 9, 9));
                while !ends.load(Relaxed) {
                    if crawls.load(Relaxed) {
                        let fields = format!(
                            "x-forwarded-for: 10.{}.{}.7\r\nuser-agent: Browser/{}\r\n",
                            sent / 250 % 250,
                            sent % 250,
                            sent % 5
                        );
                        sent += CRAWLERS;
                        let answer = ask(&mut client, source, address, &fields);
                        crawler.asked.fetch_add(1, Relaxed);
                        let is_good = answer.as_ref().is_some_and(|(status, _)| *status == 200);
                        crawler.in_time.fetch_add(u64::from(is_good), Relaxed);
                        if let Some((_, Some(text))) = answer
                            && reasons.iter().any(|reason| text.contains(&format!("reason={reason}")))
                        {
                            *decision.lock().unwrap() = text.split(';').next().map(str::to_owned);
                        }
                    }
                    std::thread::sleep(pause);
                }
            });
        }
        // People are known before the crawler comes.
        std::thread::sleep(Duration::from_secs(4));
        crawls.store(true, Relaxed);
        until("a refusal of the crawler", Duration::from_secs(30), || {
            decision.lock().unwrap().is_some().then_some(())
        });
        counts.store(true, Relaxed);
        std::thread::sleep(Duration::from_secs(8));
    });
    let of = |tally: &Tally| (tally.in_time.load(Relaxed), tally.asked.load(Relaxed));
    let (in_time, asked) = of(&people);
    let status = gateway.status();
    let shown = format!(
        "{in_time} of {asked} people's requests in time, crawler {:?}, capacity {:.0}/s, {}",
        of(&crawler),
        scene.capacity_rps,
        status["fairness"]
    );
    println!("{shown}");
    assert!(asked > 20, "{shown}");
    assert!(in_time as f64 >= ANSWERED_IN_TIME_MIN * asked as f64, "{shown}");
    assert_eq!(status["fairness"]["demoted"]["person"], 0, "{shown}");
    let id = decision.lock().unwrap().take().expect("a refusal");
    let explained = gateway.ask_admin(&format!("/explain/{id}")).json();
    let reason = explained["reason"].as_str().expect("a reason");
    assert!(gateway.metrics().value(&format!("flashweir_requests_shed_total{{reason=\"{reason}\"}}")) > 0.0);
    (status, explained)
}
