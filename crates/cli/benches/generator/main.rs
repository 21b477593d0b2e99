//! How much load one core can make: `flashweir load` beside wrk (closed loop) and oha (rate-limited, latency from the
//! intended moment), against nginx with a 1 KiB keep-alive answer on the other core. Ratios from one run.
//!
//! Each round finds, by halving an interval, the highest rate each open-loop tool holds: 99.9 % of it completed and
//! the 99th percentile of the latency from the intended moment at most [`LATENCY_BOUND_MS`]; for `flashweir load` the
//! 99th percentile of its lag must also be at most 1 ms. Tools take turns in every round, so that whatever else the
//! machine does falls on all of them. `make bench` runs it; ROUNDS and SECONDS in the environment change its length.

mod highest;
mod tools;

use highest::highest_held;
use tools::{Bench, Held};

/// What an answer may take from its intended moment at the rates compared: far more than nginx needs, so that what
/// ends the search is a tool that falls behind.
const LATENCY_BOUND_MS: f64 = 5.0;
/// The lag up to which `flashweir load` counts as keeping up.
const LAG_BOUND_US: f64 = 1_000.0;

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` must not start servers.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    let rounds = number_from_environment("ROUNDS", 5);
    let Some(bench) = Bench::start(number_from_environment("SECONDS", 2)) else { return };
    println!("{rounds} rounds; nginx on core 0, each tool on core 1 with 64 connections\n");
    let mut measured: Vec<Round> = Vec::new();
    for number in 1..=rounds {
        let round = Round::measure(&bench);
        println!(
            "round {number}: wrk {:.0}/s, flashweir load {:.0}/s, oha {}, lag at half of it p99 {:.0} us",
            round.wrk,
            round.flashweir,
            round.oha.map_or_else(|| "not installed".to_owned(), |rate| format!("{rate:.0}/s")),
            round.lag_at_half_p99_us
        );
        measured.push(round);
    }
    let of = |value: &dyn Fn(&Round) -> f64| spread(measured.iter().map(value).collect());
    println!("\nhighest rate held, flashweir load    {}", of(&|round| round.flashweir));
    println!(
        "  over wrk's closed loop             {}   (bar: 0.7)",
        of(&|round| round.flashweir / round.wrk)
    );
    if measured.iter().all(|round| round.oha.is_some()) {
        let over_oha = |round: &Round| round.oha.map_or(f64::NAN, |oha| round.flashweir / oha);
        println!("  over oha's                         {}   (bar: 1)", of(&over_oha));
    }
    println!("lag at half of that rate, p99, us    {}   (bar: 200)", of(&|round| round.lag_at_half_p99_us));
}

struct Round {
    wrk: f64,
    flashweir: f64,
    oha: Option<f64>,
    lag_at_half_p99_us: f64,
}

impl Round {
    fn measure(bench: &Bench) -> Self {
        let wrk = bench.wrk();
        let flashweir = highest_held(wrk, |rate| {
            let Held { completed_share, latency_p99_ms, lag_p99_us } = bench.flashweir(rate);
            completed_share >= 0.999 && latency_p99_ms <= LATENCY_BOUND_MS && lag_p99_us <= LAG_BOUND_US
        });
        let oha = bench.has_oha().then(|| {
            highest_held(wrk, |rate| {
                let held = bench.oha(rate);
                // oha ends with requests under way, at most one a connection.
                held.completed_share >= 0.995 && held.latency_p99_ms <= LATENCY_BOUND_MS
            })
        });
        let lag_at_half_p99_us = bench.flashweir(flashweir / 2.0).lag_p99_us;
        Self { wrk, flashweir, oha, lag_at_half_p99_us }
    }
}

/// The median, with the smallest and the largest.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let shown = |value: f64| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    let (first, last) = (values[0], values[values.len() - 1]);
    format!("{:>8} [{}–{}]", shown(values[values.len() / 2]), shown(first), shown(last))
}

fn number_from_environment<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var_os(name).and_then(|text| text.to_str()?.parse().ok()).unwrap_or(default)
}
