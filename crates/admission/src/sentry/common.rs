//! What all gates of one service share: one gate for each worker, no lock between them.
//!
//! The limit is on the requests in flight of the service, not of a worker: connections are spread over workers
//! unevenly, and a limit of three cannot be cut into shares. So the count is one atomic number.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counts of one service, for all its gates.
#[derive(Debug)]
pub struct Common {
    in_flight: AtomicU32,
    gates: Box<[Waiting]>,
}

/// Whether a gate has somebody who waits.
#[derive(Debug, Default)]
struct Waiting(AtomicU32);

impl Common {
    /// Nobody is in flight; so many gates.
    #[must_use]
    pub fn new(gates: usize) -> Self {
        Self { in_flight: AtomicU32::new(0), gates: (0..gates).map(|_| Waiting::default()).collect() }
    }

    /// How many are in flight over all gates.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Takes a place if fewer than `limit` are taken.
    pub(super) fn take(&self, limit: u32) -> bool {
        self.in_flight.fetch_update(Relaxed, Relaxed, |count| (count < limit).then_some(count + 1)).is_ok()
    }

    /// Gives a place back.
    pub(super) fn give_back(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    /// How many wait at this gate.
    pub(super) fn set_waiting(&self, gate: usize, count: u32) {
        if let Some(waiting) = self.gates.get(gate) {
            waiting.0.store(count, Relaxed);
        }
    }

    /// Another gate at which somebody waits.
    pub(super) fn who_waits(&self, but: usize) -> Option<usize> {
        let others = (1..self.gates.len()).map(|step| (but + step) % self.gates.len());
        others.into_iter().find(|&gate| self.gates[gate].0.load(Relaxed) > 0)
    }
}
