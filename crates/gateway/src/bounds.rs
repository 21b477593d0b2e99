//! The bounds on connections that all workers share: in all, and per client. Requests are bounded by the
//! pipeline.
//!
//! Every count is an atomic that a guard takes and gives back when dropped, so no path can leak one. Counts
//! use relaxed ordering: nothing is published through them, and a bound that is off by the number of workers
//! for some nanoseconds protects as well as an exact one.

use flashweir_core::{Hasher64, Reason, limits};
use flashweir_http::client::ClientNetwork;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Counters of one row of the per-client table; two rows of this size cost 512 KiB for the whole process.
const CLIENT_CELLS: usize = 65_536;

/// Shared counts; the limits themselves come with each call, because a reload may change them.
#[derive(Debug)]
pub(crate) struct Bounds {
    connections: AtomicUsize,
    refuse_only_connections: AtomicUsize,
    refuse_only_most: AtomicUsize,
    /// The most connections open at once since the last peak was forgotten.
    peak: AtomicUsize,
    clients: ClientCounts,
}

impl Bounds {
    /// Nothing counted yet; `hasher` must be keyed, since clients choose their addresses.
    pub(crate) fn new(hasher: Hasher64) -> Arc<Self> {
        Arc::new(Self {
            connections: AtomicUsize::new(0),
            refuse_only_connections: AtomicUsize::new(0),
            refuse_only_most: AtomicUsize::new(limits::REFUSE_ONLY_CONNECTIONS),
            peak: AtomicUsize::new(0),
            clients: ClientCounts::new(hasher),
        })
    }

    /// Takes one of `most` connections; `None` when all are taken.
    pub(crate) fn take_connection(self: &Arc<Self>, most: usize) -> Option<Taken> {
        Taken::take(self, Count::Connections, most)
    }

    /// Takes one of the connections that only receive the answer that there is no room.
    pub(crate) fn take_refuse_only(self: &Arc<Self>) -> Option<Taken> {
        Taken::take(self, Count::RefuseOnly, self.refuse_only_most.load(Ordering::Relaxed))
    }

    /// Sets the maximum of refuse-only connections.
    pub(crate) fn set_refuse_only_most(&self, most: usize) {
        self.refuse_only_most.store(most, Ordering::Relaxed);
    }

    /// Takes one of `most` connections of this client's network; `None` when it holds them all (or, with the
    /// small probability of a count-min table, when others share both of its cells).
    pub(crate) fn take_client(self: &Arc<Self>, network: ClientNetwork, most: u32) -> Option<ClientTaken> {
        let cells = self.clients.cells(network);
        if self.clients.add(cells) > most {
            self.clients.subtract(cells);
            return None;
        }
        Some(ClientTaken { bounds: self.clone(), cells })
    }

    /// Connections open now, those of refuse-only mode included.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed) + self.refuse_only_connections.load(Ordering::Relaxed)
    }

    /// The most that were open at once since the last peak was forgotten.
    pub(crate) fn peak_connections(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// The next peak begins with what is open now.
    pub(crate) fn forget_peak(&self) {
        self.peak.store(self.connections(), Ordering::Relaxed);
    }

    fn counter(&self, count: Count) -> &AtomicUsize {
        match count {
            Count::Connections => &self.connections,
            Count::RefuseOnly => &self.refuse_only_connections,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Count {
    Connections,
    RefuseOnly,
}

/// One place taken of a bound; dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Taken {
    bounds: Arc<Bounds>,
    count: Count,
}

impl Taken {
    fn take(bounds: &Arc<Bounds>, count: Count, most: usize) -> Option<Self> {
        let counter = bounds.counter(count);
        if counter.fetch_add(1, Ordering::Relaxed) >= most {
            counter.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        bounds.peak.fetch_max(bounds.connections(), Ordering::Relaxed);
        Some(Self { bounds: bounds.clone(), count })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.bounds.counter(self.count).fetch_sub(1, Ordering::Relaxed);
    }
}

/// One connection of a client's network; dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct ClientTaken {
    bounds: Arc<Bounds>,
    cells: [usize; 2],
}

impl Drop for ClientTaken {
    fn drop(&mut self) {
        self.bounds.clients.subtract(self.cells);
    }
}

/// Guard of one open connection: its share of the bounds, given back when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionGuard {
    /// Reason for which it only gets refusals, if it does.
    pub(crate) full: Option<Reason>,
    _connection: Taken,
    _client: Option<ClientTaken>,
}

impl ConnectionGuard {
    /// Holds what was taken of the bounds.
    pub(crate) fn new(full: Option<Reason>, connection: Taken, client: Option<ClientTaken>) -> Self {
        Self { full, _connection: connection, _client: client }
    }
}

/// A count-min table of two rows: memory stays fixed however many addresses come, and an estimate is never
/// too low. It is too high only for a client that collides in both rows: with `n` connections open, a chance
/// of about (n / 65,536)² to share both cells with anyone at all.
#[derive(Debug)]
struct ClientCounts {
    hasher: Hasher64,
    rows: [Box<[AtomicU32]>; 2],
}

impl ClientCounts {
    fn new(hasher: Hasher64) -> Self {
        let row = || (0..CLIENT_CELLS).map(|_| AtomicU32::new(0)).collect();
        Self { hasher, rows: [row(), row()] }
    }

    /// One cell in each row, from disjoint bits of one hash.
    fn cells(&self, network: ClientNetwork) -> [usize; 2] {
        let hash = self.hasher.hash(&[&network.octets()]);
        [hash as usize % CLIENT_CELLS, (hash >> 32) as usize % CLIENT_CELLS]
    }

    /// Counts one more and returns the estimate, this one included.
    fn add(&self, cells: [usize; 2]) -> u32 {
        let added = |row: usize| self.rows[row][cells[row]].fetch_add(1, Ordering::Relaxed) + 1;
        added(0).min(added(1))
    }

    fn subtract(&self, cells: [usize; 2]) {
        for (row, cell) in cells.into_iter().enumerate() {
            self.rows[row][cell].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn network(bits: u32) -> ClientNetwork {
        ClientNetwork::of(IpAddr::from(Ipv4Addr::from_bits(bits)))
    }

    fn bounds() -> Arc<Bounds> {
        Bounds::new(Hasher64::new(1, 2))
    }

    #[test]
    fn a_bound_is_exact_and_a_dropped_guard_gives_its_place_back() {
        let bounds = bounds();
        let mut held: Vec<Taken> = (0..3).map(|_| bounds.take_connection(3).expect("room")).collect();
        assert!(bounds.take_connection(3).is_none());
        assert_eq!(bounds.connections(), 3);
        held.pop();
        assert!(bounds.take_connection(3).is_some());
        drop(held);
        assert_eq!(bounds.connections(), 0);
    }

    #[test]
    fn the_bounds_are_independent() {
        let bounds = bounds();
        let _connection = bounds.take_connection(1).expect("room");
        assert!(bounds.take_connection(1).is_none());
        let _refused = bounds.take_refuse_only().expect("headroom is another count");
        assert_eq!(bounds.connections(), 2);
    }

    #[test]
    fn one_client_cannot_take_more_than_its_share_and_does_not_hurt_others() {
        let bounds = bounds();
        let _held: Vec<_> = (0..5).map(|_| bounds.take_client(network(1), 5).expect("share")).collect();
        assert!(bounds.take_client(network(1), 5).is_none());
        assert!(bounds.take_client(network(2), 5).is_some());
    }

    proptest! {
        /// For any sequence of clients, all places are given back and an estimate is never too low.
        #[test]
        fn counts_return_to_zero(addresses in proptest::collection::vec(any::<u32>(), 0..200)) {
            let bounds = bounds();
            let held: Vec<_> =
                addresses.iter().map(|&bits| bounds.take_client(network(bits), 1_000)).collect();
            prop_assert!(held.iter().all(Option::is_some));
            for &bits in &addresses {
                let same = addresses.iter().filter(|&&other| other == bits).count() as u32;
                let cells = bounds.clients.cells(network(bits));
                let estimate = bounds.clients.add(cells);
                bounds.clients.subtract(cells);
                prop_assert!(estimate > same);
            }
            drop(held);
            let left = bounds.clients.rows.iter().flatten().any(|cell| cell.load(Ordering::Relaxed) != 0);
            prop_assert!(!left);
        }
    }
}
