//! Memory of all stored responses as a count: what is stored takes its bytes from it and gives them back.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Memory of all stored responses, and its maximum.
#[derive(Debug)]
pub struct Gauge {
    bytes: AtomicUsize,
    bytes_max: AtomicUsize,
}

/// Bytes of one response, given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    gauge: Arc<Gauge>,
    bytes: usize,
}

impl Gauge {
    /// Nothing taken.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), bytes_max: AtomicUsize::new(bytes_max) }
    }

    /// Another bound, for what is reserved from now on.
    pub fn set_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// The bytes in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The maximum.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Reserves `bytes`, if they are free.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let max = self.bytes_max();
        // Relaxed: it is a count, and guards no other memory.
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
            taken.checked_add(bytes).filter(|&sum| sum <= max)
        });
        taken.is_ok().then(|| Reservation { gauge: self.clone(), bytes })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.gauge.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
