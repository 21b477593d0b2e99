//! Lookup of the network of an address among many: sorted once, then one binary search.

use std::net::IpAddr;

use ipnet::IpNet;

/// Numbers by network; of nested networks the narrowest counts. 32 bytes for each end of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetworkTable {
    /// From which address on which number holds; 0 for none. IPv4 is mapped into IPv6.
    from: Box<[(u128, u32)]>,
}

impl NetworkTable {
    /// Of these networks and their numbers, of which 0 stands for none.
    pub(crate) fn new(networks: impl IntoIterator<Item = (IpNet, u32)>) -> Self {
        let mut ranges: Vec<(u128, u128, u32)> =
            networks.into_iter().map(|(network, number)| range(network, number)).collect();
        // A wider network before those in it.
        ranges.sort_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
        let mut from: Vec<(u128, u32)> = Vec::with_capacity(2 * ranges.len());
        let mut around: Vec<(u128, u32)> = Vec::new();
        let close = |from: &mut Vec<_>, around: &mut Vec<(u128, u32)>| {
            let Some((last, _)) = around.pop() else { return };
            let outer = around.last().map_or(0, |(_, number)| *number);
            if let Some(next) = last.checked_add(1) {
                push(from, next, outer);
            }
        };
        for (first, last, number) in ranges {
            while around.last().is_some_and(|(outer_last, _)| *outer_last < first) {
                close(&mut from, &mut around);
            }
            push(&mut from, first, number);
            around.push((last, number));
        }
        while !around.is_empty() {
            close(&mut from, &mut around);
        }
        Self { from: from.into() }
    }

    /// The number of the narrowest network that has this address.
    pub(crate) fn find(&self, address: IpAddr) -> Option<u32> {
        let address = bits(address);
        let after = self.from.partition_point(|(from, _)| *from <= address);
        let (_, number) = self.from.get(after.checked_sub(1)?)?;
        (*number != 0).then_some(*number)
    }
}

/// Adds a stretch. One that begins where another does takes its place.
fn push(from: &mut Vec<(u128, u32)>, first: u128, number: u32) {
    match from.last_mut() {
        Some(last) if last.0 == first => last.1 = number,
        _ => from.push((first, number)),
    }
}

fn bits(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn range(network: IpNet, number: u32) -> (u128, u128, u32) {
    (bits(network.network()), bits(network.broadcast()), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(networks: &[(&str, u32)]) -> NetworkTable {
        NetworkTable::new(networks.iter().map(|&(network, number)| (network.parse().unwrap(), number)))
    }

    #[test]
    fn the_narrowest_network_counts_and_its_neighbours_are_outside() {
        let table = table(&[
            ("10.0.0.0/8", 1),
            ("10.1.0.0/16", 2),
            ("10.1.2.0/24", 3),
            ("10.1.3.0/24", 4),
            ("10.0.0.0/24", 5),
            ("2001:db8::/32", 6),
            ("2001:db8:ffff::/48", 7),
            ("255.255.255.255/32", 8),
        ]);
        for (address, number) in [
            ("9.255.255.255", None),
            ("10.0.0.0", Some(5)),
            ("10.0.1.0", Some(1)),
            ("10.1.0.1", Some(2)),
            ("10.1.2.255", Some(3)),
            ("10.1.3.0", Some(4)),
            ("10.1.4.0", Some(2)),
            ("10.255.255.255", Some(1)),
            ("11.0.0.0", None),
            ("::ffff:10.1.2.3", Some(3)),
            ("2001:db8::1", Some(6)),
            ("2001:db8:ffff::1", Some(7)),
            ("2001:db9::", None),
            ("255.255.255.255", Some(8)),
            ("::", None),
        ] {
            assert_eq!(table.find(address.parse().unwrap()), number, "{address}");
        }
    }

    #[test]
    fn everything_and_nothing() {
        assert_eq!(table(&[]).find("192.0.2.1".parse().unwrap()), None);
        let all = table(&[("0.0.0.0/0", 1), ("::/0", 2)]);
        assert_eq!(all.find("192.0.2.1".parse().unwrap()), Some(1));
        assert_eq!(all.find("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap()), Some(2));
    }
}
