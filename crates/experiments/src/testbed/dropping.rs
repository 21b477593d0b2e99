//! INTEL-F7 and F8 on the testbed: connection requests dropped before the server's stack hears of them.

use super::record::{People, Record};
use super::results::Results;
use super::scene::{Beside, Bottleneck, Protection, Run, Scene, Server};
use super::trial::{Scope, Trial};
use crate::finding::Claim;
use crate::plot::Plot;
use crate::{ExperimentError, Finding, Shape, Subject};
use flashweir_workload::{ArrivalProcess, RateProfile, SelfSimilarity};
use std::time::Duration;

pub(crate) const THROUGHPUT: Trial = Trial {
    subject: Subject {
        id: "INTEL-F7",
        title: "Throughput when connection requests are dropped before the server",
        paper: "Figure 7 and §5.2: at 160 % of the load, dropping while 20 requests wait brings throughput close to the capacity, by 9 %; with \
                self-similar arrivals to 41 of 44/s",
    },
    runs,
    judge: throughput,
};
pub(crate) const RESPONSE_TIMES: Trial = Trial {
    subject: Subject {
        id: "INTEL-F8",
        title: "Response times when connection requests are dropped before the server",
        paper: "Figure 8 and §5.2: response times of the clients that are dropped rise about twentyfold, those of the uncontrolled client fall \
                (by 30 % with self-similar arrivals)",
    },
    runs,
    judge: response_times,
};

/// The paper's 44.2 a second, at 22.6 ms each, are ours at 5 ms: what the load below is a multiple of.
const WORK_MS: f64 = 5.0;
const CAPACITY_PER_S: f64 = 1e3 / WORK_MS;
/// §5.2.
const LOAD: f64 = 1.6;
/// The uncontrolled client's part of the load: 32.6 of the 32.6 + 2 · 19.4 that make the paper's 71.4.
const UNCONTROLLED_PART: f64 = 0.456;
/// §5.2: the drop begins; the paper tells no end, which is taken as half.
const DISCARD: u64 = 20;
const DROPPING: Protection = Protection::Threshold { discard: DISCARD, abate: DISCARD / 2 };
/// Two repeated SYNs, after 1 and 3 s, and a third after 7.
const PATIENCE: Duration = Duration::from_secs(10);
const LENGTH_S: u64 = 40;
/// The queue fills.
const FILLS_S: u64 = 5;
/// H = 0.8 (§3).
const PARETO_SHAPE: f64 = 1.4;
const GAP: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq)]
enum Spread {
    Even,
    SelfSimilar,
}

fn scene(spread: Spread) -> Scene {
    let arrivals = |part: f64| {
        // Holds because the numbers are valid constants, here and below.
        let profile = RateProfile::constant(part * LOAD * CAPACITY_PER_S, Duration::from_secs(LENGTH_S));
        let profile = profile.expect("a valid profile");
        match spread {
            Spread::Even => ArrivalProcess::Constant(profile),
            Spread::SelfSimilar => {
                let similarity = SelfSimilarity::new(PARETO_SHAPE, GAP).expect("a valid shape");
                ArrivalProcess::self_similar(profile, similarity).expect("a rate in range")
            }
        }
    };
    Scene {
        // Never full.
        bottleneck: Bottleneck { bits_per_s: 100_000_000, buffer_bytes: 1_000_000 },
        one_way: Duration::from_millis(1),
        server: Server::Processor { work_ms: WORK_MS },
        arrivals: arrivals(1.0 - UNCONTROLLED_PART),
        quiet_s: 0,
        crowd_s: LENGTH_S,
        patience: PATIENCE,
        good_within: PATIENCE,
        reading_s: LENGTH_S,
        beside: Beside::Preferred { arrivals: arrivals(UNCONTROLLED_PART) },
    }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let scenes = [Spread::Even, Spread::SelfSimilar].map(scene);
    let both = |scene| [Protection::None, DROPPING].map(|protection| (scene, protection));
    scope.runs(scenes.iter().flat_map(both))
}

fn throughput(_: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let [even, bursty] = [Spread::Even, Spread::SelfSimilar].map(scene);
    let both = [Protection::None, DROPPING];
    let rows = vec![
        results.row("answered, part of the capacity", None, (&even, &both), throughput_part),
        results.row("self-similar: answered, part of the capacity", None, (&bursty, &both), throughput_part),
        results.row("dropping over none", Some(1.09), (&even, &both[1..]), |record| {
            Some(throughput_part(record)? / results.mean(&even, &both[0], throughput_part))
        }),
    ];
    let mean = |scene, protection| results.mean(scene, protection, throughput_part);
    let shapes = vec![
        Shape::new(
            "dropping raises throughput by 5 % or more",
            mean(&even, &both[1]) >= 1.05 * mean(&even, &both[0]),
        ),
        Shape::new("with it nine tenths of the capacity are answered", mean(&even, &both[1]) >= 0.9),
        Shape::new(
            "with self-similar arrivals dropping raises throughput less far, or as far, up to the capacity",
            mean(&bursty, &both[1]) > mean(&bursty, &both[0])
                && mean(&bursty, &both[1]) <= mean(&even, &both[1]),
        ),
    ];
    let answered = |second: &super::Second| Some((second.completed + second.beside_completed) as f64);
    let line = |scene, protection: &Protection, name: &str| {
        (format!("{}{name}", protection.name()), results.over_time(scene, protection, answered))
    };
    let plot = Plot {
        title: "Answered requests by the moment they were to begin",
        x_label: "seconds",
        y_label: "requests/s",
        lines: vec![
            line(&even, &both[0], ""),
            line(&even, &both[1], ""),
            line(&bursty, &both[0], ", self-similar"),
            line(&bursty, &both[1], ", self-similar"),
        ],
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Shape, notes(results))
}

fn response_times(_: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let [even, bursty] = [Spread::Even, Spread::SelfSimilar].map(scene);
    let both = [Protection::None, DROPPING];
    let mut rows = Vec::new();
    for (scene, what) in [(&even, ""), (&bursty, "self-similar: ")] {
        for (class, who) in [(CONTROLLED, "controlled"), (UNCONTROLLED, "uncontrolled")] {
            let of = (scene, &both[..]);
            rows.push(results.row(
                format!("{what}{who}: mean of those answered, s"),
                None,
                of,
                mean_s(class),
            ));
            rows.push(results.row(format!("{what}{who}: answered, %"), None, of, answered_percent(class)));
        }
    }
    let mean = |scene, protection, class| results.mean(scene, protection, mean_s(class));
    let falls =
        |scene, to: f64| mean(scene, &both[1], UNCONTROLLED) <= to * mean(scene, &both[0], UNCONTROLLED);
    let shapes = vec![
        Shape::new("response times of uncontrolled clients fall to half or less", falls(&even, 0.5)),
        Shape::new("with self-similar arrivals they fall by 30 % or more", falls(&bursty, 0.7)),
        Shape::new(
            "with dropping, controlled clients wait at least three times as long as uncontrolled ones",
            mean(&even, &both[1], CONTROLLED) >= 3.0 * mean(&even, &both[1], UNCONTROLLED),
        ),
    ];
    let line = |protection: &Protection, who: &str, value: fn(&super::Second) -> Option<f64>| {
        (format!("{}: {who}", protection.name()), results.over_time(&even, protection, value))
    };
    let lines = both.iter().flat_map(|protection| {
        [
            line(protection, "controlled", |second| second.latency_s),
            line(protection, "uncontrolled", |second| second.beside_latency_s),
        ]
    });
    let plot = Plot {
        title: "Median response time",
        x_label: "seconds",
        y_label: "seconds",
        lines: lines.collect(),
        onset: None,
    };
    plot.finding(rows, shapes, Claim::Shape, notes(results))
}

const CONTROLLED: &str = "crowd";
const UNCONTROLLED: &str = "beside, once found";

fn throughput_part(record: &Record) -> Option<f64> {
    let answered = record.per_second(FILLS_S..LENGTH_S, |it| it.completed + it.beside_completed)?;
    Some(answered / CAPACITY_PER_S)
}

fn mean_s(class: &'static str) -> impl Fn(&Record) -> Option<f64> {
    move |record| record.people.get(class)?.mean_s
}

fn answered_percent(class: &'static str) -> impl Fn(&Record) -> Option<f64> {
    move |record| {
        let People { unique_offered, completed, .. } = *record.people.get(class)?;
        (unique_offered > 0).then(|| completed as f64 / unique_offered as f64 * 100.0)
    }
}

fn notes(results: &Results) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Scale: a request takes {WORK_MS} ms of the processor instead of 22.6, so {CAPACITY_PER_S:.0} a second are the paper's 44.2; the \
             load is {LOAD} times that. Times are not scaled; a run takes {LENGTH_S} s instead of five minutes."
        ),
        format!(
            "The server is `flashweir origin` with one worker, which queues without bound and works for clients that have left; the paper's \
             answered \"server too busy\" beyond some 260, at a cost. The gate is a program in the kernel before the server's interface, and \
             looks at the server's open connections ten times a second; the paper's network card did so once a second. It drops everything of \
             the controlled clients from {DISCARD} open connections on, to {} and less; the paper's second case, half of one client's, is left \
             out. Clients give up after {} s.",
            DISCARD / 2,
            PATIENCE.as_secs()
        ),
    ];
    for spread in [Spread::Even, Spread::SelfSimilar] {
        notes.extend(results.doubts(&scene(spread)));
    }
    notes
}
