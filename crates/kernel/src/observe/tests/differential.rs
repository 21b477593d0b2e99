//! The observer in C against the estimator in Rust: the same packets at the same times must give the same
//! rates.
//!
//! The estimator counts in floating point and nanoseconds, the kernel in integers and ticks of 1,024 ns. A
//! rate of the kernel's is within 0.1 % (and 1 byte per second) of the estimator's, and then known to the
//! bucket it lies in.

use std::collections::{BTreeMap, BTreeSet};

use flashweir_core::measure::{FirstWindow, TimeSlidingWindow};
use flashweir_core::{Duration, Instant, Rng};

use super::*;

/// Maximum relative error of the integers.
const TOLERANCE: f64 = 1e-3;
const FLOOR: Duration = Duration::from_millis(10);
const IDLE_NS: u64 = 64 * SECOND_NS;

/// Expected state of the kernel, in the plainest form.
struct Model {
    reading: Reading,
    flows: BTreeMap<u16, ModelFlow>,
    /// Flows with data in the interval under way.
    active: BTreeSet<u16>,
    /// Rates of the interval's responses whose flow began again meanwhile, and whether they were since the
    /// plan.
    replaced: Vec<(bool, f64)>,
    plan_ns: u64,
    completed: u64,
    unique_offered: u64,
    expired: u64,
}

struct ModelFlow {
    window: TimeSlidingWindow,
    opened: Option<(u64, u32)>,
    front_ns: Option<u64>,
    rate: f64,
    since_plan: bool,
    ended: bool,
}

impl Model {
    fn new(reading: Reading) -> Self {
        Self {
            reading,
            flows: BTreeMap::new(),
            active: BTreeSet::new(),
            replaced: Vec::new(),
            plan_ns: 0,
            completed: 0,
            unique_offered: 0,
            expired: 0,
        }
    }

    fn window(&self, from_ns: u64) -> TimeSlidingWindow {
        let first_window = match self.reading {
            Reading::AsPublished => FirstWindow::AsPublished,
            Reading::Corrected => FirstWindow::Corrected { floor: FLOOR },
        };
        TimeSlidingWindow::new(Instant::from_nanos(from_ns), first_window)
    }

    fn begin(&mut self, number: u16, now_ns: u64, opened: Option<(u64, u32)>) {
        let window = self.window(now_ns);
        let flow = ModelFlow { window, opened, front_ns: None, rate: 0.0, since_plan: false, ended: false };
        let before = self.flows.insert(number, flow);
        if let Some(before) = before.filter(|_| self.active.remove(&number)) {
            self.replaced.push((before.since_plan, before.rate));
        }
    }

    fn opens(&mut self, number: u16, now_ns: u64, sequence: u32) {
        let known = self.flows.get(&number).and_then(|flow| flow.opened);
        if known.is_some_and(|(at_ns, of)| of == sequence && now_ns.saturating_sub(at_ns) <= IDLE_NS) {
            return;
        }
        self.unique_offered += 1;
        self.begin(number, now_ns, Some((now_ns, sequence)));
    }

    fn sends(&mut self, number: u16, now_ns: u64, bytes: u64, ends: bool) {
        if bytes > 0 {
            let idle = |flow: &ModelFlow| {
                flow.front_ns.is_some_and(|front_ns| now_ns.saturating_sub(front_ns) > IDLE_NS)
            };
            let is_idle = self.flows.get(&number).map(idle);
            if is_idle != Some(false) {
                self.expired += u64::from(is_idle == Some(true));
                self.begin(number, now_ns, None);
            }
            let published = (self.reading == Reading::AsPublished).then(|| self.window(now_ns));
            let flow = self.flows.get_mut(&number).expect("it began");
            if let (None, Some(window)) = (flow.front_ns, published) {
                flow.window = window;
            }
            let now = Instant::from_nanos(now_ns);
            flow.window.observe(now, bytes);
            flow.front_ns = Some(flow.front_ns.map_or(now_ns, |front_ns| front_ns.max(now_ns)));
            flow.rate = flow.window.rate(now);
            flow.since_plan = flow.opened.is_some_and(|(at_ns, _)| at_ns >= self.plan_ns);
            self.active.insert(number);
        }
        if let Some(flow) = self.flows.get_mut(&number).filter(|flow| ends && flow.front_ns.is_some()) {
            self.completed += u64::from(!flow.ended);
            flow.ended = true;
        }
    }

    /// The rates of the interval, from before the plan and since, slowest first.
    fn rates(&mut self) -> [Vec<f64>; 2] {
        let active = std::mem::take(&mut self.active);
        let mut all = std::mem::take(&mut self.replaced);
        all.extend(active.iter().map(|number| &self.flows[number]).map(|flow| (flow.since_plan, flow.rate)));
        [false, true].map(|since_plan| {
            let mut rates: Vec<_> =
                all.iter().filter(|(since, _)| *since == since_plan).map(|(_, rate)| *rate).collect();
            rates.sort_by(f64::total_cmp);
            rates
        })
    }
}

/// Checks that the kernel's buckets, laid out, are those of the rates: sorted, neighbours stay neighbours
/// however both sides round.
fn compare(observed: &RateHistogram, expected: &[f64], context: &str) {
    let buckets = observed.buckets();
    let laid_out: Vec<_> =
        buckets.flat_map(|bucket| std::iter::repeat_n(bucket, bucket.responses as usize)).collect();
    assert_eq!(laid_out.len(), expected.len(), "{context}");
    for (bucket, &rate) in laid_out.iter().zip(expected) {
        let lowest = bucket.lowest as f64 * (1.0 - TOLERANCE) - 1.0;
        let highest = (bucket.highest + 1) as f64 * (1.0 + TOLERANCE) + 1.0;
        assert!((lowest..highest).contains(&rate), "{context}: {rate} is not in {bucket:?}");
    }
}

fn step_ns(rng: &mut Rng) -> u64 {
    let most = [1, 1_000, 100_000, 10 * MILLISECOND_NS, 300 * MILLISECOND_NS, 70 * SECOND_NS];
    let weights = [30, 60, 90, 98, 999, 1_000];
    let roll = rng.below(1_000);
    let chosen = weights.iter().position(|&weight| roll < weight * if weight < 99 { 10 } else { 1 });
    rng.below(most[chosen.unwrap_or(0)] + 1)
}

/// Goal: no difference over any sequence. Method: random packets of a few dozen flows, most of them data,
/// at random times; steps back of the clock by a millisecond included.
#[test]
fn rates_in_c_are_rates_in_rust() {
    for reading in [Reading::Corrected, Reading::AsPublished] {
        let test = format!("differential test of the observer, {reading:?}");
        let Some(mut observer) = require(&test, 65_536, reading) else { return };
        for seed in 0..6 {
            run(&mut observer, reading, seed);
        }
    }
}

fn run(observer: &mut Observer, reading: Reading, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut model = Model::new(reading);
    // Flows of other seeds are others.
    let opening = |number: u16| Segment::syn(client(number + 1_000 * seed as u16), address(SERVER));
    let mut now_ns = (1 + 200 * seed) * SECOND_NS;
    observer.tell(now_ns);
    observer.plan_changed().expect("a moment");
    model.plan_ns = now_ns >> 10 << 10;
    observer.reading();
    let (mut completed, mut unique_offered, mut expired, mut compared) = (0, 0, 0, 0);
    for step in 0..4_000 {
        let back_ns = if rng.below(50) == 0 { rng.below(MILLISECOND_NS) } else { 0 };
        now_ns = now_ns + step_ns(&mut rng) - back_ns;
        observer.tell(now_ns);
        let number = rng.below(40) as u16;
        match rng.below(100) {
            0..8 => {
                let sequence = rng.below(2) as u32;
                observer.sees_to_server(&Segment { sequence, ..opening(number) });
                model.opens(number, now_ns, sequence);
            }
            8 => {
                observer.plan_changed().expect("a moment");
                model.plan_ns = now_ns >> 10 << 10;
            }
            9 | 10 => {
                let observed = observer.reading();
                let rates = model.rates();
                let context = format!("{reading:?}, seed {seed}, step {step}");
                for (observed, expected) in observed.rates.iter().zip(&rates) {
                    compare(observed, expected, &context);
                    compared += expected.len();
                }
                completed += observed.completed;
                unique_offered += observed.unique_offered;
                expired += observed.flows.expired;
            }
            roll => {
                let bytes = [0, 1, 40, 1_000, 1_448][rng.below(5) as usize];
                let ends = roll > 95;
                let segment = data(&opening(number), bytes);
                observer.sees_to_client(&if ends { segment.flagged(flag::FIN) } else { segment });
                model.sends(number, now_ns, bytes as u64, ends);
            }
        }
    }
    let rest = observer.reading();
    let sums =
        (completed + rest.completed, unique_offered + rest.unique_offered, expired + rest.flows.expired);
    assert_eq!(sums, (model.completed, model.unique_offered, model.expired), "{reading:?}, seed {seed}");
    assert!(compared > 500 && sums.0 > 20, "{compared} rates compared, {sums:?}");
}
