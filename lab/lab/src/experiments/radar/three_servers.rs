//! RADAR-F4.9: the same step on three servers.

use super::plant::{Mode, QUIET_S, Step, notes};
use super::runs::{PUBLISHED, REPAIRED, Runs, balanced_after_s, loads_over_time};
use crate::experiments::finding::Claim;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_replication::placement::published::{Acceptance, PublishedRule};
use flashweir_sim::replicas::ReplicasOutcome;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "RADAR-F4.9",
    title: "A step of load on three servers, of which one has every document",
    paper: "Figure 4.9 and §4.2.4: first documents go to one server only (A), after its report to the other (B), until the first is below LW",
    run,
};

const AS_REPORTED: &str = "published, loads as reported";
const CROWD_S: u64 = 100;
const END_S: f64 = (QUIET_S + CROWD_S) as f64;

const LOADS: &str = "Load of three servers, one run of each kind";

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let as_reported = PublishedRule { acceptance: Acceptance::Any, has_load_correction: false };
    let modes = [
        (PUBLISHED, Mode::ESSER),
        (AS_REPORTED, Mode::Published(as_reported)),
        (REPAIRED, Mode::Repaired { redirectors: 1 }),
    ];
    let step = Step {
        mode: Mode::ESSER,
        servers: 3,
        low_rps: 200.0,
        interval_s: 10,
        quiet_rps: 150,
        crowd_rps: 400,
        crowd_s: CROWD_S,
        first_report_s: Some(9),
        seed: 0,
    };
    let runs = Runs::new(laboratory, &modes, step)?;
    let onset_s = QUIET_S as f64;
    // The part of what moved in the three seconds after the first round that went to one of the two.
    let one_sided = move |outcome: &ReplicasOutcome| {
        let at_s = outcome.first_copy_s(onset_s)?.ceil();
        let moved = outcome.loads_rps(&(at_s..at_s + 3.0));
        Some(moved[1].max(moved[2]) / (moved[1] + moved[2]))
    };
    // 1 if the first copies of the next round go to another server than those of the first, 0 if not.
    let goes_to_the_other = move |outcome: &ReplicasOutcome| {
        let mut placements = outcome.placements.iter().filter(|it| it.at_s >= onset_s);
        let first = placements.next()?;
        let next = placements.find(|it| it.at_s > first.at_s + 1.0)?;
        Some(f64::from(u8::from(next.target != first.target)))
    };
    let last = |server: usize| {
        move |outcome: &ReplicasOutcome| outcome.loads_rps(&(END_S - 20.0..END_S)).get(server).copied()
    };
    let lowest = |outcome: &ReplicasOutcome| {
        let from_s = (QUIET_S as usize..END_S as usize - 10).step_by(10);
        from_s.map(|at| outcome.loads_rps(&(at as f64..at as f64 + 10.0))[0]).min_by(f64::total_cmp)
    };
    let balanced = move |outcome: &ReplicasOutcome| balanced_after_s(outcome, onset_s, END_S, 0.15);
    let even = |outcome: &ReplicasOutcome| Some(outcome.worst_max_over_mean(&(END_S - 40.0..END_S), 10.0));
    let copies = |outcome: &ReplicasOutcome| Some(outcome.copies(&(0.0..END_S)) as f64);
    let rows = vec![
        runs.row("part of what moved first that went to one server", Some(1.0), Rule::Reported, one_sided),
        runs.row("last 20 s, server 1, requests/s", None, Rule::Reported, last(0)),
        runs.row("last 20 s, server 2, requests/s", None, Rule::Reported, last(1)),
        runs.row("last 20 s, server 3, requests/s", None, Rule::Reported, last(2)),
        runs.row("max/mean over 10 s in the last 40 s", None, Rule::Reported, even),
        runs.row("documents copied", None, Rule::Reported, copies),
    ];
    let shapes = vec![
        Shape::new(
            "with loads as reported the first documents all go to one server (A)",
            [runs.seeds(AS_REPORTED, one_sided).at_least(0.999)],
        ),
        Shape::new(
            "with loads as reported the first copies after the next report go to the other server (B)",
            [runs.seeds(AS_REPORTED, goes_to_the_other).at_least(1.0).named("1 if they do")],
        ),
        Shape::new(
            "with loads as reported the first server gets below LW, and so it does as published",
            [AS_REPORTED, PUBLISHED].map(|name| {
                let lowest = runs.seeds(name, lowest);
                lowest.below(200.0).named(format!("{name}: its lowest mean of 10 s, requests/s"))
            }),
        ),
        Shape::new(
            "repaired all three are even: within 15 % of the mean in every second, 1 s after the crowd is found",
            [
                runs.seeds(REPAIRED, even).at_most(1.05).named("max/mean over 10 s"),
                runs.seeds(REPAIRED, balanced).at_most(1.0).named("s"),
            ],
        ),
    ];
    let plot = loads_over_time(LOADS, &runs, [AS_REPORTED, REPAIRED], 0.5, 100.0, onset_s);
    let mut notes = notes(laboratory.options(), runs.seed_count());
    notes.push(
        "The text of figure 4.9 says that loads are as reported until the next report, figure 4.8 settles only if they are corrected by what is \
         placed: no single reading makes both, so both are shown and no value is claimed."
            .to_owned(),
    );
    plot.finding(rows, shapes, Claim::Shape, notes)
}
