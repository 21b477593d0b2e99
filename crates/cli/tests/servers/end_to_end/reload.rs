//! SIGHUP: all of the new configuration or none of it, and no connection notices.

use flashweir_testkit::{Connection, Gateway, Latch, Upstream, eventually};

use crate::end_to_end::support::{before, get, holding};

fn reloads(gateway: &Gateway, outcome: &str) -> f64 {
    gateway.metrics().value(&format!("flashweir_config_reloads_total{{outcome=\"{outcome}\"}}"))
}

#[test]
fn a_new_upstream_takes_over_on_a_connection_that_stays() {
    let (old, new) = (Upstream::saying("old"), Upstream::saying("new"));
    let mut gateway = before(&old).start();
    let mut client = gateway.connect();
    assert_eq!(client.ask(&get("/")).text(), "old");
    gateway.configure(&[("upstream.urls", Some(&format!("[\"{}\"]", new.url())))]);
    gateway.reload();
    eventually("the new upstream", || (client.ask(&get("/")).text() == "new").then_some(()));
    assert_eq!(client.ask(&get("/")).text(), "new", "on the very same connection");
    assert_eq!((reloads(&gateway, "ok"), reloads(&gateway, "failed")), (1.0, 0.0));
}

#[test]
fn a_server_that_joins_by_a_reload_starts_slowly() {
    let (old, new) = (Upstream::saying("old"), Upstream::saying("new"));
    let mut gateway = before(&old).start();
    assert_eq!(gateway.get("/").text(), "old");
    gateway.configure(&[("upstream.urls", Some(&format!("[\"{}\", \"{}\"]", old.url(), new.url())))]);
    gateway.reload();
    let mut client = gateway.connect();
    eventually("the new upstream", || (client.ask(&get("/")).text() == "new").then_some(()));
    // A tenth of the other's at first, and half of it after 2.5 s.
    let from_new = (0..100).filter(|_| client.ask(&get("/")).text() == "new").count();
    assert!((1..30).contains(&from_new), "{from_new} of 100");
}

#[test]
fn requests_under_way_are_finished_by_the_upstream_they_went_to() {
    let latch = Latch::new();
    let held = latch.clone();
    let old = Upstream::start(move |connection: &mut Connection| {
        while let Some(request) = connection.read_request() {
            let is_held = request.start.starts_with("GET /held ");
            if is_held {
                held.wait();
            }
            if !connection.answer(200, "", if is_held { "held" } else { "old" }) {
                return;
            }
        }
    });
    let new = Upstream::saying("new");
    let mut gateway = before(&old).text("sentry.policing", "off").start();
    let mut under_way: Vec<_> = (0..10).map(|_| gateway.connect()).collect();
    under_way.iter_mut().for_each(|client| client.send(get("/held")));
    gateway.wait_in_flight(10);
    gateway.configure(&[("upstream.urls", Some(&format!("[\"{}\"]", new.url())))]);
    gateway.reload();
    eventually("the new upstream", || (gateway.get("/").text() == "new").then_some(()));
    latch.open();
    assert!(under_way.iter_mut().all(|client| client.response().text() == "held"));
    assert!(
        under_way.iter_mut().all(|client| client.ask(&get("/")).text() == "new"),
        "and their connections stay"
    );
}

#[test]
fn a_new_bound_is_in_force_for_the_next_request() {
    let latch = Latch::new();
    let upstream = holding(&latch);
    let mut gateway = before(&upstream).start();
    let mut clients: Vec<_> = (0..2).map(|_| gateway.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(get("/")));
    gateway.wait_in_flight(2);
    gateway.configure(&[("bounds.max_requests_in_flight", Some("2"))]);
    gateway.reload();
    eventually("the reload", || (reloads(&gateway, "ok") == 1.0).then_some(()));
    assert_eq!(gateway.get("/").status(), 503);
    latch.open();
    assert!(clients.iter_mut().all(|client| client.response().status() == 200));
}

/// A bad file is refused with one message that has every word of `wanted`, and the old configuration stays.
fn check_refused(changes: &[(&str, Option<&str>)], wanted: &[&str]) {
    let upstream = Upstream::saying("old");
    let mut gateway = before(&upstream).start();
    let mut client = gateway.connect();
    assert_eq!(client.ask(&get("/")).text(), "old");
    let said_before = gateway.stderr().len();
    gateway.configure(changes);
    gateway.reload();
    eventually("the refusal of the reload", || (reloads(&gateway, "failed") == 1.0).then_some(()));
    let said = eventually("a message", || {
        let said = gateway.stderr()[said_before..].to_owned();
        said.contains("flashweir.toml").then_some(said)
    });
    let about_it: Vec<&str> = said.lines().filter(|line| line.contains("flashweir.toml")).collect();
    assert_eq!(about_it.len(), 1, "one message, not {}: {said}", about_it.len());
    for word in wanted {
        assert!(about_it[0].contains(word), "`{word}` is missing: {}", about_it[0]);
    }
    assert_eq!(client.ask(&get("/")).text(), "old", "the old configuration stays, and the connection too");
    assert_eq!(gateway.ask_admin("/readyz").status(), 200);
}

#[test]
fn a_wrong_type_is_refused_with_file_line_and_key() {
    check_refused(&[("bounds.max_fields", Some("\"many\""))], &["flashweir.toml:5:", "bounds.max_fields"]);
}

#[test]
fn an_unknown_key_is_refused_with_file_line_and_key() {
    check_refused(&[("bounds.max_feelds", Some("50"))], &["flashweir.toml:5:", "max_feelds"]);
}

#[test]
fn a_value_out_of_range_is_refused_with_file_line_and_key() {
    check_refused(
        &[("upstream.connect_timeout", Some("\"0s\""))],
        &["flashweir.toml:5:", "upstream.connect_timeout"],
    );
}

#[test]
fn a_file_that_is_no_toml_is_refused_with_its_line() {
    check_refused(&[("bounds.max_fields", Some("= ["))], &["flashweir.toml:5:"]);
}

#[test]
fn what_needs_a_restart_is_said_and_nothing_else_of_the_file_is_taken() {
    let changes =
        [("listen.address", Some("\"127.0.0.1:1\"")), ("upstream.urls", Some("[\"http://127.0.0.1:2\"]"))];
    check_refused(&changes, &["listen", "restart"]);
}

#[test]
fn a_file_that_is_mended_is_taken() {
    let (old, new) = (Upstream::saying("old"), Upstream::saying("new"));
    let mut gateway = before(&old).start();
    gateway.configure(&[("upstream.urls", Some("[]"))]);
    gateway.reload();
    eventually("the refusal of the reload", || (reloads(&gateway, "failed") == 1.0).then_some(()));
    gateway.configure(&[("upstream.urls", Some(&format!("[\"{}\"]", new.url())))]);
    gateway.reload();
    eventually("the new upstream", || (gateway.get("/").text() == "new").then_some(()));
}

#[test]
fn a_storm_of_reloads_under_traffic_loses_nothing() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream).start();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = gateway.connect();
                    (0..300).filter(|_| client.ask(&get("/")).text() == "served").count()
                })
            })
            .collect();
        for _ in 0..50 {
            gateway.reload();
            let _ = gateway.ask_admin("/healthz");
        }
        for client in clients {
            assert_eq!(client.join().expect("a client that finished"), 300);
        }
    });
    assert!(reloads(&gateway, "ok") >= 1.0);
    assert_eq!(reloads(&gateway, "failed"), 0.0);
}
