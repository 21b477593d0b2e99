//! CAT-F7: servers move to the application to which the crowd comes.

use super::pools::{
    CROWD_S, CROWDS_S, LENGTH_S, MODES, PUBLISHED, REPAIRED, TwoApplications, admitted_rps, over_time,
    pool_notes,
};
use super::runs::Runs;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_core::Instant;
use flashweir_sim::pool::{ApplicationOutcome, Order, PoolOutcome};
use std::ops::Range;
use std::time::Duration;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "CAT-F7",
    title: "Servers move to the application to which the crowd comes",
    paper: "Figure 7 and §6.5: eleven servers, at least three for each of two applications; the first one's demand doubles every five \
            minutes from 100 to 1,600/s. A fourth server at 910 s, a fifth at 1,210 s, and at 1,800 s all eight and a target of 2 s",
    run,
};

/// The first application's crowd.
const FIRST: Range<usize> = CROWDS_S[0] as usize..(CROWDS_S[0] + CROWD_S) as usize;
const SECOND: Range<usize> = CROWDS_S[1] as usize..(CROWDS_S[1] + CROWD_S) as usize;

/// The demand doubles "roughly once every 5 min", and its curves are not in the text: times are right to a
/// tenth of that.
const CURVES_S: f64 = 30.0;

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let simulations = MODES.map(|(name, mode)| (name, move |seed| TwoApplications { mode, seed }));
    let runs = Runs::of(laboratory, LENGTH_S, laboratory.options().seeds, simulations)?;
    let near = |by| Rule::Near { mode: PUBLISHED.to_owned(), by };
    let first = |of: fn(&ApplicationOutcome) -> f64| move |it: &PoolOutcome| of(&it.applications[0]);
    let rows = vec![
        runs.row("fourth server ordered, s", Some(910.0), near(CURVES_S), first(|it| ordered_s(it, 4))),
        runs.row("fifth server ordered, s", Some(1_210.0), near(CURVES_S), first(|it| ordered_s(it, 5))),
        runs.row("servers before 1,800 s", Some(5.0), near(0.0), first(|it| servers_at(it, 1_799))),
        runs.row("servers after 1,800 s", Some(8.0), near(0.0), first(|it| servers_at(it, 1_811))),
        runs.row("target after 1,800 s, s", Some(2.0), near(0.0), first(|it| target_s(it, 1_815))),
        runs.row("first crowd: admitted/s", None, Rule::Reported, first(|it| admitted_rps(it, FIRST))),
        runs.row("second crowd: admitted/s", None, Rule::Reported, |it| {
            admitted_rps(&it.applications[1], SECOND)
        }),
        runs.row("revenue, both applications, thousands", None, Rule::Reported, |it| revenue(it) / 1_000.0),
        runs.row("orders, both applications", None, Rule::Reported, |it| {
            it.applications.iter().map(|of| of.orders.len() as f64 - 1.0).sum()
        }),
    ];
    let shapes = vec![
        Shape::new(
            "as published, the crowd has its fourth server within 5 min of more than half of it being refused, and the fifth 300 s later",
            [
                runs.seeds(PUBLISHED, first(|it| ordered_s(it, 4)))
                    .between(910.0 - CURVES_S, 910.0 + CURVES_S)
                    .named("fourth, s"),
                runs.seeds(PUBLISHED, first(|it| ordered_s(it, 5) - ordered_s(it, 4)))
                    .between(300.0, 310.0)
                    .named("between, s"),
            ],
        ),
        Shape::new(
            "at 1,800 s it has all that is free, and a target of 2 s",
            [
                runs.seeds(PUBLISHED, first(|it| servers_at(it, 1_811))).between(8.0, 8.0).named("servers"),
                runs.seeds(PUBLISHED, first(|it| target_s(it, 1_815))).between(2.0, 2.0).named("target, s"),
            ],
        ),
        Shape::new(
            "the second application's crowd gets the servers that the first one had",
            MODES.map(|(name, _)| {
                let most = |it: &PoolOutcome| most_servers(&it.applications[1], &SECOND);
                runs.seeds(name, most).at_least(7.0).named(name)
            }),
        ),
        Shape::new(
            "repaired, more is served of both crowds than as published",
            [0, 1].map(|place: usize| {
                let admitted = move |it: &PoolOutcome| {
                    admitted_rps(&it.applications[place], [FIRST, SECOND][place].clone())
                };
                let ours = runs.seeds(REPAIRED, admitted);
                ours.over(&runs.seeds(PUBLISHED, admitted)).above(1.0).named("over published")
            }),
        ),
    ];
    let line = |name: &'static str, place: usize, title: &str| {
        let points = runs
            .first(name)
            .map(|it| over_time(&it.applications[place], |bin| bin.ready_s / it.bin.as_secs_f64()));
        (format!("{title}, {name}"), points.unwrap_or_default())
    };
    let lines = [
        line(PUBLISHED, 0, "first application"),
        line(PUBLISHED, 1, "second application"),
        line(REPAIRED, 0, "first application"),
        line(REPAIRED, 1, "second application"),
    ];
    let plot = Plot {
        title: "Servers of the two applications",
        x_label: "seconds",
        y_label: "servers that serve",
        lines: lines.to_vec(),
        onset: None,
    };
    let mut notes = pool_notes(laboratory.options());
    notes.push(
        "The paper's text has no times after 1,800 s: here the first crowd lasts until 2,400 s, and the second, alike, begins at 2,700 s. A \
         server starts in 8 to 12 s. 60/s and server (15.5 ms) is the paper's capacity."
            .to_owned(),
    );
    notes.push(
        "The printed rule orders a sixth and a seventh server before 1,800 s, as more than half is still refused, so that only one is free \
         then; the paper has three, and shows only selected events."
            .to_owned(),
    );
    plot.finding(rows, shapes, Claim::Shape, notes)
}

/// Time at which it has this number of servers for the first time, those that start included; not a number if
/// never.
fn ordered_s(it: &ApplicationOutcome, servers: u32) -> f64 {
    let first: Option<&Order> = it.orders.iter().find(|order| order.servers >= servers);
    first.map_or(f64::NAN, |order| order.at.as_secs_f64())
}

fn servers_at(it: &ApplicationOutcome, second: u64) -> f64 {
    it.servers_at(Instant::from_duration(Duration::from_secs(second))).map_or(f64::NAN, f64::from)
}

fn target_s(it: &ApplicationOutcome, second: usize) -> f64 {
    it.within(second..second + 5).first().map_or(f64::NAN, |bin| bin.target.as_secs_f64())
}

fn most_servers(it: &ApplicationOutcome, seconds: &Range<usize>) -> f64 {
    it.within(seconds.clone()).iter().map(|bin| bin.ready_s / it.bin_s).fold(0.0, f64::max)
}

fn revenue(it: &PoolOutcome) -> f64 {
    it.applications.iter().flat_map(|of| &of.bins).map(|bin| bin.revenue).sum()
}
