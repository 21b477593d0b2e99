//! What a control thread counts and publishes: a place for each component's figures, which the component's own file in
//! `groups` fills and exports.

use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use crate::by_class::ByClass;
use crate::counter::{Counter, CounterSet};
use crate::groups::candidate::CandidateMetrics;
use crate::groups::classes::ClassFigures;
use crate::groups::flash_crowd::FlashCrowdMetrics;
use crate::groups::kernel::KernelMetrics;
use crate::groups::process::Outcome;
use crate::groups::sentry::SentryMetrics;
use crate::groups::upstream::UpstreamsInUse;
use crate::histogram::{FINE_BOUNDS_NS, Histogram};

/// Written by the control thread alone, read by scrapes.
#[derive(Debug)]
pub struct ControlMetrics {
    /// Time of one planner tick.
    pub planner_tick: Histogram,
    /// Samples the planner took from workers.
    pub samples_judged: Counter,
    /// Reloads of the configuration file.
    pub config_reloads: CounterSet<Outcome>,
    /// Reloads of the certificate.
    pub certificate_reloads: CounterSet<Outcome>,
    /// Writes of the state file.
    pub state_writes: CounterSet<Outcome>,
    pub(crate) draining: AtomicBool,
    pub(crate) flash_crowd: Arc<FlashCrowdMetrics>,
    pub(crate) upstreams_in_use: Arc<UpstreamsInUse>,
    pub(crate) classes: Arc<ByClass<ClassFigures>>,
    pub(crate) sentries: Arc<SentryMetrics>,
    pub(crate) candidates: Arc<CandidateMetrics>,
    pub(crate) kernel: Arc<KernelMetrics>,
}

impl Default for ControlMetrics {
    fn default() -> Self {
        Self {
            planner_tick: Histogram::new(FINE_BOUNDS_NS),
            samples_judged: Counter::default(),
            config_reloads: CounterSet::default(),
            certificate_reloads: CounterSet::default(),
            state_writes: CounterSet::default(),
            draining: AtomicBool::new(false),
            flash_crowd: Arc::default(),
            upstreams_in_use: Arc::default(),
            classes: Arc::default(),
            sentries: Arc::default(),
            candidates: Arc::default(),
            kernel: Arc::default(),
        }
    }
}
