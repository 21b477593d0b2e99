//! What one worker's stage of a service measured, on its way to the planners.

use super::candidate::CandidateSample;
use super::service::Sentry;
use crate::feedback::NodeSample;
use flashweir_admission::sentry::Sample;
use std::sync::Arc;

/// What one worker's stage measured.
#[derive(Debug)]
pub(crate) struct GateSample {
    /// Of which service.
    pub(crate) sentry: Arc<Sentry>,
    pub(crate) worker: usize,
    pub(crate) sample: Box<Sample>,
    /// What it heard of nodes in front and of upstreams.
    pub(crate) heard: Option<Box<NodeSample>>,
    /// And what its candidate's stage did.
    pub(crate) candidate: Option<Box<CandidateSample>>,
}
