//! Inputs of the limit's rule.

use super::measured::{Measured, Variation};
use flashweir_core::Instant;

/// Inputs of one look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) now: Instant,
    pub(super) tick: Measured,
    pub(super) variation: Variation,
    pub(super) target_s: f64,
    /// Mean age of those in flight, seconds.
    pub(super) age_s: f64,
    /// The limit that nothing speaks against, see [`Calm`](super::calm::Calm); 1 where the origin may be
    /// short.
    pub(super) limit_least: u32,
}
