//! The layout of the observer's maps: `bpf/observe_abi.h` in Rust.

use flashweir_core::limits;

use super::histogram::RATE_BUCKETS;
use crate::plain::plain;

/// Processors share counters; `SHARDS` there.
pub(super) const SHARDS: u32 = 4;
/// Nanoseconds of a tick, as a power of two; `TICK_SHIFT` there.
pub(super) const TICK_SHIFT: u32 = 10;
/// Of flows from before the plan, and since.
const SLOTS: usize = 2 * RATE_BUCKETS;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watching {
    pub(super) plan_ticks: u64,
    pub(super) test_now_ns: u64,
    pub(super) interval: u64,
}

/// Moves of one shard's flows: into a slot (positive), out of it (negative).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Histogram(pub(super) [i32; SLOTS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; SLOTS])
    }
}

/// Counts of the observer's program since it was loaded, of one shard or of all: `struct seen` in
/// `observe_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ObserverCounts {
    pub(super) offered: u64,
    pub(super) unique_offered: u64,
    pub(super) completed: u64,
    pub(super) begun: u64,
    pub(super) placed: u64,
    pub(super) expired: u64,
    pub(super) flows_left_out: u64,
    pub(super) attempts_left_out: u64,
}

impl ObserverCounts {
    /// Combines each pair of counters by `mine`.
    pub(super) fn with(self, other: Self, mine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            offered: mine(self.offered, other.offered),
            unique_offered: mine(self.unique_offered, other.unique_offered),
            completed: mine(self.completed, other.completed),
            begun: mine(self.begun, other.begun),
            placed: mine(self.placed, other.placed),
            expired: mine(self.expired, other.expired),
            flows_left_out: mine(self.flows_left_out, other.flows_left_out),
            attempts_left_out: mine(self.attempts_left_out, other.attempts_left_out),
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AttemptsAt {
    pub(super) offered: u64,
    pub(super) unique_offered: u64,
}

plain! { Watching: 24, Histogram: 7_680, ObserverCounts: 64, AttemptsAt: 16 }

/// All that a reading takes from the kernel's maps, bytes, for any number of flows and processors.
pub(super) const READING_BYTES: usize = SHARDS as usize
    * (size_of::<Histogram>() + size_of::<ObserverCounts>())
    + limits::KERNEL_DESTINATIONS * (24 + 16);
// What a tick may cost.
const _: () = assert!(READING_BYTES <= 64 << 10);
