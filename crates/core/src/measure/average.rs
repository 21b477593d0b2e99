//! Averages with memory.

use crate::Duration;

/// NEWS's high-low filter, `V ← a·V + (1 − a)·O` where **a is memory**: 0.125 follows fast, 0.875 is stable
/// (NEWS §4.2; the paper calls memory "gain"). The first observation seeds it.
///
/// ```
/// use flashweir_core::measure::HighLowFilter;
/// let mut average = HighLowFilter::default();
/// average.update(100.0, 0.875);
/// average.update(200.0, 0.125);
/// assert_eq!(average.value(), Some(187.5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HighLowFilter(Option<f64>);

impl HighLowFilter {
    /// A filter that already knows its average.
    #[must_use]
    pub fn seeded(value: f64) -> Self {
        Self(Some(value))
    }

    /// Takes an observation with this memory (0 forgets all, 1 learns nothing).
    pub fn update(&mut self, observed: f64, memory: f64) {
        self.0 = Some(self.0.map_or(observed, |value| memory * value + (1.0 - memory) * observed));
    }

    /// The average; `None` before the first observation.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.0
    }
}

/// An exponentially decaying mean whose memory is a time, and which is a plain mean until that time is full:
/// a short quiet stretch already gives an unbiased baseline, a long one a stable one.
///
/// ```
/// use flashweir_core::Duration;
/// use flashweir_core::measure::DecayingMean;
/// let mut mean = DecayingMean::new(Duration::from_secs(60));
/// for value in [10.0, 20.0, 30.0] {
///     mean.update(value, Duration::from_secs(1));
/// }
/// assert!((mean.value().unwrap() - 20.0).abs() < 0.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecayingMean {
    memory_s: f64,
    weight_s: f64,
    value: f64,
}

impl DecayingMean {
    /// Empty, with this memory.
    #[must_use]
    pub fn new(memory: Duration) -> Self {
        Self { memory_s: memory.as_secs_f64().max(1e-9), weight_s: 0.0, value: 0.0 }
    }

    /// As if `value` had been observed for a whole memory.
    #[must_use]
    pub fn seeded(memory: Duration, value: f64) -> Self {
        let empty = Self::new(memory);
        Self { weight_s: empty.memory_s, value, ..empty }
    }

    /// Takes a value that stands for the last `span`.
    pub fn update(&mut self, observed: f64, span: Duration) {
        let span_s = span.as_secs_f64().max(1e-9);
        self.weight_s = self.weight_s * libm::exp(-span_s / self.memory_s) + span_s;
        self.value += (observed - self.value) * (span_s / self.weight_s).min(1.0);
    }

    /// The mean; `None` before the first observation.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        (self.weight_s > 0.0).then_some(self.value)
    }

    /// Time that it covers, at most its memory (and one span).
    #[must_use]
    pub fn covers(&self) -> Duration {
        Duration::from_secs_f64(self.weight_s)
    }

    /// Moves the mean by `fraction` (0 to 1) of the way to `target`: a lasting change taken over slowly.
    pub fn drift(&mut self, target: f64, fraction: f64) {
        self.value += (target - self.value) * fraction;
    }
}
