//! Response-time target in force: slower answers for more requests (Cataclysm §2, table 1).

use super::policy::Policy;
use flashweir_core::Duration;

/// A place on a policy's ladder.
#[derive(Debug, Default)]
pub(super) struct Ladder {
    step: usize,
}

impl Ladder {
    /// Up at once when the rate of a step is reached; down only when the rate is a tenth below it, so that a
    /// rate at the step does not move the target for ever.
    pub(super) fn observe(&mut self, policy: &Policy, offered_rps: f64) {
        let steps = &policy.ladder;
        while self.step + 1 < steps.len() && offered_rps >= steps[self.step].below_rps {
            self.step += 1;
        }
        while self.step > 0 && offered_rps < DOWN * steps[self.step - 1].below_rps {
            self.step -= 1;
        }
    }

    /// The target now.
    pub(super) fn target(&self, policy: &Policy) -> Duration {
        policy.ladder.get(self.step).map_or(policy.target, |step| step.target)
    }
}

const DOWN: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::super::policy::LadderStep;
    use super::*;

    #[test]
    fn the_target_rises_at_the_step_and_falls_a_tenth_below_it() {
        let second = Duration::from_secs(1);
        let mut policy = Policy::single(second * 9);
        let mut ladder = Ladder::default();
        ladder.observe(&policy, 1e9);
        assert_eq!(ladder.target(&policy), second * 9);
        let step = |below_rps, secs| LadderStep { below_rps, target: second * secs };
        policy.ladder = alloc::vec![step(1_000.0, 1), step(10_000.0, 2), step(f64::INFINITY, 3)];
        let rates = [10.0, 999.0, 1_000.0, 950.0, 900.0, 899.0, 20_000.0, 9_500.0, 8_000.0, 0.0];
        let targets = rates.map(|rate| {
            ladder.observe(&policy, rate);
            ladder.target(&policy).as_secs()
        });
        assert_eq!(targets, [1, 1, 2, 2, 2, 1, 3, 3, 2, 1]);
    }
}
