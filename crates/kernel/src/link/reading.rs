//! Counts of the classifier.

use super::abi::{Counts, SKETCH_BUCKETS, SKETCH_KEPT};
use flashweir_core::kernel_counts::LinkCounts;

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
