//! INTEL-F7 and F8: connection requests dropped before the server's stack hears of them.

use super::control::{CAPACITY_RPS, Cases, Control, Controlled, Shown, Value, notes};
use super::runs::{SELF_SIMILAR, SUBSTANTIALLY_LESS};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Shape};

pub(crate) const THROUGHPUT: Experiment = Experiment {
    id: "INTEL-F7",
    title: "Throughput when connection requests are dropped, at 160 %",
    paper: "Figure 7 and §5.2: dropping while 20 requests wait brings throughput close to the capacity, by 9 %; with self-similar \
            arrivals to 41/s at best, which is less",
    run: throughput,
};
pub(crate) const RESPONSE_TIMES: Experiment = Experiment {
    id: "INTEL-F8",
    title: "Response times when connection requests are dropped, at 160 %",
    paper: "Figure 8 and §5.2: of the controlled clients almost twentyfold, of the uncontrolled one substantially less; with \
            self-similar arrivals substantially longer, and about 30 % less",
    run: response_times,
};

const NONE: &str = "none";
const HALF: &str = "drops half and all";
const ALL: &str = "drops all";
const SS_NONE: &str = "self-similar, none";
const SS_HALF: &str = "self-similar, drops half and all";
const SS_ALL: &str = "self-similar, drops all";

fn cases(laboratory: &Laboratory) -> Result<Cases, ExperimentError> {
    let even = Controlled::moderate;
    let self_similar = |control| Controlled { spacing: SELF_SIMILAR, ..even(control) };
    Cases::new(
        laboratory,
        &[
            (NONE, even(Control::None)),
            (HALF, even(Control::Dropping([0.5, 1.0]))),
            (ALL, even(Control::Dropping([1.0, 1.0]))),
            (SS_NONE, self_similar(Control::None)),
            (SS_HALF, self_similar(Control::Dropping([0.5, 1.0]))),
            (SS_ALL, self_similar(Control::Dropping([1.0, 1.0]))),
        ],
    )
}

/// Three bars, even and self-similar.
fn plot(cases: &Cases, title: &'static str, y_label: &'static str, value: Value) -> Plot {
    let lines = vec![
        cases.bars("even", &[NONE, HALF, ALL], value),
        cases.bars("self-similar", &[SS_NONE, SS_HALF, SS_ALL], value),
    ];
    Plot { title, x_label: "0: none, 1: drops half and all, 2: drops all", y_label, lines, onset: None }
}

fn throughput(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let ok = |shown: &Shown| shown.ok_rps;
    let rows = vec![
        cases.row("OK/s (the paper's: 1.09 times its 39 without)", Some(42.5), ok),
        cases.row("refused/s", None, |shown| shown.refused_rps),
    ];
    let over = |case, none| cases.seeds(case, ok).over(&cases.seeds(none, ok));
    let best = |one, other| cases.seeds(one, ok).larger(&cases.seeds(other, ok));
    let best_self_similar = best(SS_HALF, SS_ALL);
    let best_self_similar_over_even = best_self_similar.over(&best(HALF, ALL));
    let shapes = vec![
        Shape::new(
            "dropping serves more than none does",
            [over(HALF, NONE).above(1.0).named(HALF), over(ALL, NONE).above(1.0).named(ALL)],
        ),
        Shape::new(
            "dropping serves nine tenths of the capacity at least",
            [HALF, ALL].map(|case| cases.seeds(case, ok).at_least(0.9 * CAPACITY_RPS).named(case)),
        ),
        Shape::new(
            "dropping gains 9 % (to a quarter)",
            [HALF, ALL].map(|case| over(case, NONE).gain_percent().stated(9.0).named(case)),
        ),
        Shape::new(
            "self-similar arrivals: dropping serves more than none does, too",
            [
                over(SS_HALF, SS_NONE).above(1.0).named(SS_HALF),
                over(SS_ALL, SS_NONE).above(1.0).named(SS_ALL),
            ],
        ),
        Shape::new(
            "self-similar arrivals: the best is 41/s (to a twentieth)",
            [best_self_similar.between(0.95 * 41.0, 1.05 * 41.0).named("OK/s")],
        ),
        Shape::new(
            "self-similar arrivals: the best is less than with even ones",
            [best_self_similar_over_even.below(1.0)],
        ),
    ];
    let mut notes = notes(laboratory);
    notes.push(
        "A dropped connection costs this server nothing; the paper's card may have cost its host something."
            .to_owned(),
    );
    plot(&cases, "Throughput when connections are dropped", "OK/s", ok).finding(
        rows,
        shapes,
        Claim::Shape,
        notes,
    )
}

fn response_times(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let cases = cases(laboratory)?;
    let (uncontrolled, controlled): (Value, Value) =
        (|shown| shown.uncontrolled.response_s, |shown| shown.controlled.response_s);
    let rows = vec![
        cases.row("uncontrolled client, s", None, uncontrolled),
        cases.row("controlled clients, s (the paper's: almost 20 times as long)", None, controlled),
    ];
    let over = |case, none, value: Value| cases.seeds(case, value).over(&cases.seeds(none, value));
    let even = [(HALF, NONE), (ALL, NONE)];
    let self_similar = [(SS_HALF, SS_NONE), (SS_ALL, SS_NONE)];
    let shapes = vec![
        Shape::new(
            "the controlled clients' response times rise",
            even.map(|(case, none)| over(case, none, controlled).above(1.0).named(case)),
        ),
        Shape::new(
            "the controlled clients' response times rise twentyfold (to a quarter)",
            even.map(|(case, none)| over(case, none, controlled).stated(20.0).named(case)),
        ),
        Shape::new(
            "the uncontrolled client's response times fall substantially (by a quarter at least)",
            even.map(|(case, none)| over(case, none, uncontrolled).at_most(SUBSTANTIALLY_LESS).named(case)),
        ),
        Shape::new(
            "self-similar arrivals: the controlled clients' response times rise, too",
            self_similar.map(|(case, none)| over(case, none, controlled).above(1.0).named(case)),
        ),
        Shape::new(
            "self-similar arrivals: the uncontrolled client's response times fall by 30 % (to a quarter)",
            self_similar
                .map(|(case, none)| over(case, none, uncontrolled).fall_percent().stated(30.0).named(case)),
        ),
    ];
    let mut notes = notes(laboratory);
    notes.push(
        "The rise of the controlled clients' response times depends on how often and how long their \
         systems repeat a SYN, which the paper does not say."
            .to_owned(),
    );
    plot(&cases, "Uncontrolled client, connections of others dropped", "seconds", uncontrolled).finding(
        rows,
        shapes,
        Claim::Shape,
        notes,
    )
}
