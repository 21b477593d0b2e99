//! Counts of the classifier.

use super::abi::{Counts, SKETCH_BUCKETS, SKETCH_KEPT};

/// The smallest residues of each bucket of hashes, in ascending order and then free places (all bits set):
/// the layout of `flashweir_aqm::MinSketch`.
pub type SketchResidues = [[u32; SKETCH_KEPT]; SKETCH_BUCKETS];

/// Traffic since the last reading.
#[derive(Clone, Debug, Default)]
pub struct LinkReading {
    /// Sketches of the flows that sent anything: all of them together are the sketch of the interval.
    pub sketches: Vec<Box<SketchResidues>>,
    /// The heaviest flows of the interval, by hash, and the bytes that each sent while it had a place. In no
    /// order.
    pub flows: Vec<(u64, u64)>,
    /// Packets and bytes of the interval.
    pub counts: LinkCounts,
}

/// Packets and bytes at a link: offered = purged + refused + sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Packets of IP that arrived.
    pub offered_packets: u64,
    /// Their bytes, Ethernet headers included.
    pub offered_bytes: u64,
    /// Packets dropped because their flow is over its share.
    pub purged_packets: u64,
    /// Their bytes.
    pub purged_bytes: u64,
    /// Packets dropped at the link's price, because their sender does not understand marks.
    pub refused_packets: u64,
    /// Their bytes.
    pub refused_bytes: u64,
    /// Packets marked at the link's price, and sent.
    pub marked_packets: u64,
    /// Frames that are not IP or cannot be read: they pass, and are in no other number.
    pub unread_frames: u64,
}

impl LinkCounts {
    /// Bytes that were handed to the queue: what the price counts.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.survived_bytes().saturating_sub(self.refused_bytes)
    }

    /// Bytes of packets that were not dropped because of their flow.
    #[must_use]
    pub fn survived_bytes(&self) -> u64 {
        self.offered_bytes.saturating_sub(self.purged_bytes)
    }

    /// These and those.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    pub(super) fn since(self, before: Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            offered_packets: of(self.offered_packets, other.offered_packets),
            offered_bytes: of(self.offered_bytes, other.offered_bytes),
            purged_packets: of(self.purged_packets, other.purged_packets),
            purged_bytes: of(self.purged_bytes, other.purged_bytes),
            refused_packets: of(self.refused_packets, other.refused_packets),
            refused_bytes: of(self.refused_bytes, other.refused_bytes),
            marked_packets: of(self.marked_packets, other.marked_packets),
            unread_frames: of(self.unread_frames, other.unread_frames),
        }
    }
}

impl From<Counts> for LinkCounts {
    fn from(counts: Counts) -> Self {
        let Counts {
            offered_packets,
            offered_bytes,
            purged_packets,
            purged_bytes,
            refused_packets,
            refused_bytes,
            marked_packets,
            unread_frames,
        } = counts;
        Self {
            offered_packets,
            offered_bytes,
            purged_packets,
            purged_bytes,
            refused_packets,
            refused_bytes,
            marked_packets,
            unread_frames,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offered_is_purged_refused_and_sent() {
        let counts =
            LinkCounts { offered_bytes: 10, purged_bytes: 4, refused_bytes: 1, ..LinkCounts::default() };
        assert_eq!((counts.survived_bytes(), counts.sent_bytes()), (6, 5));
        assert_eq!(counts.plus(counts).since(counts), counts);
    }
}
