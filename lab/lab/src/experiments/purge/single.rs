//! PURGE-F6 and PURGE-F7: one unresponsive flow beside ten that respond.

use super::link::{Crowd, LinkOutcome, Load, Policing, mean};
use super::runs::{Runs, notes};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};

pub(crate) const OVER_TIME: Experiment = Experiment {
    id: "PURGE-F6",
    title: "Rates over time beside one UDP flow of 9 Mb/s",
    paper: "Figure 6 and §4.3: under REM TCP is almost shut out; under BLACK UDP is still privileged",
    run: over_time,
};

pub(crate) const AVERAGE: Experiment = Experiment {
    id: "PURGE-F7",
    title: "Average rates beside one UDP flow of 9 Mb/s",
    paper: "Figure 7 and §4.3: ten TCP flows and UDP average about the same under Purge; UDP has more under BLACK",
    run: average,
};

const CROWD: Crowd = Crowd { tcp: 10, udp: 1, unresponsive_tcp: 0 };
const FLOWS: u32 = CROWD.flows();
const POLICINGS: [Policing; 6] = [
    Policing::DropTail,
    Policing::Rem,
    Policing::BlackLike,
    Policing::Published,
    Policing::PublishedCounted,
    Policing::Repaired,
];
/// The paper's length.
const LENGTH_S: u64 = 100;
/// An eleventh of the link, kb/s.
const FAIR_KBPS: f64 = 10_000.0 / FLOWS as f64;

fn runs(laboratory: &Laboratory) -> Result<Runs, ExperimentError> {
    let load = Load {
        policing: Policing::Repaired,
        crowd: CROWD,
        udp_bits_per_s: 9_000_000,
        unresponsive_bits_per_s: 1,
        length_s: LENGTH_S,
        seed: 0,
    };
    Runs::new(laboratory, &POLICINGS, &[load])
}

fn rows(runs: &Runs) -> Vec<Row> {
    let row = |what: &str, paper, value: fn(&LinkOutcome) -> f64| {
        runs.row(what.to_owned(), FLOWS, &POLICINGS, paper, Rule::Reported, value)
    };
    vec![
        row("TCP, kb/s each", None, |outcome| mean(&outcome.tcp)),
        row("the least of the TCP flows, kb/s", None, least_tcp),
        row("UDP, kb/s", None, |outcome| mean(&outcome.udp)),
        row("Jain's index of flows, thousandths", None, |it| 1e3 * it.jain()),
        row("Jain's index of class means, thousandths", None, |it| 1e3 * it.class_mean_jain()),
        row("mean queue, packets", Some(250.0), |outcome| outcome.queue),
        row("link in use, %", None, |outcome| outcome.used * 100.0),
        row("flows counted", Some(f64::from(FLOWS)), |outcome| outcome.active_flows),
    ]
}

fn least_tcp(outcome: &LinkOutcome) -> f64 {
    outcome.tcp.iter().copied().fold(f64::INFINITY, f64::min)
}

fn shapes(runs: &Runs) -> Vec<Shape> {
    let tcp = |policing| runs.seeds(FLOWS, policing, |outcome| mean(&outcome.tcp) / FAIR_KBPS);
    let udp = |policing| runs.seeds(FLOWS, policing, |outcome| mean(&outcome.udp) / FAIR_KBPS);
    let part = "part of its fair share";
    vec![
        Shape::new(
            "under REM TCP is almost shut out: a third of its fair share at most",
            [tcp(Policing::Rem).at_most(1.0 / 3.0).named(part)],
        ),
        Shape::new(
            "under BLACK-like UDP has more than under Purge as published",
            [udp(Policing::BlackLike)
                .minus(&udp(Policing::Published))
                .above(0.0)
                .named("difference, in fair shares")],
        ),
        Shape::new(
            "under BLACK-like UDP is privileged: it has more than its fair share, by a fifth at least",
            [udp(Policing::BlackLike).above(1.2).named(part)],
        ),
        Shape::new(
            "under Purge as published UDP has a fair share, to a fifth",
            [udp(Policing::Published).between(0.8, 1.2).named(part)],
        ),
        Shape::new(
            "under repaired Purge UDP has a fair share, to a tenth, and each TCP flow four fifths of one",
            [
                udp(Policing::Repaired).between(0.9, 1.1).named("UDP"),
                runs.seeds(FLOWS, Policing::Repaired, |outcome| least_tcp(outcome) / FAIR_KBPS)
                    .at_least(0.8)
                    .named("the least TCP flow"),
            ],
        ),
        Shape::new(
            "under repaired Purge Jain's index of flows is 0.95",
            [runs.seeds(FLOWS, Policing::Repaired, LinkOutcome::jain).at_least(0.95)],
        ),
    ]
}

fn over_time(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = runs(laboratory)?;
    let lines =
        [Policing::Rem, Policing::BlackLike, Policing::Published, Policing::Repaired].map(|policing| {
            let series = runs.first(FLOWS, policing).into_iter().flat_map(|outcome| &outcome.series);
            let points = series.enumerate().map(|(second, [_, udp])| (second as f64, Some(*udp)));
            (format!("UDP, {}", policing.name()), points.collect())
        });
    let plot = Plot {
        title: "UDP of 9 Mb/s beside ten TCP flows",
        x_label: "seconds",
        y_label: "Mb/s",
        lines: lines.to_vec(),
        onset: None,
    };
    let mut notes = notes(laboratory);
    notes.push(
        "The chart is of the first seed. The paper's figure could not be read, so no value is judged."
            .to_owned(),
    );
    plot.finding(rows(&runs), shapes(&runs), Claim::Shape, notes)
}

fn average(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = runs(laboratory)?;
    let line = |name: &str, value: fn(&LinkOutcome) -> f64| {
        let points = POLICINGS
            .iter()
            .zip(1..)
            .map(|(&policing, place)| (f64::from(place), Some(runs.mean(FLOWS, policing, value))));
        (name.to_owned(), points.collect::<Vec<_>>())
    };
    let lines =
        vec![line("TCP, each", |outcome| mean(&outcome.tcp)), line("UDP", |outcome| mean(&outcome.udp))];
    let plot = Plot {
        title: "Average rates of one UDP and ten TCP flows",
        x_label: "rule, in the order of the notes",
        y_label: "kb/s",
        lines,
        onset: None,
    };
    let mut notes = notes(laboratory);
    let names = POLICINGS.map(Policing::name).join(", ");
    let width = |value: fn(&LinkOutcome) -> f64| runs.half_width(FLOWS, Policing::Repaired, value);
    notes.push(format!(
        "The rules of the chart: {names}. The paper's figure could not be read, so no value is judged."
    ));
    notes.push(format!(
        "95 % confidence intervals of the means, repaired: TCP ±{:.1}, UDP ±{:.1} kb/s, Jain of flows ±{:.5}.",
        width(|outcome| mean(&outcome.tcp)),
        width(|outcome| mean(&outcome.udp)),
        width(LinkOutcome::jain)
    ));
    plot.finding(rows(&runs), shapes(&runs), Claim::Shape, notes)
}
