//! Whether moving the limit changed what was done: two measurements, and how far to trust their difference.

use super::measured::{Measured, Variation};
use flashweir_core::Instant;

/// What one look sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) now: Instant,
    pub(super) tick: Measured,
    pub(super) variation: Variation,
    /// What a unit of work takes alone, by what was seen at low levels.
    pub(super) low_level_s: Option<f64>,
    /// The 95th percentile of responses, ages counted, and of how many; since the limit last moved.
    pub(super) p95_s: Option<f64>,
    pub(super) target_s: f64,
}

/// Whether enough was seen after a move: the answer is clear, or would hardly get clearer.
pub(super) fn is_decided(look: &Look, before: &Measured, now: &Measured, gain: f64, error: f64) -> bool {
    let own = now.error(look.variation);
    if now.completed < 8.0 || own > 0.35 {
        return now.span_s > JUDGE_MOST_S;
    }
    let is_clear = (gain - GAIN).abs() > 2.5 * error;
    // What was known before does not get better by waiting.
    let is_as_good_as_before = own < 0.7 * before.error(look.variation);
    is_clear || error < 0.2 || is_as_good_as_before || now.span_s > JUDGE_MOST_S
}

/// The standard error of the logarithm of the ratio of two rates.
pub(super) fn errors(look: &Look, before: &Measured, now: &Measured) -> f64 {
    let (one, other) = (before.error(look.variation), now.error(look.variation));
    libm::sqrt(one * one + other * other)
}

/// By which power of the number in flight throughput changed, and the logarithm of the ratio of the numbers.
pub(super) fn gain(look: &Look, before: &Measured, now: &Measured) -> (f64, f64) {
    let distance = libm::log(now.in_flight().max(1e-9) / before.in_flight().max(1e-9));
    let change =
        libm::log(now.work_rate(look.variation).max(1e-12) / before.work_rate(look.variation).max(1e-12));
    (if distance == 0.0 { 0.0 } else { change / distance }, distance)
}

pub(super) fn wanted(knee: f64, tight: bool) -> u32 {
    if tight { round(MARGIN_TIGHT * knee) } else { (libm::ceil(MARGIN * knee - 0.01) as u32).max(1) }
}

pub(super) fn round(value: f64) -> u32 {
    ((value + 0.5) as u32).max(1)
}

/// The [`gain`], but above the knee nothing is expected to change: what counts is how far below it the limit went.
pub(super) fn gain_from_knee(
    look: &Look,
    before: &Measured,
    now: &Measured,
    alone_s: Option<f64>,
) -> (f64, f64) {
    let (all, distance) = gain(look, before, now);
    let Some(alone_s) = alone_s else { return (all, distance) };
    let knee = alone_s * before.work_rate(look.variation);
    if distance > 0.0 || now.in_flight() > 0.9 * knee || before.in_flight() <= knee {
        return (all, distance);
    }
    let below = libm::log(now.in_flight() / knee);
    (all * distance / below, below)
}

/// The limit over the knee: enough to see that more would be done if the origin could, and for requests that end
/// together; no more, because what waits at the origin cannot be refused or put in order any more.
pub(super) const MARGIN: f64 = 1.2;
/// The same where responses are late anyway.
pub(super) const MARGIN_TIGHT: f64 = 1.05;
/// Throughput as a power of the number in flight: 1 below the knee, 0 above, below 0 where requests hinder each other.
/// A third: what is won by going on must be worth the time that everybody loses.
pub(super) const GAIN: f64 = 0.3;
/// Slow services do not get an exact answer; after so many seconds a rough one must do.
const JUDGE_MOST_S: f64 = 8.0;
