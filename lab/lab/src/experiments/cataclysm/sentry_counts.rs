//! CAT-F6: sentries are added as their processors fill.

use super::pools::{MODES, PUBLISHED, REPAIRED, pool_notes};
use super::runs::Runs;
use crate::experiments::finding::Claim;
use crate::experiments::laboratory::Simulation;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_load::report::Point;
use flashweir_provisioning::queueing::ServiceTime;
use flashweir_provisioning::{ApplicationPolicy, Mode, Policy};
use flashweir_sim::pool::{
    ApplicationModel, ApplicationOutcome, PoolOutcome, Scaler, Scenario, SentryModel, run as run_pool,
};
use flashweir_workload::RateProfile;
use std::time::Duration;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "CAT-F6",
    title: "Sentries are added as their processors fill",
    paper: "Figure 6 and §6.4: 4,000 requests/s and 4,000 more every minute; a second sentry at 210 s, a third at 420 s, by the rule \
            of 80 % for 30 s",
    run,
};

/// Requests a second that one sentry decides on a threshold (CAT-F4 in the paper).
const SENTRY_RPS: f64 = 19_000.0;
const MINUTES: u64 = 9;
const INTERVAL_S: u64 = 5;
const HIGH: f64 = 0.8;

#[derive(Clone, Copy, Debug)]
struct RisingLoad {
    mode: Mode,
    seed: u64,
}

impl Simulation for RisingLoad {
    type Outcome = PoolOutcome;

    fn run(&self) -> Result<PoolOutcome, ExperimentError> {
        let rates = (1..=MINUTES).map(|minute| 4_000.0 * minute as f64);
        // Holds because the rates are positive and there are some.
        let rate = RateProfile::from_bins(Duration::from_secs(60), rates).expect("rates");
        let model = ApplicationModel {
            // Small static files, far more servers than they need: the sentries are what is short.
            service: ServiceTime { mean_s: 0.000_1, squared_variation: 1.0 },
            sentry: Some(SentryModel { capacity_rps: SENTRY_RPS }),
            ..ApplicationModel::new(rate, 20)
        };
        let policy = Policy {
            mode: self.mode,
            interval: Duration::from_secs(INTERVAL_S),
            ..Policy::new(100, vec![ApplicationPolicy::single(Duration::from_secs(1))])
        };
        let bin = Duration::from_secs(INTERVAL_S);
        Ok(run_pool(&Scenario {
            bin,
            seed: self.seed,
            ..Scenario::new(policy, vec![model], Scaler::Planner)
        })?)
    }
}

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let length_s = (MINUTES * 60) as usize;
    let simulations = MODES.map(|(name, mode)| (name, move |seed| RisingLoad { mode, seed }));
    let runs = Runs::of(laboratory, length_s, laboratory.options().seeds, simulations)?;
    let near = || Rule::Near { mode: PUBLISHED.to_owned(), by: 15.0 };
    let rows = vec![
        runs.row("second sentry, s", Some(210.0), near(), |it: &PoolOutcome| reaches(it, 2)),
        runs.row("third sentry, s", Some(420.0), near(), |it| reaches(it, 3)),
        runs.row("seconds with sentries more than 80 % busy", None, Rule::Reported, high_s),
        runs.row("seconds with sentries always busy", None, Rule::Reported, |it| {
            busy(&it.applications[0]).iter().filter(|(_, busy)| *busy >= 1.0).count() as f64
                * INTERVAL_S as f64
        }),
        runs.row("sentries at the end", None, Rule::Reported, |it| {
            it.applications[0].sentries.last().map_or(f64::NAN, |&(_, count)| f64::from(count))
        }),
    ];
    let at = |name, count| runs.seeds(name, move |it: &PoolOutcome| reaches(it, count));
    let shapes = vec![
        Shape::new(
            "the published rule adds the second sentry when the rate is 16,000/s",
            [at(PUBLISHED, 2).between(180.0, 240.0)],
        ),
        Shape::new("and the third, when it is 32,000/s", [at(PUBLISHED, 3).between(420.0, 480.0)]),
        Shape::new(
            "the repaired number is never late: sentries are more than 80 % busy for less time than as published",
            [runs.seeds(REPAIRED, high_s).minus(&runs.seeds(PUBLISHED, high_s)).below(0.0)],
        ),
    ];
    let line = |(name, _): (&'static str, Mode)| {
        let points: Vec<Point> = runs.first(name).map_or_else(Vec::new, |it| {
            busy(&it.applications[0]).into_iter().map(|(at, busy)| (at, Some(busy * 100.0))).collect()
        });
        (name.to_owned(), points)
    };
    let plot = Plot {
        title: "How busy each sentry's processor is",
        x_label: "seconds",
        y_label: "% of the processor",
        lines: MODES.map(line).to_vec(),
        onset: None,
    };
    let mut notes = pool_notes(laboratory.options());
    notes.push(format!(
        "One sentry's processor is full at {SENTRY_RPS}/s, what the paper measures of its threshold (figure 4), and the load rises in \
         steps. No step makes both times of the paper: with 80 % for 30 s and the load shared equally, a second sentry at 210 s means that \
         one is 80 % busy from 180 s, at 16,000/s, and so two are from 420 s, at 32,000/s: the third comes at 450 s, not at 420 s."
    ));
    plot.finding(rows, shapes, Claim::Shape, notes)
}

/// Time at which there are at least `count` sentries, seconds; not a number if never.
fn reaches(it: &PoolOutcome, count: u32) -> f64 {
    let of = &it.applications[0].sentries;
    of.iter().find(|&&(_, sentries)| sentries >= count).map_or(f64::NAN, |&(at, _)| at.as_secs_f64())
}

fn high_s(it: &PoolOutcome) -> f64 {
    let high = busy(&it.applications[0]).into_iter().filter(|(_, busy)| *busy > HIGH);
    high.count() as f64 * INTERVAL_S as f64
}

/// Utilisation of each sentry, by the beginning of each bin: 1 at most.
fn busy(it: &ApplicationOutcome) -> Vec<(f64, f64)> {
    let sentries_at = |second: f64| {
        let mut changes = it.sentries.iter().rev();
        changes.find(|(at, _)| at.as_secs_f64() <= second).map_or(1, |&(_, count)| count)
    };
    let each = it.bins.iter().enumerate().map(|(place, bin)| {
        let from_s = place as f64 * it.bin_s;
        (from_s, (bin.offered as f64 / it.bin_s / SENTRY_RPS / f64::from(sentries_at(from_s))).min(1.0))
    });
    each.collect()
}
