//! Atomics for everything that workers share. `tests/workers` replaces them by those of loom.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
