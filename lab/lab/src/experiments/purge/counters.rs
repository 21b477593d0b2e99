//! Flows that come and go at a queue above its target, and what each way of counting makes of them.

use crate::experiments::ExperimentError;
use crate::experiments::laboratory::Simulation;
use flashweir_aqm::{FlowHasher, FlowIdentity, MinSketch};
use flashweir_core::Rng;
use std::collections::{BTreeMap, VecDeque};

/// One run of the paper's Fig. 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flows {
    pub(super) flows: u32,
    pub(super) seed: u64,
}

/// Seconds of a run, and when flows begin to differ.
pub(super) const LENGTH_S: usize = 60;
pub(super) const PHASE_TWO_S: usize = 20;
/// Packets of 1000 B a second at the paper's 25 kb/s, on average in both phases.
const MEAN_PACKETS_PER_S: f64 = 3.125;
/// In the second phase flows are on for this long on average, and off for this long.
const ON_S: f64 = 1.0;
const OFF_S: f64 = 3.0;
/// Packets that wait: sampled from as BLACK samples.
const QUEUE_PACKETS: usize = 250;

/// Flows of one second, and their estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Second {
    /// Flows that sent.
    pub(super) flows: f64,
    /// Samples over matches.
    pub(super) black: f64,
    /// MINCOUNT as published.
    pub(super) published: f64,
    /// The same sketch by maximum likelihood.
    pub(super) repaired: f64,
}

impl Simulation for Flows {
    type Outcome = Vec<Second>;

    fn run(&self) -> Result<Vec<Second>, ExperimentError> {
        let mut rng = Rng::new(self.seed);
        let hasher = FlowHasher::new(rng.next_u64(), rng.next_u64(), FlowIdentity::FiveTuple);
        let mut arrivals = self.arrivals(&mut rng).into_iter().peekable();
        let mut queue: VecDeque<u32> = VecDeque::with_capacity(QUEUE_PACKETS + 1);
        let seconds = (0..LENGTH_S).map(|second| {
            let end_ns = (second as u64 + 1) * 1_000_000_000;
            let (mut sketch, mut seen) = (MinSketch::new(), std::collections::BTreeSet::new());
            let [mut samples, mut matches] = [0_u32; 2];
            while let Some((_, flow)) = arrivals.next_if(|((at_ns, _), _)| *at_ns < end_ns) {
                sketch.insert(hasher.hash_number(u64::from(flow)));
                seen.insert(flow);
                if let Some(&sampled) = queue.get(rng.below(queue.len() as u64) as usize) {
                    samples += 1;
                    matches += u32::from(sampled == flow);
                }
                queue.push_back(flow);
                if queue.len() > QUEUE_PACKETS {
                    queue.pop_front();
                }
            }
            Second {
                flows: seen.len() as f64,
                black: f64::from(samples) / f64::from(matches.max(1)),
                published: sketch.distinct_as_published(),
                repaired: sketch.distinct(),
            }
        });
        Ok(seconds.collect())
    }
}

impl Flows {
    /// The flow of each arrival, by time in nanoseconds, in order; the second part of the key separates
    /// arrivals of one moment.
    fn arrivals(&self, rng: &mut Rng) -> BTreeMap<(u64, u32), u32> {
        let mut arrivals = BTreeMap::new();
        let mut add = |at_s: f64, flow| arrivals.insert(((at_s * 1e9) as u64, flow), flow);
        for flow in 0..self.flows {
            let mut at_s = rng.exponential(1.0 / MEAN_PACKETS_PER_S);
            while at_s < PHASE_TWO_S as f64 {
                add(at_s, flow);
                at_s += rng.exponential(1.0 / MEAN_PACKETS_PER_S);
            }
            let rate_when_on = rng.exponential(MEAN_PACKETS_PER_S) * (ON_S + OFF_S) / ON_S;
            let (mut at_s, mut is_on) = (PHASE_TWO_S as f64, rng.unit_f64() < ON_S / (ON_S + OFF_S));
            while at_s < LENGTH_S as f64 {
                let until_s = at_s + rng.exponential(if is_on { ON_S } else { OFF_S });
                if is_on {
                    let mut next_s = at_s + rng.exponential(1.0 / rate_when_on);
                    while next_s < until_s.min(LENGTH_S as f64) {
                        add(next_s, flow);
                        next_s += rng.exponential(1.0 / rate_when_on);
                    }
                }
                (at_s, is_on) = (until_s, !is_on);
            }
        }
        arrivals
    }
}

/// The root mean square of the relative errors in these seconds, percent.
pub(super) fn rmse_percent(seconds: &[Second], estimate: fn(&Second) -> f64) -> f64 {
    let errors = seconds.iter().filter(|second| second.flows > 0.0);
    let squares: Vec<f64> = errors.map(|second| (estimate(second) / second.flows - 1.0).powi(2)).collect();
    100.0 * (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}
