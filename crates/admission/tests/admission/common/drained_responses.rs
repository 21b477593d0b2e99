//! Samples of given responses, as a gate hands them over.

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
