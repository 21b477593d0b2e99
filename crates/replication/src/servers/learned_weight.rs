//! A correction of a server's weight by what the servers report.

use super::ServerReport;
use crate::SettingsError;

/// From what weights are learned, and how fast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningSettings {
    /// From what.
    pub source: LearningSource,
    /// κ: how much of a deviation from the mean is corrected in each round; 0.01 to 1. Above 1 the loop can
    /// overshoot in one round (docs/algorithms/replication.md).
    pub gain: f64,
    /// Largest correction, as a factor up and down; 1 to 10. Beyond it the configured weights are wrong.
    pub factor_max: f64,
}

/// Part of a report that says that a server has too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningSource {
    /// Requests per second over its weight: corrects what a redirector does not see, such as the load from
    /// the others.
    Load,
    /// The mean response time: corrects weights that are wrong, or a server that shares its machine.
    ResponseTime,
    /// Utilisation: corrects what requests in flight do not show, such as other work on a server's machine.
    /// Below a tenth on average nothing is learned.
    Utilisation,
}

/// Mean utilisation from which weights are learned.
const UTILISATION_MIN: f64 = 0.1;

impl LearningSettings {
    /// A third of each deviation in the reported load, by a factor of two at most.
    pub const LOAD: Self = Self { source: LearningSource::Load, gain: 0.3, factor_max: 2.0 };
    /// The same for the reported utilisation.
    pub const UTILISATION: Self = Self { source: LearningSource::Utilisation, ..Self::LOAD };
    /// The same for response times.
    pub const RESPONSE_TIME: Self = Self { source: LearningSource::ResponseTime, ..Self::LOAD };

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if !(0.01..=1.0).contains(&self.gain) {
            return Err(SettingsError::new("gain of learned weights", "0.01 to 1"));
        }
        if !(1.0..=10.0).contains(&self.factor_max) {
            return Err(SettingsError::new("largest correction of learned weights", "1 to 10"));
        }
        Ok(())
    }

    /// The mean below which nothing is learned: differences between idle servers are chance.
    pub(crate) fn mean_min(&self) -> f64 {
        match self.source {
            LearningSource::Load | LearningSource::ResponseTime => 0.0,
            LearningSource::Utilisation => UTILISATION_MIN,
        }
    }

    pub(crate) fn pressure(&self, report: &ServerReport, weight: f64) -> Option<f64> {
        match self.source {
            LearningSource::Load => Some(report.load_rps / weight),
            LearningSource::ResponseTime => report.response_ms.filter(|ms| ms.is_finite() && *ms >= 0.0),
            LearningSource::Utilisation => report.utilisation.filter(|it| it.is_finite() && *it >= 0.0),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a server of which others take 100/s gets less from us until both are even, without overshoot.
    /// Method: the loop, with 400/s of our own split by the factors.
    #[test]
    fn a_load_from_elsewhere_is_made_up_for() {
        let mut learned = [LearnedWeight::default(); 2];
        let mut excess_before = f64::INFINITY;
        for _ in 0..30 {
            let sum: f64 = learned.iter().map(LearnedWeight::factor).sum();
            let loads = [100.0 + 400.0 * learned[0].factor() / sum, 400.0 * learned[1].factor() / sum];
            let excess = loads[0] - 250.0;
            assert!(excess >= -1e-9 && excess < excess_before, "{excess} after {excess_before}");
            excess_before = excess;
            for (learned, load) in learned.iter_mut().zip(loads) {
                learned.update(load, 250.0, &LearningSettings::LOAD);
            }
        }
        assert!(excess_before < 1.0, "{excess_before}");
    }

    #[test]
    fn corrections_are_bounded_and_an_idle_cluster_teaches_nothing() {
        let mut learned = LearnedWeight::default();
        (0..100).for_each(|_| learned.update(1e9, 1.0, &LearningSettings::LOAD));
        assert_eq!(learned.factor(), 0.5);
        learned.update(0.0, 0.0, &LearningSettings::LOAD);
        assert_eq!(learned.factor(), 0.5);
    }
}
