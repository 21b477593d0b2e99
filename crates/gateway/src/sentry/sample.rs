//! Measurements of one worker's stage of a service, on their way to the planners.

use super::candidate::CandidateSample;
use super::service::Sentry;
use crate::feedback::NodeSample;
use flashweir_admission::sentry::Sample;
use std::sync::Arc;

/// Measurements of one worker's stage.
#[derive(Debug)]
pub(crate) struct GateSample {
    /// Of which service.
    pub(crate) sentry: Arc<Sentry>,
    pub(crate) worker: usize,
    pub(crate) sample: Box<Sample>,
    /// Feedback received from nodes in front and from upstreams.
    pub(crate) heard: Option<Box<NodeSample>>,
    /// And what its candidate's stage did.
    pub(crate) candidate: Option<Box<CandidateSample>>,
}
