//! The plan of the process before, in a gate that was taken over: it stays in force while this one has
//! nothing better.

use flashweir_core::{Duration, Instant};
use flashweir_kernel::gate::{KernelGate, ServicePlan, Tiers};

/// Time that a process looks before its plan without a ceiling replaces one that has: long enough to notice a
/// crowd that still comes, too short to be in the way of people when it is over.
const LOOKS_FOR: Duration = Duration::from_secs(10);

/// Until when plans without a ceiling wait.
#[derive(Clone, Copy, Debug)]
pub struct Inheritance {
    until: Instant,
}

impl Inheritance {
    /// From the moment the gate was taken over.
    #[must_use]
    pub fn from(now: Instant) -> Self {
        Self { until: now + LOOKS_FOR }
    }

    /// Returns whether the plan that was taken over stays: these have no ceiling, and it is too early to know
    /// that none is needed.
    #[must_use]
    pub fn stays(self, now: Instant, gate: &KernelGate, plans: &[ServicePlan]) -> bool {
        gate.inherited().is_some() && self.is_early(now, plans)
    }

    fn is_early(self, now: Instant, plans: &[ServicePlan]) -> bool {
        now < self.until && plans.iter().all(|plan| plan.tiers.is_open())
    }
}

/// Plan in force at each of the services after they were set: the plan that was taken over, as far as it is
/// known (its ceilings), or one that lets everything in.
#[must_use]
pub fn inherited_plans(gate: &KernelGate, services: usize) -> Vec<ServicePlan> {
    let plan = |tiers| ServicePlan { tiers, ..ServicePlan::default() };
    gate.inherited()
        .map_or(vec![plan(Tiers::OPEN); services], |tiers| tiers.iter().copied().map(plan).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rate;
    use flashweir_kernel::gate::Ceiling;

    #[test]
    fn a_ceiling_replaces_what_was_taken_over_at_once_and_its_absence_after_a_look() {
        let inheritance = Inheritance::from(Instant::from_secs(5));
        let open = ServicePlan::default();
        let tiers = Tiers::one(Ceiling { rate: Rate::from_per_second(9.0), burst: 10 });
        let limited = ServicePlan { tiers, ..open };
        let early = |s, plans: &[ServicePlan]| inheritance.is_early(Instant::from_secs(s), plans);
        assert!(early(5, &[open, open]) && early(14, &[open]));
        assert!(!early(15, &[open]) && !early(5, &[open, limited]));
    }
}
