//! The best static limit for an origin with long requests: HAProxy's `maxconn`, and how long a request may
//! wait for it.

use crate::crowd::Crowd;
use crate::protection::{Kind, haproxy::Setting};
use crate::visit::Visits;
use flashweir_load::trials::comparison::{Knob, SearchResult, best};
use flashweir_load::trials::origins::{FoundLimit, Protection};
use flashweir_load::trials::slow::{Origin, Phase, PhaseResult};

const CALM_S: u64 = 1;
const CROWD_S: u64 = 6;

/// Requests in flight besides the long ones.
const BESIDES: Knob<'_, u32> = Knob {
    grid: &[4, 2, 8],
    below: |besides| Some(besides / 2).filter(|&besides| besides > 0),
    above: |besides| Some(besides * 2),
};
const QUEUE_TIMEOUTS_MS: Knob<'_, u32> = Knob { grid: &[500, 250], below: |_| None, above: |_| None };

/// Of an origin that only waits any limit above what is in flight is right.
const BESIDES_WAITING: Knob<'_, u32> = Knob { grid: &[64, 32], below: |_| None, above: |_| None };
const QUEUE_TIMEOUT_WAITING_MS: Knob<'_, u32> = Knob { grid: &[500], below: |_| None, above: |_| None };

/// Tries settings one after the other; why not, if one could not be tried.
pub(crate) fn search(visits: &Visits, origin: Origin, capacity_rps: f64) -> Result<FoundLimit, String> {
    let lengths_s = vec![(Phase::Calm, CALM_S), (Phase::Crowd, CROWD_S)];
    let crowd = Crowd { origin, capacity_rps, lengths_s, is_short: true };
    let long = origin.long_in_flight().ceil() as u32;
    let setting = |besides: u32, queue_timeout_ms| Setting { maxconn: long + besides, queue_timeout_ms };
    let (besides, queue_timeouts_ms) = if origin.is_work() {
        (BESIDES, QUEUE_TIMEOUTS_MS)
    } else {
        (BESIDES_WAITING, QUEUE_TIMEOUT_WAITING_MS)
    };
    let SearchResult { trials, is_at_edge } =
        best(besides, queue_timeouts_ms, |besides, queue_timeout_ms| {
            let setting = setting(besides, queue_timeout_ms);
            let run = visits.visit(Protection::Haproxy, Kind::Haproxy(setting), &crowd, 0)?;
            let worth = run.phase(Phase::Crowd).map_or(0.0, PhaseResult::worth);
            eprintln!("  {setting}: {worth:.3}");
            Ok::<_, String>(worth)
        })?;
    let (besides, queue_timeout_ms) = trials.first().ok_or("no setting was tried")?.setting;
    let Setting { maxconn, queue_timeout_ms } = setting(besides, queue_timeout_ms);
    let trials = trials
        .iter()
        .map(|trial| (setting(trial.setting.0, trial.setting.1).to_string(), trial.score))
        .collect();
    Ok(FoundLimit { maxconn, queue_timeout_ms, trials, is_at_edge })
}
