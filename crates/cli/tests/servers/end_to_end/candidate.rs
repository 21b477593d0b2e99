//! A candidate policy beside the one in force: its decisions are reported, and no client notices. The servers
//! answer no request until the test lets them, so the limit is what it is at a cold start: 8, and 10 for the
//! class that goes first.

use flashweir_testkit::{Client, Gateway, GatewayBuilder, Latch, Message, Upstream, eventually};
use serde_json::Value;

use crate::end_to_end::support::{before, binary, get_with, holding};

const LIVE: &str = r#"[{ name = "gold", match = { header = "x-plan: gold" }, revenue = 10, queue = 0 }, { name = "rest", queue = 0 }]"#;
/// Gold has no priority here, and all other requests go first.
const OTHER: &str = r#"[{ name = "few", match = { header = "x-plan: gold" }, queue = 0 }, { name = "many", revenue = 10, queue = 0 }]"#;

fn live(upstream: &Upstream) -> GatewayBuilder {
    let gateway = before(upstream).set("gateway.workers", "1").set("class", LIVE);
    gateway.text("sentry.response_target", "1m")
}

/// Eight of the rest are let in and four refused, two of gold are let in and one refused.
struct Crowd {
    inside: Vec<Client>,
    refused: Vec<Message>,
}

/// Decision about each request, while the limit is that of a cold start.
const EXPECTED: [(&str, bool, usize); 4] =
    [("none", true, 8), ("none", false, 4), ("gold", true, 2), ("gold", false, 1)];

impl Crowd {
    /// `None` where the limit has moved meanwhile, as it may on a machine that is busy with other things.
    fn send(gateway: &Gateway) -> Option<Self> {
        let mut crowd = Self { inside: Vec::new(), refused: Vec::new() };
        for (plan, is_let_in, count) in EXPECTED {
            for _ in 0..count {
                let mut client = gateway.connect();
                client.send(request(plan));
                let sent = (crowd.inside.len() + crowd.refused.len() + 1) as u64;
                let decided = |of: &str| gateway.status()["requests"][of].as_u64().expect("a count");
                eventually("a decision", || (decided("admitted") + decided("shed") == sent).then_some(()));
                let inside = crowd.inside.len() as u64 + u64::from(is_let_in);
                if decided("admitted") != inside {
                    return None;
                }
                if is_let_in {
                    crowd.inside.push(client);
                } else {
                    crowd.refused.push(client.response());
                }
            }
        }
        Some(crowd)
    }

    /// All answers, but for what differs from one to the next anyway: a refusal's id and the time to come
    /// back, and the date.
    fn answers(mut self) -> Vec<String> {
        let inside = self.inside.iter_mut().map(|client| with_replacements(&client.response(), &[]));
        let inside: Vec<String> = inside.collect();
        let refused = self.refused.iter().map(|refusal| {
            let seconds = refusal.field("retry-after").expect("a time");
            with_replacements(refusal, &[(decision(refusal), "ID"), (&format!("in {seconds} s"), "in N s")])
        });
        inside.into_iter().chain(refused).collect()
    }
}

/// An answer with other words for some.
fn with_replacements(answer: &Message, replaced: &[(&str, &str)]) -> String {
    let replace =
        |text: &str| replaced.iter().fold(text.to_owned(), |text, (one, other)| text.replace(one, other));
    let drawn = ["date", "retry-after", "content-length"];
    let fields = answer.fields.0.iter().map(|(name, value)| match drawn.contains(&name.as_str()) {
        true => format!("{name}: N\n"),
        false => format!("{name}: {}\n", replace(value)),
    });
    format!("{}\n{}\n{}", answer.start, fields.collect::<String>(), replace(&answer.text()))
}

fn request(plan: &str) -> String {
    get_with("/", &format!("x-plan: {plan}"))
}

fn decision(refusal: &Message) -> &str {
    refusal.field("flashweir-decision").and_then(|field| field.split(';').next()).expect("a decision")
}

fn candidate(gateway: &Gateway) -> Value {
    gateway.status()["services"][0]["candidate"].clone()
}

fn series(name: &str, class: &str, more: &str) -> String {
    format!("flashweir_candidate_{name}_total{{service=\"default\",class=\"{class}\"{more}}}")
}

#[test]
fn it_tells_what_it_would_have_done_and_answers_are_as_without_it() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let with_crowd = |builder: &dyn Fn() -> GatewayBuilder| {
        let started = (0..10).map(|_| builder().start());
        let mut sent = started.filter_map(|gateway| Some((Crowd::send(&gateway)?, gateway)));
        sent.next().expect("a limit that stays for as long as it takes to send fifteen requests")
    };
    let (crowd, gateway) = with_crowd(&|| live(&upstream).set("candidate.class", OTHER));

    // The candidate keeps the two places for those that the live policy refused.
    gateway.wait_metric(&series("offered", "few", ""), 3.0);
    gateway.wait_metric(&series("offered", "many", ""), 12.0);
    let metrics = gateway.metrics();
    let agreement = |class: &str| {
        let who = ["both", "live", "candidate", "neither"];
        who.map(|who| metrics.value(&series("agreement", class, &format!(",let_in_by=\"{who}\""))))
    };
    assert_eq!((agreement("many"), agreement("few")), ([8.0, 0.0, 2.0, 2.0], [0.0, 2.0, 0.0, 1.0]));
    let of = |name: &str, class: &str| metrics.value(&series(name, class, ""));
    assert_eq!([of("admitted", "many"), of("admitted", "few")], [10.0, 0.0]);
    let full = ["many", "few"].map(|class| metrics.value(&series("shed", class, ",reason=\"capacity\"")));
    assert_eq!(full, [2.0, 3.0]);

    let status = candidate(&gateway);
    assert_eq!(status["virtual"]["in_flight"], 10, "{status}");
    let many = &status["classes"][1];
    assert_eq!((&many["name"], &many["let_in_by"]["candidate"]), (&"many".into(), &2.into()), "{status}");

    for (refusal, would) in [(&crowd.refused[0], "let_in"), (&crowd.refused[4], "refuse")] {
        let explained = gateway.ask_admin(&format!("/explain/{}", decision(refusal))).json();
        assert_eq!(explained["sentry"]["candidate"]["would"], would, "{explained}");
    }
    let admin = gateway.admin().to_string();
    let explained = binary().run(["explain", decision(&crowd.refused[0]), "--admin", &admin]);
    let sentence = "The candidate policy would have let it in, in class many.";
    assert!(explained.stdout.contains(sentence), "{}", explained.stdout);

    let (crowd_without, gateway_without) = with_crowd(&|| live(&upstream));
    assert_eq!(candidate(&gateway_without), Value::Null);
    latch.open();
    assert_eq!(crowd.answers(), crowd_without.answers());
    // Both had the eight; by the candidate's revenues they are worth 10 each, and gold's two only 1.
    let revenue = |class: &str, policy: &str| series("revenue", class, &format!(",policy=\"{policy}\""));
    gateway.wait_metric(&revenue("few", "live"), 2.0);
    gateway.wait_metric(&revenue("many", "candidate"), 80.0);
    assert_eq!(gateway.metrics().value(&revenue("few", "candidate")), 0.0);
}

#[test]
fn a_reload_brings_it_changes_it_and_takes_it_away() {
    let upstream = Upstream::saying("served");
    let mut gateway = live(&upstream).start();
    assert_eq!(gateway.get("/").text(), "served");
    assert!(!gateway.stderr().contains("candidate"), "{}", gateway.stderr());

    gateway.configure(&[("candidate.class", Some(OTHER))]);
    gateway.reload();
    eventually("the candidate", || (candidate(&gateway) != Value::Null).then_some(()));
    let offered = |gateway: &Gateway| candidate(gateway)["classes"][1]["offered"].clone();
    eventually("it to be asked", || {
        assert_eq!(gateway.get("/").text(), "served");
        (offered(&gateway) != 0).then_some(())
    });
    let said = || gateway.stderr().matches("a candidate policy is compared").count();
    eventually("a line", || (said() >= 1).then_some(()));
    assert_eq!(said(), 1, "{}", gateway.stderr());

    // A wrong one is refused with its place, and the one before stays with all that it has seen.
    gateway.configure(&[("candidate.class", Some("[{ name = \"few\", revenue = 0 }]"))]);
    gateway.reload();
    gateway.wait_metric("flashweir_config_reloads_total{outcome=\"failed\"}", 1.0);
    let wanted = "flashweir.toml:8: candidate.class[0].revenue: 0 is out of range, expected 0.001 to 1000000";
    eventually(wanted, || gateway.stderr().contains(wanted).then_some(()));
    assert!(offered(&gateway) != 0 && offered(&gateway) != Value::Null, "{}", candidate(&gateway));

    gateway.configure(&[("candidate.class", Some("[{ name = \"all\" }]"))]);
    gateway.reload();
    eventually("another one", || (candidate(&gateway)["classes"][0]["name"] == "all").then_some(()));
    assert_eq!(gateway.get("/").text(), "served");
    gateway.configure(&[("candidate.class", None)]);
    gateway.reload();
    eventually("its end", || (candidate(&gateway) == Value::Null).then_some(()));
    assert_eq!(gateway.get("/").text(), "served");
}
