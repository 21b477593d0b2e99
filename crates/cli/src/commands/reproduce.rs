//! `flashweir reproduce`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flashweir_experiments::{
    EXPERIMENTS, Experiment, ExperimentError, Finding, Laboratory, Options, Spread, document, figures_named,
    find, text,
};
use serde_json::{Map, Value, json};

use crate::exit::UsageError;

/// Run the papers' tables and figures again in the simulator, and judge how ours compare.
///
/// Prints what the paper says, our values for each mode, the conditions on the result's shape and a verdict: matches,
/// same shape, or differs and why. The rules of the verdict are fixed in the code of each experiment. Charts (SVG) and
/// the numbers behind them (CSV) go to a directory. The same seeds give the same numbers on every machine.
#[derive(Debug, clap::Args)]
pub(crate) struct ReproduceArgs {
    /// Names such as NEWS-T1, or `all`; `list` or nothing prints the names. With `all`, reproduction.md, the table of
    /// all verdicts, is written beside the directory of charts.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Print id, the paper's values, ours and the verdict as JSON; progress goes to stderr.
    #[arg(long)]
    json: bool,
    /// Where charts and numbers go; made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "docs/figures")]
    out: PathBuf,
    /// Run each scenario with so many seeds.
    #[arg(long, value_name = "N", default_value_t = Options::default().seeds)]
    seeds: u32,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,
    /// Run so many scenarios at the same time.
    #[arg(long, value_name = "N", default_value_t = Options::default().threads)]
    threads: usize,
    /// Seconds of quiet before the crowd, fewer than the paper's 1,000 for a quick look; the finding then says so.
    #[arg(long, value_name = "S", default_value_t = Options::default().quiet_s)]
    quiet_s: u64,
    /// Seconds of crowd, fewer than the paper's 3,000 for a quick look; the finding then says so.
    #[arg(long, value_name = "S", default_value_t = Options::default().crowd_s)]
    crowd_s: u64,
}

impl ReproduceArgs {
    /// Runs the experiments one after another and prints each as soon as it is done.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Some(chosen) = self.chosen()? else { return list() };
        let Self { seed, seeds, threads, quiet_s, crowd_s, .. } = self;
        let options = Options { seed, seeds, threads, quiet_s, crowd_s };
        let laboratory = Laboratory::new(options).map_err(usage)?;
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("{}: cannot be made", self.out.display()))?;
        let mut findings = Vec::new();
        for experiment in chosen {
            // Nobody is left to tell when standard error is closed.
            let _unheard = writeln!(std::io::stderr(), "{} …", experiment.id);
            let finding = (experiment.run)(&laboratory).with_context(|| experiment.id)?;
            write_figures(&self.out, experiment, &finding)?;
            if !self.json {
                writeln!(std::io::stdout(), "{}", text(experiment, &finding))?;
            }
            findings.push((experiment, finding));
        }
        if self.json {
            let list: Vec<Value> =
                findings.iter().map(|(experiment, finding)| in_json(experiment, finding)).collect();
            writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&list)?)?;
        }
        if findings.len() == EXPERIMENTS.len() {
            let directory =
                self.out.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            let beside = self.out.with_file_name("reproduction.md");
            write(&beside, &document(&findings, &directory))?;
        }
        Ok(())
    }

    /// The experiments asked for; none when only their names are wanted.
    fn chosen(&self) -> anyhow::Result<Option<Vec<&'static Experiment>>> {
        let is = |word: &str| self.ids.iter().any(|id| id.eq_ignore_ascii_case(word));
        if self.ids.is_empty() || is("list") {
            return Ok(None);
        }
        if is("all") {
            return Ok(Some(EXPERIMENTS.iter().collect()));
        }
        let chosen: Result<Vec<_>, _> = self.ids.iter().map(|id| find(id)).collect();
        Ok(Some(chosen.map_err(usage)?))
    }
}

/// What was asked for cannot be done as written.
fn usage(error: ExperimentError) -> anyhow::Error {
    UsageError::new(error.to_string()).into()
}

fn list() -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    for experiment in EXPERIMENTS {
        writeln!(out, "{:<12}{}", experiment.id, experiment.title)?;
    }
    Ok(())
}

fn write_figures(directory: &Path, experiment: &Experiment, finding: &Finding) -> anyhow::Result<()> {
    let [picture, numbers] = figures_named(experiment.id);
    write(&directory.join(picture), finding.figure.svg())?;
    write(&directory.join(numbers), &finding.csv)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
}

fn in_json(experiment: &Experiment, finding: &Finding) -> Value {
    let paper: Map<String, Value> =
        finding.rows.iter().map(|row| (row.what.clone(), json!(row.paper))).collect();
    let spread = |it: &Spread| json!({ "mean": it.mean, "least": it.least, "most": it.most });
    let ours: Map<String, Value> = finding
        .rows
        .iter()
        .map(|row| {
            let modes: Map<String, Value> =
                row.ours.iter().map(|(mode, value)| (mode.clone(), spread(value))).collect();
            (row.what.clone(), Value::Object(modes))
        })
        .collect();
    json!({ "id": experiment.id, "paper": paper, "ours": ours, "verdict": finding.verdict.to_string() })
}
