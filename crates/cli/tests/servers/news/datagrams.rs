//! Feedback by datagrams: from a gateway to a node in front that sends nothing, and from an upstream to a
//! gateway.
//!
//! Twin in virtual time of the tests under load: `sim`, `lost_and_late_messages_change_nothing`.

use std::net::UdpSocket;
use std::time::Duration;

use flashweir_core::{Duration as CoreDuration, Rate};
use flashweir_feedback::{Datagram, Feedback, Field, KeyRing};
use flashweir_testkit::{GatewayBuilder, Load, Upstream, eventually};
use flashweir_tower::client::{HmacKey, Keys};

use crate::news::scene::{Scene, binary};

const KEY: &str = "1 correct-horse-battery-staple\n";
/// The first datagram is due half a second after the last request.
const TOLD_WITHIN: Duration = Duration::from_secs(30);

fn ring() -> KeyRing<HmacKey> {
    Keys::parse(KEY, "test").expect("a key").ring()
}

fn with_key(builder: GatewayBuilder) -> GatewayBuilder {
    std::fs::write(builder.directory().join("feedback.keys"), KEY).expect("a writable directory");
    builder.text("feedback.keys_file", "feedback.keys")
}

#[test]
#[ignore = "real load: make test-load"]
fn a_node_in_front_that_falls_silent_is_told_by_datagrams_under_load() {
    let mut scene = Scene::with_the_sentry(&[]);
    let front = UdpSocket::bind("127.0.0.1:0").expect("a port");
    front.set_read_timeout(Some(TOLD_WITHIN)).expect("a socket");
    let port = front.local_addr().expect("bound").port();
    let node = GatewayBuilder::new(&binary()).upstream(&scene.origin_url()).text("gateway.name", "node");
    scene.gateway = with_key(node)
        .set("feedback.senders", "[\"127.0.0.0/8\"]")
        .set("feedback.datagram_ports", &format!("{{ shop = {port} }}"))
        .start();
    let crowd = Load::start(
        &binary(),
        &format!("http://{}/work", scene.gateway.address()),
        &["--rate", &scene.times_capacity(3.0), "--duration", "8s", "--header", "Flashweir-Sender: shop"],
    );
    let _ = crowd.finish(Duration::from_secs(60));
    let mut buffer = [0; 512];
    let length = front.recv(&mut buffer).expect("a datagram");
    let datagram = Datagram::parse(&buffer[..length]).expect("in the form of the protocol");
    let address = scene.gateway.address();
    assert_eq!((datagram.sender, datagram.node, datagram.address), ("shop", "node", address));
    let signed_for = Datagram::context("shop", "node", address);
    let feedback = Field::parse(datagram.field, &ring(), &signed_for).expect("signed for this way");
    assert!(Field::parse(datagram.field, &ring(), b"shop>node").is_err(), "no response can be made of it");
    println!("{feedback:?}");
    assert!(scene.gateway.metrics().value("flashweir_feedback_datagrams_sent_total") > 0.0);
}

#[test]
fn a_gateway_believes_signed_datagrams_of_its_upstream_and_no_others() {
    let upstream = Upstream::saying("served");
    let builder = GatewayBuilder::new(&binary()).upstream(&upstream.url()).text("gateway.name", "shop");
    let gateway = with_key(builder)
        .set("feedback.upstream_names", "{ shop = \"api\" }")
        .text("feedback.udp", "127.0.0.1:0")
        .start();
    let udp = gateway.listening().address("feedback_udp");
    assert_eq!(gateway.get("/").status(), 200);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let server = upstream.address();
    let datagram = |sequence, rate: Option<f64>, context: &[u8]| {
        let (rate, ttl) = (rate.map(Rate::from_per_second), CoreDuration::from_secs(10));
        let feedback = Feedback { epoch: 7, sequence, from_rank: 0, severity: 1, rate, ttl };
        Datagram::write("shop", "api", server, &Field::new(&feedback, &ring(), context).expect("a message"))
    };
    // Datagrams may be lost, even here.
    let send = |outcome: &str, bytes: &[u8]| {
        let series = format!("flashweir_feedback_datagrams_total{{outcome=\"{outcome}\"}}");
        let before = gateway.metrics().value(&series);
        eventually(outcome, || {
            socket.send_to(bytes, udp).expect("loopback");
            (gateway.metrics().value(&series) > before).then_some(())
        });
    };
    let context = Datagram::context("shop", "api", server);
    let asks = || gateway.status()["services"][0]["feedback"]["upstreams"][0]["asks"]["rate_rps"].as_f64();
    send("malformed", b"rubbish");
    let for_other = Datagram::context("shop", "api", "127.0.0.1:1".parse().expect("an address"));
    send("refused", &datagram(1, Some(0.5), &for_other));
    let unknown = datagram(1, Some(0.5), &context);
    let unknown = String::from_utf8(unknown).expect("text").replace(" shop api ", " blog api ");
    send("unknown", unknown.as_bytes());
    assert_eq!(asks(), None);
    send("heard", &datagram(1, Some(0.5), &context));
    eventually("the limit in /status", || (asks() == Some(0.5)).then_some(()));
    eventually("a request refused because the upstream asked", || {
        (gateway.get("/").status() == 503).then_some(())
    });
    send("heard", &datagram(2, None, &context));
    eventually("ten requests in a row that go", || {
        (0..10).all(|_| gateway.get("/").status() == 200).then_some(())
    });
}
