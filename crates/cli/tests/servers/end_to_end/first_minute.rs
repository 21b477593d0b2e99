//! The first minute of an operator: the log names at the start all that is wrong, and nothing else.

use crate::end_to_end::support::{before, binary};
use flashweir_testkit::{Gateway, GatewayBuilder, Upstream, eventually, reserve_address};

/// A gateway that gets no request: its log has the words of the start alone.
fn start(upstream: &str) -> Gateway {
    GatewayBuilder::new(&binary()).upstream(upstream).start()
}

fn says(gateway: &Gateway, words: &[&str]) {
    eventually(&format!("{words:?} in the log"), || {
        let log = gateway.stderr();
        log.lines().any(|line| words.iter().all(|word| line.contains(word))).then_some(())
    });
}

#[test]
fn an_upstream_that_cannot_be_reached_is_said_at_the_start_and_makes_the_gateway_unready() {
    let address = reserve_address();
    let gateway = start(&format!("http://{address}"));
    says(&gateway, &["WARN", &address.to_string(), "no connection to the upstream", "refused"]);
    eventually("unready", || (gateway.ask_admin("/readyz").status() == 503).then_some(()));
    let _upstream = Upstream::start_at(address, |connection| {
        while connection.read_request().is_some() && connection.answer(200, "", "here") {}
    });
    eventually("ready once it is there", || (gateway.ask_admin("/readyz").status() == 200).then_some(()));
}

#[test]
fn a_name_that_has_no_address_is_said_at_the_start() {
    let gateway = start("http://nowhere.invalid:3000");
    says(&gateway, &["WARN", "nowhere.invalid:3000"]);
}

#[test]
fn a_healthy_upstream_makes_a_quiet_start() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).start();
    assert_eq!(gateway.get("/").text(), "served");
    // Some intervals of every planner.
    eventually("plans", || (gateway.status()["plan"]["epoch"].as_u64() > Some(20)).then_some(()));
    let warnings: Vec<String> =
        gateway.stderr().lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect();
    let unexpected: Vec<&String> = warnings.iter().filter(|line| !line.contains("open files")).collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
}

#[test]
fn a_state_file_that_cannot_be_written_is_said_at_the_start() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).text("state.file", "/dev/null/baseline.json").start();
    says(&gateway, &["WARN", "/dev/null/baseline.json", "cannot be written"]);
}

#[test]
fn an_admin_listener_that_others_reach_is_said_at_the_start() {
    let (upstream, directory) = (Upstream::saying("served"), tempfile::tempdir().expect("a fresh directory"));
    let arguments = ["run", "--upstream", &upstream.url(), "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"];
    let process = binary().start(directory.path(), arguments);
    eventually("a warning", || process.stderr().contains("the admin listener on 0.0.0.0:").then_some(()));
}

#[test]
fn an_upstream_is_a_host_and_a_port() {
    let upstream = Upstream::saying("served");
    assert_eq!(start(&upstream.address().to_string()).get("/").text(), "served");
}

#[test]
fn the_admin_listener_says_what_it_can_be_asked_and_status_is_for_people() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).start();
    assert_eq!(gateway.get("/").text(), "served");
    let index = gateway.ask_admin("/");
    assert_eq!(index.status(), 200);
    assert!(index.text().contains("GET    /status"), "{}", index.text());
    let admin = gateway.admin().to_string();
    let said = binary().run(["status", "--admin", &admin]);
    assert_eq!(said.code(), Some(0), "{}", said.stderr);
    for words in ["listening on", "in use", &upstream.address().to_string()] {
        assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    let json = binary().run(["status", "--json", "--admin", &admin]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["requests"]["completed"], 1);
}
