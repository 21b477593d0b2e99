//! INTEL-F9, F10, 5.3SS and ABS: clients that are asked for more time between requests.

use super::control::{CAPACITY_RPS, Cases, Control, Controlled, Shown, Value, notes};
use super::runs::{SELF_SIMILAR, SUBSTANTIALLY_LESS};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Shape};

pub(crate) const THROUGHPUT: Experiment = Experiment {
    id: "INTEL-F9",
    title: "Throughput when clients are throttled, at 225 %, by gap and onset",
    paper: "Figure 9 and §5.3: about 33/s without control; significant gains up to a gap of 150 ms, minimal ones after; not much \
            difference between the onsets 150 and 200",
    run: throughput,
};
pub(crate) const RESPONSE_TIMES: Experiment = Experiment {
    id: "INTEL-F10",
    title: "Response times when clients are throttled, at 225 %, by gap and onset",
    paper: "Figure 10 and §5.3: about 9 s without control; significant gains up to a gap of 150 ms, minimal ones after; a lower \
            onset makes responses faster",
    run: response_times,
};
pub(crate) const SELF_SIMILAR_LOAD: Experiment = Experiment {
    id: "INTEL-5.3SS",
    title: "Throttling a self-similar load, at 225 %",
    paper: "§5.3: 43.5/s, very close to the optimum of 44/s; response times fall substantially",
    run: self_similar,
};
pub(crate) const BEST: Experiment = Experiment {
    id: "INTEL-ABS",
    title: "The most that overload control gains, at 225 %",
    paper: "Abstract and §6: throughput up to 40 % higher and response times up to 70 % lower",
    run: best,
};

const NONE: &str = "none";
const THROTTLED: &str = "throttled";
const GAPS_MS: [u64; 3] = [50, 150, 250];
const NAMES: [[&str; 3]; 2] = [
    ["onset 150, gap 50 ms", "onset 150, gap 150 ms", "onset 150, gap 250 ms"],
    ["onset 200, gap 50 ms", "onset 200, gap 150 ms", "onset 200, gap 250 ms"],
];

fn cases(laboratory: &Laboratory) -> Result<Cases, ExperimentError> {
    let mut cases = vec![(NONE, Controlled::heavy(Control::None))];
    for (names, onset) in NAMES.iter().zip([150, 200]) {
        for (&name, gap_ms) in names.iter().zip(GAPS_MS) {
            cases.push((name, Controlled::heavy(Control::Throttling { onset, gap_ms })));
        }
    }
    Cases::new(laboratory, &cases)
}

fn plot(cases: &Cases, title: &'static str, y_label: &'static str, value: Value) -> Plot {
    let none = (0.0, Some(cases.mean(NONE, value)));
    let line = |name: &str, of: &[&str; 3]| {
        let points = of.iter().zip(GAPS_MS).map(|(case, gap)| (gap as f64, Some(cases.mean(case, value))));
        (name.to_owned(), [none].into_iter().chain(points).collect())
    };
    let lines = vec![line("onset 150", &NAMES[0]), line("onset 200", &NAMES[1])];
    Plot { title, x_label: "gap, ms", y_label, lines, onset: None }
}

fn throughput(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let ok = |shown: &Shown| shown.ok_rps;
    let of = |case| cases.seeds(case, ok);
    let rows = vec![cases.row("OK/s (the paper's: without control)", Some(33.0), ok)];
    let step = |names: [&'static str; 3], from: usize| of(names[from + 1]).minus(&of(names[from]));
    let shapes = vec![
        Shape::new(
            "each gap serves more than none does",
            NAMES.concat().into_iter().map(|case| of(case).over(&of(NONE)).above(1.0).named(case)),
        ),
        Shape::new(
            "150 ms serve more than 50 ms",
            NAMES.map(|names| step(names, 0).above(0.0).named(format!("{} beyond, OK/s", names[1]))),
        ),
        Shape::new(
            "from 150 to 250 ms less is gained than from 50 to 150 ms",
            NAMES.map(|names| step(names, 0).minus(&step(names, 1)).above(0.0).named(names[2])),
        ),
        Shape::new(
            "the gain from 150 to 250 ms is minimal: a twentieth at most",
            NAMES.map(|[_, middle, wide]| of(wide).over(&of(middle)).between(0.95, 1.05).named(wide)),
        ),
        Shape::new(
            "without control 33/s are served (to a tenth)",
            [of(NONE).between(0.9 * 33.0, 1.1 * 33.0).named("OK/s")],
        ),
        Shape::new(
            "the onsets differ by less than a tenth",
            (0..3)
                .map(|gap| of(NAMES[0][gap]).over(&of(NAMES[1][gap])).between(0.9, 1.1).named(NAMES[0][gap])),
        ),
    ];
    plot(&cases, "Throughput of throttled clients", "OK/s", ok).finding(
        rows,
        shapes,
        Claim::Shape,
        notes(laboratory),
    )
}

fn response_times(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let response = |shown: &Shown| shown.all.response_s;
    let of = |case| cases.seeds(case, response);
    let rows = vec![cases.row("response time, s (the paper's: without control)", Some(9.0), response)];
    let shapes = vec![
        Shape::new(
            "each gap is faster than none",
            NAMES.concat().into_iter().map(|case| of(case).over(&of(NONE)).below(1.0).named(case)),
        ),
        Shape::new(
            "without control a response takes 9 s (to a tenth)",
            [of(NONE).between(0.9 * 9.0, 1.1 * 9.0).named("s")],
        ),
        Shape::new(
            "250 ms are hardly faster than 150 ms: by a twentieth at most",
            NAMES.map(|[_, middle, wide]| of(wide).over(&of(middle)).between(0.95, 1.05).named(wide)),
        ),
        Shape::new(
            "the lower onset is faster",
            (0..3).map(|gap| of(NAMES[0][gap]).over(&of(NAMES[1][gap])).below(1.0).named(NAMES[0][gap])),
        ),
    ];
    plot(&cases, "Response times of throttled clients", "seconds", response).finding(
        rows,
        shapes,
        Claim::Shape,
        notes(laboratory),
    )
}

fn self_similar(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let self_similar = |control| Controlled { spacing: SELF_SIMILAR, ..Controlled::heavy(control) };
    let throttled = Control::Throttling { onset: 150, gap_ms: 150 };
    let cases = [(NONE, self_similar(Control::None)), (THROTTLED, self_similar(throttled))];
    let cases = Cases::new(laboratory, &cases)?;
    let (ok, response) = (|shown: &Shown| shown.ok_rps, |shown: &Shown| shown.all.response_s);
    let rows = vec![
        cases.row("OK/s (the paper's: throttled)", Some(43.5), ok),
        cases.row("response time, s", None, response),
    ];
    let over = |value: Value| cases.seeds(THROTTLED, value).over(&cases.seeds(NONE, value));
    let shapes = vec![
        Shape::new("throttling serves more", [over(ok).above(1.0)]),
        Shape::new(
            "it serves nine tenths of the capacity at least",
            [cases.seeds(THROTTLED, ok).at_least(0.9 * CAPACITY_RPS)],
        ),
        Shape::new(
            "throttling serves 43.5/s (to a twentieth)",
            [cases.seeds(THROTTLED, ok).between(0.95 * 43.5, 1.05 * 43.5).named("OK/s")],
        ),
        Shape::new(
            "responses are substantially faster (by a quarter at least)",
            [over(response).at_most(SUBSTANTIALLY_LESS)],
        ),
    ];
    let lines = vec![cases.bars("ours", &[NONE, THROTTLED], ok)];
    let x_label = "0: none, 1: throttled";
    Plot {
        title: "Throughput of a throttled self-similar load",
        x_label,
        y_label: "OK/s",
        lines,
        onset: None,
    }
    .finding(rows, shapes, Claim::Shape, notes(laboratory))
}

fn best(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let (ok, response) = (|shown: &Shown| shown.ok_rps, |shown: &Shown| shown.all.response_s);
    let rows = vec![cases.row("OK/s", None, ok), cases.row("response time, s", None, response)];
    let case = NAMES[0][2];
    let over = |value: Value| cases.seeds(case, value).over(&cases.seeds(NONE, value));
    let shapes = vec![
        Shape::new(
            "40 % more is served (to a quarter)",
            [over(ok).gain_percent().stated(40.0).named(format!("{case}, %"))],
        ),
        Shape::new(
            "responses take 70 % less (to a quarter)",
            [over(response).fall_percent().stated(70.0).named(format!("{case}, %"))],
        ),
    ];
    let mut notes = notes(laboratory);
    notes.push("The paper does not say with which settings its best is reached; the widest gap with the lower onset is taken.".to_owned());
    plot(&cases, "Throughput of throttled clients", "OK/s", ok).finding(rows, shapes, Claim::Shape, notes)
}
