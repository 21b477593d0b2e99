//! Useful work of a real origin behind NEWS alone, the sentry alone and the default composition of the
//! gateway.
//!
//! `make bench-useful` runs it. An origin with one worker has a core to itself; gateway and load generator
//! share the other cores. Calm first, then a crowd at a multiple of the capacity, which is measured before
//! each block of runs. *Useful* is read from the second second of the crowd on: how fast protection comes is
//! another number. It takes the origin's busy share and its completions from the same seconds, so that the
//! machine's drifting speed does not count.
//!
//! The column of NEWS alone is that of a short calm and a crowd judged from its second second. After five
//! seconds of calm and judged from the fifth second of the crowd it reaches 0.75 to 0.97 at three times the
//! capacity (`tests/servers/news/crowd.rs`).
//!
//! In the environment: ROUNDS; SECONDS, the length of a run; PAGES, milliseconds of some of the pages. 13
//! minutes as they are.

#[path = "../common/mod.rs"]
mod common;
mod crowd;

use common::stage::Stage;
use flashweir_load::trials::useful::{Case, Composition, LOADS, PAGES_MS, text};
use flashweir_testkit::number_from_environment;
use std::time::Duration;

const ROUNDS: u64 = 3;
const SECONDS: u64 = 8;
/// Two of calm, one in which the crowd is noticed, and at least one to be measured.
const SECONDS_MIN: u64 = 4;

fn main() {
    if !common::is_asked_to_measure() {
        return;
    }
    let rounds = number_from_environment("ROUNDS", ROUNDS).max(1);
    let seconds = number_from_environment("SECONDS", SECONDS).max(SECONDS_MIN);
    let length = Duration::from_secs(seconds);
    let Some(stage) = Stage::new() else {
        eprintln!("not measured: the origin needs a core to itself, and this process may use only one");
        return;
    };
    let pages = std::env::var_os("PAGES").and_then(|text| text.into_string().ok()).unwrap_or_default();
    let is_asked =
        |page_ms: &u32| pages.is_empty() || pages.split_whitespace().any(|page| page == page_ms.to_string());
    let pages_ms: Vec<u32> = PAGES_MS.into_iter().filter(is_asked).collect();
    if pages_ms.is_empty() {
        eprintln!("not measured: PAGES names none of {PAGES_MS:?}");
        return;
    }
    let in_all = rounds as usize * pages_ms.len() * LOADS.len() * Composition::ALL.len();
    let (core, judged_s) = (stage.origin_core(), crowd::judged_for(length).as_secs_f64());
    println!(
        "{in_all} runs of {seconds} s; the origin has core {core} to itself; the last {judged_s:.1} s of each crowd are measured\n"
    );
    let mut runs = Vec::with_capacity(in_all);
    let mut begun = 0;
    for round in 0..rounds as usize {
        for &page_ms in &pages_ms {
            let capacity_rps = stage.capacity_rps(page_ms);
            for case in Case::all(page_ms, round) {
                begun += 1;
                let Case { composition, load, page_ms } = case;
                let name = composition.name();
                eprint!("{begun:>3}/{in_all} {page_ms:>2} ms, {load:>3}× {capacity_rps:.1}/s, {name}: ");
                match crowd::run(&stage, case, round, (capacity_rps, length)) {
                    Ok(run) => {
                        let (useful, value) = (run.useful, run.useful.useful());
                        eprintln!("{value:.3} = {:.3} × {:.3}", useful.busy, useful.in_time);
                        runs.push(run);
                    }
                    // One value less for this case; the others are not to be lost.
                    Err(why) => eprintln!("not measured: {why}"),
                }
            }
        }
    }
    print!("{}", text(&runs));
}
