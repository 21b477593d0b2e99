//! Places of the protected servers in the gate's table.
//!
//! A place has its own bucket and counters. Every protected address has one, as far as there are enough, so
//! that what was offered to each is known also of what is refused; a few more are kept for hot-spots that
//! hide behind an address for many (`0.0.0.0:80`). Such a place stays with its hot-spot until another one
//! needs it: moving it would empty its bucket and forget what is being answered there.

use flashweir_core::limits::{HOT_SPOTS_LIMITED, KERNEL_ENDPOINTS, KERNEL_SERVICES};
use std::net::SocketAddr;

/// Addresses that can be protected: the kernel's table less what hot-spots may need.
pub(crate) const PROTECTED_MOST: usize = KERNEL_ENDPOINTS - HOT_SPOTS_LIMITED;
/// Places for protected addresses; the last is shared by all that are left.
const OWN_PLACES: usize = KERNEL_SERVICES - HOT_SPOTS_LIMITED;

/// Addresses by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// As configured; hot-spots are taken out of the last one only in [`Places::endpoints`].
    own: Vec<Vec<SocketAddr>>,
    hot: Vec<SocketAddr>,
}

impl Places {
    /// For at most [`PROTECTED_MOST`] addresses; nothing is hot.
    pub(crate) fn new(protected: &[SocketAddr]) -> Self {
        let (alone, together) = protected.split_at(protected.len().min(OWN_PLACES - 1));
        let mut own: Vec<Vec<SocketAddr>> = alone.iter().map(|&address| vec![address]).collect();
        if !together.is_empty() {
            own.push(together.to_vec());
        }
        Self { own, hot: Vec::new() }
    }

    /// Gives each of these a separate place; at most [`HOT_SPOTS_LIMITED`] are heard. Whether any place
    /// changed.
    pub(crate) fn give(&mut self, destinations: &[SocketAddr]) -> bool {
        let destinations = &destinations[..destinations.len().min(HOT_SPOTS_LIMITED)];
        let mut changed = false;
        for &destination in destinations {
            if self.of(destination).is_some() {
                continue;
            }
            changed = true;
            if self.hot.len() < HOT_SPOTS_LIMITED {
                self.hot.push(destination);
            } else if let Some(cold) = self.hot.iter_mut().find(|held| !destinations.contains(held)) {
                *cold = destination;
            }
        }
        changed
    }

    /// Name of a place in the metrics: a server by its number in the configuration, a hot-spot by its own.
    pub(crate) fn name(&self, place: usize) -> String {
        match place.checked_sub(self.own.len()) {
            None => format!("server_{place}"),
            Some(spot) => format!("hot_spot_{spot}"),
        }
    }

    /// Number of places.
    pub(crate) fn count(&self) -> usize {
        self.own.len() + self.hot.len()
    }

    /// The place that is this destination's alone.
    pub(crate) fn of(&self, destination: SocketAddr) -> Option<usize> {
        (0..self.count()).find(|&place| self.destination(place) == Some(destination))
    }

    /// The one destination of a place; none of one that many share.
    pub(crate) fn destination(&self, place: usize) -> Option<SocketAddr> {
        match self.own.get(place) {
            Some(addresses) => match addresses[..] {
                [address] if !address.ip().is_unspecified() => Some(address),
                _ => None,
            },
            None => self.hot.get(place - self.own.len()).copied(),
        }
    }

    /// The place at which the gate counts a destination's connections, by the gate's own rule: its address,
    /// else its port on every address.
    pub(crate) fn counted_at(&self, destination: SocketAddr) -> Option<usize> {
        let has = |address: &SocketAddr| *address == destination;
        let has_all = |address: &SocketAddr| {
            address.ip().is_unspecified()
                && address.port() == destination.port()
                && address.is_ipv4() == destination.is_ipv4()
        };
        self.of(destination)
            .or_else(|| self.own.iter().position(|addresses| addresses.iter().any(has)))
            .or_else(|| self.own.iter().position(|addresses| addresses.iter().any(has_all)))
    }

    /// Every place's addresses, in order.
    pub(crate) fn endpoints(&self) -> Vec<Vec<SocketAddr>> {
        let of_own = self.own.iter().map(|addresses| {
            let kept = addresses.iter().filter(|address| !self.hot.contains(address));
            kept.copied().collect()
        });
        of_own.chain(self.hot.iter().map(|&address| vec![address])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    fn numbered(number: usize) -> SocketAddr {
        SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 80))
    }

    #[test]
    fn every_protected_address_has_a_place_and_needs_no_other_when_it_is_hot() {
        let mut places = Places::new(&[numbered(1), numbered(2)]);
        assert_eq!(places.endpoints(), [[numbered(1)], [numbered(2)]]);
        assert!(!places.give(&[numbered(2)]));
        assert_eq!((places.count(), places.of(numbered(2)), places.of(numbered(3))), (2, Some(1), None));
    }

    #[test]
    fn a_hot_spot_behind_an_address_for_many_gets_a_place_and_keeps_it_until_another_needs_it() {
        let mut places = Places::new(&[at("0.0.0.0:80")]);
        assert_eq!(places.destination(0), None);
        assert!(places.give(&[numbered(1)]));
        assert!(!places.give(&[numbered(1)]) && !places.give(&[]));
        assert_eq!(places.endpoints(), [[at("0.0.0.0:80")], [numbered(1)]]);
        assert!(places.give(&[numbered(2), numbered(3), numbered(4)]));
        assert_eq!((places.count(), places.of(numbered(1))), (5, Some(1)));
        assert!(places.give(&[numbered(5), numbered(3)]));
        assert_eq!((places.count(), places.of(numbered(1)), places.of(numbered(5))), (5, None, Some(1)));
        assert_eq!(places.of(numbered(3)), Some(3), "who is hot stays where it is");
    }

    #[test]
    fn more_addresses_than_places_share_the_last_until_one_is_hot() {
        let all: Vec<SocketAddr> = (0..PROTECTED_MOST).map(numbered).collect();
        let mut places = Places::new(&all);
        assert_eq!(places.count(), OWN_PLACES);
        let last = numbered(PROTECTED_MOST - 1);
        assert_eq!((places.of(last), places.counted_at(last)), (None, Some(OWN_PLACES - 1)));
        assert!(places.give(&[last]));
        assert_eq!(places.of(last), Some(OWN_PLACES));
        let endpoints = places.endpoints();
        assert_eq!(endpoints.iter().map(Vec::len).sum::<usize>(), PROTECTED_MOST, "each is there once");
        assert!(!endpoints[OWN_PLACES - 1].contains(&last));
    }

    #[test]
    fn a_destination_is_counted_at_its_address_or_at_its_port_on_every_address_of_its_family() {
        let places = Places::new(&[at("0.0.0.0:80"), at("10.0.0.9:81")]);
        assert_eq!(places.counted_at(numbered(1)), Some(0));
        assert_eq!(places.counted_at(at("10.0.0.9:81")), Some(1));
        assert_eq!(places.counted_at(at("10.0.0.8:81")), None);
        assert_eq!(places.counted_at(at("[fd00::1]:80")), None);
    }
}
