//! What the limit's rule sees when it looks.

use super::measured::{Measured, Variation};
use flashweir_core::Instant;

/// What one look sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) now: Instant,
    pub(super) tick: Measured,
    pub(super) variation: Variation,
    pub(super) low_level: Option<LowLevel>,
    /// The 95th percentile of responses, ages counted, since the limit last moved and settled.
    pub(super) p95_s: Option<f64>,
    /// What it is at least, as surely as so few responses tell.
    pub(super) p95_least_s: Option<f64>,
    pub(super) target_s: f64,
    /// Mean age of those in flight, seconds.
    pub(super) age_s: f64,
    /// How busy the origin says that it is, 0 to 1, if it does.
    pub(super) utilisation: Option<f64>,
}

/// What was seen while so few were in flight that nobody was in the way of anybody.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LowLevel {
    /// What a unit of work takes alone, seconds.
    pub(super) alone_s: f64,
    /// For how long that was seen.
    pub(super) span_s: f64,
}

impl Look {
    /// Whether what low levels tell is to be believed: they must have lasted until slow requests had their share.
    pub(super) fn knows_alone(&self, low_level: LowLevel) -> bool {
        self.p95_s.is_some_and(|p95_s| low_level.span_s > 2.0 * p95_s * (1.0 + self.variation.all))
    }

    /// Whether the origin says that it could do more.
    pub(super) fn is_room_told(&self) -> bool {
        self.utilisation.is_some_and(|utilisation| utilisation < ROOM)
    }

    /// Whether the origin says that it could not.
    pub(super) fn is_full_told(&self) -> bool {
        self.utilisation.is_some_and(|utilisation| utilisation >= FULL)
    }

    /// Whether responses are later than the target, beyond doubt.
    pub(super) fn is_surely_late(&self) -> bool {
        self.p95_least_s.is_some_and(|p95_s| p95_s > self.target_s)
    }
}

/// An origin below this has room. (A mean over a second or so: one that is full is never quite at 1 all the time.)
const ROOM: f64 = 0.9;
/// And one above this has none.
const FULL: f64 = 0.98;
