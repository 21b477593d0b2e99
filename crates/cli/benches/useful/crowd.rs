//! One run: calm, then the crowd.

use crate::common::stage::{Stage, send};
use flashweir_load::trials::useful::{Case, UsefulRun};
use flashweir_workload::{ProfileError, RateProfile};
use std::time::Duration;

/// Calm before the crowd, in which the gateway learns what is usual.
const CALM_FOR: Duration = Duration::from_secs(2);
const CALM_LOAD: f64 = 0.3;
/// The first second of the crowd is not measured.
const NOTICED_WITHIN: Duration = Duration::from_secs(1);
/// The crowd stays a little longer than it is measured: the last reading comes up to 0.2 s late.
const LONGER: Duration = Duration::from_millis(300);

/// Time for which the crowd of a run of `length` is measured.
pub(crate) fn judged_for(length: Duration) -> Duration {
    length - CALM_FOR - NOTICED_WITHIN - LONGER
}

/// Sends the crowd; why not, if something could not be read or sent.
pub(crate) fn run(
    stage: &Stage,
    case: Case,
    round: usize,
    (capacity_rps, length): (f64, Duration),
) -> Result<UsefulRun, String> {
    let origin = stage.origin(case.page_ms);
    let gateway = stage.gateway(case.composition, &origin);
    let profile = profile(case.load, capacity_rps, length).map_err(|error| error.to_string())?;
    let judged = [CALM_FOR + NOTICED_WITHIN, length - LONGER];
    let (load, useful) = send(&gateway, &origin, profile, judged, |_| {})?;
    Ok(UsefulRun { case, round, useful, is_saturated: load.saturated })
}

fn profile(load: f64, capacity_rps: f64, length: Duration) -> Result<RateProfile, ProfileError> {
    Ok(RateProfile::constant(CALM_LOAD * capacity_rps, CALM_FOR)?
        .then(RateProfile::constant(load * capacity_rps, length - CALM_FOR)?))
}
