//! Server that a request names: `uri-host [":" port]`, the value of `Host` and of an absolute target.

use crate::byte_class::HOST_NAME;
use crate::scan::position_of;
use core::net::Ipv6Addr;

/// A host (name, IPv4 address or IPv6 address in brackets), then perhaps a port that exists. RFC 3986 §3.2.2
/// and RFC 9110 §7.2, without user information and without the forms of addresses that no standard has
/// defined yet (`[v1.x]`).
///
/// Virtual hosts are chosen by this value, so a value that two servers could split differently (`a:80:90`),
/// or read as a path or a user (`a/b`, `u@a`), is none. An empty one names no server.
#[must_use]
pub fn is_authority(value: &[u8]) -> bool {
    let Some(host_end) = host_end(value) else { return false };
    match value[host_end..].split_first() {
        None => true,
        Some((b':', port)) => is_port(port),
        Some(_) => false,
    }
}

/// End of the host, if there is one.
fn host_end(value: &[u8]) -> Option<usize> {
    if value.first() == Some(&b'[') {
        let bracket = memchr::memchr(b']', value)?;
        let address = core::str::from_utf8(&value[1..bracket]).ok()?;
        return address.parse::<Ipv6Addr>().is_ok().then_some(bracket + 1);
    }
    let end = position_of(b':', value).unwrap_or(value.len());
    (end > 0 && is_name(&value[..end])).then_some(end)
}

/// `reg-name` of RFC 3986: unreserved characters, sub-delimiters, and bytes as `%` with two digits. The comma
/// is left out: with it a repeated Host that an intermediary joined would be one name.
fn is_name(name: &[u8]) -> bool {
    if HOST_NAME.has_all(name) {
        return true;
    }
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => after,
            (byte, after) if HOST_NAME.has(byte) => after,
            _ => return false,
        };
    }
    true
}

/// RFC 3986 allows no digits at all; more than 16 bits name no port.
fn is_port(port: &[u8]) -> bool {
    if !port.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let add = |value: u32, digit: &u8| value.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    port.iter().fold(0, add) <= u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::is_authority;

    #[test]
    fn an_authority_has_one_host_and_at_most_one_port() {
        for good in [
            "a",
            "a.example",
            "a:80",
            "a:",
            "10.0.0.1:8080",
            "[::1]",
            "[2001:db8::1]:443",
            "x_y",
            "a%20b",
            "a.",
        ] {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            ":",
            ":80",
            "a b",
            "a/b",
            "u@a",
            "u:p@b",
            "a?b",
            "a#b",
            "a,b",
            "a:80:90",
            "a:xx",
            "a:65536",
            "a:-1",
            "[::1",
            "::1",
            "[::1]x",
            "[]",
            "[v1.x]",
            "[::1%25eth0]",
            "a%2",
            "a%zz",
            "a\\b",
            "a\"b",
            "<a>",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
        assert!(!is_authority(b"\xff"));
    }
}
