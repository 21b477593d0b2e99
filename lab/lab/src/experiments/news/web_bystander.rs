//! NEWS-T3: how long people wait who ask another server behind the same bottleneck.

use super::plant::{AS_RUN, Mode, NEWS_MODES};
use super::runs::Stretch;
use super::testbed::{BYSTANDERS_BEFORE, BYSTANDERS_DURING, INTERVAL_S, notes};
use super::testbed_runs::{TestbedRuns, counts_of};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_sim::request::RunOutcome;
use std::ops::Range;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-T3",
    title: "Web bystanders of a crowd",
    paper: "Table III and §8.6: end-to-end latency, mean and median, 0.22 and 0.18 s before the crowd, 24.44 and \
            9.53 s in it, 7.03 and 3.15 s with NEWS, 0.42 and 0.32 s with NEWS that finds the hot-spot; NEWS drops \
            22 % of the connections, with the hot-spot none of the bystanders'",
    run,
};

const MODES: [Mode; 4] = [Mode::None, Mode::Paper, Mode::Scoreboard, Mode::Repaired];
const NONE: [Mode; 1] = [Mode::None];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let seeds = laboratory.options().seeds;
    let everybody = TestbedRuns::on_testbed(laboratory, &MODES, seeds, |testbed| testbed.bystanders = true)?;
    let hot_spot = TestbedRuns::on_testbed(laboratory, &NEWS_MODES, seeds, |testbed| {
        (testbed.bystanders, testbed.hot_spots) = (true, true);
    })?;
    let (before, during) = (median_s(BYSTANDERS_BEFORE), median_s(BYSTANDERS_DURING));
    let quiet = everybody.seeds(Mode::None, before);
    let crowd = everybody.seeds(Mode::None, during);
    let news = everybody.seeds(Mode::Scoreboard, during);
    let Range { start: onset_s, end: end_s } = hot_spot.within(Stretch::Crowd);
    let found_s = (onset_s + 2 * INTERVAL_S).min(end_s)..end_s;
    let mut shapes = vec![
        Shape::new("the crowd makes the median tenfold and more", [crowd.over(&quiet).at_least(10.0)]),
        Shape::new("NEWS (scoreboard) halves it at least", [news.over(&crowd).at_most(0.5)]),
    ];
    for mode in [Mode::Scoreboard, Mode::Repaired] {
        let name = mode.name();
        let median = hot_spot.seeds(mode, during);
        let answered = "at most one bystander of 1,000 stays without an answer";
        shapes.push(Shape::new(
            format!("{name} with the hot-spot: a median of at most three times that before"),
            [median.over(&quiet).at_most(3.0)],
        ));
        shapes.push(Shape::new(
            format!("{name} with the hot-spot, once found: {answered}"),
            [hot_spot.seeds(mode, unanswered_percent(found_s.clone())).at_most(0.1).named("%")],
        ));
    }
    let mut notes = notes(laboratory.options(), seeds);
    notes.push(
        "Bystanders (10/s, from one machine 25 ms away, chosen by the latency before the crowd) wait for at most 60 s \
         like everybody; a latency is from the first SYN to the whole page, of those who got it. In the crowd means all \
         its 1,000 s, those before NEWS finds it included; once found, from two intervals after the onset on. SYNs that \
         are dropped are sent again after 3, 6, 12 and 24 s: that is where NEWS's latencies come from."
            .to_owned(),
    );
    notes.push(
        "By the paper's own 459 SYNs and 56 admitted a second (§8.2) every eighth try gets in. Our bystanders compete with \
         the crowd's repeated SYNs for the same tokens, so that is their chance too; the paper's median with NEWS, about one \
         repeated SYN, and its 22 % dropped need a far better one."
            .to_owned(),
    );
    plot(&everybody, &hot_spot).finding(rows(&everybody, &hot_spot), shapes, Claim::Shape, notes)
}

fn rows(everybody: &TestbedRuns, hot_spot: &TestbedRuns) -> Vec<Row> {
    let judged = |mode: &str, part| Rule::Within { mode: mode.to_owned(), part };
    let mut rows = Vec::new();
    for (what, runs, class, modes, rule, [mean, median]) in [
        ("before", everybody, BYSTANDERS_BEFORE, &NONE[..], judged("none", 0.1), [0.22, 0.18]),
        ("in the crowd", everybody, BYSTANDERS_DURING, &NONE[..], judged("none", 0.5), [24.44, 9.53]),
        ("with NEWS", everybody, BYSTANDERS_DURING, &NEWS_MODES[..], judged(AS_RUN, 0.5), [7.03, 3.15]),
        (
            "with the hot-spot",
            hot_spot,
            BYSTANDERS_DURING,
            &NEWS_MODES[..],
            judged(AS_RUN, 0.5),
            [0.42, 0.32],
        ),
    ] {
        rows.push(runs.row(format!("{what}: mean, s"), Some(mean), rule.clone(), modes, mean_s(class)));
        rows.push(runs.row(format!("{what}: median, s"), Some(median), rule, modes, median_s(class)));
    }
    for (what, runs, modes) in [
        ("in the crowd", everybody, &NONE[..]),
        ("with NEWS", everybody, &NEWS_MODES[..]),
        ("with the hot-spot", hot_spot, &NEWS_MODES[..]),
    ] {
        let what = format!("{what}: bystanders without an answer, %");
        let unanswered = unanswered_percent(runs.within(Stretch::Crowd));
        rows.push(runs.row(what, None, Rule::Reported, modes, unanswered));
    }
    rows
}

fn plot(everybody: &TestbedRuns, hot_spot: &TestbedRuns) -> Plot {
    let bystanders = [BYSTANDERS_BEFORE, BYSTANDERS_DURING];
    let mut lines = vec![("none".to_owned(), everybody.latency_over_time(Mode::None, &bystanders))];
    for mode in [Mode::Scoreboard, Mode::Repaired] {
        let name = mode.name();
        lines.push((name.clone(), everybody.latency_over_time(mode, &bystanders)));
        lines.push((format!("{name}, hot-spot"), hot_spot.latency_over_time(mode, &bystanders)));
    }
    Plot {
        title: "Mean latency of the bystanders",
        x_label: "seconds",
        y_label: "latency, s",
        lines,
        onset: Some(everybody.onset_s() as f64),
    }
}

fn mean_s(class: usize) -> impl Fn(&RunOutcome) -> Option<f64> {
    move |outcome| outcome.classes[class].totals.mean_latency_s()
}

fn median_s(class: usize) -> impl Fn(&RunOutcome) -> Option<f64> + Copy {
    move |outcome| outcome.classes[class].latency_us.quantile(0.5).map(|micros| micros as f64 / 1e6)
}

/// Of those who came within a stretch, in seconds from the start.
fn unanswered_percent(within_s: Range<u64>) -> impl Fn(&RunOutcome) -> Option<f64> {
    move |outcome| {
        let counts = counts_of(outcome, BYSTANDERS_DURING, &within_s);
        Some((1.0 - counts.completed as f64 / counts.unique_offered as f64) * 100.0)
    }
}
