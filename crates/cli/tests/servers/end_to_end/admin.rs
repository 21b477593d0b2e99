//! The admin listener: true, complete, and without any client's address in it.

use std::collections::BTreeSet;

use flashweir_testkit::{Client, Gateway, Latch, Upstream, eventually};

use crate::end_to_end::support::{before, binary, get, holding, reflecting};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

#[test]
fn health_and_readiness_are_plain_answers() {
    let (_upstream, gateway) = reflecting();
    assert_eq!(gateway.ask_admin("/healthz").status(), 200);
    assert_eq!(gateway.ask_admin("/readyz").status(), 200);
    assert_eq!(gateway.ask_admin("/nothing").status(), 404);
    let posted = Client::connect(gateway.admin())
        .ask("POST /status HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert_eq!(posted.status(), 405);
}

#[test]
fn metrics_are_in_the_format_asked_for_and_name_no_client() {
    let (_upstream, gateway) = reflecting();
    let source = Ipv4Addr::new(127, 44, 55, 66);
    let mut client = Client::connect_from(source, gateway.address());
    let secret =
        "GET /private-path?token=abc HTTP/1.1\r\nHost: private.example\r\nUser-Agent: private-agent\r\n\r\n";
    assert_eq!(client.ask(secret).status(), 200);
    assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 2\r\n\r\n").status(), 400);
    // Both are counted once their bytes are on their way, so perhaps a moment after they were read here.
    gateway.wait_metric("flashweir_requests_bad_total{kind=\"framing\"}", 1.0);
    gateway.wait_metric("flashweir_requests_completed_total", 1.0);
    let response = gateway.ask_admin("/metrics");
    let kind = response.field("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = response.text();
    assert!(
        text.contains("# TYPE flashweir_requests_offered_total counter") && !text.contains("# EOF"),
        "{text}"
    );
    for private in ["127.44.55.66", "private", "token"] {
        assert!(!text.contains(private), "{private} is in the metrics");
    }
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_requests_offered_total"), 1.0);
    assert_eq!(metrics.value("flashweir_requests_completed_total"), 1.0);
    assert_eq!(metrics.value("flashweir_requests_bad_total{kind=\"framing\"}"), 1.0);
    assert_eq!(metrics.value("flashweir_responses_total{class=\"2xx\"}"), 1.0);
    assert_eq!(metrics.value("flashweir_request_duration_seconds_count"), 1.0);
    assert!(
        !gateway.stderr().contains("127.44.55.66") && !gateway.stderr().contains("private"),
        "{}",
        gateway.stderr()
    );
}

#[test]
fn every_metric_of_the_manual_is_exported_and_every_exported_one_is_in_it() {
    let (_upstream, gateway) = reflecting();
    let _ = gateway.get("/");
    let manual = include_str!("../../../../../docs/metrics.md");
    // Each section says which commands export it.
    let of_gateway = manual.split("\n## ").filter(|section| {
        section.lines().any(|line| line.starts_with("Exported by") && line.contains("`flashweir run`"))
    });
    let written: BTreeSet<&str> = of_gateway
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let metrics = gateway.metrics();
    let exported: BTreeSet<String> = metrics
        .families
        .iter()
        .map(|(family, kind)| match kind.as_str() {
            "counter" => format!("{family}_total"),
            "info" => format!("{family}_info"),
            _ => family.clone(),
        })
        .collect();
    let unwritten: Vec<_> = exported.iter().filter(|name| !written.contains(name.as_str())).collect();
    assert!(unwritten.is_empty(), "not in docs/metrics.md: {unwritten:?}");
    // Those that are absent until there is something to say are gauges of the plan.
    let missing: Vec<_> = written
        .iter()
        .filter(|name| !exported.contains(**name) && !name.starts_with("flashweir_plan_"))
        .collect();
    assert!(missing.is_empty(), "in docs/metrics.md only: {missing:?}");
}

#[test]
fn offered_is_admitted_and_shed_and_admitted_is_accounted_for() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = before(&upstream).set("bounds.max_requests_in_flight", "2").start();
    let mut held: Vec<Client> = (0..2).map(|_| gateway.connect()).collect();
    held.iter_mut().for_each(|client| client.send(get("/")));
    gateway.wait_in_flight(2);
    for _ in 0..5 {
        assert_eq!(gateway.get("/").status(), 503);
    }
    let check = |in_flight: f64| {
        let metrics = gateway.metrics();
        let count = |name: &str| metrics.sum(&format!("flashweir_requests_{name}_total"));
        assert_eq!(count("offered"), count("admitted") + count("shed"));
        assert_eq!(count("admitted"), count("completed") + count("failed") + count("abandoned") + in_flight);
        assert_eq!(metrics.value("flashweir_requests_in_flight"), in_flight);
        (count("offered"), count("shed"))
    };
    assert_eq!(check(2.0), (7.0, 5.0));
    latch.open();
    held.iter_mut().for_each(|client| assert_eq!(client.response().status(), 200));
    gateway.wait_in_flight(0);
    assert_eq!(check(0.0), (7.0, 5.0));
    let status = gateway.status();
    assert_eq!(
        (&status["requests"]["offered"], &status["requests"]["shed"]),
        (&7.into(), &5.into()),
        "{status}"
    );
}

#[test]
fn the_status_says_what_is_limited_by_what_and_why() {
    let upstream = Upstream::saying("x");
    let gateway = before(&upstream).text("gateway.name", "shop").start();
    let _ = gateway.get("/");
    let status = gateway.status();
    for key in [
        "version",
        "uptime_s",
        "workers",
        "processors",
        "plan",
        "limits",
        "binds",
        "services",
        "upstreams",
        "baseline",
        "requests",
    ] {
        assert!(!status[key].is_null(), "{key} is missing: {status}");
    }
    assert_eq!(status["service"], "shop");
    assert_eq!(status["plan"]["mode"], "normal");
    assert_eq!(status["plan"]["limit"]["kind"], "open");
    assert!(status["plan"]["cause"].is_string() && status["plan"]["rule"].is_string(), "{status}");
    assert_eq!(status["upstreams"][0]["healthy"], true);
    let names: Vec<_> =
        status["limits"].as_array().expect("limits").iter().map(|limit| limit["name"].clone()).collect();
    for name in
        ["flash_crowd", "requests_in_flight", "upstream_connections", "connections", "connections_per_client"]
    {
        assert!(names.contains(&name.into()), "{name} is missing: {names:?}");
    }
}

#[test]
fn too_few_requests_to_judge_are_said_to_be_too_few() {
    let (_upstream, gateway) = reflecting();
    let _ = gateway.get("/");
    assert_eq!(gateway.status()["plan"]["cause"], "too_few_samples");
    gateway.wait_metric("flashweir_plan_cause{cause=\"too_few_samples\"}", 1.0);
}

/// A probe that had to wait for a place would take the 5 s after which half a head is given up, or the 60 s
/// of an answer. Of those that need not wait one took 2.3 s beside four other tests and a compiler on two
/// cores, so one second was too little.
const PROBE_WITHIN: Duration = Duration::from_secs(4);

fn probe(gateway: &Gateway, path: &str) -> u16 {
    let begun = Instant::now();
    let status = gateway.ask_admin(path).status();
    assert!(begun.elapsed() < PROBE_WITHIN, "{path} took {:?}", begun.elapsed());
    status
}

#[test]
fn half_requests_do_not_keep_probes_out() {
    let (_upstream, gateway) = reflecting();
    let half: Vec<Client> = (0..70)
        .map(|_| {
            let mut client = Client::connect(gateway.admin());
            client.send("GET /metrics HTTP/1.1\r\nHost: a\r\n");
            client
        })
        .collect();
    assert_eq!((probe(&gateway, "/healthz"), probe(&gateway, "/readyz")), (200, 200));
    assert_eq!(probe(&gateway, "/metrics"), 200);
    drop(half);
}

#[test]
fn readers_that_do_not_read_do_not_keep_probes_out() {
    let (_upstream, gateway) = reflecting();
    // Each asks often enough for its answers to fill what the kernel holds for it.
    let slow: Vec<Client> = (0..80)
        .map(|_| {
            let mut client = Client::connect(gateway.admin());
            client.send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".repeat(400));
            client
        })
        .collect();
    assert_eq!((probe(&gateway, "/healthz"), probe(&gateway, "/readyz")), (200, 200));
    drop(slow);
}

#[test]
fn a_page_cannot_ask_through_its_visitors_browser() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("admin.hosts", "[\"gw.corp.example\"]").start();
    let ask = |host: &str| {
        let request = format!("GET /status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        Client::connect(gateway.admin()).ask(&request).status()
    };
    assert_eq!(ask("rebound.evil.example"), 421);
    assert_eq!(ask(&format!("rebound.evil.example:{}", gateway.admin().port())), 421);
    for host in
        [gateway.admin().to_string(), "localhost:9900".into(), "[::1]".into(), "gw.corp.example".into()]
    {
        assert_eq!(ask(&host), 200, "{host}");
    }
}

/// RFC 6454 §7.3: a browser adds `Origin` to each request of a page that may change something.
#[test]
fn a_page_changes_nothing_through_its_visitors_browser() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).start();
    let ask = |start: &str, fields: &str| {
        let request = format!(
            "{start} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        Client::connect(gateway.admin()).ask(&request).status()
    };
    let origin = "Origin: http://evil.example\r\n";
    for start in
        ["DELETE /cache?all=true", "DELETE /fairness/impatient", "POST /replication/report", "PUT /nothing"]
    {
        assert_eq!(ask(start, origin), 403, "{start}");
        assert_ne!(ask(start, ""), 403, "{start}");
    }
    assert_eq!(ask("GET /status", origin), 200, "reading is not changing");
}

#[test]
fn it_is_not_ready_while_no_server_is_healthy() {
    let upstream = Upstream::saying("here");
    let address = upstream.address();
    let gateway = before(&upstream).text("upstream.health.eject_for", "3s").start();
    assert_eq!(gateway.ask_admin("/readyz").status(), 200);
    drop(upstream);
    eventually("not ready", || {
        let _ = gateway.get("/");
        let answer = gateway.ask_admin("/readyz");
        (answer.status() == 503).then(|| assert_eq!(answer.text(), "no upstream is healthy\n"))
    });
    assert_eq!(gateway.ask_admin("/healthz").status(), 200, "alive all the same");
    let _again = Upstream::start_at(address, |connection| {
        while connection.read_request().is_some() && connection.answer(200, "", "back") {}
    });
    eventually("ready again", || {
        let _ = gateway.get("/");
        (gateway.ask_admin("/readyz").status() == 200).then_some(())
    });
}

/// Probes need no secret: an orchestrator has none.
#[test]
fn with_a_secret_only_probes_are_answered_without_it() {
    const TOKEN: &str = "5d4f2c0b7a9e8d11";
    let upstream = Upstream::reflecting();
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), format!("{TOKEN}\n")).expect("a file");
    let name = file.path().to_str().expect("temporary names are text");
    let gateway = before(&upstream).set("admin.token_file", &format!("{name:?}")).start();
    let ask = |method: &str, target: &str, field: &str| {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{field}Connection: close\r\n\r\n");
        Client::connect(gateway.admin()).ask(&head)
    };
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    let wrong = "Authorization: Bearer 5d4f2c0b7a9e8d12\r\n".to_owned();
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(ask("GET", probe, "").status(), 200, "{probe}");
    }
    for (method, target) in [
        ("GET", "/"),
        ("GET", "/status"),
        ("GET", "/metrics"),
        ("DELETE", "/cache?all=true"),
        ("GET", "/nothing"),
    ] {
        for field in ["", &wrong, &right.repeat(2)] {
            let refused = ask(method, target, field);
            assert_eq!(
                (refused.status(), refused.field("www-authenticate")),
                (401, Some("Bearer")),
                "{method} {target} {field}"
            );
        }
        assert_ne!(ask(method, target, &right).status(), 401, "{method} {target}");
    }
    let admin = gateway.admin().to_string();
    let status = |more: &[&str]| binary().run([&["status", "--admin", &admin], more].concat());
    assert!(status(&["--token-file", name]).status.success());
    let refused = status(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stderr.contains("this needs the secret of admin.token_file"), "{}", refused.stderr);
    let absent = status(&["--token-file", "/nowhere"]);
    assert_eq!(absent.status.code(), Some(64));
    assert!(
        absent.stderr.starts_with("flashweir: --token-file: `/nowhere` cannot be read"),
        "{}",
        absent.stderr
    );
}
