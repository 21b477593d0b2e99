//! RADAR-F4.10 to F4.12: the herd, and its absence.

use super::plant::{HIGH_RPS, Mode, QUIET_S, Step, notes};
use super::runs::{PUBLISHED, REPAIRED, Runs, balanced_after_s, found_after_s, loads_over_time};
use crate::experiments::finding::Claim;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_sim::replicas::ReplicasOutcome;
use std::ops::Range;

pub(crate) const LOW_WATERMARK: Experiment = Experiment {
    id: "RADAR-F4.10",
    title: "400 requests/s on two servers, LW = 100",
    paper: "Figure 4.10 and §4.2.5: almost the entire load moves to the other server with each report",
    run: |laboratory| run(laboratory, 400, 100.0, 10, true),
};

pub(crate) const HIGH_LOAD: Experiment = Experiment {
    id: "RADAR-F4.11",
    title: "500 requests/s on two servers, LW = 200",
    paper: "Figure 4.11 and §4.2.5: the load keeps bouncing; the right low watermark does not help",
    run: |laboratory| run(laboratory, 500, 200.0, 10, false),
};

pub(crate) const FAST_REPORTS: Experiment = Experiment {
    id: "RADAR-F4.12",
    title: "400 requests/s on two servers, LW = 100, a report each second",
    paper: "Figure 4.12 and §4.2.5: more reports do not help",
    run: |laboratory| run(laboratory, 400, 100.0, 1, false),
};

const FOUR: &str = "repaired, 4 redirectors";
const SIXTEEN: &str = "repaired, 16 redirectors";
const CROWD_S: u64 = 140;
const END_S: f64 = (QUIET_S + CROWD_S) as f64;
/// A load below each of the low watermarks.
const QUIET_RPS: u32 = 80;

const LOADS: &str = "Load of two servers, one run of each kind";

fn run(
    laboratory: &Laboratory,
    crowd_rps: u32,
    low_rps: f64,
    interval_s: u64,
    moves_entirely: bool,
) -> Result<Finding, ExperimentError> {
    let modes = [
        (PUBLISHED, Mode::ESSER),
        (REPAIRED, Mode::Repaired { redirectors: 1 }),
        (FOUR, Mode::Repaired { redirectors: 4 }),
        (SIXTEEN, Mode::Repaired { redirectors: 16 }),
    ];
    let (mode, seed) = (Mode::ESSER, 0);
    let step = Step {
        mode,
        servers: 2,
        low_rps,
        interval_s,
        quiet_rps: QUIET_RPS,
        crowd_rps,
        crowd_s: CROWD_S,
        first_report_s: None,
        seed,
    };
    let runs = Runs::new(laboratory, &modes, step)?;
    let onset_s = QUIET_S as f64;
    let interval_s = interval_s as f64;
    let even = move |outcome: &ReplicasOutcome| {
        settled(outcome, interval_s).map(|seconds| outcome.worst_max_over_mean(&seconds, interval_s))
    };
    let peak = move |outcome: &ReplicasOutcome| {
        settled(outcome, interval_s).map(|seconds| outcome.peak_rps(&seconds))
    };
    let swings = move |outcome: &ReplicasOutcome| settled(outcome, interval_s).map(|it| swings(outcome, &it));
    let balanced = move |outcome: &ReplicasOutcome| balanced_after_s(outcome, onset_s, END_S, 0.1);
    let copies = |outcome: &ReplicasOutcome| Some(outcome.copies(&(0.0..END_S)) as f64);
    let rows = vec![
        runs.row("crowd found after, s", None, Rule::Reported, move |it| found_after_s(it, onset_s)),
        runs.row("within a tenth of the mean after, s", None, Rule::Reported, balanced),
        runs.row("max/mean over an interval, two intervals on", None, Rule::Reported, even),
        runs.row("busiest half second, requests/s", None, Rule::Reported, peak),
        runs.row("changes of the busier server", None, Rule::Reported, swings),
        runs.row("documents copied", None, Rule::Reported, copies),
    ];
    let mut shapes = vec![Shape::new(
        "as published the load bounces: the busier server changes five times and more, one has 1.5 times the mean and is above HW",
        [
            runs.seeds(PUBLISHED, swings).at_least(5.0).named("changes"),
            runs.seeds(PUBLISHED, peak).map(|it| it * 2.0 / f64::from(crowd_rps)).at_least(1.5),
            runs.seeds(PUBLISHED, peak).above(HIGH_RPS).named("busiest half second, requests/s"),
        ],
    )];
    if moves_entirely {
        let reports = (CROWD_S as f64 / interval_s).floor() - 2.0;
        shapes.push(Shape::new(
            "as published almost the entire load moves (nine tenths of it in the busiest half second), with three of four reports at least",
            [
                runs.seeds(PUBLISHED, peak).map(|it| it / f64::from(crowd_rps)).at_least(0.9).named("part"),
                runs.seeds(PUBLISHED, swings).at_least(0.75 * reports).named("changes"),
            ],
        ));
    }
    for name in [REPAIRED, FOUR, SIXTEEN] {
        shapes.push(Shape::new(
            format!(
                "{name}: two intervals on max/mean is 1.05 at most over any interval and no half second is above HW; every second is \
                 within a tenth of the mean 1 s after the crowd is found"
            ),
            [
                runs.seeds(name, even).at_most(1.05).named("max/mean"),
                runs.seeds(name, peak).at_most(HIGH_RPS).named("busiest half second, requests/s"),
                runs.seeds(name, balanced).at_most(1.0).named("s"),
            ],
        ));
    }
    let plot = loads_over_time(LOADS, &runs, [PUBLISHED, SIXTEEN], 0.5, 100.0, onset_s);
    let mut notes = notes(laboratory.options(), runs.seed_count());
    notes.push(
        "Found is when the first copy is made: as published with a report, 0 to one interval after the step; repaired with the early \
         report of a server that had HW over a second. A server's peak of half a second has the fluctuation of all arrivals in it."
            .to_owned(),
    );
    plot.finding(rows, shapes, Claim::Values, notes)
}

/// From two intervals after the first copy on.
fn settled(outcome: &ReplicasOutcome, interval_s: f64) -> Option<Range<f64>> {
    outcome.first_copy_s(QUIET_S as f64).map(|at_s| at_s.ceil() + 2.0 * interval_s..END_S)
}

/// Number of half seconds in which the server with more than 1.2 times the mean is another one than before.
fn swings(outcome: &ReplicasOutcome, seconds: &Range<f64>) -> f64 {
    let mut last = None;
    let mut changes = 0.0;
    let mut from_s = seconds.start;
    while from_s + 0.5 <= seconds.end {
        let loads = outcome.loads_rps(&(from_s..from_s + 0.5));
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let busier = loads.iter().position(|&load| load > 1.2 * mean);
        if busier.is_some() {
            changes += f64::from(u8::from(last.is_some() && busier != last));
            last = busier;
        }
        from_s += 0.5;
    }
    changes
}
