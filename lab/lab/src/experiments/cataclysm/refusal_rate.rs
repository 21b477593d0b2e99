//! CAT-F4: how many requests a second batches and a threshold can refuse, measured.

use crate::experiments::finding::Claim;
use crate::experiments::plot::Plot;
use crate::experiments::seed_values::SeedValues;
use crate::experiments::{Experiment, ExperimentError, Finding, Laboratory, Row, Rule, Shape};
use flashweir_admission::sentry::{
    Arrived, BatchTest, ClassPolicy, Common, Costs, Decide, Plan, Policy, Position, Released, SentryGate,
    SentryPlanner, SentryRequest,
};
use flashweir_core::limits::URL_CLASSES;
use flashweir_core::{Duration, Instant, Rng};
use std::hint::black_box;
use std::sync::Arc;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "CAT-F4",
    title: "Requests a second that batches and a threshold can refuse, measured on this machine",
    paper: "Figure 4 and §6.3: all requests are dropped after the test; the sentry's processor is full at 4,000 requests/s with batches \
            and at almost 19,000 with a threshold, more than four times as many",
    run,
};

const BATCH: &str = "batch";
const THRESHOLD: &str = "threshold";
const CLASSES: u64 = 8;
/// Requests drawn beforehand: more than branch prediction learns.
const REQUESTS: usize = 65_536;
/// Requests of a round, which takes milliseconds, and rounds, of which the fastest counts: what the machine
/// needs when nothing else runs on it.
const ROUND: u32 = 5_000;
const ROUNDS: u32 = 200;
const SEEDS_MAX: u32 = 3;

/// The paper's test is of a whole batch and bounds the mean.
const TEST: BatchTest = BatchTest { servers_milli: 3_000, quantile_milli: 1_000, is_whole: true };

/// A gate that refuses every request after its test.
struct Refusing {
    gate: SentryGate<u64>,
    requests: Vec<SentryRequest>,
    now: Instant,
    next: usize,
}

impl Refusing {
    fn new(decide: Decide, seed: u64) -> Self {
        let class = |rank: u64| ClassPolicy { revenue: 100.0 - rank as f64, ..ClassPolicy::default() };
        let policy =
            Policy { classes: (0..CLASSES).map(class).collect(), ..Policy::single(Duration::from_secs(1)) };
        let mut plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
        let is_batch = matches!(decide, Decide::Batch(_));
        for class in &mut plan.classes {
            // A threshold of zero; a batch whose target no request can meet.
            let hold_len = if is_batch { 1_000 } else { 0 };
            (class.limit, class.hold_len, class.admit_share) = (1_000_000, hold_len, 0);
            if is_batch {
                class.target = Duration::from_micros(1);
                class.delay = Duration::from_micros(10);
            }
        }
        let by_url_class_us = (0..URL_CLASSES as u32).map(|url| 200 + url * 37 % 90_000).collect();
        let costs = Arc::new(Costs { by_url_class_us, ..(*plan.costs).clone() });
        let plan = Plan { epoch: 1, decide, limit: 1_000_000, costs, ..plan };
        let mut rng = Rng::new(seed);
        let ask = |_| SentryRequest {
            class: rng.below(CLASSES) as u8,
            url_class: rng.next_u64() as u32,
            client_key: rng.below(500),
            position: Position::Usual,
            is_uncounted: false,
        };
        Self {
            requests: (0..REQUESTS).map(ask).collect(),
            gate: SentryGate::new(Arc::new(Common::new(1)), 0, &policy, &plan),
            now: Instant::from_secs(1),
            next: 0,
        }
    }

    /// A request arrives and is refused, at once or with its batch. Refusals.
    fn arrive(&mut self) -> u32 {
        self.next = (self.next + 1) % REQUESTS;
        self.now += Duration::from_nanos(50);
        let arrived = self.gate.arrive(self.now, self.requests[self.next], 7);
        let mut refused = u32::from(matches!(arrived, Arrived::Shed(..) | Arrived::HeldInsteadOf(..)));
        while let Some(released) = self.gate.next(self.now) {
            refused += u32::from(matches!(released, Released::Shed(..)));
        }
        refused
    }

    /// Of the fastest round.
    fn refusals_per_s(mut self) -> f64 {
        let round = |_| {
            let start = std::time::Instant::now();
            let refused: u32 = (0..ROUND).map(|_| self.arrive()).sum();
            f64::from(black_box(refused)) / start.elapsed().as_secs_f64()
        };
        (0..ROUNDS).map(round).fold(0.0, f64::max)
    }
}

fn run(laboratory: &Laboratory) -> Result<Finding, ExperimentError> {
    let options = laboratory.options();
    let seeds: Vec<u64> =
        (0..u64::from(options.seeds.min(SEEDS_MAX))).map(|place| options.seed + place).collect();
    // One after the other: two at the same time would slow each other down.
    let measure = |decide: Decide| {
        let rate = |&seed: &u64| (seed, Some(Refusing::new(decide, seed).refusals_per_s()));
        SeedValues::of(seeds.iter().map(rate))
    };
    let (batch, threshold) = (measure(Decide::Batch(TEST)), measure(Decide::Threshold));
    let row = |what: &str, paper: f64, rule, columns: &[(&str, &SeedValues)]| Row {
        what: what.to_owned(),
        paper: Some(paper),
        ours: columns
            .iter()
            .filter_map(|(name, values)| Some(((*name).to_owned(), values.spread()?)))
            .collect(),
        rule,
    };
    let times = threshold.over(&batch);
    let rows = vec![
        row("refused in batches/s", 4_000.0, Rule::Reported, &[(BATCH, &batch)]),
        row("refused by a threshold/s", 19_000.0, Rule::Reported, &[(THRESHOLD, &threshold)]),
        row(
            "a threshold over batches",
            4.75,
            Rule::Within { mode: THRESHOLD.to_owned(), part: 0.25 },
            &[(THRESHOLD, &times)],
        ),
    ];
    let shapes = vec![
        Shape::new("a threshold refuses more than batches do", [times.clone().above(1.0)]),
        Shape::new("a threshold refuses more than four times as many", [times.above(4.0)]),
        Shape::new(
            "each refuses what the paper's does at least",
            [
                batch.clone().at_least(4_000.0).named("batches, requests/s"),
                threshold.clone().at_least(19_000.0).named("threshold, requests/s"),
            ],
        ),
    ];
    let bars = [&batch, &threshold].into_iter().zip(0..);
    let points = bars.map(|(values, x)| (f64::from(x), values.spread().map(|spread| spread.mean)));
    let plot = Plot {
        title: "Requests a second that one core can refuse",
        x_label: "0: batch, 1: threshold",
        y_label: "requests/s",
        lines: vec![("ours".to_owned(), points.collect())],
        onset: None,
    };
    let notes = vec![
        format!(
            "Measured, not simulated: another machine and another run have other numbers. What is measured is the decision alone, \
             on one core, the fastest of {ROUNDS} rounds of {ROUND} requests; the paper's processor also received and closed the \
             connection of each request, which takes most of the time and is the same with both."
        ),
        "Eight classes. Batches: a target that no request can meet, a round every 10 µs of the gate's clock, 200 requests of all classes. Threshold: no class is \
         admitted."
            .to_owned(),
        format!(
            "{} seeds, from {}. More: cargo bench -p flashweir-admission --bench decisions.",
            seeds.len(),
            options.seed
        ),
    ];
    plot.finding(rows, shapes, Claim::Shape, notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is measured are refusals. Method: count them; a batch of the last round may still wait.
    #[test]
    fn both_gates_refuse_every_request() {
        let refused = |decide| {
            let mut gate = Refusing::new(decide, 1);
            (0..10_000).map(|_| gate.arrive()).sum::<u32>()
        };
        assert_eq!(refused(Decide::Threshold), 10_000);
        let batches = refused(Decide::Batch(TEST));
        assert!((9_000..=10_000).contains(&batches), "{batches}");
    }
}
