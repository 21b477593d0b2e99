//! What is recorded of a gateway's planners, and what planners a configuration asks for.

use crate::error::GatewayError;
use crate::settings::sentry_policy;
use flashweir_admission::flash_crowd::{Baseline, Settings};
use flashweir_admission::sentry::Policy;
use flashweir_config::{Config, FlashCrowd};
use flashweir_control::{planner_settings, random_u64};
use flashweir_core::Instant;
use flashweir_wire::Recorder;
use flashweir_wire::recording::{Head, Planned, Stream};
use std::path::Path;
use std::sync::Arc;

/// The planner of flash crowds in recordings.
const FLASH_CROWD: &str = "flash_crowd";

/// What a planner of flash crowds at so many workers is made from; `None` where detection is off.
#[must_use]
pub fn flash_crowd_settings(config: &Config, workers: usize) -> Option<Settings> {
    planner_settings(&config.flash_crowd, workers)
}

/// What the planners of the services' sentries are made from, by the names of their services.
pub fn sentry_policies(config: &Config) -> impl Iterator<Item = (String, Policy)> + '_ {
    let services = config.services.iter();
    services
        .filter_map(|service| Some((service.name.clone(), sentry_policy(&service.sentry, &service.classes)?)))
}

/// Begins a recording in place of what `file` held.
pub(crate) fn start(file: &Path, config: &Config, workers: usize) -> Result<Arc<Recorder>, GatewayError> {
    let policies: Vec<_> = sentry_policies(config).collect();
    let configuration = format!("{:#?}\n{policies:#?}", flash_crowd_settings(config, workers));
    let build = env!("CARGO_PKG_VERSION").to_owned();
    let head = Head { run: random_u64(), segment: 0, build, configuration };
    let told = file.display().to_string();
    let failed = move |error: &std::io::Error| {
        tracing::error!("cannot record to {told}: {error}; recording has ended")
    };
    let recorder = Recorder::start(file, head, failed);
    recorder.map(Arc::new).map_err(|source| GatewayError::Record { file: file.to_owned(), source })
}

/// From now on there is a planner of flash crowds made from this.
pub(crate) fn begin(
    recorder: Arc<Recorder>,
    now: Instant,
    configured: &FlashCrowd,
    workers: usize,
    learned: &Baseline,
) -> (Arc<Recorder>, Stream) {
    // A planner that is off sees and decides nothing: its stream stays empty.
    let settings = planner_settings(configured, workers).unwrap_or_default();
    let stream = recorder.begin(now, FLASH_CROWD, Planned::FlashCrowd(settings, learned.clone()));
    (recorder, stream)
}
