//! Random scenarios, and the checks that every one of them has to pass.

use super::csv::put;
use super::judge::make_directory;
use super::progress;
use crate::scenario::{Scenario, Settings, swarm_text};
use anyhow::{Context as _, bail, ensure};
use flashweir_core::Duration;
use flashweir_sim::request::{self, RunOutcome};
use std::io::Write as _;
use std::path::Path;

/// Runs `count` scenarios from seed `first` on, and prints how to repeat those that fail; their files go to
/// `out`.
///
/// # Errors
/// The number that failed.
pub(super) fn run(count: u32, first: u64, out: Option<&Path>) -> anyhow::Result<()> {
    if let Some(directory) = out {
        make_directory(directory)?;
    }
    let seeds: Vec<u64> = (0..u64::from(count)).map(|place| first.wrapping_add(place)).collect();
    let tried = progress::on_all_cores(&seeds, LONGEST, |seed, shown| {
        let tried = progress::guarded(seed, || one(seed));
        let events = tried.as_ref().map_or(0, |outcome| outcome.events);
        shown.tell(seed, flashweir_core::Instant::from_duration(LONGEST), events);
        Ok((seed, tried.map(|_| ())))
    })?;
    let mut failed = 0;
    for (seed, result) in tried {
        let Err(error) = result else { continue };
        failed += 1;
        eprintln!("failed: {error:#}\n  again: flashweir sim --swarm 1 --seed {seed}");
        if let Some(directory) = out {
            put(&directory.join(format!("swarm_{seed}.toml")), &swarm_text(seed))?;
        }
    }
    if failed > 0 {
        bail!("{failed} of {count} random scenarios failed");
    }
    let last = seeds.last().copied().unwrap_or(first);
    let text = format!(
        "{count} random scenarios, seeds {first} to {last}: ok
"
    );
    std::io::stdout().write_all(text.as_bytes()).context("the result cannot be printed")
}

/// No random scenario is longer.
const LONGEST: Duration = Duration::from_secs(60);

/// Checks the invariants of one run; the simulator's own checkers look after every step of a debug build, and
/// at the end of every run.
fn one(seed: u64) -> anyhow::Result<RunOutcome> {
    let name = format!("swarm_{seed}.toml");
    let scenario = Scenario::from_toml(&swarm_text(seed), &name, &Settings::default())?;
    let run = scenario.run(seed);
    let outcome = request::run(&run).with_context(|| format!("seed {seed}"))?;
    let totals = outcome.totals();
    ensure!(totals.in_flight() == 0, "seed {seed}: {} tries are still under way", totals.in_flight());
    ensure!(outcome.gate.lost() == 0, "seed {seed}: no decision about {} tries", outcome.gate.lost());
    ensure!(
        outcome.began_within(0..usize::MAX) == totals,
        "seed {seed}: the bins do not add up to the totals"
    );
    let latencies: u64 = outcome.classes.iter().map(|class| class.latency_us.count()).sum();
    ensure!(
        latencies == totals.completed,
        "seed {seed}: {latencies} latencies of {} completed",
        totals.completed
    );
    ensure!(
        totals.goodput <= totals.completed && totals.completed <= totals.admitted,
        "seed {seed}: {totals:?}"
    );
    let again = request::run(&run).with_context(|| format!("seed {seed}"))?;
    ensure!(again.event_hash == outcome.event_hash, "seed {seed}: the same scenario was another run");
    Ok(outcome)
}
