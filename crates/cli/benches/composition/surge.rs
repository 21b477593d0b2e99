//! Surges of real days through the sentry alone and the default composition.

use crate::common::stage::{Stage, send};
use crate::traces;
use flashweir_load::trials::composition::surge::{Surge, SurgeRun, TIMES};
use flashweir_load::trials::useful::Composition;
use flashweir_workload::RateProfile;
use std::time::Duration;

const PAGE_MS: u32 = 5;
const SECOND: Duration = Duration::from_secs(1);

/// Every surge whose name contains `only`, at every multiple.
pub(crate) fn run(stage: &Stage, only: &str) -> Vec<SurgeRun> {
    let traces = traces::read();
    let mut runs = Vec::new();
    for surge in Surge::ALL.into_iter().filter(|surge| surge.name.contains(only)) {
        let Some((_, counts)) = traces.iter().find(|(name, _)| *name == surge.trace.name()) else { continue };
        for times in TIMES {
            let Some(loads) = surge.loads(counts, times) else { continue };
            for composition in [Composition::SentryAlone, Composition::Default] {
                eprint!("{} at {times}, {}: ", surge.name, composition.name());
                match visit(stage, surge.name, (times, &loads), composition) {
                    Ok(run) => {
                        eprintln!("{:?}, useful {:.3}", run.delays_s(), run.useful.useful());
                        runs.push(run);
                    }
                    Err(why) => eprintln!("not measured: {why}"),
                }
            }
        }
    }
    runs
}

fn visit(
    stage: &Stage,
    name: &'static str,
    (times, loads): (f64, &[f64]),
    composition: Composition,
) -> Result<SurgeRun, String> {
    let capacity_rps = stage.capacity_rps(PAGE_MS);
    let moments_s = Surge::moments(loads).ok_or("it fits into the origin")?;
    let profile = RateProfile::from_bins(SECOND, loads.iter().map(|load| load * capacity_rps));
    let profile = profile.map_err(|error| error.to_string())?;
    let origin = stage.origin(PAGE_MS);
    let gateway = stage.gateway(composition, &origin);
    let (mut refused, mut refused_s) = (0, None);
    let (load, useful) =
        send(&gateway, &origin, profile, moments_s.map(Duration::from_secs_f64), |progress| {
            let now_s = progress.elapsed.as_secs_f64();
            if progress.totals.refused > refused {
                refused = progress.totals.refused;
                let first_s = refused_s.map_or(now_s, |[first_s, _]: [f64; 2]| first_s);
                refused_s = Some([first_s, now_s]);
            }
        })?;
    Ok(SurgeRun { name, times, composition, moments_s, refused_s, useful, is_saturated: load.saturated })
}
