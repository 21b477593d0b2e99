//! Requests and responses pass unchanged in both directions, in every shape.

use flashweir_testkit::{Curl, Nginx, ReadError, checksum, pattern};

use crate::end_to_end::support::{before, binary, get, reflecting};
use flashweir_testkit::{GatewayBuilder, Upstream};

/// One byte, around the sizes of buffers, and more than any buffer holds.
const SIZES: [usize; 7] = [1, 1_023, 16_384, 65_537, 1 << 20, (5 << 20) + 3, 20 << 20];

#[test]
fn every_method_arrives_as_it_was_sent() {
    let (upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "X-OWN"] {
        let request =
            format!("{method} /a/b?c=%20d&e HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\nhi");
        let response = client.ask(&request);
        assert_eq!(response.status(), 200, "{method}");
        assert!(
            response.text().starts_with(&format!("{method} /a/b?c=%20d&e HTTP/1.1\r\n")),
            "{}",
            response.text()
        );
        assert_eq!(response.field("x-body-bytes"), Some("2"), "{method}");
    }
    assert_eq!(upstream.received().connections, 1, "one connection serves them all");
}

#[test]
fn bodies_of_all_sizes_arrive_whole_in_both_directions() {
    let (_upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    for size in SIZES {
        let body = pattern(size);
        client.send(format!("POST /up HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {size}\r\n\r\n"));
        client.send(&body);
        let response = client.response();
        assert_eq!(response.field("x-body-bytes"), Some(size.to_string().as_str()));
        assert_eq!(
            response.field("x-body-checksum"),
            Some(checksum(&body).to_string().as_str()),
            "{size} bytes up"
        );
        let response = client.ask(&get(&format!("/bytes/{size}")));
        assert_eq!(response.field("content-length"), Some(size.to_string().as_str()));
        assert_eq!(checksum(&response.body), checksum(&body), "{size} bytes down");
    }
}

#[test]
fn chunked_bodies_and_trailers_pass_both_ways() {
    let (upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    let body = pattern(40_000);
    client.send(
        "POST /up HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n",
    );
    for chunk in body.chunks(7_001) {
        client.send([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    }
    client.send("0\r\nX-Sum: 17\r\n\r\n");
    let response = client.response();
    assert_eq!(response.field("x-body-checksum"), Some(checksum(&body).to_string().as_str()));
    assert_eq!(response.field("x-trailer-count"), Some("1"), "the trailer reached the upstream");
    assert!(
        upstream.last_request().fields.has("transfer-encoding"),
        "a body of unknown length stays chunked"
    );

    client.send("GET /chunks/40000 HTTP/1.1\r\nHost: shop.example\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    let response = client.response();
    assert_eq!(response.body, body);
    assert_eq!(response.trailers.first("x-sum"), Some(checksum(&body).to_string().as_str()));
}

#[test]
fn responses_without_a_body_end_at_their_head() {
    let (_upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    client.send("HEAD /page HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    let response = client.response_to_head().expect("a response");
    assert_eq!((response.status(), response.field("content-length")), (200, Some("1234")));
    for status in [204, 304] {
        let response = client.ask(&get(&format!("/status/{status}")));
        assert_eq!((response.status(), response.field("etag")), (status, Some("\"1\"")));
        assert!(!response.fields.has("transfer-encoding") && response.body.is_empty(), "{response:?}");
    }
    assert_eq!(client.ask(&get("/after")).status(), 200, "and the connection is still in step");
}

#[test]
fn three_requests_in_one_segment_get_three_answers_in_order() {
    let (_upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    client.send([get("/bytes/100"), get("/bytes/200"), get("/bytes/300")].concat());
    let sizes: Vec<usize> = (0..3).map(|_| client.response().body.len()).collect();
    assert_eq!(sizes, [100, 200, 300]);
}

#[test]
fn a_request_split_into_single_bytes_is_one_request() {
    let (upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    let request = "POST /slow HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for byte in request.bytes() {
        client.send([byte]);
    }
    assert_eq!(client.response().field("x-body-bytes"), Some("3"));
    assert_eq!(upstream.request_count(), 1);
}

#[test]
fn connections_are_kept_on_both_sides_and_closed_when_asked() {
    let (upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    for _ in 0..20 {
        assert_eq!(client.ask(&get("/")).status(), 200);
    }
    assert_eq!(upstream.received().connections, 1);
    let last = client.ask("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
    assert_eq!(last.field("connection"), Some("close"));
    client.expect_closed();
    let mut old = gateway.connect();
    let response = old.ask("GET / HTTP/1.0\r\nHost: shop.example\r\n\r\n");
    assert_eq!(response.status(), 200);
    assert!(!response.fields.has("transfer-encoding"), "HTTP/1.0 knows no chunks");
    old.expect_closed();
}

#[test]
fn a_chunked_response_reaches_an_http_1_0_client_without_chunks() {
    let (_upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    client.send("GET /chunks/40000 HTTP/1.0\r\nHost: shop.example\r\n\r\n");
    let response = client.response();
    assert!(!response.fields.has("transfer-encoding"), "{:?}", response.fields);
    assert_eq!(response.body, pattern(40_000));
}

#[test]
fn many_and_large_fields_within_the_bounds_pass_both_ways() {
    let upstream = Upstream::start(|connection| {
        let value = "v".repeat(8_000);
        while connection.read_request().is_some() {
            let fields: String = (0..60).map(|index| format!("X-Answer-{index}: {value}\r\n")).collect();
            if !connection.answer(200, &fields, "many") {
                return;
            }
        }
    });
    let gateway = before(&upstream).start();
    let large = "c".repeat(16_000);
    let fields: String = (0..80).map(|index| format!("X-Question-{index}: {index}\r\n")).collect();
    let request = format!("GET / HTTP/1.1\r\nHost: shop.example\r\nCookie: {large}\r\n{fields}\r\n");
    let response = gateway.connect().ask(&request);
    assert_eq!((response.status(), response.text().as_str()), (200, "many"));
    let answered =
        response.fields.0.iter().filter(|(name, _)| name.to_lowercase().starts_with("x-answer-")).count();
    assert_eq!(answered, 60);
    let seen = upstream.last_request();
    assert_eq!(seen.field("cookie").map(str::len), Some(16_000));
    assert_eq!(seen.field("x-question-79"), Some("79"));
}

#[test]
fn a_body_is_asked_for_only_when_it_is_wanted() {
    let (upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    client
        .send("POST /up HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let go_on = client.response_head().expect("an interim response");
    assert_eq!(go_on.status(), 100);
    client.send("hello");
    assert_eq!(client.response().field("x-body-bytes"), Some("5"));
    assert_eq!(upstream.last_request().field("expect"), Some("100-continue"), "the origin was asked");
    let response =
        client.ask("POST /up HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\nExpect: tea\r\n\r\n");
    assert_eq!(response.status(), 417);
}

#[test]
fn curl_uploads_with_expect_and_downloads_with_trailers() {
    let Some(curl) = Curl::require("curl_uploads_with_expect_and_downloads_with_trailers") else { return };
    let (_upstream, gateway) = reflecting();
    let url = |path: &str| format!("http://{}{path}", gateway.address());
    let body = pattern(2 << 20);
    let file = gateway.directory().join("upload");
    std::fs::write(&file, &body).expect("a writable directory");
    let upload = format!("@{}", file.display());
    let output = curl.get(&url("/up"), &["--data-binary", &upload, "--header", "Expect: 100-continue"]);
    assert_eq!((output.code, output.status, output.version.as_str()), (0, 200, "1.1"), "{}", output.stderr);
    assert_eq!(output.fields.first("x-body-checksum"), Some(checksum(&body).to_string().as_str()));
    let output =
        curl.get(&url("/chunks/300000"), &["--header", "TE: trailers", "--header", "Connection: TE"]);
    assert_eq!((output.code, output.body.len()), (0, 300_000), "{}", output.stderr);
    assert_eq!(output.fields.first("x-sum"), Some(checksum(&pattern(300_000)).to_string().as_str()));
}

#[test]
fn a_real_web_server_answers_as_it_does_without_us() {
    let test = "a_real_web_server_answers_as_it_does_without_us";
    let (Some(curl), Some(nginx)) = (Curl::require(test), Nginx::require(test, "", "")) else { return };
    nginx.serve("big", &pattern(3 << 20));
    let gateway = GatewayBuilder::new(&binary()).upstream(&format!("http://{}", nginx.address())).start();
    for (path, arguments) in [
        ("/big", &[][..]),
        ("/big", &["--range", "1000-1999"][..]),
        ("/big", &["--head"][..]),
        ("/missing", &[][..]),
        ("/big", &["--header", "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT"][..]),
    ] {
        let straight = curl.get(&format!("http://{}{path}", nginx.address()), arguments);
        let through = curl.get(&format!("http://{}{path}", gateway.address()), arguments);
        assert_eq!((through.code, through.status), (straight.code, straight.status), "{path} {arguments:?}");
        // curl puts the head of a HEAD where bodies go, and that has a date.
        let is_head = arguments == ["--head"];
        assert!(is_head || through.body == straight.body, "{path} {arguments:?}: another body");
        for field in
            ["content-length", "content-type", "content-range", "etag", "last-modified", "accept-ranges"]
        {
            assert_eq!(
                through.fields.first(field),
                straight.fields.first(field),
                "{path} {arguments:?} {field}"
            );
        }
    }
}

#[test]
fn a_client_that_stops_in_the_middle_of_its_body_does_not_reach_the_handler_as_a_whole_request() {
    let (_upstream, gateway) = reflecting();
    let mut client = gateway.connect();
    client.send("POST /up HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 100\r\n\r\nonly this");
    client.finish_writing();
    match client.try_response() {
        Ok(response) => assert_eq!(response.status(), 400, "not a success"),
        Err(ReadError::Closed | ReadError::Failed(_)) => {}
        Err(other) => panic!("neither an answer nor an end: {other:?}"),
    }
    gateway.wait_in_flight(0);
}
