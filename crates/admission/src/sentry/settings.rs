//! What may be set of the sentry's limit.

use flashweir_core::Duration;

/// What may be set: what the service promises, and nothing that would have to be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Answers are to come within this time from the request's arrival.
    pub target: Duration,
    /// How often the planner looks. Shorter finds changes of fast services sooner and costs more.
    pub interval: Duration,
}

impl Settings {
    /// The target, and a look every 20 ms.
    #[must_use]
    pub fn new(target: Duration) -> Self {
        Self { target, interval: Duration::from_millis(20) }
    }
}
