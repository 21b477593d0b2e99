//! Destinations by the planner's keys: the planner knows numbers only.

use flashweir_core::{Hasher64, limits};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// Destinations by key, those seen last. The planner follows at most [`limits::HOT_SPOT_ENTRIES`] and forgets
/// one within seconds of its last connection, so four times as many are enough to know every key it can name.
#[derive(Debug)]
pub(crate) struct Destinations {
    hasher: Hasher64,
    known: VecDeque<(u64, SocketAddr)>,
}

const KNOWN_MOST: usize = 4 * limits::HOT_SPOT_ENTRIES;

impl Destinations {
    /// Keys are made by `hasher`, so that no client can make two destinations share one.
    pub(crate) fn new(hasher: Hasher64) -> Self {
        Self { hasher, known: VecDeque::with_capacity(KNOWN_MOST) }
    }

    /// The key of a destination, which is remembered. O([`KNOWN_MOST`]).
    pub(crate) fn key(&mut self, destination: SocketAddr) -> u64 {
        let port = destination.port().to_be_bytes();
        let key = match destination.ip() {
            IpAddr::V4(address) => self.hasher.hash(&[&address.octets(), &port]),
            IpAddr::V6(address) => self.hasher.hash(&[&address.octets(), &port]),
        };
        self.known.retain(|(known, _)| *known != key);
        if self.known.len() == KNOWN_MOST {
            self.known.pop_front();
        }
        self.known.push_back((key, destination));
        key
    }

    /// The destination of a key; none of one not seen lately.
    pub(crate) fn of(&self, key: u64) -> Option<SocketAddr> {
        self.known.iter().find(|(known, _)| *known == key).map(|(_, destination)| *destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_key_leads_back_to_its_destination_and_ports_and_families_differ() {
        let mut destinations = Destinations::new(Hasher64::new(1, 2));
        let all = [at("10.0.0.1:80"), at("10.0.0.1:81"), at("10.0.0.2:80"), at("[::ffff:10.0.0.1]:80")];
        let keys = all.map(|destination| destinations.key(destination));
        assert_eq!(keys.map(|key| destinations.of(key)), all.map(Some));
        assert_eq!(destinations.key(all[0]), keys[0]);
        assert_eq!(destinations.of(keys[0] ^ 1), None);
    }

    #[test]
    fn the_one_not_seen_for_longest_is_forgotten() {
        let mut destinations = Destinations::new(Hasher64::new(1, 2));
        let numbered = |number: usize| SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 80));
        let keys: Vec<u64> = (0..KNOWN_MOST).map(|number| destinations.key(numbered(number))).collect();
        destinations.key(numbered(0));
        destinations.key(numbered(KNOWN_MOST));
        assert_eq!(destinations.of(keys[0]), Some(numbered(0)));
        assert_eq!(destinations.of(keys[1]), None);
    }
}
