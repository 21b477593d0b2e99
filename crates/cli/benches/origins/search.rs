//! The best static limit: HAProxy's `maxconn`, and how long a request may wait for it.

use crate::protection::{Kind, haproxy::Setting};
use crate::visit::{Crowd, Visits};
use flashweir_load::trials::comparison::{Knob, SearchResult, best};
use flashweir_load::trials::origins::{FoundLimit, Origin, Protection};
use std::time::Duration;

/// The crowd by which settings are judged.
const OVERLOAD: f64 = 3.0;
const CALM_S: u64 = 1;
const CROWD_S: u64 = 6;
const SETTLED_AFTER: Duration = Duration::from_secs(2);

const MAXCONNS: Knob<'_, u32> = Knob {
    grid: &[4, 2, 1, 8],
    below: |maxconn| Some(maxconn / 2).filter(|&maxconn| maxconn > 0),
    above: |maxconn| Some(maxconn * 2),
};
const QUEUE_TIMEOUTS_MS: Knob<'_, u32> =
    Knob { grid: &[500, 250], below: |ms| Some(ms / 2).filter(|&ms| ms > 0), above: |ms| Some(ms + 250) };

/// Tries settings one after the other; why not, if one could not be tried.
pub(crate) fn search(visits: &Visits, origin: Origin, capacity_rps: f64) -> Result<FoundLimit, String> {
    let crowd = Crowd {
        overload: OVERLOAD,
        capacity_rps,
        calm_s: CALM_S,
        crowd_s: CROWD_S,
        first: SETTLED_AFTER,
        round: 0,
    };
    let SearchResult { trials, is_at_edge } =
        best(MAXCONNS, QUEUE_TIMEOUTS_MS, |maxconn, queue_timeout_ms| {
            let setting = Setting { maxconn, queue_timeout_ms };
            let useful =
                visits.visit(origin, Protection::Haproxy, Kind::Haproxy(setting), crowd)?.settled.useful();
            eprintln!("  {setting}: {useful:.3}");
            Ok::<_, String>(useful)
        })?;
    let setting = |(maxconn, queue_timeout_ms)| Setting { maxconn, queue_timeout_ms };
    let (maxconn, queue_timeout_ms) = trials.first().ok_or("no setting was tried")?.setting;
    let trials = trials.iter().map(|trial| (setting(trial.setting).to_string(), trial.score)).collect();
    Ok(FoundLimit { maxconn, queue_timeout_ms, trials, is_at_edge })
}
