//! A median in eight bytes.

/// Follows the median of a positive quantity by steps on its logarithm: up when a value is above, down when
/// it is below. Steps shrink from 50 % to 1 % over the first samples, so it is useful after [`TRAINED`]
/// values and then wanders by about its last step. A value a thousand times too large moves it no more than
/// any other.
///
/// ```
/// use flashweir_core::measure::RunningMedian;
/// let mut median = RunningMedian::default();
/// for n in 0..1_000 {
///     median.observe(if n % 10 == 0 { 5.0 } else { 0.010 });
/// }
/// assert!((median.value().unwrap() / 0.010 - 1.0).abs() < 0.05);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunningMedian {
    log_value: f32,
    count: u32,
}

/// Values needed before the median is worth comparing with.
pub const TRAINED: u32 = 8;
/// The step it ends with: 1 %, a tenth of the smallest degradation NEWS looks for.
const STEP_LAST: f32 = 0.01;
/// The first step: a factor of 1.65 recovers from a first value that was far off within a few samples.
const STEP_FIRST: f32 = 0.5;

impl RunningMedian {
    /// A median known from an earlier run.
    #[must_use]
    pub fn seeded(value: f64) -> Self {
        Self { log_value: libm::logf(value as f32), count: 64 }
    }

    /// Takes a positive value; zero, negative and NaN are ignored.
    pub fn observe(&mut self, value: f32) {
        if value.is_nan() || value <= 0.0 {
            return;
        }
        let log_observed = libm::logf(value);
        if self.count == 0 {
            self.log_value = log_observed;
        } else {
            let step = (STEP_FIRST / self.count as f32).max(STEP_LAST);
            // Never past the value itself: equal observations leave the median where it is.
            self.log_value += (log_observed - self.log_value).clamp(-step, step);
        }
        self.count = self.count.saturating_add(1);
    }

    /// Returns whether enough values were seen to compare with.
    #[must_use]
    pub fn is_trained(&self) -> bool {
        self.count >= TRAINED
    }

    /// The median; `None` until trained.
    #[must_use]
    pub fn value(&self) -> Option<f32> {
        self.is_trained().then(|| libm::expf(self.log_value))
    }
}
