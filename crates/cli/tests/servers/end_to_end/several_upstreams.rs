//! Several servers share the work; a dead one is left out.

use flashweir_testkit::{Connection, Gateway, GatewayBuilder, Latch, Upstream, eventually, reserve_address};

use crate::end_to_end::support::{binary, get, holding};

fn healthy(gateway: &Gateway, index: usize) -> bool {
    let series = format!("flashweir_upstream_healthy{{service=\"default\",upstream=\"{index}\"}}");
    gateway.metrics().value(&series) == 1.0
}

#[test]
fn work_goes_to_the_one_with_less_to_do() {
    let latch = Latch::new();
    let (one, two) = (holding(&latch), holding(&latch));
    let urls = [one.url(), two.url()];
    let gateway = GatewayBuilder::new(&binary())
        .upstreams(urls.iter().map(String::as_str))
        .text("sentry.policing", "off")
        .start();
    let mut clients: Vec<_> = (0..40).map(|_| gateway.connect()).collect();
    clients.iter_mut().for_each(|client| client.send(get("/")));
    eventually("40 requests at the servers", || {
        (one.request_count() + two.request_count() == 40).then_some(())
    });
    let spread = one.request_count().abs_diff(two.request_count());
    // With two servers both are always looked at, so they never differ by more than the races of two workers.
    assert!(spread <= 8, "{} and {}", one.request_count(), two.request_count());
    latch.open();
    assert!(clients.iter_mut().all(|client| client.response().status() == 200));
}

#[test]
fn a_dead_server_costs_nobody_an_answer() {
    let alive = Upstream::saying("alive");
    let dead = format!("http://{}", reserve_address());
    let gateway = GatewayBuilder::new(&binary())
        .upstreams([dead.as_str(), &alive.url()])
        .text("upstream.health.eject_for", "10s")
        .start();
    for turn in 0..60 {
        let response = gateway.connect().ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nbuy");
        assert_eq!(response.text(), "alive", "order {turn}");
    }
    assert_eq!(alive.request_count(), 60);
    eventually("the dead one left out", || (!healthy(&gateway, 0) && healthy(&gateway, 1)).then_some(()));
    let status = gateway.status();
    assert_eq!(status["upstreams"][0]["healthy"], false, "{status}");
}

#[test]
fn a_server_that_comes_back_gets_work_again() {
    let one = Upstream::saying("one");
    let address = reserve_address();
    let two = format!("http://{address}");
    let gateway = GatewayBuilder::new(&binary())
        .upstreams([one.url().as_str(), &two])
        .text("upstream.health.eject_for", "200ms")
        .start();
    let mut client = gateway.connect();
    eventually("the dead one left out", || {
        assert_eq!(client.ask(&get("/")).text(), "one");
        (!healthy(&gateway, 1)).then_some(())
    });
    let _back = Upstream::start_at(address, |connection: &mut Connection| {
        while connection.read_request().is_some() && connection.answer(200, "", "two") {}
    });
    eventually("work for the one that came back", || (client.ask(&get("/")).text() == "two").then_some(()));
}

#[test]
fn when_all_are_dead_everybody_is_told_and_nobody_waits() {
    let (one, two) = (format!("http://{}", reserve_address()), format!("http://{}", reserve_address()));
    let gateway = GatewayBuilder::new(&binary()).upstreams([one.as_str(), &two]).start();
    for _ in 0..20 {
        assert!(matches!(gateway.get("/").status(), 502 | 503));
    }
    assert_eq!(gateway.ask_admin("/healthz").status(), 200);
    gateway.wait_in_flight(0);
}

#[test]
fn a_server_that_fails_its_health_check_is_left_out_before_a_request_finds_out() {
    let sick = Upstream::start(|connection: &mut Connection| {
        while let Some(request) = connection.read_request() {
            let status = if request.start.starts_with("GET /healthz ") { 500 } else { 200 };
            if !connection.answer(status, "", "sick") {
                return;
            }
        }
    });
    let well = Upstream::saying("well");
    let gateway = GatewayBuilder::new(&binary())
        .upstreams([sick.url().as_str(), &well.url()])
        .text("upstream.health.path", "/healthz")
        .text("upstream.health.interval", "100ms")
        .text("upstream.health.timeout", "100ms")
        .set("upstream.health.failures_to_eject", "2")
        .text("upstream.health.eject_for", "10s")
        .start();
    eventually("the sick one left out", || (!healthy(&gateway, 0)).then_some(()));
    for _ in 0..20 {
        assert_eq!(gateway.get("/").text(), "well");
    }
    assert!(
        sick.received().requests.iter().all(|request| request.start == "GET /healthz HTTP/1.1"),
        "only asked how it is"
    );
}

#[test]
fn a_health_check_that_hangs_counts_as_failed() {
    let stuck = Upstream::start(|connection: &mut Connection| {
        if connection.read_request().is_some() {
            connection.stall();
        }
    });
    let well = Upstream::saying("well");
    let gateway = GatewayBuilder::new(&binary())
        .upstreams([stuck.url().as_str(), &well.url()])
        .text("upstream.health.path", "/healthz")
        .text("upstream.health.interval", "100ms")
        .text("upstream.health.timeout", "50ms")
        .start();
    eventually("the stuck one left out", || (!healthy(&gateway, 0)).then_some(()));
    assert_eq!(gateway.get("/").text(), "well");
}
