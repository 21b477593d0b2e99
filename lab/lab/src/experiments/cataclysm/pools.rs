//! The pools of servers that the experiments on provisioning share, and how they were chosen.

use crate::experiments::laboratory::Simulation;
use crate::experiments::{ExperimentError, Options};
use flashweir_admission::sentry::LadderStep;
use flashweir_load::report::Point;
use flashweir_provisioning::{ApplicationPolicy, Mode, Policy};
use flashweir_sim::pool::{
    ApplicationModel, ApplicationOutcome, Bin, PoolOutcome, Scaler, Scenario, StartUp, run,
};
use flashweir_workload::RateProfile;
use std::ops::Range;
use std::time::Duration;

/// The names of the columns.
pub(super) const PUBLISHED: &str = "paper";
pub(super) const REPAIRED: &str = "repaired";
pub(super) const MODES: [(&str, Mode); 2] = [(PUBLISHED, Mode::Published), (REPAIRED, Mode::Repaired)];
/// Seconds of a point in the charts.
pub(super) const POOL_BIN_S: u64 = 5;

/// Two applications on eleven servers (§6.5): the first gets its crowd, then the second.
#[derive(Clone, Copy, Debug)]
pub(super) struct TwoApplications {
    pub(super) mode: Mode,
    pub(super) seed: u64,
}

/// Servers of the paper's experiment.
const POOL: u32 = 11;
const SERVERS_MIN: u32 = 3;
/// Time of each application's first doubling of demand, seconds.
pub(super) const CROWDS_S: [u64; 2] = [300, 2_700];
/// Four doublings, the last of which lasts until the crowd has gone.
const DOUBLING_S: u64 = 300;
pub(super) const CROWD_S: u64 = 2_100;
pub(super) const LENGTH_S: usize = 5_400;
const BASE_RPS: f64 = 100.0;

impl TwoApplications {
    pub(super) fn scenario(self) -> Scenario {
        let step = |below_rps, seconds| LadderStep { below_rps, target: Duration::from_secs(seconds) };
        let application = ApplicationPolicy {
            ladder: vec![step(1_000.0, 1), step(10_000.0, 2), step(f64::INFINITY, 3)],
            servers_min: SERVERS_MIN,
            ..ApplicationPolicy::single(Duration::from_secs(1))
        };
        let policy = Policy { mode: self.mode, ..Policy::new(POOL, vec![application; 2]) };
        let model = |begins_s| ApplicationModel::new(doubling(begins_s), SERVERS_MIN);
        Scenario {
            start_up: StartUp { mean: Duration::from_secs(10), spread: 0.2 },
            bin: Duration::from_secs(POOL_BIN_S),
            seed: self.seed,
            ..Scenario::new(policy, CROWDS_S.map(model).to_vec(), Scaler::Planner)
        }
    }
}

impl Simulation for TwoApplications {
    type Outcome = PoolOutcome;

    fn run(&self) -> Result<PoolOutcome, ExperimentError> {
        Ok(run(&self.scenario())?)
    }
}

/// 100 requests a second; from `begins_s` on twice as many every five minutes, up to 1,600, and 100 again
/// when the crowd has gone.
pub(super) fn doubling(begins_s: u64) -> RateProfile {
    let rest_s = LENGTH_S as u64 - begins_s - CROWD_S;
    let part = |rate, seconds| {
        // Holds because rates are positive and all parts have a length.
        RateProfile::constant(rate, Duration::from_secs(seconds)).expect("a rate")
    };
    let mut profile = part(BASE_RPS, begins_s);
    for doubling in 1..4 {
        profile = profile.then(part(BASE_RPS * f64::from(1 << doubling), DOUBLING_S));
    }
    profile.then(part(BASE_RPS * 16.0, CROWD_S - 3 * DOUBLING_S)).then(part(BASE_RPS, rest_s))
}

/// A value of each bin over time.
pub(super) fn over_time(it: &ApplicationOutcome, value: impl Fn(&Bin) -> f64) -> Vec<Point> {
    it.bins.iter().enumerate().map(|(place, bin)| (place as f64 * it.bin_s, Some(value(bin)))).collect()
}

/// Requests of these seconds that were admitted, a second.
pub(super) fn admitted_rps(it: &ApplicationOutcome, seconds: Range<usize>) -> f64 {
    let length_s = seconds.len() as f64;
    it.within(seconds).iter().map(|bin| bin.admitted as f64).sum::<f64>() / length_s
}

/// Differences between these runs and the paper's.
pub(super) fn pool_notes(options: &Options) -> Vec<String> {
    vec![
        "Requests are counted in steps of half a second, not followed, and admission is ideal: it admits what the servers that are up \
         answer within the target, and refuses the rest. So what differs is the number of servers and when they were ordered."
            .to_owned(),
        format!("{} seed(s), from {}; the paper has one run.", options.seeds, options.seed),
    ]
}
