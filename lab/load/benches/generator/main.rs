//! Load that one core can make: `flashweir load` beside wrk (closed loop) and oha (rate-limited, latency from
//! the intended moment), against nginx with a 1 KiB keep-alive answer on the other core. Ratios from one run.
//!
//! Each round finds, by halving an interval, the highest rate at which each open-loop tool keeps up: 99.9 %
//! of it completed and nine in ten answers within [`LATENCY_BOUND_MS`] of their intended moment (a tool that
//! falls behind falls behind for good, so the tail is left out of this: it is the machine's). Then the
//! highest rate at which `flashweir load` holds what it asks of itself, a 99th percentile of lag of 1 ms.
//! Tools take turns in every round, so that other work of the machine falls on all of them. `make bench-load`
//! runs it; ROUNDS and SECONDS in the environment change its length.

mod highest;
mod tools;

use flashweir_testkit::number_from_environment;
use highest::highest_held;
use tools::{Bench, Held};

/// Maximum latency of nine in ten answers from their intended moment: far more than nginx needs.
const LATENCY_BOUND_MS: f64 = 5.0;
/// The lag up to which `flashweir load` counts as keeping up.
const LAG_BOUND_US: f64 = 1_000.0;

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not start servers.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    let rounds = number_from_environment("ROUNDS", 3);
    let Some(bench) = Bench::start(number_from_environment("SECONDS", 3)) else { return };
    println!("{rounds} rounds; nginx on core 0, each tool on core 1 with 64 connections\n");
    let mut measured: Vec<Round> = Vec::new();
    for number in 1..=rounds {
        let round = Round::measure(&bench);
        let oha = round.oha.map_or_else(|| "not installed".to_owned(), |rate| format!("{rate:.0}/s"));
        println!(
            "round {number}: wrk {:.0}/s; kept up: flashweir load {:.0}/s, oha {oha}; with lag p99 <= 1 ms {:.0}/s",
            round.wrk, round.keeps_up, round.lag_held
        );
        measured.push(round);
    }
    let of = |value: &dyn Fn(&Round) -> f64| spread(measured.iter().map(value).collect());
    println!("\nhighest rate flashweir load keeps up with     {}", of(&|round| round.keeps_up));
    println!("  over wrk's closed loop                      {}", of(&|round| round.keeps_up / round.wrk));
    if measured.iter().all(|round| round.oha.is_some()) {
        let over_oha = |round: &Round| round.oha.map_or(f64::NAN, |oha| round.keeps_up / oha);
        println!("  over oha's                                  {}   (bar: 1)", of(&over_oha));
    }
    println!("highest rate with lag p99 <= 1 ms             {}", of(&|round| round.lag_held));
    println!(
        "  over wrk's closed loop                      {}   (bar: 0.7)",
        of(&|round| round.lag_held / round.wrk)
    );
    println!("lag at half of what it keeps up with, us: p50 {}", of(&|round| round.lag_at_half_us.0));
    println!(
        "                                          p99 {}   (bar: 200)",
        of(&|round| round.lag_at_half_us.1)
    );
}

struct Round {
    wrk: f64,
    keeps_up: f64,
    lag_held: f64,
    oha: Option<f64>,
    /// p50 and p99.
    lag_at_half_us: (f64, f64),
}

impl Round {
    fn measure(bench: &Bench) -> Self {
        let wrk = bench.wrk();
        let keeps_up = highest_held(wrk, |rate| bench.flashweir(rate).keeps_up(0.999));
        // oha ends with requests under way, at most one a connection.
        let oha = bench.has_oha().then(|| highest_held(wrk, |rate| bench.oha(rate).keeps_up(0.995)));
        let lag_held = highest_held(wrk, |rate| {
            let held = bench.flashweir(rate);
            held.keeps_up(0.999) && held.lag_p99_us <= LAG_BOUND_US
        });
        // A tool that keeps up with nothing is shown as such; half of nothing cannot be asked for.
        let half = bench.flashweir((keeps_up / 2.0).max(1_000.0));
        Self { wrk, keeps_up, lag_held, oha, lag_at_half_us: (half.lag_p50_us, half.lag_p99_us) }
    }
}

impl Held {
    fn keeps_up(&self, completed_share: f64) -> bool {
        self.completed_share >= completed_share && self.latency_p90_ms <= LATENCY_BOUND_MS
    }
}

/// The median, with the smallest and the largest.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let shown = |value: f64| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    let (first, last) = (values[0], values[values.len() - 1]);
    format!("{:>8} [{}–{}]", shown(values[values.len() / 2]), shown(first), shown(last))
}
