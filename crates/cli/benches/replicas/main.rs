//! A cluster of real processes: distributor, redirector, replicas and an origin that does real work.
//!
//! `make bench-replicas` runs it and prints a table for each part:
//!
//! * `server` (RADAR-F4.4): response times of one server by offered load.
//! * `levels` (RADAR-F4.6): what each level of redirection adds, and what it costs in CPU time.
//! * `saved` (RADAR-F4.7): CPU-seconds of the origin that 1 to 4 replicas save. One machine has not the cores of five, so work is counted.
//! * `herd` (RADAR-F4.8, F4.10 to F4.12): two replicas of which one has every document at first, by the published rules and by the repaired ones.
//! * `waiters`: ten thousand requests for one document that is being fetched (one gateway).
//!
//! In the environment: PARTS (some of the above, separated by commas), ROUNDS, SECONDS (length of a crowd of
//! `herd`). The parts count requests and CPU time from the kernel's books; only the times of `server`,
//! `levels` and `waiters` need an otherwise idle machine.

mod cluster;
#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "nothing is sent to one gateway here")]
mod common;
mod crowd;
mod herd;
mod levels;
mod saved;
mod server;
mod site;
mod waiters;

use flashweir_testkit::{Flashweir, number_from_environment};

const ROUNDS: u64 = 3;
const PARTS: &str = "server,levels,saved,herd,waiters";

/// State that all parts need.
pub(crate) struct Bench {
    pub(crate) binary: Flashweir,
    /// Iterations of an origin's work in a millisecond, once for all origins.
    pub(crate) iterations_per_ms: String,
    pub(crate) rounds: u64,
}

fn main() {
    if !common::is_asked_to_measure() {
        return;
    }
    let bench = Bench {
        binary: Flashweir::new(env!("CARGO_BIN_EXE_flashweir")),
        iterations_per_ms: format!("{:.0}", flashweir_testbed::origin::calibrate()),
        rounds: number_from_environment("ROUNDS", ROUNDS).max(1),
    };
    let parts = std::env::var_os("PARTS")
        .and_then(|text| text.into_string().ok())
        .unwrap_or_else(|| PARTS.to_owned());
    println!(
        "{} rounds, seeds from {}; load averages before: {}",
        bench.rounds,
        crowd::SEED,
        load_averages()
    );
    for part in parts.split(',').map(str::trim) {
        match part {
            "server" => server::run(&bench),
            "levels" => levels::run(&bench),
            "saved" => saved::run(&bench),
            "herd" => herd::run(&bench),
            "waiters" => waiters::run(&bench),
            other => panic!("PARTS: `{other}` is none of {PARTS}"),
        }
    }
    println!("\nload averages after: {}", load_averages());
}

fn load_averages() -> String {
    std::fs::read_to_string("/proc/loadavg").map_or("unknown".to_owned(), |text| text.trim().to_owned())
}

/// The middle one, of an odd number; none of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value below which this part of them is.
pub(crate) fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let place = (values.len() as f64 * part) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}
