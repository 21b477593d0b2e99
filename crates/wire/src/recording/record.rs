//! What happens to a planner.

use flashweir_admission::{flash_crowd, sentry};
use flashweir_core::Instant;

/// Which planner of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream(pub u16);

/// What happened to one planner at one time.
#[derive(Clone, Debug)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// To which planner.
    pub stream: Stream,
    /// What.
    pub event: Event,
}

/// What happens to planners.
#[derive(Clone, Debug)]
pub enum Event {
    /// There is a planner of this name from now on; or, where `goes_on`, there was one before this segment began.
    Begin {
        /// The service, or what else the planner is for.
        name: String,
        /// What it was made from.
        planner: Planned,
        /// It is older than the segment.
        goes_on: bool,
    },
    /// It was given a sample.
    FlashCrowdSample(flash_crowd::Sample),
    /// It was given a sample: those of all gates since the last plan, added up.
    SentrySample(sentry::Sample),
    /// It was told how busy deciding keeps those who decide.
    DecidingLoad(f64),
    /// It was asked for a plan, and made this one.
    FlashCrowdPlan(flash_crowd::Plan),
    /// It was asked for a plan, and made this one.
    SentryPlan(sentry::Plan),
    /// So many records are missing here.
    Lost(u64),
}

/// What a planner is made from.
#[derive(Clone, Debug, PartialEq)]
pub enum Planned {
    /// A planner of flash crowds, its settings and what it had learned before.
    FlashCrowd(flash_crowd::Settings, flash_crowd::Baseline),
    /// A planner of one service's sentry.
    Sentry(sentry::Policy),
}
