//! Several services behind one gateway: each host reaches its own servers, and a reload may change one of
//! them.

use crate::end_to_end::support::{before, binary, get, holding};
use flashweir_testkit::{Connection, Curl, Gateway, GatewayBuilder, Latch, Upstream, eventually};

/// `[[service]]` in one line, as a value of the key `service`.
fn service(name: &str, hosts: &str, url: &str, more: &str) -> String {
    format!("[{{ name = \"{name}\", hosts = {hosts}, upstream = {{ urls = [\"{url}\"]{more} }} }}]")
}

fn request(host: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[test]
fn every_host_reaches_its_service_over_http_1_and_2() {
    let (rest, api) = (Upstream::saying("rest"), Upstream::saying("api"));
    let services = service("api", "['api.example', '*.api.example']", &api.url(), "");
    let gateway = before(&rest).set("service", &services).start();
    let Some(curl) = Curl::require("every_host_reaches_its_service_over_http_1_and_2") else { return };
    for (host, expected) in [
        ("api.example", "api"),
        ("V1.API.example.:8080", "api"),
        ("shop.example", "rest"),
        ("xapi.example", "rest"),
    ] {
        for version in ["--http1.0", "--http1.1", "--http2-prior-knowledge"] {
            let url = format!("http://{}/", gateway.address());
            let output = curl.get(&url, &[version, "-H", &format!("Host: {host}")]);
            assert_eq!(output.text(), expected, "{host} {version}: {}", output.stderr);
        }
    }
    let status = gateway.status();
    assert_eq!(status["services"][1]["name"], "api", "{status}");
    assert_eq!(status["services"][1]["classes"][0]["name"], "default", "{status}");
    let names: Vec<_> =
        status["upstreams"].as_array().expect("upstreams").iter().map(|one| &one["service"]).collect();
    assert_eq!(names, ["default", "api"]);
    gateway.wait_metric("flashweir_upstream_healthy{service=\"default\",upstream=\"0\"}", 1.0);
    gateway.wait_metric("flashweir_upstream_healthy{service=\"api\",upstream=\"0\"}", 1.0);
}

#[test]
fn where_no_service_has_the_rest_a_stranger_is_told_to_go_elsewhere() {
    let api = Upstream::saying("api");
    let services = service("api", "'api.example'", &api.url(), "");
    let gateway = GatewayBuilder::new(&binary()).set("service", &services).start();
    let mut client = gateway.connect();
    for host in ["shop.example", "x.api.example", "127.0.0.1"] {
        let answer = client.ask(&request(host));
        assert_eq!((answer.status(), answer.field("flashweir-error")), (421, Some("misdirected")), "{host}");
    }
    assert_eq!(client.ask(&request("api.example")).text(), "api", "the connection is as good as before");
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("flashweir_requests_bad_total{kind=\"misdirected\"}"), 3.0);
    assert_eq!(metrics.value("flashweir_requests_offered_total"), 1.0);
}

#[test]
fn one_host_may_have_services_by_path() {
    let (rest, web, api) = (Upstream::saying("rest"), Upstream::saying("web"), Upstream::saying("api"));
    let service = |name: &str, more: &str, url: &str| {
        format!("{{ name = \"{name}\", hosts = 'shop.example'{more}, upstream = {{ urls = [\"{url}\"] }} }}")
    };
    let services = format!(
        "[{}, {}]",
        service("web", "", &web.url()),
        service("api", ", paths = ['/api/', '/login']", &api.url())
    );
    let mut gateway = before(&rest).set("service", &services).start();
    let mut client = gateway.connect();
    for (target, expected) in [
        ("/", "web"),
        ("/api/v1?x=/", "api"),
        ("/login", "api"),
        ("/login/x", "web"),
        ("/api", "web"),
        ("//%61pi/./v1", "api"),
        ("/api/../x", "web"),
    ] {
        assert_eq!(client.ask(&get(target)).text(), expected, "{target}");
        if expected == "api" {
            let start = api.last_request().start;
            assert_eq!(start, format!("GET {target} HTTP/1.1"), "passed on as the client wrote it");
        }
    }
    assert_eq!(client.ask(&request("other.example")).text(), "rest");
    assert_eq!(gateway.status()["services"][2]["paths"], serde_json::json!(["/api/", "/login"]));
    if let Some(curl) = Curl::require("one_host_may_have_services_by_path") {
        let url = format!("http://{}/api/x", gateway.address());
        let output = curl.get(&url, &["--http2-prior-knowledge", "-H", "Host: shop.example"]);
        assert_eq!(output.text(), "api", "{}", output.stderr);
    }
    let services = format!("[{}]", service("api", ", paths = '/v2/'", &api.url()));
    gateway.configure(&[("service", Some(&services))]);
    gateway.reload();
    eventually("the new paths", || (client.ask(&get("/v2/x")).text() == "api").then_some(()));
    assert_eq!(client.ask(&get("/api/x")).text(), "rest", "the service of the top level has other paths");
}

#[test]
fn one_service_that_is_full_leaves_the_other_free() {
    let latch = Latch::new();
    let (rest, api) = (Upstream::saying("rest"), holding(&latch));
    let services = service("api", "'api.example'", &api.url(), ", max_connections = 1");
    let gateway = before(&rest).set("gateway.workers", "1").set("service", &services).start();
    let mut held = gateway.connect();
    held.send(request("api.example"));
    gateway.wait_in_flight(1);
    let mut second = gateway.connect();
    second.send(request("api.example"));
    assert_eq!(second.response().status(), 503);
    second.send(get("/"));
    assert_eq!(second.response().text(), "rest");
    latch.open();
    assert_eq!(held.response().text(), "held");
}

#[test]
fn a_service_may_come_and_go_at_a_reload_while_another_serves() {
    let latch = Latch::new();
    let held_back = latch.clone();
    let rest = Upstream::start(move |connection: &mut Connection| {
        while let Some(request) = connection.read_request() {
            if request.start.starts_with("GET /held ") {
                held_back.wait();
            }
            if !connection.answer(200, "", "rest") {
                return;
            }
        }
    });
    let api = Upstream::saying("api");
    let mut gateway = before(&rest).start();
    let mut held = gateway.connect();
    held.send(get("/held"));
    gateway.wait_in_flight(1);
    gateway.configure(&[("service", Some(&service("api", "'api.example'", &api.url(), "")))]);
    gateway.reload();
    let mut client = gateway.connect();
    eventually("the new service", || (client.ask(&request("api.example")).text() == "api").then_some(()));
    let is_planned = |gateway: &Gateway| {
        gateway.ask_admin("/metrics").text().contains("flashweir_sentry_rule{service=\"api\"")
    };
    eventually("its sentry's plans", || is_planned(&gateway).then_some(()));
    gateway.configure(&[("service", None)]);
    gateway.reload();
    eventually("its end", || (client.ask(&request("api.example")).text() == "rest").then_some(()));
    assert_eq!(gateway.status()["services"].as_array().expect("services").len(), 1);
    eventually("the end of its sentry's plans", || (!is_planned(&gateway)).then_some(()));
    latch.open();
    assert_eq!(held.response().text(), "rest", "the reloads disturbed no request");
}
