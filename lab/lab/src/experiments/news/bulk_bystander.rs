//! NEWS-F16: a file transfer from another server through the same bottleneck.

use super::plant::{AS_RUN, Mode, NEWS_MODES, notes};
use super::runs::{Runs, Stretch};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_sim::network::TcpSettings;
use flashweir_sim::news::{BulkTransfer, NewsOutcome, Scenario};
use std::time::Duration;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-F16",
    title: "A bulk transfer beside the crowd",
    paper: "Figure 16 and §7.5: goodput 337 kb/s before, 10 in the crowd, 120 with NEWS; the fastest tenth \
            from 90.2 to 86.4 kb/s with NEWS",
    run,
};

const MODES: [Mode; 4] = [Mode::None, Mode::Paper, Mode::Scoreboard, Mode::Repaired];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let runs = Runs::new(laboratory, &MODES, add_transfer)?;
    let goodput = |stretch| {
        let within = runs.within(stretch);
        move |outcome: &NewsOutcome| Some(outcome.per_second(within.clone(), |bin| bin.bulk_bytes) * 0.008)
    };
    let (before, during) = (goodput(Stretch::Quiet), goodput(Stretch::Crowd));
    let (quiet_fastest, fastest) = (runs.fastest_kbps(Stretch::Quiet), runs.fastest_kbps(Stretch::Crowd));
    let within = |mode: &str, part| Rule::Within { mode: mode.to_owned(), part };
    let none = [Mode::None];
    let rows = vec![
        runs.row("transfer before, kb/s", Some(337.0), within("none", 0.1), &none, &before),
        runs.row("transfer in the crowd, kb/s", Some(10.0), within("none", 0.5), &none, &during),
        runs.row(
            "transfer in the crowd with NEWS, kb/s",
            Some(120.0),
            within(AS_RUN, 0.25),
            &NEWS_MODES,
            &during,
        ),
        runs.row("fastest tenth before, kb/s", Some(90.2), within("none", 0.1), &none, &quiet_fastest),
        runs.row("fastest tenth with NEWS, kb/s", Some(86.4), within(AS_RUN, 0.1), &NEWS_MODES, &fastest),
    ];
    let crowd = runs.seeds(Mode::None, &during);
    let over_none = |mode| runs.seeds(mode, &during).over(&crowd);
    let shapes = vec![
        Shape::new(
            "the crowd takes nine tenths of the transfer",
            [crowd.over(&runs.seeds(Mode::None, &before)).at_most(0.1).named("what is left of it")],
        ),
        Shape::new("NEWS gives it back fivefold", [over_none(Mode::Scoreboard).at_least(5.0)]),
        Shape::new(
            "NEWS gives it back twelvefold (to a quarter)",
            [over_none(Mode::Scoreboard).stated(12.0)],
        ),
        Shape::new(
            "with NEWS the fastest tenth keeps nine tenths of its rate before",
            [runs
                .seeds(Mode::Scoreboard, &fastest)
                .over(&runs.seeds(Mode::None, &quiet_fastest))
                .at_least(0.9)],
        ),
        Shape::new("repaired gives it back threefold", [over_none(Mode::Repaired).at_least(3.0)]),
    ];
    let mut notes = notes(laboratory.options());
    notes.push(
        "The transfer's window (20 segments of 1,000 bytes) and its delay are chosen to give about 337 kb/s \
         before the crowd."
            .to_owned(),
    );
    let lines = MODES.map(|mode| {
        let points = runs.per_minute(mode, |bin| bin.bulk_bytes).into_iter();
        (mode.name(), points.map(|(at, bytes)| (at, bytes.map(|bytes| bytes * 0.008))).collect())
    });
    let plot = Plot {
        title: "Goodput of the bulk transfer",
        x_label: "seconds",
        y_label: "kb/s",
        lines: lines.to_vec(),
        onset: Some(runs.onset_s() as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}

/// ns-2's usual window and segment, and the round trip at which they give the paper's goodput.
fn add_transfer(scenario: &mut Scenario) {
    let tcp = TcpSettings { segment_bytes: 1_000, window_receiver: 20, ..TcpSettings::of_2003() };
    scenario.bulk =
        Some(BulkTransfer { tcp, access_bits_per_s: 10_000_000, access_delay: Duration::from_millis(147) });
}
