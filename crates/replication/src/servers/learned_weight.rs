//! A correction of a server's weight by what the servers report.

use super::ServerReport;
use crate::SettingsError;

/// From what weights are learned, and how fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningSettings {
    /// From what.
    pub source: LearningSource,
    /// κ: how much of a deviation from the mean is corrected in each round; 0.01 to 1. Above 1 the loop can overshoot in one
    /// round (docs/algorithms/replication.md).
    pub gain: f64,
    /// Largest correction, as a factor up and down; 1 to 10. Beyond it the configured weights are wrong.
    pub factor_max: f64,
}

/// Which part of a report says that a server has too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningSource {
    /// Requests per second over its weight: corrects what a redirector does not see, such as the load from the others.
    Load,
    /// The mean response time: corrects weights that are wrong, or a server that shares its machine.
    ResponseTime,
}

impl LearningSettings {
    /// A third of each deviation in the reported load, by a factor of two at most.
    pub const LOAD: Self = Self { source: LearningSource::Load, gain: 0.3, factor_max: 2.0 };

    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if !(0.01..=1.0).contains(&self.gain) {
            return Err(SettingsError::new("gain of learned weights", "0.01 to 1"));
        }
        if !(1.0..=10.0).contains(&self.factor_max) {
            return Err(SettingsError::new("largest correction of learned weights", "1 to 10"));
        }
        Ok(())
    }

    pub(super) fn pressure(&self, report: &ServerReport, weight: f64) -> Option<f64> {
        match self.source {
            LearningSource::Load => Some(report.load_rps / weight),
            LearningSource::ResponseTime => report.response_ms.filter(|ms| ms.is_finite() && *ms >= 0.0),
        }
    }
}

/// The correction: `factor ← clamp(factor · e^(−κ·(pressure − mean)/mean), 1/max, max)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearnedWeight(f64);

impl Default for LearnedWeight {
    /// One: nothing learned.
    fn default() -> Self {
        Self(1.0)
    }
}

impl LearnedWeight {
    /// Takes a server's pressure, and the mean of all usable servers.
    pub fn update(&mut self, pressure: f64, mean: f64, settings: &LearningSettings) {
        if mean > 0.0 {
            // Twice the mean is as bad as it gets in one round: an outlier must not empty a server.
            let deviation = ((pressure - mean) / mean).clamp(-1.0, 1.0);
            let factor = self.0 * libm::exp(-settings.gain * deviation);
            self.0 = factor.clamp(1.0 / settings.factor_max, settings.factor_max);
        }
    }

    /// The factor on the configured weight.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.0
    }
}
