//! CAT-POLICIES: all published policies and their repairs under one overload.

use super::plant::{CLASSES, Mode, SERVERS, SERVICE_TIME, notes};
use super::runs::{Curve, Load, Measured, Runs};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape, Spread};
use std::collections::BTreeMap;
use std::ops::Range;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "CAT-POLICIES",
    title: "All policies under one overload",
    paper: "§3.2 and §3.3 describe the policies; the paper has no such table. Told beside are the values of a study of \
            our own with another simulator, made before this one",
    run,
};

const BATCH: &str = "batch, as published";
const BATCH_LATE: &str = "batch, q = 3";
const BATCH_PART: &str = "batch, q = 3, in part";
const IN_FLIGHT: &str = "in flight alone";
const RESERVATION: &str = "reservation 0, 4, 8";
const SLOW: &str = "threshold, 15 s";
const SLOW_CAPPED: &str = "threshold, 15 s, in flight bounded";
const FAST: &str = "threshold, 1 s";
const FAST_CAPPED: &str = "threshold, 1 s, in flight bounded";
const OURS: &str = "our defaults";

/// Each policy, and what the other study has: gold, silver and bronze let in a second, mean and 95th
/// percentile of response times under overload in seconds, and the mean at a low load in milliseconds.
const POLICIES: [(&str, Mode, Option<[f64; 6]>); 10] = [
    (BATCH, Mode::batch(1, true), Some([183.0, 10.0, 0.0, 0.95, 2.86, 70.0])),
    (BATCH_LATE, Mode::batch(3, true), Some([171.0, 21.0, 1.0, 0.30, 0.90, 70.0])),
    (BATCH_PART, Mode::batch(3, false), Some([165.0, 23.0, 6.0, 0.32, 0.95, 70.0])),
    (IN_FLIGHT, Mode::reservation(0), Some([86.0, 51.0, 57.0, 0.33, 0.97, 20.0])),
    (RESERVATION, Mode::reservation(4), Some([183.0, 11.0, 0.0, 0.30, 0.89, 20.0])),
    (SLOW, Mode::threshold(15, 950, false), Some([191.0, 19.0, 5.0, 29.0, 84.0, 20.0])),
    (SLOW_CAPPED, Mode::threshold(15, 950, true), Some([174.0, 12.0, 2.0, 0.18, 0.67, 20.0])),
    (FAST, Mode::threshold(1, 950, false), Some([184.0, 0.0, 0.0, 0.17, 0.69, 20.0])),
    (FAST_CAPPED, Mode::threshold(1, 950, true), Some([184.0, 0.0, 0.0, 0.11, 0.40, 20.0])),
    (OURS, Mode::Ours, None),
];

/// 2.3 times what three servers carry.
const OVERLOAD: [Curve; 3] = [&[(0, 200.0)], &[(0, 120.0)], &[(0, 130.0)]];
const OVERLOAD_S: u64 = 180;
/// 47 % of it.
const LOW: [Curve; 3] = [&[(0, 30.0)], &[(0, 30.0)], &[(0, 30.0)]];
const LOW_S: u64 = 120;
/// Seeds at least: the number of the other study.
const SEEDS_LEAST: u32 = 5;
const MEASURED: &str = "measured";
const OTHER: &str = "other study";

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let modes: Vec<(&str, Mode)> = POLICIES.iter().map(|&(name, mode, _)| (name, mode)).collect();
    let load = |curves, length_s| Load { mode: None, servers: SERVERS, curves, length_s, seed: 0 };
    let seeds = laboratory.options().seeds.max(SEEDS_LEAST);
    let busy = Runs::new(laboratory, &modes, load(OVERLOAD, OVERLOAD_S), seeds)?;
    let quiet = Runs::new(laboratory, &modes, load(LOW, LOW_S), seeds)?;
    let rows = POLICIES.iter().flat_map(|(name, _, other)| rows(&busy, &quiet, name, *other)).collect();
    let lines = CLASSES.iter().enumerate().map(|(class, class_name)| {
        let admitted = |name| busy.mean(name, |measured| measured.admitted_rps(class, &all()));
        let points =
            POLICIES.iter().zip(1..).map(|((name, ..), place)| (f64::from(place), Some(admitted(name))));
        ((*class_name).to_owned(), points.collect())
    });
    let plot = Plot {
        title: "Requests let in by each policy",
        x_label: "policy, in the order of the table",
        y_label: "requests/s",
        lines: lines.collect(),
        onset: None,
    };
    let mut notes = notes(laboratory.options(), seeds);
    notes.push(format!(
        "Gold sends 200/s, silver 120/s and bronze 130/s to servers that carry {:.1}/s, for {OVERLOAD_S} s from a cold start, \
         which is in all numbers; at the low load each sends 30/s for {LOW_S} s.",
        capacity_rps()
    ));
    plot.finding(rows, shapes(&busy, &quiet), Claim::Shape, notes)
}

fn rows(busy: &Runs, quiet: &Runs, name: &str, other: Option<[f64; 6]>) -> Vec<Row> {
    let values = [
        ("gold let in/s", busy.spread(name, |it| it.admitted_rps(0, &all()))),
        ("silver let in/s", busy.spread(name, |it| it.admitted_rps(1, &all()))),
        ("bronze let in/s", busy.spread(name, |it| it.admitted_rps(2, &all()))),
        ("mean, s", busy.spread(name, mean_s)),
        ("95th percentile, s", busy.spread(name, |it| it.quantile_s(0.95))),
        ("mean at low load, ms", quiet.spread(name, |it| mean_s(it) * 1e3)),
    ];
    let row = |(place, (what, measured)): (usize, (&str, Option<Spread>))| {
        let mut ours = BTreeMap::new();
        ours.extend(measured.map(|spread| (MEASURED.to_owned(), spread)));
        let simulated = other.and_then(|other| Spread::of([other[place]]));
        ours.extend(simulated.map(|spread| (OTHER.to_owned(), spread)));
        Row { what: format!("{name}: {what}"), paper: None, ours, rule: Rule::Reported }
    };
    values.into_iter().enumerate().map(row).collect()
}

fn shapes(busy: &Runs, quiet: &Runs) -> Vec<Shape> {
    let gold = |name| busy.seeds(name, |it| it.admitted_rps(0, &all()));
    let total = |name| busy.seeds(name, |it| it.all(&all()).admitted as f64 / OVERLOAD_S as f64);
    let goodput = busy.seeds(OURS, |it| it.all(&all()).goodput as f64 / OVERLOAD_S as f64);
    let late = |name| busy.seeds(name, |it| it.quantile_s(0.95));
    let is_in_time = |name: &'static str| late(name).at_most(1.0).named(format!("{name}, s"));
    let low_ms = |name| quiet.seeds(name, |it| mean_s(it) * 1e3);
    let low_refused = quiet.seeds(OURS, |it| it.all(&(0..LOW_S as usize)).shed_total() as f64);
    let percentile = "95th percentile, s";
    vec![
        Shape::new(
            "batches as published keep the mean within 1 s, and not the 95th percentile",
            [
                busy.seeds(BATCH, mean_s).at_most(1.0).named("mean, s"),
                late(BATCH).above(1.0).named(percentile),
            ],
        ),
        Shape::new(
            "with q = 3 the 95th percentile of batches and of reservation is within 1 s",
            [BATCH_LATE, BATCH_PART, RESERVATION].map(is_in_time),
        ),
        Shape::new(
            "letting batches in by parts costs gold",
            [gold(BATCH_PART).over(&gold(BATCH_LATE)).below(1.0).named("gold over that of whole batches")],
        ),
        Shape::new(
            "reservation lets more gold in than batches with q = 3",
            [gold(RESERVATION).over(&gold(BATCH_LATE)).above(1.0).named("gold over that of batches")],
        ),
        Shape::new(
            "a count in flight alone tells no classes apart: gold gets its share of what comes (0.44, to 0.03)",
            [gold(IN_FLIGHT).over(&total(IN_FLIGHT)).between(200.0 / 450.0 - 0.03, 200.0 / 450.0 + 0.03)],
        ),
        Shape::new(
            "a threshold every 15 s with nothing else makes everybody wait (95th percentile above 10 s), one with a bound does not",
            [
                late(SLOW).above(10.0).named(percentile),
                late(SLOW_CAPPED).at_most(1.0).named("with a bound, s"),
            ],
        ),
        Shape::new(
            "a threshold every second lets as much gold in as reservation (to 3 %), and less in all",
            [
                gold(FAST)
                    .over(&gold(RESERVATION))
                    .between(0.97, 1.03)
                    .named("gold over that of reservation"),
                total(FAST).over(&total(RESERVATION)).below(1.0).named("all over that of reservation"),
            ],
        ),
        Shape::new(
            "rounds add 20 ms and more at a low load",
            [low_ms(BATCH).minus(&low_ms(IN_FLIGHT)).at_least(20.0).named("ms")],
        ),
        Shape::new(
            "our defaults add a millisecond at most at a low load, and refuse nobody",
            [
                low_ms(OURS).minus(&low_ms(IN_FLIGHT)).at_most(1.0).named("ms"),
                low_refused.at_most(0.0).named("refused"),
            ],
        ),
        Shape::new(
            "our defaults: goodput of 0.95 of the capacity, a 95th percentile within 1 s",
            [
                goodput.map(|it| it / capacity_rps()).at_least(0.95).named("goodput over the capacity"),
                late(OURS).at_most(1.0).named(percentile),
            ],
        ),
        Shape::new(
            "our defaults let as much gold in as reservation with known servers (3 % less at most)",
            [gold(OURS).over(&gold(RESERVATION)).at_least(0.97)],
        ),
    ]
}

const fn all() -> Range<usize> {
    0..OVERLOAD_S as usize
}

fn mean_s(measured: &Measured) -> f64 {
    measured.all(&all()).mean_latency_s().unwrap_or(f64::NAN)
}

fn capacity_rps() -> f64 {
    f64::from(SERVERS) / SERVICE_TIME.as_secs_f64()
}
