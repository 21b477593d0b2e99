//! Events of a planner.

use crate::field::Field;
use flashweir_admission::{flash_crowd, sentry};
use flashweir_core::{Hasher64, Instant};

/// Planner of a recording, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream(pub u16);

/// Event of one planner at one time.
#[derive(Clone, Debug)]
pub struct Record {
    /// Time of the record.
    pub at: Instant,
    /// To which planner.
    pub stream: Stream,
    /// The event.
    pub event: Event,
}

/// Events of planners.
#[derive(Clone, Debug)]
pub enum Event {
    /// There is a planner of this name from now on; or, where `goes_on`, there was one before this segment
    /// began.
    Begin {
        /// The service, or what else the planner is for.
        name: String,
        /// Its settings and state at the start.
        planner: Planned,
        /// It is older than the segment.
        goes_on: bool,
    },
    /// It was given a sample.
    FlashCrowdSample(flash_crowd::Sample),
    /// It was given a sample: those of all gates since the last plan, added up.
    SentrySample(sentry::Sample),
    /// It was asked for a plan, and made this one.
    FlashCrowdPlan(flash_crowd::Plan),
    /// It was asked for a plan, and made this one.
    SentryPlan(sentry::Plan),
    /// It was asked for a plan, and made one of this fingerprint that orders what the last one did.
    Fingerprint(u32),
    /// Number of records missing here.
    Lost(u64),
}

/// Settings and state from which a planner is made.
#[derive(Clone, Debug, PartialEq)]
pub enum Planned {
    /// A planner of flash crowds, its settings and what it had learned before.
    FlashCrowd(flash_crowd::Settings, flash_crowd::Baseline),
    /// A planner of one service's sentry.
    Sentry(sentry::Policy),
}

/// Hash of a plan: plans that differ in any bit have the same one with a chance of 2⁻³². A planner that
/// differs once goes on differing, and once a second its plan is compared whole.
pub(crate) fn fingerprint<P: Field>(plan: &P) -> u32 {
    let mut bytes = Vec::new();
    plan.put(None, &mut bytes);
    // The lower half of a hash is as good as the whole.
    Hasher64::new(0, 0).hash(&[&bytes]) as u32
}

/// Returns whether two plans order the same, by the same rule.
pub(crate) fn orders_same(one: &flash_crowd::Plan, other: &flash_crowd::Plan) -> bool {
    let why =
        |plan: &flash_crowd::Plan| (plan.explanation.mode, plan.explanation.cause, plan.explanation.rule);
    one.limit == other.limit && why(one) == why(other)
}

/// The same for plans of the sentry. Queue timeouts are not compared: they follow the measurements and are no
/// separate order.
pub(crate) fn sentry_orders_same(one: &sentry::Plan, other: &sentry::Plan) -> bool {
    let limits = |plan: &sentry::Plan| -> Vec<_> {
        plan.classes.iter().map(|class| (class.rank, class.limit, class.admit_share)).collect()
    };
    (one.limit, one.decide, one.explanation.rule) == (other.limit, other.decide, other.explanation.rule)
        && limits(one) == limits(other)
}
