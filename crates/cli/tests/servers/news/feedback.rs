//! Overload feedback between nodes: a gateway obeys its upstream, asks the nodes in front of it, and two
//! gateways in a row do not both throttle.
//!
//! Twin in virtual time of the tests under load: `sim`,
//! `cooperating_senders_leave_the_node_little_to_refuse`.

use std::sync::Mutex;
use std::time::Duration;

use flashweir_core::{Duration as CoreDuration, Rate};
use flashweir_feedback::{Feedback, Field, KeyRing, Mac};
use flashweir_testkit::{Client, GatewayBuilder, Load, Message, Metrics, Upstream, eventually};
use flashweir_tower::client::Keys;

use crate::news::scene::{Scene, binary, count};

/// Least share of the origin's time that goes into answers in time. Holds beside ten other busy processes.
const USEFUL_MIN: f64 = 0.75;
/// Of the crowd, at most this part is refused by the overloaded gateway itself.
const REFUSED_AT_NODE_MAX: f64 = 0.1;

/// Rate that an upstream asks for: less than one client sends even on a busy machine.
const ASKED_RPS: f64 = 3.0;

const KEY: &str = "1 correct horse battery staple";

/// Without keys nothing is signed.
struct NoKey;

impl Mac for NoKey {
    fn tag(&self, _: &[&[u8]]) -> [u8; 32] {
        [0; 32]
    }
}

/// The field of a node that asks for `rate_rps`, or for nothing.
fn field(sequence: u32, rate_rps: Option<f64>) -> String {
    let ttl = CoreDuration::from_secs(10);
    let rate = rate_rps.map(Rate::from_per_second);
    let feedback = Feedback { epoch: 7, sequence, from_rank: 0, severity: 1, rate, ttl };
    let field = Field::new(&feedback, &KeyRing::<NoKey>::empty(), b"").expect("a message");
    String::from_utf8(field.as_bytes().to_vec()).expect("base64")
}

fn shed(metrics: &Metrics, reason: &str) -> f64 {
    metrics.find(&format!("flashweir_requests_shed_total{{reason=\"{reason}\"}}")).unwrap_or(0.0)
}

fn is_refused_for(response: &Message, reason: &str) -> bool {
    response.status() == 503
        && response.field("flashweir-decision").is_some_and(|decision| decision.contains(reason))
}

#[test]
fn what_an_upstream_asks_for_is_obeyed_and_what_makes_no_sense_is_ignored() {
    let said: &'static Mutex<String> = Box::leak(Box::new(Mutex::new(field(1, Some(ASKED_RPS)))));
    let upstream = Upstream::start(move |connection| {
        while connection.read_request().is_some() {
            let fields = format!("Flashweir-Overload: {}\r\n", said.lock().expect("no panic"));
            if !connection.answer(200, &fields, "served") {
                return;
            }
        }
    });
    // Each worker reports a field that is new to it; with one, each is reported once.
    let gateway =
        GatewayBuilder::new(&binary()).upstream(&upstream.url()).set("gateway.workers", "1").start();
    let say = |field: String| *said.lock().expect("no panic") = field;
    let first = gateway.get("/");
    assert_eq!(first.status(), 200);
    assert_eq!(first.field("flashweir-overload"), None, "it is for this gateway, not for its clients");
    // A burst of two is let through first.
    let refused = eventually("a request refused because the upstream asked", || {
        let response = gateway.get("/");
        is_refused_for(&response, "upstream_feedback").then_some(response)
    });
    assert!(refused.field("retry-after").is_some());
    let status = gateway.status();
    let upstream_status = &status["services"][0]["feedback"]["upstreams"][0];
    assert_eq!(upstream_status["asks"]["rate_rps"].as_f64(), Some(ASKED_RPS), "{upstream_status}");
    eventually("the verdict to say who limits", || {
        let _ = gateway.get("/");
        (gateway.status()["verdict"]["limited_by"] == "gapping").then_some(())
    });
    // Garbage, and a message that is older, change nothing; a release ends the limit.
    for ignored in [":AAAA:".to_owned(), field(0, None)] {
        say(ignored);
        eventually("a request that goes", || (gateway.get("/").status() == 200).then_some(()));
        eventually("one refused all the same", || {
            is_refused_for(&gateway.get("/"), "upstream_feedback").then_some(())
        });
    }
    eventually("each field to be counted once", || {
        let metrics = gateway.metrics();
        let counts = ["new", "stale", "malformed"].map(|outcome| {
            metrics.value(&format!("flashweir_feedback_fields_total{{outcome=\"{outcome}\"}}"))
        });
        (counts == [1.0; 3]).then_some(())
    });
    say(field(9, None));
    eventually("ten requests in a row that go", || {
        (0..10).all(|_| gateway.get("/").status() == 200).then_some(())
    });
}

/// Goal: each kind of bad field, and one that a proxy strips, is counted by its kind and logged once, and
/// changes nothing. Method: a gateway with a key before a server whose field lines are the test's to write;
/// the limit in force is far above what is sent.
#[test]
fn bad_and_stripped_fields_are_seen_and_change_nothing() {
    let said: &'static Mutex<String> = Box::leak(Box::default());
    let upstream = Upstream::start(move |connection| {
        while connection.read_request().is_some() {
            let fields = said.lock().expect("no panic").clone();
            if !connection.answer(200, &fields, "served") {
                return;
            }
        }
    });
    let builder = GatewayBuilder::new(&binary()).upstream(&upstream.url()).text("gateway.name", "shop");
    std::fs::write(builder.directory().join("feedback.keys"), format!("{KEY}\n")).expect("a directory");
    // Each worker reports a field that is new to it; with one, each case below is reported once.
    let gateway = builder.text("feedback.keys_file", "feedback.keys").set("gateway.workers", "1").start();
    let count = |outcome: &str| {
        gateway.metrics().value(&format!("flashweir_feedback_fields_total{{outcome=\"{outcome}\"}}"))
    };
    let signed = |sequence: u32, key: &str, context: &str| {
        let ring = Keys::parse(key, "test").expect("a key").ring();
        let (rate, ttl) = (Some(Rate::from_per_second(1e6)), CoreDuration::from_secs(10));
        let asks = Feedback { epoch: 7, sequence, from_rank: 0, severity: 1, rate, ttl };
        let field = Field::new(&asks, &ring, context.as_bytes()).expect("a message");
        format!("Flashweir-Overload: {}\r\n", String::from_utf8_lossy(field.as_bytes()))
    };
    let say = |outcome: &str, fields: String| {
        let before = count(outcome);
        *said.lock().expect("no panic") = fields;
        eventually(outcome, || {
            assert_eq!(gateway.get("/").status(), 200, "{outcome}");
            (count(outcome) > before).then_some(())
        });
    };
    let good = signed(5, KEY, "shop>shop");
    let forged = signed(6, "1 guessed horse battery staple", "shop>shop");
    let cases = [
        ("new", good.clone()),
        ("forged", forged),
        ("forged", signed(6, KEY, "blog>shop")),
        ("forged", signed(6, "2 correct horse battery staple", "shop>shop")),
        ("forged", format!("Flashweir-Overload: {}\r\n", field(6, Some(0.0)))),
        ("stale", signed(4, KEY, "shop>shop")),
        ("malformed", good[..40].to_owned() + "\r\n"),
        ("malformed", format!("Flashweir-Overload: {}\r\n", "A".repeat(4_000))),
        ("malformed", signed(6, KEY, "shop>shop") + &signed(7, KEY, "shop>shop")),
        ("missing", String::new()),
        ("new", signed(8, KEY, "shop>shop")),
    ];
    for (outcome, fields) in cases {
        say(outcome, fields);
    }
    let status = &gateway.status()["services"][0]["feedback"]["upstreams"][0];
    assert_eq!(status["asks"]["rate_rps"].as_f64(), Some(1e6), "{status}");
    assert_eq!(["new", "forged", "stale", "malformed"].map(count), [2.0, 4.0, 1.0, 3.0]);
    let log = gateway.stderr();
    let lines = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(lines("come without Flashweir-Overload"), 1, "{log}");
    assert!(lines("Flashweir-Overload was ignored") >= 1, "{log}");
}

/// Goal: nodes in front are asked for less, each with its share, and what is beyond a share is refused first.
/// Method: a crowd of which every address is a node in front that does not listen.
#[test]
#[ignore = "real load: make test-load"]
fn nodes_in_front_are_asked_and_those_that_do_not_listen_are_refused_first_under_load() {
    let scene = Scene::behind_nodes();
    let rate = scene.times_capacity(3.0);
    let crowd = Load::start(
        &binary(),
        &format!("http://{}/work", scene.gateway.address()),
        &["--rate", &rate, "--duration", "14s", "--sources", "3"],
    );
    let field = eventually("a response that asks for less", || {
        let mut client = Client::connect(scene.gateway.address());
        let response = client.ask("GET /work HTTP/1.1\r\nHost: shop\r\n\r\n");
        response.field("flashweir-overload").map(ToOwned::to_owned)
    });
    let asked = Field::parse::<NoKey>(field.as_bytes(), &KeyRing::empty(), b"").expect("a message");
    assert!(asked.rate.is_some() && asked.from_rank == 0, "{asked:?}");
    let result = crowd.finish(Duration::from_secs(60));
    let metrics = scene.gateway.metrics();
    let summary = format!("{}, {result}", scene.gateway.status()["services"][0]["feedback"]);
    assert!(shed(&metrics, "sender_share") > 0.0, "{summary}");
    assert!(metrics.value("flashweir_feedback_senders{service=\"default\"}") >= 3.0, "{summary}");
    assert!(count(&result, "goodput") > 0, "{summary}");
}

/// Goal: two gateways in a row serve as much as one: neither refuses for the other. The one in front learns
/// what the one behind it can do, so that one has little to refuse and hardly ever has to ask.
#[test]
#[ignore = "real load: make test-load"]
fn two_gateways_in_a_row_do_not_both_throttle_under_load() {
    let scene = Scene::before_a_node();
    let node = scene.node.as_ref().expect("a gateway behind");
    let (result, _, useful) = scene.send_crowd(7);
    let (front, behind) = (scene.gateway.metrics(), node.metrics());
    let offered = count(&result, "offered") as f64;
    let [at_front, at_node] = [&front, &behind].map(|metrics| metrics.sum("flashweir_requests_shed_total"));
    let summary = format!(
        "offered {offered}, refused at the node {at_node}, in front {at_front}, of these because the node asked {}; {}, {useful:?}",
        shed(&front, "upstream_feedback"),
        node.status()["services"][0]["feedback"],
    );
    println!("{summary}");
    assert!(at_front > 0.0 && at_node <= REFUSED_AT_NODE_MAX * offered, "{summary}");
    assert!(useful.useful() >= USEFUL_MIN, "useful {:.2}: {summary}", useful.useful());
    assert_eq!(front.value("flashweir_feedback_fields_total{outcome=\"forged\"}"), 0.0, "{summary}");
    assert_eq!(behind.value("flashweir_feedback_senders{service=\"node\"}"), 1.0, "{summary}");
}
