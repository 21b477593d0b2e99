//! Cost of fairness for a request while its service is short, against its bars: nanoseconds, median and worst
//! of several rounds, and no allocation. `cargo bench -p flashweir-admission --bench fairness_bars`; an
//! allocation is an error, a missed time is printed.

use flashweir_admission::fairness::{
    Acquaintance, Conduct, Evidence, Fairness, FairnessSettings, Impatience, RequestSigns, SIGNS,
};
use flashweir_aqm::{DistinctWindow, MinSketch};
use flashweir_core::hash::mix;
use flashweir_core::{Duration, Hasher64, Instant};
use std::hint::black_box;

/// Requests that are drawn before the clock runs, and come again in turn.
const DRAWN: usize = 1 << 16;
/// Addresses, each with its own session; of the other signs there are fewer.
const CLIENTS: u64 = 20_000;
const ROUNDS: usize = 11;
const REQUESTS: u64 = 1_000_000;
/// One every 20 µs: 50,000 a second at one worker.
const GAP_NS: u64 = 20_000;

fn draw() -> Vec<RequestSigns> {
    let signs = |n: u64| {
        let client = mix(n) % CLIENTS;
        let values: [u32; SIGNS] =
            std::array::from_fn(|sign| mix((client >> (2 * sign)) + 1 + ((sign as u64) << 40)) as u32 | 1);
        let is_asset = !n.is_multiple_of(4);
        let conduct = Conduct { is_asset, has_own_referer: is_asset, has_session: true };
        RequestSigns { person_key: mix(client + 7) | 1, conduct, values }
    };
    (0..DRAWN as u64).map(signs).collect()
}

/// Prints what a call costs, with what is drawn before it. Every call gets the number of its request.
fn measure(name: &str, bar_ns: Option<u64>, mut call: impl FnMut(u64)) {
    let mut n = 0;
    let mut round = |count: u64| {
        let began = std::time::Instant::now();
        for _ in 0..count {
            n += 1;
            call(n);
        }
        began.elapsed().as_nanos() as f64 / count as f64
    };
    round(REQUESTS);
    let allocated = allocation_counter::measure(|| {
        round(REQUESTS / 10);
    });
    assert_eq!(allocated.count_total, 0, "{name} allocates");
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round(REQUESTS)).collect();
    rounds.sort_by(f64::total_cmp);
    let (median, worst) = (rounds[ROUNDS / 2], rounds[ROUNDS - 1]);
    let bar = bar_ns.map_or_else(String::new, |bar| {
        let is_met = if median <= bar as f64 { "met" } else { "MISSED" };
        format!("bar {bar:>3} ns: {is_met}")
    });
    println!("{name:<44} {median:>7.1} ns, worst of {ROUNDS} {worst:>7.1} ns   {bar}");
}

fn main() {
    let drawn = draw();
    let at = |n: u64| Instant::from_nanos(n * GAP_NS);
    let signs = |n: u64| &drawn[n as usize % DRAWN];
    measure("a drawn request (in all others)", None, |n| {
        black_box(signs(n));
    });
    let mut sketch = MinSketch::new();
    measure("the sketch of distinct clients, an update", Some(25), |n| sketch.insert(mix(n)));
    let mut window = DistinctWindow::new(at(0), Duration::from_secs(30));
    measure("the sliding window of sketches, an update", Some(25), |n| window.insert(at(n), mix(n)));
    let evidence = Evidence::default();
    measure("evidence of people", None, |n| {
        let signs = signs(n);
        black_box(evidence.observe(at(n), signs.person_key, signs.conduct));
    });
    for (name, is_person) in [
        ("the whole stage, persons", Some(true)),
        ("the whole stage, seven signs", Some(false)),
        ("the whole stage, clients as they are found", None),
    ] {
        let mut fairness = Fairness::new(FairnessSettings::default());
        measure(name, Some(80), |n| {
            let (now, signs) = (at(n), signs(n));
            let seen = evidence.observe(now, signs.person_key, signs.conduct);
            let known = Acquaintance { is_person: is_person.unwrap_or(seen.is_person), ..seen };
            black_box(fairness.offer(now, signs, known, 1_000));
            if n.is_multiple_of(3) {
                fairness.admit(1_000);
            }
        });
    }
    let (impatience, hasher) = (Impatience::default(), Hasher64::new(1, 2));
    measure("a refused request, with its source's hash", None, |n| {
        let signs = signs(n);
        let source = hasher.hash(&[&signs.values[0].to_le_bytes(), &[0; 12]]);
        black_box(impatience.refused(at(n), source, signs.person_key, Duration::from_secs(4)));
    });
}
