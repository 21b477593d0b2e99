//! CAT-RELIEF: a crowd of four times for ten minutes, and servers that take half a minute to start.

use super::pools::{over_time, pool_notes};
use super::runs::Runs;
use crate::experiments::finding::Claim;
use crate::experiments::laboratory::Simulation;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_provisioning::{ApplicationPolicy, Policy};
use flashweir_sim::pool::{
    ApplicationModel, AutoscalerSettings, PoolOutcome, Scaler, Scenario, run as run_pool,
};
use flashweir_workload::RateProfile;
use std::ops::Range;
use std::time::Duration;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "CAT-RELIEF",
    title: "A crowd of four times for ten minutes, while servers take half a minute to start",
    paper: "§4 describes reactive provisioning; the paper has no such figure. The bars are our own",
    run,
};

const BASE_RPS: f64 = 200.0;
const TIMES: f64 = 4.0;
const CROWD: Range<usize> = 900..1_500;
const LENGTH_S: usize = 2_700;
const SERVERS: u32 = 4;
const ORACLE: &str = "oracle";
const OURS: &str = "repaired";
const PROCESSORS: &str = "processors at 70 %";
const FIXED: &str = "none";
const NAMES: [&str; 4] = [FIXED, PROCESSORS, OURS, ORACLE];

#[derive(Clone, Copy, Debug)]
struct FourTimes {
    name: &'static str,
    seed: u64,
}

impl Simulation for FourTimes {
    type Outcome = PoolOutcome;

    fn run(&self) -> Result<PoolOutcome, ExperimentError> {
        // Not at a plan's own time: each seed has another phase.
        let late = Duration::from_millis(self.seed % 10 * 1_000 + 300);
        let part = |rate, length| {
            // Holds because rates and lengths are positive.
            RateProfile::constant(rate, length).expect("a rate")
        };
        let seconds = |count: usize| Duration::from_secs(count as u64);
        let rate = part(BASE_RPS, seconds(CROWD.start) + late)
            .then(part(BASE_RPS * TIMES, seconds(CROWD.len())))
            .then(part(BASE_RPS, seconds(LENGTH_S - CROWD.end) - late));
        let policy = Policy::new(100, vec![ApplicationPolicy::single(Duration::from_secs(1))]);
        let scaler = match self.name {
            ORACLE => Scaler::Oracle,
            OURS => Scaler::Planner,
            PROCESSORS => Scaler::Autoscaler(AutoscalerSettings::default()),
            _ => Scaler::Fixed,
        };
        let model = ApplicationModel::new(rate, SERVERS);
        let bin = Duration::from_secs(5);
        Ok(run_pool(&Scenario { bin, seed: self.seed, ..Scenario::new(policy, vec![model], scaler) })?)
    }
}

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let simulations = NAMES.map(|name| (name, move |seed| FourTimes { name, seed }));
    let runs = Runs::of(laboratory, LENGTH_S, laboratory.options().seeds, simulations)?;
    let event = CROWD.start..CROWD.end + 15;
    let served = |it: &PoolOutcome| it.applications[0].served_share(event.clone());
    let refused_s = |it: &PoolOutcome| {
        let bins = it.applications[0].bins.iter().filter(|bin| bin.refused() > 0);
        bins.count() as f64 * it.applications[0].bin_s
    };
    let reversals = |it: &PoolOutcome| f64::from(it.applications[0].reversals);
    let rows = vec![
        runs.row("share of the crowd served", None, Rule::Reported, served),
        runs.row("seconds in which requests are refused", None, Rule::Reported, refused_s),
        runs.row("server hours", None, Rule::Reported, |it| it.applications[0].server_hours),
        runs.row("reversals", None, Rule::Reported, reversals),
    ];
    let share_of_oracle = runs.seeds(OURS, served).over(&runs.seeds(ORACLE, served));
    let shapes = vec![
        Shape::new(
            "at least 0.9 of what is served by one who knows the crowd",
            [share_of_oracle.at_least(0.9)],
        ),
        Shape::new("growing turns into shrinking once", [runs.seeds(OURS, reversals).at_most(1.0)]),
        Shape::new(
            "more is served than by processors at 70 %",
            [runs.seeds(OURS, served).minus(&runs.seeds(PROCESSORS, served)).above(0.0)],
        ),
    ];
    let line = |name: &'static str| {
        let points = runs
            .first(name)
            .map(|it| over_time(&it.applications[0], |bin| bin.ready_s / it.bin.as_secs_f64()));
        (name.to_owned(), points.unwrap_or_default())
    };
    let plot = Plot {
        title: "Servers during a crowd of four times",
        x_label: "seconds",
        y_label: "servers that serve",
        lines: NAMES.map(line).to_vec(),
        onset: Some(CROWD.start as f64),
    };
    let mut notes = pool_notes(laboratory.options());
    notes.push(format!(
        "{BASE_RPS}/s, {TIMES} times as many from {} s to {} s; a server carries 60/s and starts in 24 to 36 s. The autoscaler has the rules and \
         defaults of Kubernetes' HorizontalPodAutoscaler. The oracle plans by the same model as the planner, without any margin.",
        CROWD.start, CROWD.end
    ));
    plot.finding(rows, shapes, Claim::Shape, notes)
}
