//! Samples of given transfer rates, as a gate hands them over.

use flashweir_admission::flash_crowd::Sample;
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_core::Instant;
use std::sync::Arc;

/// Only the rates of responses are in it, as from a router.
pub(crate) fn of_rates(rates_bytes_per_s: impl IntoIterator<Item = f32>) -> Sample {
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    rates_bytes_per_s.into_iter().for_each(|rate| gate.observe_rate(Instant::ZERO, rate));
    gate.drain(Instant::ZERO)
}
