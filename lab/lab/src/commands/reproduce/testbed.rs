//! `flashweir reproduce --testbed`.

use super::{UsageError, in_json, write};
use crate::experiments::testbed::{Results, Scope, TRIALS, TestbedRun, Trial, find_trial};
use crate::experiments::{Finding, revised_testbed, testbed_figures_named, text};
use crate::testbed::{perform, stop_on_signal};
use anyhow::{Context as _, bail};
use flashweir_load::StopFlag;
use flashweir_testbed::Testbed;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;

/// The requested findings, and where they go.
pub(super) struct Task<'a> {
    pub(super) ids: &'a [String],
    pub(super) scope: Scope,
    pub(super) json: bool,
    pub(super) out: &'a Path,
}

impl Task<'_> {
    /// Makes the runs of one trial after another, each run once, and prints a finding as soon as its runs are
    /// there.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let Some(chosen) = self.chosen()? else { return list() };
        // Missing requirements are reported before anything runs.
        drop(Testbed::new(&[])?);
        if cfg!(not(feature = "kernel")) {
            bail!("the testbed needs a build with the feature `kernel`, for what protects its servers");
        }
        std::fs::create_dir_all(self.out)
            .with_context(|| format!("{}: cannot be made", self.out.display()))?;
        let stop = stop_on_signal()?;
        let mut results = Results::default();
        let mut findings = Vec::new();
        for trial in chosen {
            let id = trial.subject.id;
            self.perform_runs(trial, &mut results, &stop).with_context(|| id)?;
            let finding = (trial.judge)(&self.scope, &results).with_context(|| id)?;
            self.tell(trial, &finding)?;
            findings.push((trial, finding));
        }
        if self.json {
            let list: Vec<Value> =
                findings.iter().map(|(trial, finding)| in_json(trial.subject.id, finding)).collect();
            writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&list)?)?;
        }
        Ok(())
    }

    /// Makes the runs that are not made yet, until the trial names no others: a search goes on from what it
    /// found.
    fn perform_runs(&self, trial: &Trial, results: &mut Results, stop: &StopFlag) -> anyhow::Result<()> {
        loop {
            let all = (trial.runs)(&self.scope, results).into_iter();
            let runs: Vec<TestbedRun> = all.filter(|run| !results.has(run)).collect();
            if runs.is_empty() {
                return Ok(());
            }
            self.perform_all(&runs, trial, results, stop)?;
        }
    }

    fn perform_all(
        &self,
        runs: &[TestbedRun],
        trial: &Trial,
        results: &mut Results,
        stop: &StopFlag,
    ) -> anyhow::Result<()> {
        for (number, run) in runs.iter().enumerate() {
            // No reader is left when standard error is closed.
            let _unheard = writeln!(
                std::io::stderr(),
                "{}: {}, {} s, {} of {} runs",
                trial.subject.id,
                run.protection.describe(),
                run.scene.length_s(),
                number + 1,
                runs.len()
            );
            results.add(run.clone(), perform(run, stop).with_context(|| run.protection.describe())?);
        }
        Ok(())
    }

    /// Prints a finding, and puts it into the document and the figures: what comes later may fail.
    fn tell(&self, trial: &Trial, finding: &Finding) -> anyhow::Result<()> {
        if !self.json {
            writeln!(std::io::stdout(), "{}", text(trial.subject, finding))?;
        }
        let [picture, numbers] = testbed_figures_named(trial.subject.id);
        write(&self.out.join(picture), &finding.figure.standalone()?)?;
        write(&self.out.join(numbers), &finding.csv)?;
        let beside = self.out.with_file_name("reproduction.md");
        let charts =
            self.out.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        match std::fs::read_to_string(&beside) {
            Ok(before) => write(&beside, &revised_testbed(&before, &[(trial, finding.clone())], &charts)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).with_context(|| format!("{}: cannot be read", beside.display())),
        }
    }

    /// The trials asked for; none when only their names are wanted.
    fn chosen(&self) -> anyhow::Result<Option<Vec<&'static Trial>>> {
        let is = |word: &str| self.ids.iter().any(|id| id.eq_ignore_ascii_case(word));
        if self.ids.is_empty() || is("list") {
            return Ok(None);
        }
        if is("all") {
            return Ok(Some(TRIALS.iter().collect()));
        }
        let chosen: Result<Vec<_>, _> = self.ids.iter().map(|id| find_trial(id)).collect();
        Ok(Some(chosen.map_err(|error| UsageError::new(error.to_string()))?))
    }
}

fn list() -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    for trial in TRIALS {
        writeln!(out, "{:<13}{}", trial.subject.id, trial.subject.title)?;
    }
    Ok(())
}
