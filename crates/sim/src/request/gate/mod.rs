//! Who is let in: the very gates and planners of the gateway, driven as the gateway drives them.
//!
//! First the bound on requests in flight, then the policy's gate. Refusing takes no time and no processor of the
//! server: the gate stands on a machine of its own.

mod asked;
mod counts;
mod flash_crowd;
mod reason;
mod sentry;
mod stage;
mod witness;
mod worker;

pub use counts::GateCounts;
pub use flash_crowd::FlashCrowdPolicy;
pub use reason::ShedReason;
pub use sentry::{LimitTaken, SentryPolicy};

pub(super) use asked::{Acknowledged, Asked, Decided, ReleasedTry, Ticked};
pub(super) use reason::Refusal;
pub(super) use stage::{GateStage, host_key};

use flashweir_admission::flash_crowd::Explanation;
use flashweir_core::{Instant, Rate};

/// Which rules let people in.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Policy {
    /// None: everybody is admitted.
    #[default]
    None,
    /// NEWS, in any of its modes.
    FlashCrowd(FlashCrowdPolicy),
    /// The sentry, with its classes.
    Sentry(SentryPolicy),
    /// A token bucket that was set by hand, as the papers' comparisons have it.
    StaticRate {
        /// The rate.
        rate: Rate,
        /// The most that are let in at once after a lull.
        burst: u64,
    },
}

/// A plan of the policy, as it explains itself.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanTaken {
    /// When it was made.
    pub at: Instant,
    /// Its inputs and the rule that fired.
    pub explanation: Explanation,
}
