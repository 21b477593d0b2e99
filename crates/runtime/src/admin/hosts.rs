//! By which names the admin listener may be asked.
//!
//! A page on the web can make its visitor's browser ask any address, and reads the answer if the browser
//! believes that it comes from the page's own host. For that, the page's owner lets the name of the host lead
//! to this machine (DNS rebinding): then `Host` has that name. No outsider can own an address, or a name
//! without a dot; other names have to be configured.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns whether a value of `Host` names this machine, as far as the name shows.
pub(super) fn is_known(host: &str, hosts: &[String]) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
    }
    let name = host.split(':').next().unwrap_or_default();
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name.parse::<Ipv4Addr>().is_ok()
        || !name.contains('.')
        || name.ends_with(".localhost")
        || hosts.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_plain_names_are_ours_and_others_are_if_configured() {
        let ours = ["gw.corp.example".to_owned()];
        for host in [
            "127.0.0.1:9900",
            "10.0.0.4",
            "[::1]:9900",
            "localhost:9900",
            "LOCALHOST",
            "flashweir",
            "",
            "a.localhost",
            "gw.corp.example:9900",
            "GW.corp.example.",
        ] {
            assert!(is_known(host, &ours), "{host}");
        }
        for host in ["evil.example", "evil.example:9900", "127.0.0.1.evil.example", "[evil]", "corp.example"]
        {
            assert!(!is_known(host, &ours), "{host}");
        }
    }
}
