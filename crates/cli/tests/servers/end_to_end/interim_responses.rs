//! Interim responses (1xx) reach clients of HTTP/1.1 and HTTP/2 at once, and those of HTTP/1.0 never (RFC
//! 9110 §15.2).

use flashweir_testkit::{Client, Connection, Curl, Http2Client, Latch, Upstream, frame};

use crate::end_to_end::support::{before, get};

const HINTS: &[u8] =
    b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n";
const MORE_HINTS: &[u8] =
    b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </script.js>\r\n\r\n";

/// Hints at what is to come, and answers once the latch opens.
fn hinting(latch: &Latch) -> Upstream {
    let latch = latch.clone();
    Upstream::start(move |connection: &mut Connection| {
        while connection.read_request().is_some() {
            connection.send(HINTS);
            connection.send(MORE_HINTS);
            latch.wait();
            if !connection.answer(200, "", "whole") {
                return;
            }
        }
    })
}

/// Reads the three interim responses.
fn read_hints(client: &mut Client) {
    let heads: Vec<_> = (0..3).map(|_| client.response_head().expect("an interim response")).collect();
    let statuses: Vec<_> = heads.iter().map(|head| head.status()).collect();
    assert_eq!(statuses, [103, 102, 103]);
    assert_eq!(heads[0].field("link"), Some("</style.css>; rel=preload"));
    assert_eq!(heads[2].field("link"), Some("</script.js>"));
    assert!(
        heads.iter().all(|head| !head.fields.has("x-hop") && !head.fields.has("connection")),
        "{heads:?}"
    );
}

#[test]
fn interim_responses_come_before_the_answer_is_there() {
    let latch = Latch::new();
    let upstream = hinting(&latch);
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(get("/page"));
    read_hints(&mut client);
    latch.open();
    let answer = client.response();
    assert_eq!((answer.status(), answer.text().as_str()), (200, "whole"));
    let series = "flashweir_responses_interim_total{outcome=\"passed_on\"}";
    gateway.wait_metric(series, 3.0);
    gateway.wait_metric("flashweir_requests_completed_total", 1.0);
}

#[test]
fn responses_to_pipelined_requests_keep_their_order() {
    let latch = Latch::new();
    latch.open();
    let upstream = hinting(&latch);
    let gateway = before(&upstream).start();
    let mut client = gateway.connect();
    client.send(get("/page").repeat(5));
    for _ in 0..5 {
        read_hints(&mut client);
        let answer = client.response();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "whole"));
    }
}

#[test]
fn streams_of_one_connection_get_their_own_before_the_answer_is_there() {
    let latch = Latch::new();
    let upstream = hinting(&latch);
    let gateway = before(&upstream).start();
    let mut client = Http2Client::connect(gateway.address());
    let head: &[(&str, &[u8])] =
        &[(":method", b"GET"), (":scheme", b"http"), (":path", b"/page"), (":authority", b"a")];
    client.request(1, head, frame::END_STREAM);
    client.request(3, head, frame::END_STREAM);
    let mut heads = [0, 0];
    for _ in 0..6 {
        let (stream, _) = client.next_status().expect("an interim response");
        heads[stream as usize / 2] += 1;
    }
    assert_eq!(heads, [3, 3], "three interim responses each while the origin has not answered");
    latch.open();
    (0..2).for_each(|_| assert_eq!(client.next_status().expect("an answer").1, 200));
    gateway.wait_metric("flashweir_responses_interim_total{outcome=\"passed_on\"}", 6.0);
    gateway.wait_metric("flashweir_requests_completed_total", 2.0);
}

/// curl reads the fields of the heads, too.
#[test]
fn a_client_of_http2_reads_what_the_origin_hinted() {
    let Some(curl) = Curl::require("a_client_of_http2_reads_what_the_origin_hinted") else { return };
    let latch = Latch::new();
    latch.open();
    let upstream = hinting(&latch);
    let gateway = before(&upstream).start();
    let url = format!("http://{}/page", gateway.address());
    let output = curl.get(&url, &["--http2-prior-knowledge"]);
    assert_eq!((output.status, output.version.as_str(), output.text().as_str()), (200, "2", "whole"));
    assert_eq!(output.fields.all("link"), ["</style.css>; rel=preload", "</script.js>"]);
    assert!(!output.fields.has("x-hop"), "{output:?}");
}

#[test]
fn a_client_of_http_1_0_gets_the_final_response_alone() {
    let latch = Latch::new();
    latch.open();
    let upstream = hinting(&latch);
    let gateway = before(&upstream).start();
    let mut old = gateway.connect();
    assert_eq!(old.ask("GET /page HTTP/1.0\r\nHost: a\r\n\r\n").status(), 200);
}
