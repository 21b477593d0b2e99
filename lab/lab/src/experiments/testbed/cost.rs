//! NEWS-T2 on the testbed: what the router costs, its program by the detection interval, and its programs in
//! the kernel.

use super::interval::{INTERVALS_S, with_interval};
use super::record::{PhaseCost, Record};
use super::results::{InScene, Results};
use super::scale::{self, TIMES};
use super::scene::{NEWS_MODES, Scene, TestbedRun};
use super::scope::Scope;
use super::trial::Trial;
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{ExperimentError, Finding, Shape, Subject};

pub(crate) const TRIAL: Trial = Trial {
    subject: Subject {
        id: "NEWS-T2",
        title: "What the router costs",
        paper: "Table II and §8.5.2: of a 1.5 GHz processor 2–3.5 % before and 5–6 % in the crowd with T = 16 s, 1–2 % and 2–4 % with T = 64 s, \
                about 1 and 2 % with T = 128 s; 3 MB of memory before the crowd and 10 to 12 MB in it",
    },
    runs,
    judge,
};

const MODE: &str = NEWS_MODES[1];
/// Most of a processor that the paper's took with T = 64 s.
const PAPERS_PERCENT: f64 = 4.0;
/// Processor time of the paper's, percent, before the crowd and in it, by [`INTERVALS_S`].
const PAPERS: [Option<[f64; 2]>; INTERVALS_S.len()] =
    [Some([2.75, 5.5]), Some([1.75, 4.25]), Some([1.5, 3.0]), Some([1.0, 2.0]), None];
/// Of the paper's program, MB.
const PAPERS_MEMORY_MB: [f64; 2] = [3.0, 11.0];
const PHASES: [&str; 2] = ["before the crowd", "in the crowd"];

fn runs(scope: &Scope, _: &Results) -> Vec<TestbedRun> {
    Scene::network_limited(scope).runs(scope, INTERVALS_S.map(|interval_s| with_interval(MODE, interval_s)))
}

fn judge(scope: &Scope, results: &Results) -> Result<Finding, ExperimentError> {
    let scene = &Scene::network_limited(scope);
    let ours = results.in_scene(scene);
    let usual = [with_interval(MODE, scale::INTERVAL_S)];
    let mut rows = Vec::new();
    for (interval_s, paper) in INTERVALS_S.into_iter().zip(PAPERS) {
        let at = format!("T = {:.0} s of the paper", interval_s as f64 * TIMES);
        let only = [with_interval(MODE, interval_s)];
        for (phase, when) in PHASES.into_iter().enumerate() {
            let mut row = |what: &str, paper, value: fn(&PhaseCost) -> Option<f64>| {
                rows.push(ours.row(format!("{at}: {what} {when}"), paper, &only, in_phase(phase, value)));
            };
            row("processor, %,", paper.map(|it| it[phase]), |it| Some(it.processor_percent));
            row("a tick, µs,", None, |it| Some(it.tick_ns? / 1e3));
        }
    }
    for (phase, when) in PHASES.into_iter().enumerate() {
        let mut row = |what: &str, paper, value: fn(&PhaseCost) -> Option<f64>| {
            rows.push(ours.row(format!("{what} {when}"), paper, &usual, in_phase(phase, value)));
        };
        row("gate in the kernel, ns for a packet that comes in,", None, |it| it.gate_ns);
        row("observer in the kernel, ns for a packet,", None, |it| it.observer_ns);
        row("memory of the program, MB,", Some(PAPERS_MEMORY_MB[phase]), |it| {
            Some(it.memory_bytes as f64 / 1e6)
        });
    }
    rows.push(ours.row("memory of its maps in the kernel, MB", None, &usual, |record| {
        Some(record.router?.maps_bytes as f64 / 1e6)
    }));
    rows.push(ours.row("of that for each flow there is room for, bytes", None, &usual, |record| {
        Some(record.router?.flow_bytes)
    }));
    let in_the_crowd = in_phase(1, |it| Some(it.processor_percent));
    let shapes = vec![Shape::new(
        "with T = 64 s of the paper the program takes no more of a processor in the crowd than the paper's did",
        [ours.seeds(&usual[0], in_the_crowd).at_most(PAPERS_PERCENT).named("%")],
    )];
    let mut notes = scale::notes();
    notes.extend(COUNTED.map(str::to_owned));
    notes.extend(ours.doubts());
    plot(ours).finding(rows, shapes, Claim::Shape, notes)
}

const COUNTED: [&str; 2] = [
    "Processor, tick and memory of the program are those in user space, with five times the paper's packets and sixteen times its \
     intervals a second; a tick is what the router itself measures (`flashweir_planner_tick_seconds`). The paper's 10 to 12 MB \
     in the crowd grow with its flows; ours has room for all of them from the start, in maps in the kernel.",
    "What the programs in the kernel take for a packet is the kernel's own account of them (BPF_ENABLE_STATS), reading two clocks \
     included, on a machine on which clients, servers and links run as well. `make bench-kernel` measures the same alone.",
];

fn plot(ours: InScene<'_>) -> Plot {
    let line = |phase: usize| {
        let points = INTERVALS_S.map(|interval_s| {
            let percent = in_phase(phase, |it| Some(it.processor_percent));
            let mean = ours.mean(&with_interval(MODE, interval_s), percent);
            (interval_s as f64 * TIMES, Some(mean).filter(|it| it.is_finite()))
        });
        (PHASES[phase].to_owned(), points.to_vec())
    };
    Plot {
        title: "Processor time of the router's program",
        x_label: "T, seconds of the paper",
        y_label: "percent of a processor",
        lines: vec![line(0), line(1)],
        onset: None,
    }
}

fn in_phase(phase: usize, value: fn(&PhaseCost) -> Option<f64>) -> impl Fn(&Record) -> Option<f64> {
    move |record| value(&record.router.as_ref()?.phases[phase])
}
