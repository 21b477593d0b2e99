//! HTTP/2 on either side, with and without TLS, spoken by real programs.

use flashweir_testkit::{
    Authority, Curl, Gateway, GatewayBuilder, Latch, Nginx, Upstream, checksum, eventually, pattern,
};

use crate::end_to_end::support::{before, binary, holding, reflecting};

const PRIOR_KNOWLEDGE: &str = "--http2-prior-knowledge";

/// A gateway that serves HTTPS, and curl's argument to believe it.
fn over_tls(authority: &Authority, upstream: &Upstream) -> (Gateway, String) {
    let builder = before(upstream);
    let ca = authority.write(builder.directory()).display().to_string();
    let _files = authority.issue(builder.directory(), "first");
    let gateway =
        builder.text("listen.tls.certificate", "server.pem").text("listen.tls.key", "server.key").start();
    (gateway, ca)
}

#[test]
fn http2_in_the_clear_needs_only_prior_knowledge() {
    let Some(curl) = Curl::require("http2_in_the_clear_needs_only_prior_knowledge") else { return };
    let (upstream, gateway) = reflecting();
    let url = |path: &str| format!("http://{}{path}", gateway.address());
    let plain = curl.get(&url("/page?x=1"), &[PRIOR_KNOWLEDGE, "--header", "X-One: 1"]);
    assert_eq!((plain.code, plain.status, plain.version.as_str()), (0, 200, "2"), "{}", plain.stderr);
    let seen = upstream.last_request();
    assert_eq!(seen.start, "GET /page?x=1 HTTP/1.1", "the upstream is spoken to in its own version");
    assert_eq!(seen.fields.all("host"), [gateway.address().to_string()]);
    assert_eq!((seen.field("via"), seen.field("x-one")), (Some("2 flashweir"), Some("1")));

    let body = pattern(3 << 20);
    let file = gateway.directory().join("upload");
    std::fs::write(&file, &body).expect("a writable directory");
    let upload = curl.get(&url("/up"), &[PRIOR_KNOWLEDGE, "--data-binary", &format!("@{}", file.display())]);
    assert_eq!(
        upload.fields.first("x-body-checksum"),
        Some(checksum(&body).to_string().as_str()),
        "{}",
        upload.stderr
    );
    let download = curl.get(&url("/bytes/3145728"), &[PRIOR_KNOWLEDGE]);
    assert!(download.code == 0 && download.body == body, "{}", download.stderr);
    let head = curl.get(&url("/"), &[PRIOR_KNOWLEDGE, "--head"]);
    assert_eq!((head.status, head.fields.first("content-length")), (200, Some("1234")));
    let protocols = gateway.metrics().value("flashweir_requests_by_protocol_total{protocol=\"http2\"}");
    assert_eq!(protocols, 4.0);
}

#[test]
fn trailers_pass_into_http2() {
    let Some(curl) = Curl::require("trailers_pass_into_http2") else { return };
    let (_upstream, gateway) = reflecting();
    let url = format!("http://{}/chunks/100000", gateway.address());
    let output = curl.get(&url, &[PRIOR_KNOWLEDGE, "--header", "TE: trailers"]);
    assert_eq!((output.code, output.body.len()), (0, 100_000), "{}", output.stderr);
    assert_eq!(
        output.fields.first("x-sum"),
        Some(checksum(&pattern(100_000)).to_string().as_str()),
        "{output:?}"
    );
    assert!(
        !output.fields.has("transfer-encoding") && !output.fields.has("connection"),
        "{:?}",
        output.fields
    );
}

#[test]
fn tls_offers_both_versions() {
    let Some(curl) = Curl::require("tls_offers_both_versions") else { return };
    let (authority, upstream) = (Authority::new(), Upstream::reflecting());
    let (gateway, ca) = over_tls(&authority, &upstream);
    let url = format!("https://localhost:{}/bytes/100000", gateway.address().port());
    for (wanted, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        let output = curl.get(&url, &[wanted, "--cacert", &ca, "--ipv4"]);
        assert_eq!(
            (output.code, output.status, output.version.as_str()),
            (0, 200, version),
            "{}",
            output.stderr
        );
        assert!(output.body == pattern(100_000), "{version}: another body");
        assert_eq!(upstream.last_request().field("x-forwarded-proto"), Some("https"));
    }
    let distrusting = curl.get(&url, &["--ipv4"]);
    assert_ne!(distrusting.code, 0, "the certificate is the one we issued");
    let plain = curl.get(&format!("http://localhost:{}/", gateway.address().port()), &["--ipv4"]);
    assert_ne!(plain.status, 200, "no plain HTTP on a TLS port");
}

#[test]
fn an_http2_upstream_is_spoken_to_in_http2() {
    let test = "an_http2_upstream_is_spoken_to_in_http2";
    let (Some(curl), Some(nginx)) = (Curl::require(test), Nginx::require(test, "http2", ECHO)) else {
        return;
    };
    nginx.serve("big", &pattern(2 << 20));
    let url = format!("http://{}", nginx.address());
    let gateway = GatewayBuilder::new(&binary()).upstream(&url).text("upstream.protocol", "http2").start();
    for arguments in [&["--http1.1"][..], &[PRIOR_KNOWLEDGE][..]] {
        let protocol = curl.get(&format!("http://{}/protocol", gateway.address()), arguments);
        assert_eq!(
            (protocol.status, protocol.text().as_str()),
            (200, "HTTP/2.0"),
            "{arguments:?}: {}",
            protocol.stderr
        );
        let big = curl.get(&format!("http://{}/big", gateway.address()), arguments);
        assert!(big.code == 0 && big.body == pattern(2 << 20), "{arguments:?}: {}", big.stderr);
    }
}

#[test]
fn a_refusal_over_http2_is_the_same_refusal() {
    let Some(curl) = Curl::require("a_refusal_over_http2_is_the_same_refusal") else { return };
    let latch = Latch::new();
    let upstream = holding(&latch);
    let gateway = before(&upstream).set("bounds.max_requests_in_flight", "1").start();
    let mut inside = gateway.connect();
    inside.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    gateway.wait_in_flight(1);
    let url = format!("http://{}/", gateway.address());
    let refused =
        curl.get(&url, &[PRIOR_KNOWLEDGE, "--header", "Accept: application/json", "--data", "body"]);
    assert_eq!((refused.code, refused.status, refused.version.as_str()), (0, 503, "2"), "{}", refused.stderr);
    assert!(
        refused.fields.first("flashweir-decision").is_some_and(|field| field.ends_with("requests_in_flight"))
    );
    assert!(refused.fields.has("retry-after") && !refused.fields.has("connection"), "{:?}", refused.fields);
    assert!(refused.text().contains("\"reason\":\"requests_in_flight\""), "{}", refused.text());
    let polite = curl.get(&url, &[PRIOR_KNOWLEDGE, "--header", "Expect: 100-continue", "--data", "body"]);
    assert_eq!((polite.code, polite.status), (0, 503), "{}", polite.stderr);
    latch.open();
    assert_eq!(inside.response().status(), 200);
}

#[test]
fn a_stream_given_up_is_given_up_at_the_upstream() {
    let Some(curl) = Curl::require("a_stream_given_up_is_given_up_at_the_upstream") else { return };
    let upstream = Upstream::start(|connection| {
        if connection.read_request().is_some() {
            connection.stall();
        }
    });
    let gateway = before(&upstream).start();
    let output = curl.get(&format!("http://{}/", gateway.address()), &[PRIOR_KNOWLEDGE, "--max-time", "0.5"]);
    assert_eq!(output.code, 28, "curl ran out of time: {}", output.stderr);
    gateway.wait_metric("flashweir_requests_abandoned_total", 1.0);
    gateway.wait_in_flight(0);
    eventually("the upstream left alone", || (upstream.open_connections() == 0).then_some(()));
}

#[test]
fn the_bounds_on_heads_hold_for_http2_too() {
    let Some(curl) = Curl::require("the_bounds_on_heads_hold_for_http2_too") else { return };
    let upstream = Upstream::reflecting();
    let gateway =
        before(&upstream).set("bounds.max_fields", "16").text("bounds.max_head_bytes", "8KiB").start();
    let url = format!("http://{}/", gateway.address());
    let fields: Vec<String> = (0..40).map(|index| format!("X-{index}: 1")).collect();
    let mut arguments = vec![PRIOR_KNOWLEDGE];
    arguments.extend(fields.iter().flat_map(|field| ["--header", field.as_str()]));
    let many = curl.get(&url, &arguments);
    assert_eq!(many.status, 431, "40 fields where 16 are allowed");
    let large = format!("X-Large: {}", "v".repeat(20_000));
    let large = curl.get(&url, &[PRIOR_KNOWLEDGE, "--header", &large]);
    assert_ne!(large.status, 200, "20 KB where 8 KiB are allowed");
    assert_eq!(upstream.request_count(), 0);
    gateway.wait_metric("flashweir_requests_bad_total{kind=\"too_many_fields\"}", 1.0);
    let crumbs: Vec<String> = (0..30).map(|index| format!("Cookie: c{index}=1")).collect();
    let mut arguments = vec![PRIOR_KNOWLEDGE];
    arguments.extend(crumbs.iter().flat_map(|field| ["--header", field.as_str()]));
    assert_eq!(curl.get(&url, &arguments).status, 200, "a cookie in many lines is one field");
    let seen = upstream.last_request();
    assert_eq!(
        seen.fields.all("cookie").len(),
        1,
        "and one line for a server of HTTP/1.1: {:?}",
        seen.fields
    );
    assert!(
        seen.field("cookie").is_some_and(|cookie| cookie.starts_with("c0=1; c1=1; ")),
        "{:?}",
        seen.fields
    );
}

#[test]
fn a_body_that_breaks_off_breaks_its_stream() {
    let Some(curl) = Curl::require("a_body_that_breaks_off_breaks_its_stream") else { return };
    let upstream = Upstream::start(|connection| {
        while let Some(request) = connection.read_request() {
            if request.start.starts_with("GET /whole ") {
                connection.answer(200, "", "whole");
                continue;
            }
            connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
            connection.reset();
            return;
        }
    });
    let gateway = before(&upstream).start();
    let output = curl.get(&format!("http://{}/", gateway.address()), &[PRIOR_KNOWLEDGE]);
    assert_ne!(output.code, 0, "half a body passed for a whole one: {}", output.text());
    assert_eq!(curl.get(&format!("http://{}/whole", gateway.address()), &[PRIOR_KNOWLEDGE]).text(), "whole");
    gateway.wait_metric("flashweir_requests_failed_total", 1.0);
    gateway.wait_in_flight(0);
}

#[test]
fn a_tls_upstream_is_verified_with_the_given_authority() {
    let test = "a_tls_upstream_is_verified_with_the_given_authority";
    let files = tempfile::tempdir().expect("a fresh directory");
    let authority = Authority::new();
    let certificate = authority.issue(files.path(), "upstream");
    let ca = authority.write(files.path()).display().to_string();
    let Some(nginx) = Nginx::require_tls(test, "http2", &certificate, ECHO) else { return };
    let url = format!("https://localhost:{}", nginx.address().port());
    for (protocol, spoken) in [("http1", "HTTP/1.1"), ("http2", "HTTP/2.0")] {
        let gateway = GatewayBuilder::new(&binary())
            .upstream(&url)
            .text("upstream.ca_file", &ca)
            .text("upstream.protocol", protocol)
            .start();
        let answer = gateway.get("/protocol");
        assert_eq!((answer.status(), answer.text().as_str()), (200, spoken));
    }
    let other = tempfile::tempdir().expect("a fresh directory");
    let stranger = Authority::new().write(other.path()).display().to_string();
    let distrusting =
        GatewayBuilder::new(&binary()).upstream(&url).text("upstream.ca_file", &stranger).start();
    assert_eq!(
        distrusting.get("/protocol").status(),
        502,
        "an upstream without a trusted certificate is not spoken to"
    );
}

#[test]
fn many_streams_share_one_connection() {
    // Over TLS: this curl's parallel mode fails with prior knowledge, against any server.
    let Some(curl) = Curl::require("many_streams_share_one_connection") else { return };
    let (authority, upstream) = (Authority::new(), Upstream::reflecting());
    let (gateway, ca) = over_tls(&authority, &upstream);
    let url = format!("https://localhost:{}/bytes/[10000-10049]", gateway.address().port());
    let output =
        curl.get(&url, &["--http2", "--ipv4", "--cacert", &ca, "--parallel", "--parallel-max", "50"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(upstream.request_count(), 50);
    // curl opens a few before it knows that it may multiplex.
    let opened = gateway.metrics().value("flashweir_connections_opened_total");
    assert!(opened <= 4.0, "{opened} connections for 50 streams");
}

/// Answers with the HTTP version of the request.
const ECHO: &str = "location = /protocol { default_type text/plain; return 200 $server_protocol; }";
