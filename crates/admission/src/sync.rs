//! The atomics of everything that workers share. `tests/workers` puts loom's in their place.

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
