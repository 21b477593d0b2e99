//! PURGE-T2 and PURGE-T3: what each class gets when many flows do not respond.

use super::link::{Crowd, LinkOutcome, Load, Measure, Policing, TARGET_PACKETS, mean};
use super::runs::{Runs, notes, within};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};

pub(crate) const THROUGHPUT: Experiment = Experiment {
    id: "PURGE-T2",
    title: "Throughput where flows do not respond",
    paper: "Table 2: with 100 to 4000 flows, 12 % UDP of 3 Mb/s and 3 % unresponsive TCP of 5 Mb/s, Jain's index is .9988 to .992 under \
            Purge and .9902 to .8897 under BLACK",
    run: throughput,
};

pub(crate) const GOODPUT: Experiment = Experiment {
    id: "PURGE-T3",
    title: "Goodput where flows do not respond",
    paper: "Table 3: goodput without retransmissions of 9.20 to 8.13 Mb/s under Purge and 8.29 to 4.09 Mb/s under BLACK",
    run: goodput,
};

const FLOWS: [u32; 5] = [100, 500, 1_000, 2_000, 4_000];
const POLICINGS: [Policing; 3] = [Policing::BlackLike, Policing::Published, Policing::Repaired];
/// In tables, a rule that did not run with a number of flows has no value there.
const COLUMNS: [Policing; 4] =
    [Policing::BlackLike, Policing::Published, Policing::PublishedCounted, Policing::Repaired];
/// The first 80 s are for the price, the other two minutes are measured.
const LENGTH_S: u64 = 200;
/// With the most flows, which send 255,000 packets a second, to keep all runs within minutes.
const LENGTH_OF_MOST_S: u64 = 120;

/// One row of the paper: TCP, UDP and unresponsive TCP in kb/s, Jain's index.
type Published = [f64; 4];

const T2_BLACK: [Published; 5] = [
    [82.944, 105.472, 112.64, 0.9902],
    [17.408, 22.528, 25.6, 0.9869],
    [8.4992, 11.6736, 12.8, 0.9818],
    [3.7888, 5.4272, 6.5536, 0.9722],
    [1.1264, 2.048, 3.2768, 0.8897],
];
const T2_PURGE: [Published; 5] = [
    [94.208, 103.424, 104.448, 0.9988],
    [19.456, 21.504, 22.528, 0.9983],
    [9.3184, 10.6496, 11.1616, 0.9971],
    [4.608, 5.5296, 5.4272, 0.9937],
    [2.1504, 2.6624, 2.8672, 0.992],
];
/// System goodput, Mb/s, and Jain's index of goodput.
const T3_BLACK: [[f64; 2]; 5] =
    [[8.2903, 0.9899], [7.7555, 0.9761], [7.059, 0.9452], [6.1379, 0.9065], [4.0859, 0.8534]];
const T3_PURGE: [[f64; 2]; 5] =
    [[9.2038, 0.9987], [8.9937, 0.9961], [8.5945, 0.994], [8.5195, 0.9901], [8.1294, 0.9893]];
/// Goodput of TCP, kb/s.
const T3_TCP: [[f64; 2]; 5] =
    [[81.291, 92.884], [14.89, 17.967], [6.5066, 8.5407], [2.7201, 4.189], [0.8641, 1.9967]];

/// The published rule with a right count is another rule only where the published count is far off; two
/// numbers of flows show it.
fn runs(laboratory: &Laboratory) -> Result<Runs, ExperimentError> {
    let loads = FLOWS.map(|flows| Load {
        policing: Policing::Repaired,
        crowd: Crowd::of(flows),
        udp_bits_per_s: 3_000_000,
        unresponsive_bits_per_s: 5_000_000,
        length_s: if flows < FLOWS[4] { LENGTH_S } else { LENGTH_OF_MOST_S },
        seed: 0,
    });
    let mut runs = Runs::new(laboratory, &POLICINGS, &loads)?;
    runs.extend(Runs::new(laboratory, &[Policing::PublishedCounted], &loads[..2])?);
    Ok(runs)
}

const CLASS_MEAN_JAIN: &str = "Jain's index of class means, thousandths";
const FLOW_JAIN: &str = "Jain's index of flows, thousandths";

const CLASSES: [Measure; 3] = [
    ("TCP, kb/s", |outcome| mean(&outcome.tcp)),
    ("UDP, kb/s", |outcome| mean(&outcome.udp)),
    ("unresponsive TCP, kb/s", |outcome| mean(&outcome.unresponsive_tcp)),
];

fn throughput(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = runs(laboratory)?;
    let mut rows = Vec::new();
    for ((flows, purge), black) in FLOWS.into_iter().zip(T2_PURGE).zip(T2_BLACK) {
        let row = |what: &str, paper, rule, value: fn(&LinkOutcome) -> f64| {
            runs.row(format!("{flows} flows: {what}"), flows, &COLUMNS, paper, rule, value)
        };
        let paper_ran = |part| within(Policing::Published, part);
        for ((what, value), paper) in CLASSES.into_iter().zip(purge) {
            rows.push(row(what, Some(paper), paper_ran(0.1), value));
        }
        rows.push(row(CLASS_MEAN_JAIN, Some(1e3 * purge[3]), paper_ran(0.01), |it| {
            1e3 * it.class_mean_jain()
        }));
        rows.push(row(FLOW_JAIN, None, Rule::Reported, |it| 1e3 * it.jain()));
        rows.push(row("mean queue, packets", Some(TARGET_PACKETS), Rule::Reported, |outcome| outcome.queue));
        rows.push(row("link in use, %", None, Rule::Reported, |outcome| outcome.used * 100.0));
        rows.push(row("flows counted", Some(f64::from(flows)), Rule::Reported, |outcome| {
            outcome.active_flows
        }));
        rows.extend(black_rows(&runs, flows, &black));
    }
    let mut notes = notes(laboratory);
    notes.push(
        "Runs are 200 s long, with 4000 flows 120 s. The paper's columns of Jain's index are those of class means: they follow from its own means without any difference within a class. \
         The index over all flows stands beside. Its row \"300\" of Purge is 500."
            .to_owned(),
    );
    notes.push(intervals(&runs));
    let lines = [Policing::BlackLike, Policing::Published, Policing::Repaired].map(|policing| {
        let points =
            FLOWS.map(|flows| (f64::from(flows), Some(runs.mean(flows, policing, LinkOutcome::jain))));
        (format!("{}, of flows", policing.name()), points.to_vec())
    });
    let paper = FLOWS.into_iter().zip(T2_PURGE).map(|(flows, purge)| (f64::from(flows), Some(purge[3])));
    let mut lines = lines.to_vec();
    lines.push(("the paper's, of class means".to_owned(), paper.collect()));
    let plot = Plot {
        title: "Jain's index by the number of flows",
        x_label: "flows",
        y_label: "Jain's index",
        lines,
        onset: None,
    };
    plot.finding(rows, throughput_shapes(&runs), Claim::Values, notes)
}

/// The paper's values of BLACK, beside ours.
fn black_rows(runs: &Runs, flows: u32, paper: &Published) -> Vec<Row> {
    let only = [Policing::BlackLike];
    let row = |what: &str, paper, part, value: fn(&LinkOutcome) -> f64| {
        let what = format!("{flows} flows under BLACK: {what}");
        runs.row(what, flows, &only, Some(paper), within(Policing::BlackLike, part), value)
    };
    let mut rows: Vec<Row> =
        CLASSES.iter().zip(paper).map(|((what, value), &paper)| row(what, paper, 0.1, *value)).collect();
    rows.push(row(CLASS_MEAN_JAIN, 1e3 * paper[3], 0.01, |it| 1e3 * it.class_mean_jain()));
    rows
}

fn throughput_shapes(runs: &Runs) -> Vec<Shape> {
    let jain = |flows, policing| runs.seeds(flows, policing, LinkOutcome::jain);
    let class = |flows, policing| runs.seeds(flows, policing, LinkOutcome::class_mean_jain);
    let at = |flows: u32| format!("{flows} flows");
    let ours = Policing::Repaired;
    vec![
        Shape::new(
            "Purge as published keeps Jain's index of class means at 0.99 with every number of flows",
            FLOWS.map(|flows| class(flows, Policing::Published).at_least(0.99).named(at(flows))),
        ),
        Shape::new(
            "Purge as published is fairer than BLACK-like with every number of flows",
            FLOWS.map(|flows| {
                let gain = class(flows, Policing::Published).minus(&class(flows, Policing::BlackLike));
                gain.above(0.0).named(at(flows))
            }),
        ),
        Shape::new(
            "repaired Purge keeps it at 0.99",
            FLOWS.map(|flows| class(flows, ours).at_least(0.99).named(at(flows))),
        ),
        Shape::new(
            "repaired Purge: Jain's index of flows is 0.995 with 100 and 0.97 with 1000",
            [
                jain(100, ours).at_least(0.995).named(at(100)),
                jain(1_000, ours).at_least(0.97).named(at(1_000)),
            ],
        ),
        Shape::new(
            "repaired Purge: the mean queue is within a fifth of its target",
            [100, 1_000].map(|flows| {
                let queue = runs.seeds(flows, ours, |outcome| outcome.queue);
                queue.between(0.8 * TARGET_PACKETS, 1.2 * TARGET_PACKETS).named(at(flows))
            }),
        ),
        Shape::new(
            "repaired Purge: the link is in use for 98 % of the time",
            [100, 1_000]
                .map(|flows| runs.seeds(flows, ours, |outcome| outcome.used).at_least(0.98).named(at(flows))),
        ),
    ]
}

/// The confidence intervals of the repaired rule.
fn intervals(runs: &Runs) -> String {
    let of = |flows| {
        let width = |value: fn(&LinkOutcome) -> f64| runs.half_width(flows, Policing::Repaired, value);
        let [tcp, udp, unresponsive] = CLASSES.map(|(_, value)| width(value));
        format!(
            "{flows} flows: TCP ±{tcp:.2}, UDP ±{udp:.2}, unresponsive TCP ±{unresponsive:.2} kb/s, Jain of class means ±{:.5}, of flows ±{:.5}",
            width(LinkOutcome::class_mean_jain),
            width(LinkOutcome::jain)
        )
    };
    format!("95 % confidence intervals of the means, repaired: {}.", FLOWS.map(of).join("; "))
}

fn goodput(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = runs(laboratory)?;
    let mut rows = Vec::new();
    for (place, flows) in FLOWS.into_iter().enumerate() {
        let row = |what: &str, policings: &[Policing], paper, rule, value: fn(&LinkOutcome) -> f64| {
            runs.row(format!("{flows} flows{what}"), flows, policings, paper, rule, value)
        };
        let (purge, black) = (T3_PURGE[place], T3_BLACK[place]);
        let paper_ran = |part| within(Policing::Published, part);
        let as_black = |part| within(Policing::BlackLike, part);
        let [tcp_black, tcp_purge] = T3_TCP[place];
        let tcp: fn(&LinkOutcome) -> f64 = |outcome| mean(&outcome.tcp_goodput);
        let unresponsive: fn(&LinkOutcome) -> f64 = |outcome| mean(&outcome.unresponsive_goodput);
        let system = LinkOutcome::system_goodput;
        let index: fn(&LinkOutcome) -> f64 = |it| 1e3 * it.class_mean_jain_of_goodput();
        let only_black = [Policing::BlackLike];
        rows.extend([
            row(": TCP, kb/s", &COLUMNS, Some(tcp_purge), paper_ran(0.1), tcp),
            row(": unresponsive TCP, kb/s", &COLUMNS, None, Rule::Reported, unresponsive),
            row(": system, Mb/s", &COLUMNS, Some(purge[0]), paper_ran(0.1), system),
            row(
                ": Jain's index of class means, thousandths",
                &COLUMNS,
                Some(1e3 * purge[1]),
                paper_ran(0.01),
                index,
            ),
            row(" under BLACK: TCP, kb/s", &only_black, Some(tcp_black), as_black(0.1), tcp),
            row(" under BLACK: system, Mb/s", &only_black, Some(black[0]), as_black(0.1), system),
            row(
                " under BLACK: Jain's index of class means, thousandths",
                &only_black,
                Some(1e3 * black[1]),
                as_black(0.01),
                index,
            ),
        ]);
    }
    let mut notes = notes(laboratory);
    notes.push(
        "Goodput is what arrives and is no repetition (the paper's eq. 6). Unresponsive TCP loses nearly all it sends and repeats it, so nearly \
         all that arrives of it is repeated: the paper's 92 % of its throughput cannot be had by this equation, so its \
         rows are told, and the system's goodput and index fall short by that class."
            .to_owned(),
    );
    let system = |policing: Policing| {
        let points = FLOWS
            .map(|flows| (f64::from(flows), Some(runs.mean(flows, policing, LinkOutcome::system_goodput))));
        (policing.name().to_owned(), points.to_vec())
    };
    let paper = FLOWS.into_iter().zip(T3_PURGE).map(|(flows, purge)| (f64::from(flows), Some(purge[0])));
    let mut lines = [Policing::BlackLike, Policing::Published, Policing::Repaired].map(system).to_vec();
    lines.push(("the paper's".to_owned(), paper.collect()));
    let plot = Plot { title: "Goodput of all flows", x_label: "flows", y_label: "Mb/s", lines, onset: None };
    plot.finding(rows, goodput_shapes(&runs), Claim::Values, notes)
}

fn goodput_shapes(runs: &Runs) -> Vec<Shape> {
    let system = |flows, policing| runs.seeds(flows, policing, LinkOutcome::system_goodput);
    let tcp = |flows, policing| runs.seeds(flows, policing, |outcome| mean(&outcome.tcp_goodput));
    let at = |flows: u32| format!("{flows} flows");
    vec![
        Shape::new(
            "TCP's goodput is higher under Purge as published than under BLACK-like",
            FLOWS.map(|flows| {
                let gain = tcp(flows, Policing::Published).minus(&tcp(flows, Policing::BlackLike));
                gain.above(0.0).named(at(flows))
            }),
        ),
        Shape::new(
            "the system's goodput is higher under Purge as published than under BLACK-like",
            FLOWS.map(|flows| {
                let gain = system(flows, Policing::Published).minus(&system(flows, Policing::BlackLike));
                gain.above(0.0).named(at(flows))
            }),
        ),
        Shape::new(
            "under repaired Purge TCP has nine tenths of its fair share as goodput",
            FLOWS.map(|flows| {
                let part = tcp(flows, Policing::Repaired).map(|kb| kb * f64::from(flows) / 1e4);
                part.at_least(0.9).named(at(flows))
            }),
        ),
        Shape::new(
            "repaired Purge: the system's goodput is 9 Mb/s with 100 flows and 8 Mb/s with 4000",
            [
                system(100, Policing::Repaired).at_least(9.0).named(at(100)),
                system(4_000, Policing::Repaired).at_least(8.0).named(at(4_000)),
            ],
        ),
    ]
}
