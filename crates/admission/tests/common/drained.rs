//! Samples of given responses, as a gate hands them over.

#![allow(dead_code, reason = "each test uses its part")]

use flashweir_admission::flash_crowd::{Response, Sample};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_core::Instant;
use std::sync::Arc;

/// Only the responses are in it.
pub(crate) fn of_responses(responses: impl IntoIterator<Item = Response>) -> Sample {
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    responses.into_iter().for_each(|response| gate.observe_response(response));
    gate.drain(Instant::ZERO)
}

/// Only the rates of responses are in it, as from a router.
pub(crate) fn of_rates(rates_bytes_per_s: impl IntoIterator<Item = f32>) -> Sample {
    let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
    rates_bytes_per_s.into_iter().for_each(|rate| gate.observe_rate(Instant::ZERO, rate));
    gate.drain(Instant::ZERO)
}
