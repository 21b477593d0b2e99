//! Origin of a request: the gateway's own word, and that of configured trusted proxies only.

use crate::end_to_end::support::{before, get, get_with, reflecting};
use flashweir_testkit::{Client, Upstream};
use std::net::Ipv4Addr;

#[test]
fn a_strangers_word_on_where_it_came_from_is_replaced() {
    let (upstream, gateway) = reflecting();
    let forged = "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Forwarded-Proto: https\r\n\
        X-Forwarded-Host: other.example";
    let _ = gateway.connect().ask(&get_with("/", forged));
    let seen = upstream.last_request();
    assert_eq!(seen.fields.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.fields.all("x-forwarded-proto"), ["http"]);
    assert_eq!(seen.fields.all("x-forwarded-host"), ["shop.example"]);
    assert_eq!(seen.fields.all("forwarded"), ["for=127.0.0.1;host=shop.example;proto=http"]);
    assert!(!upstream.received().contains("6.6.6.6"));
}

#[test]
fn a_trusted_proxys_word_is_kept_and_extended() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("client.trusted_proxies", "[\"127.0.0.0/24\"]").start();
    let fields =
        "X-Forwarded-For: 203.0.113.7\r\nForwarded: for=203.0.113.7;proto=https\r\nX-Forwarded-Proto: https";
    let _ = gateway.connect().ask(&get_with("/", fields));
    let seen = upstream.last_request();
    assert_eq!(seen.fields.all("x-forwarded-for").join(", "), "203.0.113.7, 127.0.0.1");
    assert_eq!(seen.fields.all("x-forwarded-proto"), ["https"]);
    let forwarded = seen.fields.all("forwarded").join(", ");
    assert!(forwarded.starts_with("for=203.0.113.7;proto=https, for=127.0.0.1"), "{forwarded}");

    // The same words from an address outside the trusted network.
    let mut stranger = Client::connect_from(Ipv4Addr::new(127, 9, 9, 9), gateway.address());
    let _ = stranger.ask(&get_with("/", fields));
    assert_eq!(upstream.last_request().fields.all("x-forwarded-for"), ["127.9.9.9"]);
}

#[test]
fn the_first_hop_is_described_without_being_asked() {
    let (upstream, gateway) = reflecting();
    let mut client = Client::connect_from(Ipv4Addr::new(127, 3, 2, 1), gateway.address());
    let _ = client.ask(&get("/"));
    let seen = upstream.last_request();
    assert_eq!(seen.field("x-forwarded-for"), Some("127.3.2.1"));
    assert_eq!(seen.field("forwarded"), Some("for=127.3.2.1;host=shop.example;proto=http"));
}

#[test]
fn rubbish_in_these_fields_harms_nobody() {
    let upstream = Upstream::reflecting();
    let gateway = before(&upstream).set("client.trusted_proxies", "[\"127.0.0.1\"]").start();
    let mut client = gateway.connect();
    for rubbish in [
        "X-Forwarded-For: ,,, ,",
        "X-Forwarded-For: unknown, _hidden, [::1",
        "Forwarded: for=\"[",
        "Forwarded: ;;;=,",
        "X-Forwarded-For: \u{e4}\u{f6}",
        "Forwarded: for=999.999.999.999:99999",
    ] {
        assert_eq!(client.ask(&get_with("/", rubbish)).status(), 200, "{rubbish}");
    }
    assert_eq!(upstream.request_count(), 6);
}
