//! Records a gateway's planners, and lists the planners that a configuration needs.

use crate::error::GatewayError;
use flashweir_admission::sentry::Policy;
use flashweir_admission::{LimitPlan, Planner};
use flashweir_config::Config;
use flashweir_core::Instant;
use flashweir_runtime::planner_loop::{self, PlannerLoop};
use flashweir_runtime::random_u64;
use flashweir_wire::Recorder;
use flashweir_wire::recorder::{RecordedPlan, RecordedSample};
use flashweir_wire::recording::{FLASH_CROWD_CANDIDATE, Head, Planned, Stream};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The planner of flash crowds in recordings.
pub(crate) const FLASH_CROWD: &str = "flash_crowd";

/// The policies of the services' sentries, by the names of the services.
pub fn sentry_policies(config: &Config) -> impl Iterator<Item = (String, Policy)> + '_ {
    let services = config.services.iter();
    services.filter_map(|service| Some((service.name.clone(), service.sentry.policy(&service.classes)?)))
}

/// Begins a recording in place of what `file` held.
pub(crate) fn start(file: &Path, config: &Config, workers: usize) -> Result<Arc<Recorder>, GatewayError> {
    let policies: Vec<_> = sentry_policies(config).collect();
    let candidate = config.flash_crowd_candidate.as_ref().and_then(|candidate| candidate.settings(workers));
    let mut configuration = format!("{:#?}\n{policies:#?}", config.flash_crowd.settings(workers));
    if let Some(candidate) = candidate {
        let _infallible = write!(configuration, "\n{FLASH_CROWD_CANDIDATE}: {candidate:#?}");
    }
    let build = env!("CARGO_PKG_VERSION").to_owned();
    let head = Head { run: random_u64(), segment: 0, build, configuration };
    let name = file.display().to_string();
    let failed = move |error: &std::io::Error| {
        tracing::error!("cannot record to {name}: {error}; recording has ended")
    };
    let recorder = Recorder::start(file, head, failed);
    recorder.map(Arc::new).map_err(|source| GatewayError::Record { file: file.to_owned(), source })
}

/// Inputs of the current planner, set by its factory and recorded at its start.
#[derive(Clone, Debug, Default)]
pub(crate) struct MadeFrom(Arc<Mutex<Option<Planned>>>);

impl MadeFrom {
    pub(crate) fn set(&self, planned: Option<Planned>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = planned;
    }

    fn get(&self) -> Option<Planned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Records what one loop's planners see and decide, where there is a recorder. Call it before the first
/// sample.
pub(crate) fn record<P>(
    planner_loop: &mut PlannerLoop<P>,
    recorder: Option<&Arc<Recorder>>,
    name: &str,
    made_from: &MadeFrom,
) where
    P: Planner<Sample: RecordedSample, Plan: RecordedPlan + LimitPlan>,
{
    let Some(recorder) = recorder.cloned() else { return };
    let taken = LoopRecorder { recorder, name: name.to_owned(), made_from: made_from.clone(), stream: None };
    planner_loop.record_to(planner_loop.started_at(), Box::new(taken));
}

/// One loop's part of a recording: a stream for each planner it builds.
struct LoopRecorder {
    recorder: Arc<Recorder>,
    name: String,
    made_from: MadeFrom,
    stream: Option<Stream>,
}

impl<P: Planner<Sample: RecordedSample, Plan: RecordedPlan>> planner_loop::Recorder<P> for LoopRecorder {
    fn started(&mut self, now: Instant) {
        // A planner that is off sees and decides nothing.
        self.stream = self.made_from.get().map(|planned| self.recorder.begin(now, &self.name, planned));
    }

    fn sample(&mut self, now: Instant, sample: &P::Sample) {
        if let Some(stream) = self.stream {
            self.recorder.record_sample(now, stream, sample);
        }
    }

    fn plan(&mut self, now: Instant, plan: &P::Plan) {
        if let Some(stream) = self.stream {
            self.recorder.record_plan(now, stream, plan);
        }
    }
}
