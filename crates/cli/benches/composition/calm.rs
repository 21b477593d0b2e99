//! Calm stretches of real days through the default composition.

use crate::common::stage::{Stage, send};
use crate::traces;
use flashweir_load::trials::composition::calm::{CalmRun, LOADS, rates, stretch};
use flashweir_load::trials::useful::Composition;
use flashweir_testkit::{StatusWatch, number_from_environment};
use flashweir_workload::RateProfile;
use std::time::Duration;

const SECONDS: u64 = 30;
const SECONDS_MIN: u64 = 8;
const PAGE_MS: u32 = 5;
/// A few times a second, as often as verdicts can change.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

/// Every trace whose name contains `only`, at every load.
pub(crate) fn run(stage: &Stage, only: &str) -> Vec<CalmRun> {
    let seconds = number_from_environment("SECONDS", SECONDS).max(SECONDS_MIN) as usize;
    let steady = ("steady", vec![1.0; seconds]);
    let traces = [steady].into_iter().chain(traces::read()).filter(|(name, _)| name.contains(only));
    let mut runs = Vec::new();
    for (trace, counts) in traces {
        let Some(stretch) = stretch(&counts, seconds) else {
            eprintln!("{trace} is not played: it has fewer than {seconds} counts");
            continue;
        };
        for load in LOADS {
            eprint!("{trace} at {load}: ");
            match visit(stage, (trace, stretch), load) {
                Ok(run) => {
                    let (quiet, calm) = (run.is_quiet(), run.is_calm());
                    eprintln!(
                        "quiet {quiet}, calm {calm}: {} alarms, {} refused, {}",
                        run.alarms,
                        run.refused,
                        run.verdicts.join(", ")
                    );
                    runs.push(run);
                }
                Err(why) => eprintln!("not measured: {why}"),
            }
        }
    }
    runs
}

fn visit(stage: &Stage, (trace, stretch): (&str, &[f64]), load: f64) -> Result<CalmRun, String> {
    let rates = rates(stretch, load, stage.capacity_rps(PAGE_MS));
    let (mean_rps, busiest_rps) =
        (rates.iter().sum::<f64>() / rates.len() as f64, rates.iter().copied().fold(0.0, f64::max));
    let profile = RateProfile::from_bins(SECOND, rates).map_err(|error| error.to_string())?;
    let length = profile.length();
    // A run ends with its last answer: a stretch whose last seconds are silent would end before its last
    // reading.
    let longer = RateProfile::constant(mean_rps, SECOND).map_err(|error| error.to_string())?;
    let composition = Composition::Default;
    let origin = stage.origin(PAGE_MS);
    let gateway = stage.gateway(composition, &origin);
    let watch = StatusWatch::start(gateway.admin(), LOOK_EVERY, |status| {
        status["verdict"]["cause"].as_str().unwrap_or_default().to_owned()
    });
    let sent = send(&gateway, &origin, profile.then(longer), [SECOND, length], |_| {});
    let seen = watch.stop();
    let (result, useful) = sent?;
    let metrics = gateway.metrics();
    let alarms = metrics.value("flashweir_plans_total{rule=\"raise\"}");
    Ok(CalmRun {
        trace: trace.to_owned(),
        load,
        composition,
        length_s: length.as_secs_f64(),
        mean_rps,
        busiest_rps,
        alarms: alarms as u64,
        refused: metrics.sum("flashweir_requests_shed_total") as u64,
        verdicts: changes(seen.into_iter().map(|(_, verdict)| verdict).collect()),
        useful,
        is_saturated: result.saturated,
    })
}

/// The verdicts in their order, each as long as it lasted once, from when the gateway has learned what is
/// usual on.
fn changes(seen: Vec<String>) -> Vec<String> {
    let mut verdicts: Vec<String> =
        seen.into_iter().skip_while(|verdict| verdict == "too_few_samples").collect();
    verdicts.dedup();
    verdicts
}
