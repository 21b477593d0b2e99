//! RADAR-F4.8 and F4.10 to F4.12: a step of load on two replicas of which one has every document, by both
//! sets of rules.

use crate::cluster::{Cluster, Settings};
use crate::{Bench, crowd, median};
use flashweir_testkit::number_from_environment;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A figure: the crowd's rate, LW, and the interval of the reports, of which ten seconds of the paper's are
/// two.
struct Figure {
    name: &'static str,
    crowd_rps: u32,
    low_rps: f64,
    interval: Duration,
}

const FIGURES: [Figure; 4] = [
    Figure { name: "F4.8", crowd_rps: 350, low_rps: 200.0, interval: Duration::from_secs(2) },
    Figure { name: "F4.10", crowd_rps: 400, low_rps: 100.0, interval: Duration::from_secs(2) },
    Figure { name: "F4.11", crowd_rps: 500, low_rps: 200.0, interval: Duration::from_secs(2) },
    Figure { name: "F4.12", crowd_rps: 400, low_rps: 100.0, interval: Duration::from_secs(1) },
];
const HIGH_RPS: f64 = 300.0;
const QUIET_RPS: u32 = 80;
const QUIET: Duration = Duration::from_secs(3);
/// Twelve intervals of the longer kind.
const CROWD_S: u64 = 24;
const CROWD_S_MIN: u64 = 12;
/// Between two readings.
const READ_EVERY: Duration = Duration::from_millis(100);
/// The busier replica has this much of the mean.
const BUSIER: f64 = 1.2;
/// A second of 200 requests fluctuates by a fourteenth; a reading is a few milliseconds off.
const BALANCED: f64 = 1.15;

/// Counts at one moment.
#[derive(Clone, Copy)]
struct Reading {
    at_s: f64,
    loads: [f64; 2],
    copies: f64,
}

/// Results of one run.
#[derive(Default)]
struct Outcome {
    found_s: f64,
    balanced_s: f64,
    uneven: f64,
    peak_rps: f64,
    swings: f64,
    copies: f64,
    in_time: f64,
}

pub(crate) fn run(bench: &Bench) {
    let crowd = Duration::from_secs(number_from_environment("SECONDS", CROWD_S).max(CROWD_S_MIN));
    println!(
        "\n## The herd (RADAR-F4.8, F4.10 to F4.12)\n\nTwo replicas of which one has every document, {} documents, HW = {HIGH_RPS}/s; {QUIET_RPS}/s, then a crowd for \
         {} s; intervals are a fifth of the paper's, but for F4.12. Found: first copy after the crowd's coming. Balanced: from then on until each further second \
         is within {:.0} % of the mean. max/mean over an interval and the busiest half second: from two intervals after the first copy on. Bounces: how \
         often the replica with more than {BUSIER} of the mean becomes the other one. Median (worst) of the rounds.\n\n\
         | figure | rules | found, s | balanced, s | max/mean | busiest half second, /s | bounces | copies | in time, % |\n|---|---|---|---|---|---|---|---|---|",
        crowd::DOCUMENTS,
        crowd.as_secs(),
        (BALANCED - 1.0) * 100.0
    );
    for figure in &FIGURES {
        for rules in ["published", "repaired"] {
            let outcomes: Vec<Outcome> = (0..bench.rounds)
                .map(|round| {
                    let outcome = measure(bench, figure, rules, crowd, round);
                    let Outcome { uneven, peak_rps, .. } = outcome;
                    eprintln!("herd, {} {rules}, round {round}: {uneven:.2}, {peak_rps:.0}/s", figure.name);
                    outcome
                })
                .collect();
            let cell = |value: fn(&Outcome) -> f64, worst: fn(f64, f64) -> f64, digits: usize| {
                let values: Vec<f64> = outcomes.iter().map(value).collect();
                let worst = values.iter().copied().reduce(worst).unwrap_or(f64::NAN);
                format!("{:.digits$} ({worst:.digits$})", median(&values))
            };
            println!(
                "| {} ({}/s, LW {:.0}) | {rules} | {} | {} | {} | {} | {} | {} | {} |",
                figure.name,
                figure.crowd_rps,
                figure.low_rps,
                cell(|it| it.found_s, f64::max, 1),
                cell(|it| it.balanced_s, f64::max, 1),
                cell(|it| it.uneven, f64::max, 2),
                cell(|it| it.peak_rps, f64::max, 0),
                cell(|it| it.swings, f64::max, 0),
                cell(|it| it.copies, f64::max, 0),
                cell(|it| it.in_time, f64::min, 1),
            );
        }
    }
}

fn measure(bench: &Bench, figure: &Figure, rules: &'static str, crowd_for: Duration, round: u64) -> Outcome {
    let settings = Settings {
        replicas: 2,
        work_ms: 1.0,
        interval: figure.interval,
        high_rps: HIGH_RPS,
        low_rps: figure.low_rps,
        answer: "proxy",
        rules,
    };
    let cluster = Cluster::start(bench, settings);
    let paths = cluster.paths_at_first(crowd::DOCUMENTS as usize);
    let is_over = AtomicBool::new(false);
    let (readings, result) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&cluster, &is_over));
        let rates = [(QUIET_RPS, QUIET), (figure.crowd_rps, crowd_for)];
        let result = crowd::send(cluster.redirector.address(), &rates, round, Some(&paths));
        is_over.store(true, Ordering::Relaxed);
        (reader.join().expect("the readings"), result)
    });
    // Readings count from their own start, the crowd from the load's.
    let (started, readings) = readings;
    let offset_s = result.started.map_or(0.0, |at| at.saturating_duration_since(started).as_secs_f64());
    let onset_s = offset_s + QUIET.as_secs_f64();
    let end_s = onset_s + crowd_for.as_secs_f64();
    let totals = &result.totals;
    let in_time = 100.0 * totals.goodput as f64 / totals.offered as f64;
    Outcome { in_time, ..judge(&readings, onset_s, end_s, figure.interval.as_secs_f64()) }
}

fn read(cluster: &Cluster, is_over: &AtomicBool) -> (Instant, Vec<Reading>) {
    let started = Instant::now();
    let mut readings = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let copies =
            cluster.redirector.metrics().value("flashweir_replication_copies_total{change=\"created\"}");
        let loads = [0, 1].map(|replica| cluster.replicas[replica].offered());
        readings.push(Reading { at_s: started.elapsed().as_secs_f64(), loads, copies });
        std::thread::park_timeout(READ_EVERY);
    }
    (started, readings)
}

fn judge(readings: &[Reading], onset_s: f64, end_s: f64, interval_s: f64) -> Outcome {
    let base = readings.first().map_or(0.0, |it| it.copies);
    let found_at_s = readings.iter().find(|it| it.at_s >= onset_s && it.copies > base).map(|it| it.at_s);
    let copies = readings.last().map_or(0.0, |it| it.copies) - base;
    let Some(found_at_s) = found_at_s else {
        eprintln!("no copy was made; loads in the crowd: {:.0?}/s", rates(readings, onset_s, end_s));
        return Outcome { found_s: f64::INFINITY, copies, ..Outcome::default() };
    };
    let settled_s = found_at_s + 2.0 * interval_s;
    let max_over_mean = |loads: &[f64; 2]| loads[0].max(loads[1]) * 2.0 / (loads[0] + loads[1]).max(1.0);
    let over = |from_s: f64, length_s: f64, step_s: f64| -> Vec<(f64, [f64; 2])> {
        let count = ((end_s - from_s - length_s) / step_s).floor().max(0.0) as usize + 1;
        let start = |place: usize| from_s + place as f64 * step_s;
        (0..count)
            .filter_map(|it| Some((start(it), rates(readings, start(it), start(it) + length_s)?)))
            .collect()
    };
    let halves = over(settled_s, 0.5, 0.5);
    let mut swings = 0.0;
    let mut last = None;
    for (_, loads) in &halves {
        if max_over_mean(loads) > BUSIER {
            let busier = usize::from(loads[1] > loads[0]);
            swings += f64::from(u8::from(last.is_some_and(|last| last != busier)));
            last = Some(busier);
        }
    }
    let seconds = over(found_at_s, 1.0, READ_EVERY.as_secs_f64());
    let uneven_at = seconds.iter().rfind(|(_, loads)| max_over_mean(loads) > BALANCED).map(|(at_s, _)| *at_s);
    Outcome {
        found_s: found_at_s - onset_s,
        balanced_s: uneven_at.map_or(0.0, |at_s| at_s - found_at_s + READ_EVERY.as_secs_f64()),
        uneven: over(settled_s, interval_s, interval_s)
            .iter()
            .map(|(_, it)| max_over_mean(it))
            .fold(0.0, f64::max),
        peak_rps: halves.iter().map(|(_, loads)| loads[0].max(loads[1])).fold(0.0, f64::max),
        swings,
        copies,
        in_time: 0.0,
    }
}

/// Requests a second at both replicas between two moments, by the readings next to them.
fn rates(readings: &[Reading], from_s: f64, until_s: f64) -> Option<[f64; 2]> {
    let first = readings.iter().rfind(|it| it.at_s <= from_s)?;
    let last = readings.iter().rfind(|it| it.at_s <= until_s)?;
    let length_s = last.at_s - first.at_s;
    (length_s > 0.0).then(|| [0, 1].map(|replica| (last.loads[replica] - first.loads[replica]) / length_s))
}
