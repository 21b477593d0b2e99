//! One message of feedback, and the bounds of its numbers.

use flashweir_core::{Duration, Rate};

/// A node's demand on one sender. Ranks are places in the order of importance, 0 the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Run of the node that speaks; a later run has a larger number (seconds since 1970 at its start, for
    /// instance).
    pub epoch: u32,
    /// Rises with every refresh of one run.
    pub sequence: u32,
    /// The class ceiling: requests of this rank and of less important ones are limited; more important ones
    /// pass.
    pub from_rank: u8,
    /// Number of onset levels that have been crossed; 0 while there is no overload.
    pub severity: u8,
    /// Maximum rate of the limited ranks together to this node; none is a release.
    pub rate: Option<Rate>,
    /// Lifetime of the message from its arrival, whole milliseconds.
    pub ttl: Duration,
}

/// Severity levels at most: the paper has four, and each further one needs another threshold.
pub const SEVERITY_MAX: u8 = 8;
/// The shortest time to live: less than a round trip over a continent would expire on its way.
pub const TTL_MIN: Duration = Duration::from_millis(100);
/// The longest: a sender that hears nothing more stays limited no longer than this.
pub const TTL_MAX: Duration = Duration::from_secs(10);

impl Feedback {
    /// Returns whether the message ends a limit.
    #[must_use]
    pub fn is_release(&self) -> bool {
        self.rate.is_none()
    }
}
