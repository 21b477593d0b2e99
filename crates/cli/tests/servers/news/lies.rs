//! Goal: what a request says of its class is believed of nodes in front and of no other client. Method: two
//! addresses of loopback, one of them a node in front, send the same fields; which class the gateway took
//! each for is in `/status`.

use std::net::Ipv4Addr;

use flashweir_testkit::{Client, Gateway, GatewayBuilder, Upstream, eventually};

use crate::news::scene::binary;

const NODE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
/// All that a client can say to pass for a node in front.
const LIES: &str = "Priority: u=0\r\nFlashweir-Sender: shop\r\nForwarded: for=127.0.0.2\r\nX-Forwarded-For: 127.0.0.2\r\n\
                    X-Real-IP: 127.0.0.2\r\n";
const NODES_ALONE: &str = "match = { header = \"priority: u=0*\", sender = \"*\" }";

fn gateway(upstream: &Upstream, rules: &str) -> GatewayBuilder {
    let classes =
        format!("[{{ name = \"urgent\", revenue = 100, {rules} }}, {{ name = \"rest\", revenue = 1 }}]");
    GatewayBuilder::new(&binary())
        .upstream(&upstream.url())
        .set("feedback.senders", "[\"127.0.0.2/32\"]")
        .set("class", &classes)
}

/// Sends three requests from this address; how many of them were taken for urgent ones.
fn urgent_of_three(gateway: &Gateway, from: Ipv4Addr, fields: &str) -> u64 {
    let offered = |class: usize| {
        let demand = &gateway.status()["services"][0]["demand"][class];
        demand["offered"].as_u64().unwrap_or_else(|| panic!("{demand}"))
    };
    let before = [offered(0), offered(1)];
    let mut client = Client::connect_from(from, gateway.address());
    for _ in 0..3 {
        let request = format!("GET / HTTP/1.1\r\nHost: shop\r\n{fields}\r\n");
        assert_eq!(client.ask(&request).status(), 200);
    }
    eventually("all three in /status", || {
        let now = [offered(0), offered(1)];
        (now[0] + now[1] == before[0] + before[1] + 3).then_some(now[0] - before[0])
    })
}

#[test]
fn a_class_is_believed_of_nodes_in_front_alone() {
    let upstream = Upstream::saying("served");
    let gateway = gateway(&upstream, NODES_ALONE).start();
    assert_eq!(urgent_of_three(&gateway, NODE, "Priority: u=0\r\n"), 3);
    assert_eq!(urgent_of_three(&gateway, NODE, "Priority: u=3\r\n"), 0);
    assert_eq!(urgent_of_three(&gateway, STRANGER, LIES), 0);
    let seen = upstream.last_request();
    assert_ne!(seen.field("flashweir-sender"), Some("shop"), "the claim is not passed on: {seen:?}");
}

/// A gateway in front is a trusted proxy as well: the client that it states has another address, and the
/// class is its own word all the same. A client that a trusted proxy states to have a node's address is none.
#[test]
fn it_is_the_connection_that_counts_behind_trusted_proxies_too() {
    let upstream = Upstream::saying("served");
    let gateway = gateway(&upstream, NODES_ALONE)
        .set("client.trusted_proxies", "[\"127.0.0.2/32\", \"127.0.0.3/32\"]")
        .start();
    let for_user = "Priority: u=0\r\nForwarded: for=198.51.100.7\r\n";
    assert_eq!(urgent_of_three(&gateway, NODE, for_user), 3);
    assert_eq!(urgent_of_three(&gateway, STRANGER, LIES), 0);
}

/// Without the rule the field alone makes the class, from any sender: the lies above are lies that work.
#[test]
fn a_rule_that_names_no_sender_believes_every_client() {
    let upstream = Upstream::saying("served");
    let gateway = gateway(&upstream, "match = { header = \"priority: u=0*\" }").start();
    assert_eq!(urgent_of_three(&gateway, STRANGER, LIES), 3);
}
