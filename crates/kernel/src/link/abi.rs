//! The layout of the classifier's maps: `bpf/link_abi.h` in Rust.

use flashweir_core::limits;

use crate::plain::plain;

/// Processors share counters; `LINK_SHARDS` there.
pub(super) const SHARDS: u32 = 4;
/// Buckets of the sketch, and residues that each keeps; `SKETCH_BUCKETS` and `SKETCH_KEPT` there.
pub const SKETCH_BUCKETS: usize = 1_024;
/// See [`SKETCH_BUCKETS`].
pub const SKETCH_KEPT: usize = 3;
/// Flows of a set; `FLOW_WAYS` there.
pub(super) const WAYS: usize = 8;
/// Sets of flows; `FLOW_SETS` there.
pub(super) const SETS: u32 = 512;
const _: () = assert!(SETS as usize * WAYS == limits::LINK_FLOWS);
/// A residue that no hash has: the place is free.
const FREE: u32 = u32::MAX;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key(pub(super) [u64; 2]);

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Orders {
    pub(super) interval: u64,
    pub(super) expires_ns: u64,
    pub(super) mark: u32,
    pub(super) zero: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Sketch(pub(super) [[u32; SKETCH_KEPT]; SKETCH_BUCKETS]);

impl Default for Sketch {
    fn default() -> Self {
        Self([[FREE; SKETCH_KEPT]; SKETCH_BUCKETS])
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowSet {
    /// Only the kernel sees the lock; user space reads zero.
    pub(super) lock: u32,
    pub(super) zero: u32,
    pub(super) flow: [u64; WAYS],
    pub(super) bytes: [u64; WAYS],
    pub(super) inherited: [u64; WAYS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CutSet {
    pub(super) flow: [u64; WAYS],
    pub(super) drop: [u32; WAYS],
}

/// Counts since the program was loaded, of one shard or of all.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) offered_packets: u64,
    pub(super) offered_bytes: u64,
    pub(super) purged_packets: u64,
    pub(super) purged_bytes: u64,
    pub(super) refused_packets: u64,
    pub(super) refused_bytes: u64,
    pub(super) marked_packets: u64,
    pub(super) unread_frames: u64,
}

plain! { Key: 16, Orders: 24, Sketch: 12_288, FlowSet: 200, CutSet: 96, Counts: 64 }
