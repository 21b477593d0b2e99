//! Identity of the client: an address that a trusted proxy wrote, or the peer; and a second gateway behind
//! this one finds the same client in what this one writes.
//!
//! The first byte says who the peer is. Lines are values of `X-Forwarded-For`, or of `Forwarded` if they hold
//! a `=`.

use super::LIMITS;
use crate::reference::{lenient, write_head};
use flashweir_core::limits::FORWARDED_HOPS;
use flashweir_http::client::{TrustedProxies, X_FORWARDED_FOR};
use flashweir_http::fields::{ClientScheme, Hop, prepare_request};
use http::header::FORWARDED;
use http::{HeaderValue, Request};
use std::net::IpAddr;

/// Networks of proxies; the addresses below are in them, or not.
const TRUSTED: [&str; 2] = ["10.0.0.0/8", "2001:db8:1::/48"];
const PEERS: [&str; 4] = ["192.0.2.1", "10.0.0.1", "2001:db8:1::1", "2001:db8:2::1"];
/// This gateway's address as the second one sees it.
const OURS: &str = "10.255.255.254";

pub(crate) fn run(data: &[u8]) {
    let Some((&first, lines)) = data.split_first() else { return };
    let peer = address(PEERS[usize::from(first) % PEERS.len()]);
    let trusted =
        TrustedProxies::new(TRUSTED.iter().map(|network| network.parse().expect("a network")).collect());
    let mut head =
        Request::get("/").header("host", "shop.example").body(()).expect("a request").into_parts().0;
    for line in lines.split(|&byte| byte == b'\n').take(LIMITS.fields_max) {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        let name = if line.contains(&b'=') { FORWARDED } else { X_FORWARDED_FOR };
        head.headers.append(name, value);
    }
    // The second gateway's walk has one step more to a bound that no real chain comes near.
    if lines.iter().filter(|&&byte| b",\n".contains(&byte)).count() + 2 >= FORWARDED_HOPS {
        return;
    }
    let client = trusted.client_address(peer, &head.headers);
    let has_both = [X_FORWARDED_FOR, FORWARDED].iter().all(|name| head.headers.contains_key(name));
    let is_peer_trusted = trusted.trusts(peer);
    if !is_peer_trusted {
        assert_eq!(client, peer, "a stranger is believed");
    }
    let hop = Hop { peer, is_peer_trusted, scheme: ClientScheme::Http };
    prepare_request(&mut head, &hop).expect("an ordinary request");
    for name in [X_FORWARDED_FOR, FORWARDED] {
        assert_eq!(head.headers.get_all(&name).iter().count(), 1, "{name} in one line");
    }
    let bytes = write_head(&head);
    assert_eq!(lenient(&bytes).0.len(), 1, "{}", bytes.escape_ascii());
    let found = trusted.client_address(address(OURS), &head.headers);
    // Of lists that disagree neither is believed, here or there.
    if is_peer_trusted && has_both && client == peer {
        assert!(found == client || found == address(OURS));
        return;
    }
    assert_eq!(found, client, "another client behind us: {}", bytes.escape_ascii());
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}
