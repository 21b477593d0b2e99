//! The addresses people come from.

use crate::LoadError;
use flashweir_core::Rng;
use flashweir_core::limits::LOAD_SOURCES;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Number of client addresses, and the network in which they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sources {
    /// Addresses people come from, each person from one; with one, the kernel chooses it.
    pub count: u32,
    /// Network of the addresses: the machine (or its network namespace) must own them all.
    pub network: IpNet,
}

impl Default for Sources {
    /// One address; more would be in 127.77.0.0/16, which other programs rarely use.
    fn default() -> Self {
        let network = ipnet::Ipv4Net::new_assert(Ipv4Addr::new(127, 77, 0, 0), 16);
        Self { count: 1, network: network.into() }
    }
}

impl Sources {
    /// # Errors
    /// A number out of range, more addresses than the network has, or a network of another kind than the
    /// target.
    pub(crate) fn check(&self, target: SocketAddr) -> Result<(), LoadError> {
        let wrong = |why: String| Err(LoadError::Plan(why));
        if self.count == 0 || self.count > LOAD_SOURCES {
            return wrong(format!("sources must be 1 to {LOAD_SOURCES}, not {}", self.count));
        }
        if self.count == 1 {
            return Ok(());
        }
        let network = self.network;
        if u64::from(self.count) > self.addresses() {
            return wrong(format!("{network} has {} addresses, not {}", self.addresses(), self.count));
        }
        if target.is_ipv4() != network.addr().is_ipv4() {
            return wrong(format!("people from {network} cannot reach {target}"));
        }
        if is_loopback(network) && !target.ip().is_loopback() {
            return wrong(format!("many sources in {network} need a target on 127.0.0.0/8, not {target}"));
        }
        Ok(())
    }

    /// The address of a person, by seed, class and number; `None` where the kernel is to choose.
    pub(crate) fn of(&self, seed: u64, class: u16, person: u64) -> Option<IpAddr> {
        (self.count > 1).then(|| {
            let mut rng = Rng::new(seed).fork(SOURCES_PART).fork(class.into()).fork(person);
            // Below LOAD_SOURCES, so it fits.
            let number = rng.below(u64::from(self.count)) as u32 + self.first();
            match self.network.network() {
                IpAddr::V4(base) => IpAddr::V4(Ipv4Addr::from_bits(base.to_bits() + number)),
                IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from_bits(base.to_bits() + u128::from(number))),
            }
        })
    }

    fn addresses(&self) -> u64 {
        let host_bits = u32::from(self.network.max_prefix_len() - self.network.prefix_len());
        let all = 1u64.checked_shl(host_bits.min(63)).unwrap_or(u64::MAX);
        // The first and the last of a real IPv4 network stand for the network and for broadcast.
        if self.first() == 1 && self.network.addr().is_ipv4() { all.saturating_sub(2) } else { all }
    }

    /// The number of the first address that a client may have.
    fn first(&self) -> u32 {
        let plain =
            is_loopback(self.network) || self.network.max_prefix_len() - self.network.prefix_len() < 2;
        u32::from(!plain)
    }
}

fn is_loopback(network: IpNet) -> bool {
    network.network().is_loopback()
}

/// Separates this drawing from every other from the same seed.
const SOURCES_PART: u64 = 0x736F_7572_6365;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn sources(count: u32, network: &str) -> Sources {
        Sources { count, network: network.parse().unwrap() }
    }

    #[test]
    fn a_persons_address_depends_on_the_seed_alone() {
        let many = Sources { count: 1000, ..Sources::default() };
        let distinct: HashSet<_> = (0..10_000).map(|person| many.of(1, 0, person)).collect();
        assert_eq!(distinct.len(), 1000);
        assert!(distinct.iter().all(|address| many.network.contains(&address.unwrap())));
        assert_eq!(many.of(1, 2, 3), many.of(1, 2, 3));
        assert_eq!(Sources::default().of(1, 0, 5), None);
    }

    #[test]
    fn a_real_network_keeps_its_first_and_last_address() {
        let six = sources(6, "10.1.2.0/29");
        assert!(six.check("10.9.9.9:80".parse().unwrap()).is_ok());
        let all: HashSet<_> = (0..500).filter_map(|person| six.of(1, 0, person)).collect();
        assert_eq!(all.len(), 6);
        assert!((1..=6).all(|n| all.contains(&IpAddr::from([10, 1, 2, n]))));
    }

    #[test]
    fn networks_that_cannot_reach_the_target_are_refused() {
        let check = |sources: Sources, target: &str, wanted: &str| {
            let message = sources.check(target.parse().unwrap()).unwrap_err().to_string();
            assert!(message.contains(wanted), "{message:?} lacks {wanted:?}");
        };
        check(sources(0, "127.77.0.0/16"), "127.0.0.1:1", "sources must be");
        check(sources(70_000, "127.0.0.0/8"), "127.0.0.1:1", "sources must be");
        check(sources(7, "10.1.2.0/29"), "10.9.9.9:80", "has 6 addresses");
        check(sources(2, "127.77.0.0/16"), "10.9.9.9:80", "127.0.0.0/8");
        check(sources(2, "127.77.0.0/16"), "[::1]:80", "cannot reach");
        assert!(sources(100, "fd00::/64").check("[::1]:80".parse().unwrap()).is_ok());
    }
}
