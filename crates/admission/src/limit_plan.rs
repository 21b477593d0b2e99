//! A plan as it is handed over: numbered, and opened step by step when its planner fails.
//!
//! **Numbers.** A plan's epoch is larger than that of the plan it replaces, across restarts of the planner
//! and reloads of the configuration. A gate may therefore ignore every plan whose epoch is not larger than
//! that of the plan in force.
//!
//! **Decay.** A limit that no planner reviews must not stay: the load it was made for may be gone, or the
//! origin may have recovered. A limit that vanishes at once is no better, because the crowd is still at the
//! door. So the limit of a plan without a planner doubles every [`DOUBLING_TIME`], continuously: `limit(age)
//! = limit · 2^(age / DOUBLING_TIME)`. The age counts from the moment the fault was noticed. A rate is
//! removed after [`OPEN_AFTER`], when it is 1,024 times what it was; a number of requests in flight rises to
//! the bound that every sentry has (`SENTRY_IN_FLIGHT`).

use flashweir_core::Duration;

/// The time in which a decaying limit doubles.
pub const DOUBLING_TIME: Duration = Duration::from_secs(1);
/// The age at which a decaying rate is removed.
pub const OPEN_AFTER: Duration = Duration::from_secs(10);

/// A plan that limits admission.
pub trait LimitPlan: Clone + PartialEq {
    /// The plan's number.
    fn epoch(&self) -> u64;
    /// Gives the plan its number.
    fn set_epoch(&mut self, epoch: u64);
    /// This plan `age` after its planner failed; see the module's law. It allows at least what a younger one
    /// allows.
    #[must_use]
    fn decayed(&self, age: Duration) -> Self;
    /// Returns true if it limits nothing, so that decay changes it no more.
    fn is_open(&self) -> bool;
    /// The first plans of a restarted planner rest on few samples: no limit in them is wider than that of
    /// `decaying`, the plan they replace. A plan that is tighter already is returned as it is.
    #[must_use]
    fn held_to(self, decaying: &Self) -> Self;
}

/// By how much a limit has risen at `age`.
pub(crate) fn growth(age: Duration) -> f64 {
    libm::exp2(age.as_secs_f64() / DOUBLING_TIME.as_secs_f64())
}
