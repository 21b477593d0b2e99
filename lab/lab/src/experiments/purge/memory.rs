//! PURGE-MEM: what counting flows takes.

use super::link::{LINK_BITS_PER_S, rem};
use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape, Spread};
use flashweir_aqm::{Arrival, MinSketch, Purge, PurgeSettings};
use flashweir_core::{Instant, Rng};
use std::collections::BTreeMap;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "PURGE-MEM",
    title: "Memory of the count by the number of flows",
    paper: "§4.2: 12 KB with k = 3 and m = 1024, whatever the number of flows",
    run,
};

const FLOWS: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
const MODE: &str = "repaired";

/// KB of the sketch and of all that repaired Purge keeps, after a number of distinct flows.
fn after(flows: u32, seed: u64) -> [f64; 2] {
    let mut rng = Rng::new(seed);
    let mut sketch = MinSketch::new();
    let mut purge = Purge::new(&PurgeSettings::over(rem()), LINK_BITS_PER_S);
    for n in 0..u64::from(flows) {
        let flow = rng.next_u64();
        sketch.insert(flow);
        let packet = Arrival { flow, bytes: 1_000, is_markable: true };
        purge.arrive(Instant::from_nanos(n * 1_000), 0, packet, &mut rng);
    }
    [sketch.memory_bytes(), purge.memory_bytes()].map(|bytes| bytes as f64 / 1_024.0)
}

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let seed = laboratory.options().seed;
    let kb: Vec<(u32, [f64; 2])> = FLOWS.iter().map(|&flows| (flows, after(flows, seed))).collect();
    let row = |what: String, paper, rule, value| {
        let ours = Spread::of([value]).map(|spread| (MODE.to_owned(), spread));
        Row { what, paper, ours: BTreeMap::from_iter(ours), rule }
    };
    let near = || Rule::Near { mode: MODE.to_owned(), by: 0.0 };
    let rows = kb.iter().flat_map(|&(flows, [sketch, whole])| {
        [
            row(format!("sketch after {flows} flows, KB"), Some(12.0), near(), sketch),
            row(format!("all of Purge after {flows} flows, KB"), None, Rule::Reported, whole),
        ]
    });
    let growth = kb.iter().map(|(_, [sketch, whole])| sketch + whole - kb[0].1[0] - kb[0].1[1]);
    let most = growth.fold(0.0, f64::max);
    let shapes = vec![Shape::new(
        "memory is the same with every number of flows",
        [SeedValues::of([(seed, Some(most))]).at_most(0.0).named("growth, KB")],
    )];
    let line = |name: &str, place: usize| {
        let points = kb.iter().map(|(flows, kb)| (f64::from(*flows).log10(), Some(kb[place])));
        (name.to_owned(), points.collect::<Vec<_>>())
    };
    let plot = Plot {
        title: "Memory by the number of flows",
        x_label: "flows, as a power of ten",
        y_label: "KB",
        lines: vec![line("sketch", 0), line("all of repaired Purge", 1)],
        onset: None,
    };
    let notes = vec![
        "All of repaired Purge: eight sketches of a sliding window and one to merge them in, and the rates of 4096 flows. The paper counts the \
         sketch alone and has 50 flows beside."
            .to_owned(),
        "The paper says that BLACK's memory grows with its matches; as understood here, BLACK keeps two counters and 50 flows.".to_owned(),
    ];
    plot.finding(rows.collect(), shapes, Claim::Values, notes)
}
