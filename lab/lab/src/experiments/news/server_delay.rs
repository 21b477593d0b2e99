//! NEWS-7.6.2: a server that takes time.

use super::plant::{Mode, notes};
use super::runs::{Runs, Stretch};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Rule, Shape};
use flashweir_sim::news::{NewsOutcome, Server};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "NEWS-7.6.2",
    title: "A server of 1,000 kB/s, first come, first served",
    paper: "§7.6.2: with an endless buffer NEWS does as before; with room for 1,000 requests the server drops \
            more than half",
    run,
};

const MODES: [Mode; 3] = [Mode::None, Mode::Scoreboard, Mode::Repaired];
const BYTES_PER_S: u64 = 1_000_000;
const ROOM: usize = 1_000;

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let with = |requests_most| {
        Runs::new(laboratory, &MODES, move |scenario| {
            scenario.server = Server::FirstComeFirstServed { bytes_per_s: BYTES_PER_S, requests_most };
        })
    };
    let immediate = Runs::new(laboratory, &MODES, |_| ())?;
    let (endless, bounded) = (with(None)?, with(Some(ROOM))?);
    let (admitted, fastest) = (immediate.admitted(Stretch::Crowd), immediate.fastest_kbps(Stretch::Crowd));
    let dropped = |outcome: &NewsOutcome| {
        let people = outcome.people;
        Some(people.dropped_by_server as f64 / outcome.gate.admitted.max(1) as f64 * 100.0)
    };
    let mut rows = Vec::new();
    for (what, runs) in
        [("immediate", &immediate), ("endless buffer", &endless), ("1,000 requests", &bounded)]
    {
        rows.push(runs.row(format!("{what}: admitted/s"), None, Rule::Reported, &MODES, &admitted));
        rows.push(runs.row(format!("{what}: fastest kb/s"), None, Rule::Reported, &MODES, &fastest));
    }
    rows.push(bounded.row("1,000 requests: dropped by the server, %", None, Rule::Reported, &MODES, dropped));
    let alike = |mode, value: &dyn Fn(&NewsOutcome) -> Option<f64>| {
        endless.seeds(mode, value).over(&immediate.seeds(mode, value)).between(0.85, 1.15)
    };
    let unchanged = |mode| [alike(mode, &admitted).named("admitted"), alike(mode, &fastest).named("fastest")];
    let shapes = vec![
        Shape::new("scoreboard: with an endless buffer within 15 % of before", unchanged(Mode::Scoreboard)),
        Shape::new("repaired: with an endless buffer within 15 % of before", unchanged(Mode::Repaired)),
        Shape::new(
            "with room for 1,000 requests the server drops more than half",
            [bounded.seeds(Mode::None, dropped).above(50.0).named("%")],
        ),
    ];
    let mut notes = notes(laboratory.options());
    notes.push(
        "With these pages 1,000 kB/s is about the crowd's mean rate, so how many requests find no room \
         depends on the page sizes, which the paper does not give. The paper's server that drops without NEWS \
         is compared with `none`."
            .to_owned(),
    );
    let lines = [("immediate", &immediate), ("endless buffer", &endless), ("1,000 requests", &bounded)]
        .map(|(what, runs)| (what.to_owned(), runs.per_minute(Mode::None, |bin| bin.completed)));
    let plot = Plot {
        title: "Completed pages without control, by server",
        x_label: "seconds",
        y_label: "completed/s",
        lines: lines.to_vec(),
        onset: Some(immediate.onset_s() as f64),
    };
    plot.finding(rows, shapes, Claim::Shape, notes)
}
