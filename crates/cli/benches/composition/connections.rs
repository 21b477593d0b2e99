//! New connections by the thousand, through the sentry alone and the default composition in turn.

use crate::common::stage::{Stage, send};
use flashweir_load::trials::composition::connections::{
    COMPOSITIONS, CONNECTIONS_RPS, ConnectionsRun, PAGE_MS,
};
use flashweir_load::trials::useful::Composition;
use flashweir_testkit::number_from_environment;
use flashweir_workload::RateProfile;
use std::time::Duration;

/// Calm before the crowd, in which the gateway learns what is usual.
const CALM_S: u64 = 2;
const CALM_LOAD: f64 = 0.3;
/// For which the crowd is measured, from its second second on.
const SECONDS: u64 = 5;
const NOTICED_WITHIN_S: u64 = 1;

pub(crate) fn run(stage: &Stage, rounds: usize) -> Vec<ConnectionsRun> {
    let seconds = number_from_environment("SECONDS", SECONDS).max(1);
    let mut runs = Vec::new();
    for round in 0..rounds {
        let capacity_rps = stage.capacity_rps(PAGE_MS);
        let mut compositions = COMPOSITIONS;
        if round % 2 == 1 {
            compositions.reverse();
        }
        for composition in compositions {
            eprint!(
                "{CONNECTIONS_RPS:.0} connections/s, capacity {capacity_rps:.0}/s, {}: ",
                composition.name()
            );
            match visit(stage, composition, round, (capacity_rps, seconds)) {
                Ok(run) => {
                    eprintln!(
                        "{:.3}, {:.0} sent/s, saturated {}",
                        run.useful.useful(),
                        run.sent_rps,
                        run.is_saturated
                    );
                    runs.push(run);
                }
                Err(why) => eprintln!("not measured: {why}"),
            }
        }
    }
    runs
}

fn visit(
    stage: &Stage,
    composition: Composition,
    round: usize,
    (capacity_rps, seconds): (f64, u64),
) -> Result<ConnectionsRun, String> {
    let judged = CALM_S + NOTICED_WITHIN_S..CALM_S + NOTICED_WITHIN_S + seconds;
    let profile = RateProfile::step(
        CALM_LOAD * capacity_rps,
        CONNECTIONS_RPS,
        Duration::from_secs(CALM_S),
        // A little longer: the last reading comes up to 0.2 s late.
        Duration::from_secs(judged.end) + Duration::from_millis(300),
    );
    let (origin, profile) = (stage.origin(PAGE_MS), profile.map_err(|error| error.to_string())?);
    let gateway = stage.gateway(composition, &origin);
    let moments = [judged.start, judged.end].map(Duration::from_secs);
    let (load, useful) = send(&gateway, &origin, profile, moments, |_| {})?;
    let within = || load.totals.series.iter().filter(|second| judged.contains(&second.second));
    let per_s = |count: u64| count as f64 / seconds as f64;
    Ok(ConnectionsRun {
        composition,
        round,
        useful,
        sent_rps: per_s(within().map(|second| second.sent).sum()),
        answered_rps: per_s(within().map(|second| second.completed + second.refused).sum()),
        is_saturated: load.saturated,
    })
}
