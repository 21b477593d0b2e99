//! Deadlines and priorities travel through a gateway, and a request that is too late is not sent on.

use flashweir_testkit::{Gateway, GatewayBuilder, Message, Upstream, eventually};

use crate::news::scene::binary;

fn ask(gateway: &Gateway, fields: &str) -> Message {
    gateway.connect().ask(&format!("GET /page HTTP/1.1\r\nHost: shop\r\n{fields}\r\n"))
}

fn left_ms(request: &Message) -> Option<u64> {
    request.field("flashweir-deadline").map(|text| text.parse().expect("milliseconds"))
}

fn before(upstream: &Upstream) -> GatewayBuilder {
    GatewayBuilder::new(&binary()).upstream(&upstream.url())
}

/// Goal: what is left travels over two gateways, less at each; what is over, or no number, does not.
#[test]
fn a_deadline_travels_on_and_one_that_is_over_is_refused_at_once() {
    let upstream = Upstream::saying("served");
    let node = before(&upstream).start();
    let edge = GatewayBuilder::new(&binary()).upstream(&format!("http://{}", node.address())).start();
    assert_eq!(ask(&edge, "").status(), 200);
    assert_eq!(left_ms(&upstream.last_request()), None, "there is no deadline but a caller's");
    assert_eq!(ask(&edge, "Flashweir-Deadline: 60000\r\n").status(), 200);
    let left = left_ms(&upstream.last_request()).expect("a deadline");
    assert!((1..60_000).contains(&left), "{left}");
    assert_eq!(ask(&edge, "grpc-timeout: 1M\r\n").status(), 200);
    let request = upstream.last_request();
    assert!(left_ms(&request).is_some_and(|left| (1..60_000).contains(&left)), "{request:?}");
    assert!(request.field("grpc-timeout").is_some_and(|text| text.ends_with('m')), "{request:?}");
    for wrong in ["Flashweir-Deadline: soon\r\n", "Flashweir-Deadline: 5\r\nFlashweir-Deadline: 6\r\n"] {
        assert_eq!(ask(&edge, wrong).status(), 200);
        assert_eq!(left_ms(&upstream.last_request()), None, "{wrong}");
    }
    let count = upstream.request_count();
    let late = ask(&edge, "Flashweir-Deadline: 0\r\n");
    assert_eq!(late.status(), 504);
    let decision = late.field("flashweir-decision").expect("a decision");
    assert!(decision.contains("reason=caller_deadline"), "{decision}");
    assert_eq!(upstream.request_count(), count);
    let metrics = edge.metrics();
    assert_eq!(metrics.value("flashweir_requests_shed_total{reason=\"caller_deadline\"}"), 1.0);
    let deadlines =
        |source: &str| metrics.value(&format!("flashweir_requests_deadlines_total{{source=\"{source}\"}}"));
    assert_eq!(["field", "grpc", "malformed"].map(deadlines), [2.0, 1.0, 2.0]);
    // It says nothing of what is short here.
    assert_ne!(edge.status()["verdict"]["cause"], "bound");
}

#[test]
fn a_class_gives_a_deadline_and_a_priority_where_the_configuration_says_so() {
    let upstream = Upstream::saying("served");
    let gateway = before(&upstream)
        .set("feedback.target_as_deadline", "true")
        .set("feedback.send_priority", "true")
        .set(
            "class",
            "[{ name = \"checkout\", revenue = 100, response_target = \"900ms\", match.header = \"x-cart\" }, \
             { name = \"browsing\", revenue = 1 }]",
        )
        .start();
    assert_eq!(ask(&gateway, "X-Cart: full\r\nPriority: u=7\r\n").status(), 200);
    let request = upstream.last_request();
    assert!(left_ms(&request).is_some_and(|left| left <= 900), "{request:?}");
    assert_eq!(request.field("priority"), Some("u=0"));
    assert_eq!(ask(&gateway, "Flashweir-Deadline: 5000\r\n").status(), 200);
    let request = upstream.last_request();
    assert!(left_ms(&request).is_some_and(|left| left > 900), "the caller knows better: {request:?}");
    assert_eq!(request.field("priority"), Some("u=1"));
}

/// Goal: a request that waits for the origin is refused when its caller's time is over, and its client hears
/// of it then. Method: the sentry lets one request at a time to an origin that does not answer.
#[test]
fn a_request_that_waits_is_refused_when_its_time_is_over() {
    let upstream = Upstream::start(|connection| {
        while connection.read_request().is_some() {
            connection.stall();
        }
    });
    let gateway = before(&upstream).start();
    let stalled: Vec<_> = (0..200)
        .map_while(|_| {
            let mut client = gateway.connect();
            client.send("GET /slow HTTP/1.1\r\nHost: shop\r\n\r\n");
            let waits = gateway.metrics().value("flashweir_requests_held_total") > 0.0;
            (!waits).then_some(client)
        })
        .collect();
    eventually("a request that waits", || {
        (gateway.metrics().value("flashweir_requests_held_total") > 0.0).then_some(())
    });
    let refused = ask(&gateway, "Flashweir-Deadline: 200\r\n");
    assert_eq!(refused.status(), 504, "{refused:?}");
    assert!(refused.field("flashweir-decision").is_some_and(|text| text.contains("caller_deadline")));
    drop(stalled);
}
