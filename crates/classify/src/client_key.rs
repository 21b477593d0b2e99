//! Identity of a client where capacity is shared fairly: a hash of the attributes that the class's policy
//! names.

use super::kinds::Kinds;
use super::rules::View;
use core::net::IpAddr;
use flashweir_config::FairBy;
use flashweir_core::Hasher64;

/// One hash. A client that does not send the header or cookie counts for its network; the kinds never mix.
pub(super) fn client_key(fair_by: &FairBy, asked: &View<'_>, kinds: &Kinds) -> u64 {
    let by_value = |kind: &Hasher64, value: Option<&[u8]>| {
        let value = value.filter(|value| !value.is_empty())?;
        Some(kind.hash(&[value]))
    };
    let by_name = match fair_by {
        FairBy::Network => None,
        FairBy::Address => Some(kinds.address.hash(&[&octets(asked.client)])),
        FairBy::Header(name) => by_value(&kinds.header, asked.head.fields().all_named(name).next()),
        FairBy::Cookie(name) => by_value(&kinds.cookie, asked.cookies(name).next()),
    };
    by_name.unwrap_or_else(|| kinds.network.hash(&[&network(asked.client)]))
}

/// An address in IPv6's form, so that all have one length.
pub(super) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// The /24 of an IPv4 address and the /56 of an IPv6 one: what one household or one rented server mostly has.
fn network(address: IpAddr) -> [u8; 16] {
    let host_bytes = if address.is_ipv4() { 1 } else { 9 };
    let mut octets = octets(address);
    octets[16 - host_bytes..].fill(0);
    octets
}
