//! A scenario file: its runs, and whether they lie where they should.

use super::judged::Judged;
use super::{SimArgs, csv, json, network_csv, page, progress, table};
use crate::scenario::{Scenario, ScenarioError, Settings, Sheet};
use anyhow::{Context as _, bail};
use flashweir_config::command::exit::UsageError;
use flashweir_core::{Duration, Instant};
use flashweir_sim::request::{RunOutcome, Simulation};
use std::io::Write as _;
use std::path::Path;

/// Runs all seeds of a scenario, prints what they show and writes what was asked for.
pub(super) fn run(arguments: &SimArgs, file: &Path) -> anyhow::Result<()> {
    let scenario = Scenario::load(file, &settings(arguments)?).map_err(wrong)?;
    if let Some(directory) = &arguments.out {
        make_directory(directory)?;
    }
    let seeds = scenario.seeds();
    let outcomes =
        progress::on_all_cores(&seeds, scenario.length(), |seed, shown| one(&scenario, seed, shown))?;
    let sheet = Sheet::of(&scenario, &outcomes);
    let judged = Judged { scenario: &scenario, file: file.display().to_string(), sheet, outcomes };
    let text = if arguments.json { json::text(&judged)? } else { table::text(&judged) };
    // Not `print!`, which panics when the reader (`head`, for one) has gone.
    std::io::stdout().write_all(text.as_bytes()).context("the result cannot be printed")?;
    if let Some(directory) = &arguments.out {
        csv::write(&judged, directory)?;
        network_csv::write(&judged, directory)?;
        page::write(&judged, directory)?;
        eprintln!("written: {}", directory.join("report.html").display());
    }
    let missed: Vec<_> = judged.sheet.missed().map(crate::scenario::Line::name).collect();
    if !missed.is_empty() {
        bail!(
            "{} missed: {}",
            if missed.len() == 1 { "a range is" } else { "ranges are" },
            missed.join(", ")
        );
    }
    Ok(())
}

fn settings(arguments: &SimArgs) -> anyhow::Result<Settings> {
    let mut texts = arguments.settings.clone();
    texts.extend(arguments.seeds.map(|seeds| format!("seeds={seeds}")));
    texts.extend(arguments.seed.map(|seed| format!("seed={seed}")));
    Ok(Settings::parse(texts).map_err(wrong)?)
}

fn one(scenario: &Scenario, seed: u64, shown: &progress::Shown) -> anyhow::Result<RunOutcome> {
    let run = scenario.run(seed);
    let simulated = || -> Result<RunOutcome, flashweir_sim::request::RunError> {
        let mut simulation = Simulation::new(&run)?;
        let mut until = Instant::ZERO;
        loop {
            // At the least one event ahead, so that the loop ends with the run.
            until = (until + STRETCH).max(simulation.now() + STRETCH);
            let goes_on = simulation.run_until(until)?;
            shown.tell(seed, until, simulation.events());
            if !goes_on {
                return Ok(simulation.finish());
            }
        }
    };
    simulated().with_context(|| format!("seed {seed}"))
}

/// Simulated time between two looks at the progress.
const STRETCH: Duration = Duration::from_secs(1);

/// Converts an error in a scenario to an error of usage.
fn wrong(error: ScenarioError) -> UsageError {
    UsageError::new(error.to_string())
}

/// Makes the directory for results before the work, not after it.
pub(super) fn make_directory(directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).map_err(|error| {
        UsageError::new(format!("--out: {} cannot be made: {error}", directory.display())).into()
    })
}
