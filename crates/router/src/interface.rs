//! Check that an interface is there and carries anything.

use crate::error::RouterError;
use flashweir_kernel::gate::AttachError;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::io;

/// That each of these interfaces is there and up: found out before anything is attached to any.
pub(crate) fn check(names: &[String]) -> Result<(), RouterError> {
    for name in names {
        match is_up(name).map_err(RouterError::Interfaces)? {
            Some(true) => {}
            Some(false) => return Err(RouterError::InterfaceDown(name.clone())),
            None => return Err(AttachError::NoInterface(name.clone()).into()),
        }
    }
    Ok(())
}

/// Returns whether an interface of this network namespace is up; none if there is no such interface.
fn is_up(name: &str) -> io::Result<Option<bool>> {
    // An interface without addresses has an entry too, that of its link layer.
    let found = getifaddrs()?.find(|entry| entry.interface_name == name);
    Ok(found.map(|entry| entry.flags.contains(InterfaceFlags::IFF_UP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there_and_a_name_that_nobody_gave_is_not() {
        assert!(is_up("lo").expect("a list").is_some());
        let error = check(&["no-such-thing".to_owned()]).expect_err("no such interface");
        assert_eq!(error.to_string(), "there is no interface `no-such-thing` in this network namespace");
        assert!(error.is_configuration());
    }
}
