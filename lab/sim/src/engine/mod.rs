//! Common parts of every simulated world: the order of events, the proof of that order, and checks after each
//! step.
//!
//! ```
//! use flashweir_core::{Duration, Instant};
//! use flashweir_sim::engine::{EventHash, Queue};
//!
//! let mut queue = Queue::new();
//! let mut hash = EventHash::new();
//! queue.schedule(Instant::from_millis(2), "second")?;
//! queue.schedule(Instant::from_millis(1), "first")?;
//! while let Some((now, event)) = queue.pop() {
//!     hash.fold(now, 0, event.len() as u64);
//! }
//! assert_eq!(queue.now(), Instant::from_millis(2));
//! assert_eq!(hash.events(), 2);
//! # Ok::<(), flashweir_sim::engine::QueueError>(())
//! ```

mod checks;
mod event_hash;
mod queue;

pub use checks::{Check, check_world};
pub use event_hash::EventHash;
pub use queue::{Queue, QueueError};
