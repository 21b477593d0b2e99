//! Identity of the client: the peer, or the address that trusted proxies name.

use flashweir_core::limits::FORWARDED_HOPS;
use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// `X-Forwarded-For`.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies whose word on the client's address is taken.
///
/// ```
/// use flashweir_http::client::TrustedProxies;
/// let trusted = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
/// let mut headers = http::HeaderMap::new();
/// headers.insert("x-forwarded-for", "6.6.6.6, 198.51.100.7, 10.0.0.9".parse().unwrap());
/// let client = trusted.client_address("10.0.0.1".parse().unwrap(), &headers);
/// assert_eq!(client, "198.51.100.7".parse::<std::net::IpAddr>().unwrap());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// The network a client is counted by: its address in IPv4, its /64 in IPv6, where one subscriber has at
/// least that many addresses to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNetwork(IpAddr);

impl TrustedProxies {
    /// Trusts the peers in these networks, and no peer when empty.
    #[must_use]
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Returns whether this address is a trusted proxy. Linear in the networks, which are few.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client's address: from the peer walk the chain of `X-Forwarded-For` (or `Forwarded`) from right to
    /// left for as long as the speaker is trusted.
    ///
    /// Total: what cannot be read ends the walk at the last address known. When both fields are present and
    /// disagree, a proxy passed on one it does not write, so neither is believed and the peer stands for the
    /// client.
    #[must_use]
    pub fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if self.0.is_empty() || !self.trusts(peer) {
            return peer;
        }
        let listed = headers
            .contains_key(&X_FORWARDED_FOR)
            .then(|| self.walk(peer, right_to_left(headers, &X_FORWARDED_FOR).map(parse_node)));
        let forwarded = headers
            .contains_key(FORWARDED)
            .then(|| self.walk(peer, right_to_left(headers, &FORWARDED).map(forwarded_for)));
        match (listed, forwarded) {
            (Some(listed), Some(forwarded)) if listed != forwarded => peer,
            (listed, forwarded) => listed.or(forwarded).unwrap_or(peer),
        }
    }

    fn walk(&self, peer: IpAddr, nodes: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut known = peer;
        for node in nodes.take(FORWARDED_HOPS) {
            let Some(address) = node else { break };
            known = address;
            if !self.trusts(address) {
                break;
            }
        }
        known
    }
}

impl ClientNetwork {
    /// The network of an address; an IPv4 address in IPv6 clothes counts as IPv4.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(IpAddr::V4(address)),
            IpAddr::V6(address) => {
                Self(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))))
            }
        }
    }

    /// Its first address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.0
    }

    /// The network as bytes, for a keyed hash. IPv4 is mapped into IPv6, so the two never meet.
    #[must_use]
    pub fn octets(self) -> [u8; 16] {
        match self.0 {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        }
    }
}

/// A number for the /24 of an IPv4 address and the /56 of an IPv6 one, which is what one household or one
/// rented server mostly has. It is taken from the address alone: nothing that a client writes into its
/// request changes it.
#[must_use]
pub fn subscriber(address: IpAddr) -> u64 {
    match address.to_canonical() {
        // No IPv6 network has this bit, for it is above its 56.
        IpAddr::V4(address) => 1 << 63 | u64::from(address.to_bits() >> 8),
        IpAddr::V6(address) => (address.to_bits() >> 72) as u64,
    }
}

/// The last nodes of a list, as many as are ever walked, in the order in which they are written; `None` for
/// what is no address.
pub(crate) fn last_nodes(headers: &HeaderMap, name: &HeaderName) -> Vec<Option<IpAddr>> {
    let parse = if *name == FORWARDED { forwarded_for } else { parse_node };
    let mut nodes: Vec<_> = right_to_left(headers, name).map(parse).take(FORWARDED_HOPS).collect();
    nodes.reverse();
    nodes
}

/// The comma-separated elements of a field, last line's last first. An element that is not text is a question
/// mark, which ends a walk; those behind it, which others have written, are read all the same.
fn right_to_left<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    // `HeaderMap::GetAll` runs backwards too.
    headers
        .get_all(name)
        .into_iter()
        .rev()
        .flat_map(|line| line.as_bytes().rsplit(|&byte| byte == b','))
        .map(|element| str::from_utf8(element).unwrap_or("?").trim())
}

/// The `for` node of one `Forwarded` element (RFC 7239 §4).
fn forwarded_for(element: &str) -> Option<IpAddr> {
    element
        .split(';')
        .find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
        })
        .and_then(parse_node)
}

/// An address with or without port, brackets and quotes; `unknown` and obfuscated names are not addresses.
fn parse_node(node: &str) -> Option<IpAddr> {
    let node = node.strip_prefix('"').and_then(|node| node.strip_suffix('"')).unwrap_or(node);
    let bracketed = || node.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    node.parse()
        .ok()
        .or_else(|| node.parse::<SocketAddr>().ok().map(|node| node.ip()))
        .or_else(|| bracketed().map(IpAddr::V6))
        .map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn client(peer: &str, fields: &[(&'static str, &str)]) -> String {
        let trusted = ["10.0.0.0/8", "2001:db8:1::/48"].map(|network| network.parse().unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        TrustedProxies::new(trusted.to_vec()).client_address(address(peer), &headers).to_string()
    }

    #[test]
    fn the_walk_ends_at_the_first_address_nobody_trusted_speaks_for() {
        const XFF: &str = "x-forwarded-for";
        assert_eq!(client("192.0.2.1", &[(XFF, "6.6.6.6")]), "192.0.2.1", "a stranger is not believed");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &[(XFF, "6.6.6.6, 192.0.2.1")]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &[(XFF, "6.6.6.6, 192.0.2.1, 10.0.0.2")]), "192.0.2.1");
        assert_eq!(
            client("10.0.0.1", &[(XFF, "6.6.6.6"), (XFF, "192.0.2.1"), (XFF, "10.0.0.2")]),
            "192.0.2.1"
        );
        assert_eq!(
            client("10.0.0.1", &[(XFF, "10.0.0.3, 10.0.0.2")]),
            "10.0.0.3",
            "all trusted: the leftmost"
        );
        assert_eq!(client("::ffff:10.0.0.1", &[(XFF, "192.0.2.1:4711")]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &[(XFF, "6.6.6.6, rubbish, 10.0.0.2")]), "10.0.0.2");
        assert_eq!(client("10.0.0.1", &[(XFF, "6.6.6.6,")]), "10.0.0.1");
    }

    /// A client that sends rubbish through a proxy that puts the client's address behind it stays known.
    #[test]
    fn bytes_that_are_no_text_hide_nothing_that_is_written_behind_them() {
        let trusted = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        for name in [X_FORWARDED_FOR, FORWARDED] {
            let mut headers = HeaderMap::new();
            let value = if name == FORWARDED { &b"for=\xfe, for=192.0.2.1"[..] } else { b"\xfe, 192.0.2.1" };
            headers.insert(name, HeaderValue::from_bytes(value).unwrap());
            assert_eq!(trusted.client_address(address("10.0.0.1"), &headers), address("192.0.2.1"));
        }
    }

    #[test]
    fn forwarded_is_read_with_its_quotes_and_ports() {
        const F: &str = "forwarded";
        assert_eq!(client("10.0.0.1", &[(F, "for=6.6.6.6, For=192.0.2.1;proto=https")]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &[(F, r#"proto=https;for="[2001:db8::7]:4711""#)]), "2001:db8::7");
        assert_eq!(
            client("10.0.0.1", &[(F, r#"for="[2001:db8::7]", for="[2001:db8:1::1]""#)]),
            "2001:db8::7"
        );
        assert_eq!(client("10.0.0.1", &[(F, "for=_hidden, for=10.0.0.2")]), "10.0.0.2");
        assert_eq!(client("10.0.0.1", &[(F, "proto=https")]), "10.0.0.1");
        let both = [(F, "for=192.0.2.1"), ("x-forwarded-for", "192.0.2.1")];
        assert_eq!(client("10.0.0.1", &both), "192.0.2.1");
        let conflicting = [(F, "for=6.6.6.6"), ("x-forwarded-for", "192.0.2.1")];
        assert_eq!(client("10.0.0.1", &conflicting), "10.0.0.1", "one of them is the client's own");
    }

    #[test]
    fn networks_are_addresses_in_ipv4_and_slash_64_in_ipv6() {
        let of = |text| ClientNetwork::of(address(text));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_ne!(of("192.0.2.1").octets(), of("2001:db8::1").octets());
    }

    #[test]
    fn a_subscriber_has_a_network() {
        let of = |text| subscriber(address(text));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.200"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:ff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:100::1"));
        assert_ne!(of("0.0.0.0"), of("::"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_survived(lines in prop::collection::vec(prop::collection::vec(32u8..=255, 0..60), 0..4)) {
            let mut headers = HeaderMap::new();
            for line in lines {
                if let Ok(value) = HeaderValue::from_bytes(&line) {
                    headers.append(X_FORWARDED_FOR, value.clone());
                    headers.append(FORWARDED, value);
                }
            }
            let trusted = TrustedProxies::new(vec!["0.0.0.0/0".parse().unwrap()]);
            let _ = trusted.client_address(address("10.0.0.1"), &headers);
        }
    }
}
