//! Cumulative hazard of the times that requests of a class take at an unloaded origin.
//!
//! ```text
//! Λ(t) = Σ dᵢ / rᵢ  over the distinct times tᵢ ≤ t            for t ≤ t_max
//! Λ(t) = Λ(t_max) + (t − t_max) / t_max                       beyond
//! ```
//!
//! From n times drawn from the class's distributions of wait and work, dᵢ are equal to tᵢ and rᵢ at least as
//! long (W. Nelson 1972, O. Aalen 1978), so Λ(b) − Λ(a) is the number of completions to expect of a request
//! while its age goes from a to b. No request outlives t_max alone; the second line continues Λ for those
//! that do at the origin. With it a constant time t₀ gives Λ(t) = t/t₀ from t₀ on, as an exponential one of
//! mean m gives t/m: in both cases a request that takes s ≥ 1 times as long as alone has been expected s
//! times when it completes.

use flashweir_core::Duration;

/// The curve of one class. A value costs a binary search among at most as many times as were drawn.
#[derive(Clone, Debug)]
pub(super) struct CumulativeHazard {
    /// Distinct times, seconds, and Λ from each on.
    steps: Vec<(f64, f64)>,
}

impl CumulativeHazard {
    /// The curve of these unloaded times.
    pub(super) fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times_s: Vec<f64> = times.map(|time| time.as_secs_f64()).collect();
        times_s.sort_by(f64::total_cmp);
        let mut steps: Vec<(f64, f64)> = Vec::new();
        let mut at_risk = times_s.len();
        let mut hazard = 0.0;
        for equal in times_s.chunk_by(|one, other| one == other) {
            hazard += equal.len() as f64 / at_risk as f64;
            at_risk -= equal.len();
            steps.push((equal[0], hazard));
        }
        Self { steps }
    }

    /// Λ at this age.
    pub(super) fn at(&self, age_s: f64) -> f64 {
        let passed = self.steps.partition_point(|(time_s, _)| *time_s <= age_s);
        let Some(&(time_s, hazard)) = passed.checked_sub(1).and_then(|last| self.steps.get(last)) else {
            return 0.0;
        };
        if passed < self.steps.len() {
            return hazard;
        }
        hazard + (age_s - time_s) / time_s.max(TIME_LEAST_S)
    }
}

/// A class that takes no time at all has no scale beyond it: a microsecond serves.
const TIME_LEAST_S: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;
    use flashweir_core::Rng;

    #[test]
    fn a_request_that_takes_s_times_as_long_is_expected_s_times() {
        let constant = CumulativeHazard::of([Duration::from_millis(20); 50].into_iter());
        let mut rng = Rng::new(4);
        let exponential =
            CumulativeHazard::of((0..5_000).map(|_| Duration::from_secs_f64(rng.exponential(0.02))));
        assert_eq!((constant.at(0.0), constant.at(0.0199)), (0.0, 0.0));
        for stretch in [1.0, 1.5, 4.0] {
            assert!((constant.at(0.02 * stretch) - stretch).abs() < 1e-9);
            let of_exponential = exponential.at(0.02 * stretch);
            assert!((of_exponential / stretch - 1.0).abs() < 0.1, "{stretch}: {of_exponential}");
        }
    }

    /// Nine in ten times are short: at the short time 0.9 of a completion is expected, at the long one of
    /// each that is still there.
    #[test]
    fn two_times_give_two_steps() {
        let times = [1, 1, 1, 1, 1, 1, 1, 1, 1, 100].map(Duration::from_millis);
        let hazard = CumulativeHazard::of(times.into_iter());
        assert_eq!(hazard.at(0.05), 0.9);
        assert!((hazard.at(0.1) - 1.9).abs() < 1e-9 && (hazard.at(0.2) - 2.9).abs() < 1e-9);
    }
}
