//! Plans in force that other threads read.

use arc_swap::ArcSwap;
use flashweir_admission::LimitPlan;
use flashweir_core::Duration;
use std::sync::Arc;

/// Replaces the plan in force. The new plan's number is the larger of its number and the successor of the
/// number in force, even if two threads publish at the same moment.
pub fn put_in_force<Plan: LimitPlan>(slot: &ArcSwap<Plan>, plan: &Plan) {
    slot.rcu(|current| {
        let mut plan = plan.clone();
        plan.set_epoch(plan.epoch().max(current.epoch() + 1));
        Arc::new(plan)
    });
}

/// Opens plans step by step while the thread that publishes them stalls.
#[derive(Debug)]
pub struct SlotDecay<Plan> {
    /// Each slot with the plan that was in force when the stall was noticed.
    found: Vec<(Arc<ArcSwap<Plan>>, Arc<Plan>)>,
}

impl<Plan> Default for SlotDecay<Plan> {
    fn default() -> Self {
        Self { found: Vec::new() }
    }
}

impl<Plan: LimitPlan> SlotDecay<Plan> {
    /// The stall was noticed `age` ago: publishes what the plan in this slot has become by now. Whether it
    /// changed.
    pub fn decay(&mut self, slot: &Arc<ArcSwap<Plan>>, age: Duration) -> bool {
        let known = self.found.iter().find(|(known, _)| Arc::ptr_eq(known, slot));
        let plan = match known {
            Some((_, plan)) => plan.clone(),
            None => {
                let plan = slot.load_full();
                self.found.push((slot.clone(), plan.clone()));
                plan
            }
        };
        let mut decayed = plan.decayed(age);
        decayed.set_epoch(slot.load().epoch());
        if **slot.load() == decayed {
            return false;
        }
        put_in_force(slot, &decayed);
        true
    }

    /// The stall is over.
    pub fn end(&mut self) {
        self.found.clear();
    }
}
