//! INTEL-LOSS: feedback messages that get lost.

use super::control::{Cases, Control, Controlled, Shown, notes};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Shape};
use flashweir_sim::request::senders::Transport;
use std::time::Duration;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "INTEL-LOSS",
    title: "Feedback that gets lost: messages for on and off against soft state",
    paper: "§5.3 names it as a weakness of explicit messages: one that is lost results in too much control; no figure",
    run,
};

const EDGES: &str = "on and off";
const EDGES_LOST: &str = "on and off, 40 % lost";
const SOFT: &str = "soft state";
const SOFT_LOST: &str = "soft state, 40 % lost";
const NAMES: [&str; 4] = [EDGES, EDGES_LOST, SOFT, SOFT_LOST];

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let with = |transport, lost_share| {
        let control = Control::Throttling { onset: 150, gap_ms: 150 };
        Controlled { transport, lost_share, ..Controlled::moderate(control) }
    };
    let soft = Transport::SoftState { refresh: Duration::from_millis(500) };
    let cases = Cases::new(
        laboratory,
        &[
            (EDGES, with(Transport::Edges, 0.0)),
            (EDGES_LOST, with(Transport::Edges, 0.4)),
            (SOFT, with(soft, 0.0)),
            (SOFT_LOST, with(soft, 0.4)),
        ],
    )?;
    let ok = |shown: &Shown| shown.ok_rps;
    let rows = vec![
        cases.row("OK/s", None, ok),
        cases.row("refused/s", None, |shown| shown.refused_rps),
        cases.row("response time, s", None, |shown| shown.all.response_s),
    ];
    let over = |case, other| cases.seeds(case, ok).over(&cases.seeds(other, ok));
    let shapes = vec![
        Shape::new(
            "with 40 % of the messages for on and off lost less is served: too much control",
            [over(EDGES_LOST, EDGES).below(1.0)],
        ),
        Shape::new(
            "soft state serves as much with 40 % lost as with none, to a fiftieth",
            [over(SOFT_LOST, SOFT).between(0.98, 1.02)],
        ),
        Shape::new(
            "with 40 % lost it serves more than messages for on and off do",
            [over(SOFT_LOST, EDGES_LOST).above(1.0)],
        ),
    ];
    let mut notes = notes(laboratory);
    notes.push(
        "160 %, two controlled clients, onset 150, gap 150 ms. Soft state: the message of `docs/feedback.md` each 0.5 s with a time to live of \
         2 s; the queue length is then read as often."
            .to_owned(),
    );
    let lines = vec![cases.bars("ours", &NAMES, ok)];
    let x_label = "0, 1: on and off, without and with loss; 2, 3: soft state";
    Plot { title: "Throughput when feedback gets lost", x_label, y_label: "OK/s", lines, onset: None }
        .finding(rows, shapes, Claim::Shape, notes)
}
