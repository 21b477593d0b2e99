//! PURGE-F5: the time that a count of flows takes, measured.

use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_aqm::MinSketch;
use flashweir_core::Rng;
use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "PURGE-F5",
    title: "Time to count flows, measured on this machine",
    paper: "Figure 5 and §4.2: on a processor of 2.9 GHz Purge's time is linear, about 0.6 s for the 1.25 million packets of a second at \
            10 Gb/s; BLACK's is as short for few packets, and grows faster",
    run,
};

/// Packets to count, ascending; the last are those of a second at 10 Gb/s, 1,000 B each.
const PACKETS: [usize; 4] = [125_000, 250_000, 500_000, 1_250_000];
/// Flows: the largest number in the paper's figure.
const FLOWS: u64 = 2_000;
/// Packets that wait, which BLACK samples from.
const QUEUE_PACKETS: usize = 250;
/// Packets of a piece, which takes about a millisecond. The least time of several rounds for a piece is what
/// the machine needs when nothing else runs on it; the pieces are summed.
const PIECE: usize = 25_000;
const ROUNDS: u32 = 10;
const SEEDS_MAX: u32 = 3;
const PURGE: &str = "Purge";
const BLACK: &str = "BLACK-like";

/// Counts flows packet by packet.
trait Counter {
    fn take(&mut self, flow: u64);
    fn count(&self) -> f64;
}

impl Counter for MinSketch {
    fn take(&mut self, flow: u64) {
        self.insert(flow);
    }

    fn count(&self) -> f64 {
        self.distinct()
    }
}

/// Samples over matches, each packet beside one that waits.
struct Matches {
    rng: Rng,
    queue: VecDeque<u64>,
    samples: u32,
    matches: u32,
}

impl Matches {
    fn new() -> Self {
        let queue = VecDeque::with_capacity(QUEUE_PACKETS + 1);
        Self { rng: Rng::new(1), queue, samples: 0, matches: 0 }
    }
}

impl Counter for Matches {
    fn take(&mut self, flow: u64) {
        if let Some(&sampled) = self.queue.get(self.rng.below(self.queue.len() as u64) as usize) {
            self.samples += 1;
            self.matches += u32::from(sampled == flow);
        }
        self.queue.push_back(flow);
        if self.queue.len() > QUEUE_PACKETS {
            self.queue.pop_front();
        }
    }

    fn count(&self) -> f64 {
        f64::from(self.samples) / f64::from(self.matches.max(1))
    }
}

/// Seconds for all packets and the count at their end: the sum of the pieces' least times.
fn seconds<C: Counter>(counter: fn() -> C, packets: &[u64]) -> f64 {
    let mut least = vec![f64::INFINITY; packets.len().div_ceil(PIECE)];
    for _ in 0..ROUNDS {
        let mut counter = counter();
        for (piece, least) in packets.chunks(PIECE).zip(&mut least) {
            let start = Instant::now();
            piece.iter().for_each(|&flow| counter.take(black_box(flow)));
            *least = start.elapsed().as_secs_f64().min(*least);
        }
        black_box(counter.count());
    }
    least.into_iter().sum()
}

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let options = laboratory.options();
    let seeds: Vec<u64> =
        (0..u64::from(options.seeds.min(SEEDS_MAX))).map(|place| options.seed + place).collect();
    // One after the other: two at the same time would slow each other down.
    let packets = |seed: u64, count: usize| {
        let mut rng = Rng::new(seed);
        let flows: Vec<u64> = (0..FLOWS).map(|_| rng.next_u64()).collect();
        (0..count).map(|_| flows[rng.below(FLOWS) as usize]).collect::<Vec<u64>>()
    };
    let measure = |seconds: fn(&[u64]) -> f64| {
        PACKETS.map(|count| {
            SeedValues::of(seeds.iter().map(|&seed| (seed, Some(seconds(&packets(seed, count))))))
        })
    };
    let measured = [
        (PURGE, measure(|packets| seconds(MinSketch::new, packets))),
        (BLACK, measure(|packets| seconds(Matches::new, packets))),
    ];
    let [(_, purge), (_, black)] = &measured;
    let row = |what: String, paper, rule, place: usize, change: fn(f64) -> f64| {
        let ours = measured
            .iter()
            .filter_map(|(name, values)| Some(((*name).to_owned(), values[place].map(change).spread()?)));
        Row { what, paper, ours: ours.collect(), rule }
    };
    let last = PACKETS.len() - 1;
    let mut rows: Vec<Row> = (0..PACKETS.len())
        .map(|place| row(format!("{} packets, ms", PACKETS[place]), None, Rule::Reported, place, |s| s * 1e3))
        .collect();
    rows.push(row("1.25 million packets, s".to_owned(), Some(0.6), Rule::Reported, last, |s| s));
    rows.push(row("a packet of them, ns".to_owned(), Some(480.0), Rule::Reported, last, |s| {
        s * 1e9 / 1.25e6
    }));
    let times = |values: &[SeedValues; PACKETS.len()]| values[last].over(&values[0]);
    let shapes = vec![
        Shape::new(
            "Purge's time is linear: ten times the packets take ten times as long (to a quarter)",
            [times(purge).stated(10.0)],
        ),
        Shape::new(
            "Purge counts the packets of a second at 10 Gb/s in less than a second",
            [purge[last].clone().below(1.0).named("s")],
        ),
        Shape::new(
            "BLACK's time grows faster than Purge's",
            [times(black)
                .over(&times(purge))
                .above(1.25)
                .named("its growth over Purge's (by a quarter at least)")],
        ),
    ];
    let line = |(name, values): &(&str, [SeedValues; PACKETS.len()])| {
        let points = PACKETS
            .iter()
            .zip(values)
            .map(|(&packets, value)| (packets as f64, value.spread().map(|spread| spread.mean * 1e3)));
        ((*name).to_owned(), points.collect())
    };
    let plot = Plot {
        title: "Time to count flows",
        x_label: "packets",
        y_label: "ms",
        lines: measured.iter().map(line).collect(),
        onset: None,
    };
    let notes = vec![
        "Measured, not simulated: another machine and another run have other numbers, so no value is judged. One core; for each 25,000 packets the \
         fastest of ten rounds, summed; the packets are those of 2,000 flows, whose hashes are there already."
            .to_owned(),
        "BLACK's own text could not be had: BLACK-like compares each packet with one of 250 that wait, which takes the same time for each, \
         so the paper's nonlinear growth is not in it."
            .to_owned(),
        format!("{} seeds, from {}. More: cargo bench -p flashweir-aqm --bench packets.", seeds.len(), options.seed),
    ];
    plot.finding(rows, shapes, Claim::Shape, notes)
}
