//! The documents of a redirector, and where they are.

use crate::distribution::COUNTER_TAU;
use crate::placement::LowDemand;
use crate::servers::ServerIndex;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use flashweir_core::limits::REPLICA_DOCUMENTS;
use flashweir_core::measure::DecayedCounters;
use flashweir_core::{Duration, Instant};

/// Averaging time of the documents' offered rates: five times the memory of the router, so that placement's
/// view of a document does not fluctuate with each choice.
const RATE_TAU: Duration = Duration::from_secs(5 * COUNTER_TAU.as_secs());

#[derive(Clone, Debug)]
struct Document {
    key: u64,
    /// The home server first; it is never removed while others remain.
    hosts: Vec<ServerIndex>,
    /// Time of the last copy.
    changed_at: Instant,
    low_demand: LowDemand,
}

/// Hosts and offered rates by document. A document has a host at any time: the first one cannot be removed,
/// only replaced.
///
/// Lookup O(log documents); memory about 100 bytes for each document and 2 for each copy; at most
/// [`REPLICA_DOCUMENTS`].
#[derive(Clone, Debug)]
pub struct DocumentTable {
    places: BTreeMap<u64, usize>,
    documents: Vec<Document>,
    offered: DecayedCounters,
    /// Owners that the counters have: those of forgotten documents are used again.
    owners: usize,
}

impl Default for DocumentTable {
    fn default() -> Self {
        let offered = DecayedCounters::new(0, RATE_TAU);
        Self { places: BTreeMap::new(), documents: Vec::new(), offered, owners: 0 }
    }
}

impl DocumentTable {
    /// The document's place; a new one gets `home` as its host. None where the table is full.
    pub fn place(&mut self, now: Instant, key: u64, home: ServerIndex) -> Option<usize> {
        if let Some(&place) = self.places.get(&key) {
            return Some(place);
        }
        if self.documents.len() >= REPLICA_DOCUMENTS {
            return None;
        }
        let document =
            Document { key, hosts: alloc::vec![home], changed_at: now, low_demand: LowDemand::default() };
        self.documents.push(document);
        if self.documents.len() > self.owners {
            self.offered.add_owner();
            self.owners += 1;
        }
        self.places.insert(key, self.documents.len() - 1);
        Some(self.documents.len() - 1)
    }

    /// The place of a known document.
    #[must_use]
    pub fn find(&self, key: u64) -> Option<usize> {
        self.places.get(&key).copied()
    }

    /// Counts a request for the document, admitted or not.
    pub fn offer(&mut self, now: Instant, place: usize) {
        self.offered.add(now, place);
    }

    /// Requests per second offered for the document.
    #[must_use]
    pub fn rate_rps(&self, now: Instant, place: usize) -> f64 {
        self.offered.rate_rps(now, place)
    }

    /// The hosts, the home server first; none for an unknown place.
    #[must_use]
    pub fn hosts(&self, place: usize) -> &[ServerIndex] {
        self.documents.get(place).map_or(&[], |it| &it.hosts)
    }

    /// The document's key.
    #[must_use]
    pub fn key(&self, place: usize) -> Option<u64> {
        self.documents.get(place).map(|it| it.key)
    }

    /// Number of documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Makes the server a host; says whether it was not one before.
    pub fn add_host(&mut self, now: Instant, place: usize, server: ServerIndex) -> bool {
        let Some(document) = self.documents.get_mut(place) else { return false };
        let is_new = !document.hosts.contains(&server);
        if is_new {
            document.hosts.push(server);
            document.changed_at = now;
            document.low_demand = LowDemand::default();
        }
        is_new
    }

    /// Removes a copy; never the home server and so never the last one. Says whether it was removed.
    pub fn remove_copy(&mut self, place: usize, server: ServerIndex) -> bool {
        let Some(document) = self.documents.get_mut(place) else { return false };
        let Some(at) = document.hosts.iter().position(|&host| host == server).filter(|&at| at > 0) else {
            return false;
        };
        document.hosts.remove(at);
        true
    }

    /// Gives a document whose home is out another one: a host that is there, or a new one. The old home
    /// becomes a copy like others, which may be deleted.
    pub(crate) fn rehome(&mut self, now: Instant, place: usize, server: ServerIndex) {
        self.add_host(now, place, server);
        if let Some(document) = self.documents.get_mut(place)
            && let Some(at) = document.hosts.iter().position(|&host| host == server)
        {
            document.hosts[..=at].rotate_right(1);
        }
    }

    /// Forgets documents with one host and less demand than this.
    pub(crate) fn forget_idle(&mut self, now: Instant, below_rps: f64) {
        let documents = core::mem::take(&mut self.documents);
        self.places.clear();
        for (place, document) in documents.into_iter().enumerate() {
            if document.hosts.len() < 2 && self.offered.rate_rps(now, place) < below_rps {
                continue;
            }
            let kept = self.documents.len();
            // A kept document moves towards the front only, so that no count is overwritten before it is
            // read.
            self.offered.set_scaled(kept, self.offered.scaled(place));
            self.places.insert(document.key, kept);
            self.documents.push(document);
        }
        (self.documents.len()..self.owners).for_each(|place| self.offered.set_scaled(place, 0));
    }

    pub(crate) fn changed_at(&self, place: usize) -> Instant {
        self.documents.get(place).map_or(Instant::ZERO, |it| it.changed_at)
    }

    pub(crate) fn low_demand(&mut self, place: usize) -> Option<&mut LowDemand> {
        self.documents.get_mut(place).map(|it| &mut it.low_demand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_documents_are_forgotten_and_the_others_keep_hosts_and_rates() {
        let mut table = DocumentTable::default();
        for key in 0..10 {
            let place = table.place(Instant::ZERO, key, 0).unwrap();
            (0..key * 10).for_each(|_| table.offer(Instant::ZERO, place));
        }
        table.add_host(Instant::ZERO, 1, 5);
        let rate = |table: &DocumentTable, key| table.rate_rps(Instant::ZERO, table.find(key).unwrap());
        let before: Vec<f64> = [1, 8, 9].map(|key| rate(&table, key)).into();
        table.forget_idle(Instant::ZERO, before[1]);
        assert_eq!(table.len(), 3);
        assert_eq!([1, 8, 9].map(|key| rate(&table, key)).to_vec(), before);
        assert_eq!(table.hosts(table.find(1).unwrap()), [0, 5]);
        let place = table.place(Instant::ZERO, 77, 2).unwrap();
        assert_eq!((place, table.rate_rps(Instant::ZERO, place)), (3, 0.0));
    }
}
