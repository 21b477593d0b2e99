//! One signal of the detector: what it usually is, and how far it strays from that in calm.
//!
//! Two things make a signal stray. *Chance*: it is a mean over the few responses that happened to be the
//! fastest tenth, and its standard error is read from those responses themselves, so it is known at once and
//! shrinks as more arrive. And *the service*, which is better and worse without any crowd; that is learned in
//! calm, as what the residuals show beyond chance. A crowd brings many responses: a margin learned from the
//! whole of the noise of quiet times, when there were few, would hide it.

use super::window::Fastest;
use flashweir_core::Duration;
use flashweir_core::measure::DecayingMean;

/// The margin never exceeds this: beyond it the signal is too noisy to wait for any worse.
const MARGIN_MAX: f64 = 0.5;
/// Memory of the noise, as a part of the baseline's: how steady a service is changes sooner than how fast it
/// is.
const NOISE_MEMORY: f64 = 0.1;
/// The noise is learned over this many intervals at least: a variance of a handful of residuals is itself
/// mostly noise.
const NOISE_MEMORY_INTERVALS: f64 = 30.0;

/// Baseline and noise of one signal.
#[derive(Debug)]
pub(super) struct Signal {
    delta: f64,
    usual: DecayingMean,
    /// Mean squared residual, relative to the baseline…
    noise: DecayingMean,
    /// …and the part of it that was chance.
    chance: DecayingMean,
}

impl Signal {
    /// Starts from a `known` baseline, remembered for `memory`; one evaluation each `interval`. One that is
    /// restored is of another run, perhaps on another machine: the margin begins as wide as it may be.
    pub(super) fn new(
        known: Option<f64>,
        memory: Duration,
        interval: Duration,
        delta: f64,
        is_restored: bool,
    ) -> Self {
        let usual =
            known.map_or_else(|| DecayingMean::new(memory), |value| DecayingMean::seeded(memory, value));
        let noise_memory = memory.mul_f64(NOISE_MEMORY).max(interval.mul_f64(NOISE_MEMORY_INTERVALS));
        // Before anything is known the noise is taken to be what the configured margin allows for.
        let margin = if is_restored && known.is_some() { MARGIN_MAX.max(delta) } else { delta };
        let allowed_for = (margin / 3.0) * (margin / 3.0);
        Self {
            delta,
            usual,
            noise: DecayingMean::seeded(noise_memory, allowed_for),
            chance: DecayingMean::seeded(noise_memory, 0.0),
        }
    }

    pub(super) fn usual(&self) -> Option<f64> {
        self.usual.value()
    }

    /// Measured value over its baseline, and the margin in force for it; none before there is a baseline.
    pub(super) fn compare(&self, measured: Fastest) -> Option<(f64, f64)> {
        let usual = self.usual.value()?;
        let of_service = self.noise.value().unwrap_or(0.0) - self.chance.value().unwrap_or(0.0);
        let three_sigma = 3.0 * libm::sqrt(of_service.max(0.0) + measured.chance / (usual * usual));
        Some((measured.mean / usual, three_sigma.clamp(self.delta, MARGIN_MAX.max(self.delta))))
    }

    /// Learns the noise from an evaluation without a rise in demand.
    pub(super) fn learn_noise(&mut self, measured: Fastest, span: Duration) {
        if let Some(usual) = self.usual.value() {
            let residual = (measured.mean / usual - 1.0).clamp(-MARGIN_MAX, MARGIN_MAX);
            self.noise.update(residual * residual, span);
            self.chance.update(measured.chance / (usual * usual), span);
        }
    }

    pub(super) fn learn(&mut self, measured: Fastest, span: Duration) {
        self.usual.update(measured.mean, span);
    }

    /// Moves the baseline by `fraction` of the way to what is measured.
    pub(super) fn drift(&mut self, measured: Fastest, fraction: f64) {
        self.usual.drift(measured.mean, fraction);
    }
}
