//! Addresses to listen on.

use std::net::SocketAddr;

use crate::error::Problem;

/// An IP address and port. Port 0 (the system picks) is fine for tests and sidecars.
pub(crate) fn socket_address(key: &str, text: &str) -> Result<SocketAddr, Problem> {
    text.parse().map_err(|_| {
        let hint = if text.starts_with(':') {
            format!("\"0.0.0.0{text}\"")
        } else {
            "\"127.0.0.1:8080\"".to_owned()
        };
        Problem::new(
            key,
            format!("`{text}` is not an address, expected an IP address and a port like {hint}"),
        )
    })
}

/// Returns whether both cannot be listened on at once: same port, and the same address or one that covers it.
pub(crate) fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |a: SocketAddr, b: SocketAddr| a.ip().is_unspecified() && a.is_ipv4() == b.is_ipv4();
    one.port() != 0
        && one.port() == other.port()
        && (one.ip() == other.ip() || covers(one, other) || covers(other, one))
}

#[cfg(test)]
mod tests {
    use super::collide;

    #[test]
    fn addresses_collide_when_one_covers_the_other() {
        for (one, other, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("127.0.0.1:80", "0.0.0.0:80", true),
            ("127.0.0.1:80", "127.0.0.1:81", false),
            ("127.0.0.1:80", "127.0.0.2:80", false),
            ("[::]:80", "0.0.0.0:80", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
        ] {
            assert_eq!(collide(one.parse().unwrap(), other.parse().unwrap()), expected, "{one} {other}");
        }
    }
}
