//! `flashweir reproduce`.

mod progress;
mod testbed;

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::experiments::{
    Crowd, ELSEWHERE, EXPERIMENTS, Experiment, ExperimentError, Finding, Game, Laboratory, OPENING_MATCH,
    Options, SEMI_FINAL, Spread, Summary, cost_s, figures_named, find, revised, testbed::Scope, text,
};
use anyhow::Context as _;
use flashweir_core::limits::SCENARIO_TABLE_BYTES;
use serde_json::{Map, Value, json};

use flashweir_config::command::exit::UsageError;

/// Run the papers' tables and figures again in the simulator, and judge how ours compare.
///
/// Prints what the paper says, our values for each mode, the conditions on the result's shape and a verdict:
/// matches, same shape, or differs and why. The rules of the verdict are fixed in the code of each
/// experiment. Charts (SVG) and the numbers behind them (CSV) go to a directory. The same seeds give the same
/// numbers on every machine, except for CAT-F4 and PURGE-F5, which are measured. Progress goes to standard
/// error; a figure that takes more than a minute says so before it begins.
///
/// With --testbed, what the papers measured on testbeds is run on real Linux TCP: network namespaces with
/// shaped links, nginx, `flashweir load` and `flashweir router`. That needs root, the Debian packages
/// iproute2, ethtool and nginx-light, and a build with the feature `kernel`; it leaves nothing behind. A run
/// takes one to two minutes, all together three quarters of an hour.
#[derive(Debug, clap::Args)]
pub(crate) struct ReproduceArgs {
    /// Names such as NEWS-T1, or `all`; `list` or nothing prints the names. With `all`, reproduction.md, the
    /// table of all verdicts, is written beside the directory of charts; otherwise, if it is there, what it
    /// says of these is replaced.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Run on a testbed of real Linux instead of the simulator; the names are others.
    #[arg(long, conflicts_with_all = ["seeds", "threads", "quiet_s", "crowd_s"])]
    testbed: bool,
    /// With --testbed: make each run so often, each time with another seed.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "testbed",
          value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Print id, the paper's values, ours and the verdict as JSON; progress goes to stderr.
    #[arg(long)]
    json: bool,
    /// Where charts and numbers go; made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "docs/figures")]
    out: PathBuf,
    /// Run each scenario with N seeds.
    #[arg(long, value_name = "N", default_value_t = Options::default().seeds)]
    seeds: u32,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    seed: u64,
    /// Run N scenarios at the same time.
    #[arg(long, value_name = "N", default_value_t = Options::default().threads)]
    threads: usize,
    /// Seconds of quiet before the crowd, fewer than the paper's 1,000 for a quick look; the finding then
    /// says so.
    #[arg(long, value_name = "S", default_value_t = Options::default().quiet_s)]
    quiet_s: u64,
    /// Seconds of crowd, fewer than the paper's 3,000 for a quick look; the finding then says so.
    #[arg(long, value_name = "S", default_value_t = Options::default().crowd_s)]
    crowd_s: u64,
    /// Directory of World Cup logs counted by the minute (wc98_brazil_scotland_19980610.csv and
    /// wc98_brazil_netherlands_19980707.csv, with the columns minute_gmt and requests), to be used instead of
    /// the counts in the repository. The findings name what was used.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
}

impl ReproduceArgs {
    /// Runs the experiments one after another and prints each as soon as it is done.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.testbed {
            let options = self.options()?;
            let scope =
                Scope { seed: self.seed, rounds: self.rounds, crowd: options.semi_final, ..Scope::default() };
            return testbed::Task { ids: &self.ids, scope, json: self.json, out: &self.out }.run();
        }
        let Some(chosen) = self.chosen()? else { return list() };
        let laboratory = Laboratory::new(self.options()?).map_err(usage)?.telling(progress::record);
        std::fs::create_dir_all(&self.out)
            .with_context(|| format!("{}: cannot be made", self.out.display()))?;
        if chosen.iter().any(|experiment| experiment.id.starts_with("NEWS-")) {
            say(&arrivals_notice(laboratory.options()));
        }
        let mut findings = Vec::new();
        for experiment in chosen {
            say(&cost_notice(experiment.id));
            let shown = progress::ProgressLines::begin(experiment.id);
            let finding = (experiment.run)(&laboratory).with_context(|| experiment.id)?;
            shown.end();
            write_figures(&self.out, experiment, &finding)?;
            if !self.json {
                writeln!(std::io::stdout(), "{}", text(experiment, &finding))?;
            }
            findings.push((experiment, finding));
        }
        if self.json {
            let list: Vec<Value> =
                findings.iter().map(|(experiment, finding)| in_json(experiment.id, finding)).collect();
            writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&list)?)?;
        }
        let summary = Summary::of(findings.iter().map(|(_, finding)| finding));
        if self.json {
            say(&summary.to_string());
        } else {
            writeln!(std::io::stdout(), "{summary}")?;
        }
        self.write_document(&findings)
    }

    /// The table of all verdicts, beside the charts.
    fn write_document(&self, findings: &[(&Experiment, Finding)]) -> anyhow::Result<()> {
        let charts =
            self.out.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let beside = self.out.with_file_name("reproduction.md");
        let all = findings.len() == EXPERIMENTS.len();
        match std::fs::read_to_string(&beside) {
            Ok(before) => write(&beside, &revised(&before, findings, &charts)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && all => {
                write(&beside, &revised("", findings, &charts))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).with_context(|| format!("{}: cannot be read", beside.display())),
        }
    }

    fn options(&self) -> anyhow::Result<Options> {
        let &Self { seed, seeds, threads, quiet_s, crowd_s, .. } = self;
        let mut options = Options { seed, seeds, threads, quiet_s, crowd_s, ..Options::default() };
        if let Some(directory) = self.traces()? {
            if let Some(crowd) = crowd(&OPENING_MATCH, directory)? {
                options.opening_match = crowd;
            }
            if let Some(crowd) = crowd(&SEMI_FINAL, directory)? {
                options.semi_final = crowd;
            }
        }
        Ok(options)
    }

    /// Directory of the logs, if one is given.
    fn traces(&self) -> anyhow::Result<Option<&Path>> {
        match &self.traces {
            Some(directory) if directory.is_dir() => Ok(Some(directory)),
            Some(other) => Err(UsageError::new(format!("{}: not a directory", other.display())).into()),
            None => Ok(None),
        }
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

/// Source of the clients' arrivals, said before anything of NEWS runs.
fn arrivals_notice(options: &Options) -> String {
    let source = |game: &Game, crowd: &Crowd| {
        let log = if *crowd == game.counted() { "no log is used; " } else { "" };
        format!("{log}clients arrive as {}", crowd.name())
    };
    format!(
        "simulations of NEWS: {}\nits testbed: {}",
        source(&OPENING_MATCH, &options.opening_match),
        source(&SEMI_FINAL, &options.semi_final)
    )
}

/// Notice of a figure's cost, printed before it begins.
fn cost_notice(id: &str) -> String {
    match cost_s(id) {
        Some(seconds) => {
            format!("{id}: takes about {seconds} s (default options, two cores, release build)")
        }
        None => format!("{id}: takes less than a minute (default options, two cores, release build)"),
    }
}

fn say(text: &str) {
    // Not written when standard error is closed.
    let _unwritten = writeln!(std::io::stderr(), "{text}");
}

/// The crowd of a game's log; none where there is no log.
fn crowd(game: &Game, directory: &Path) -> anyhow::Result<Option<Crowd>> {
    let path = directory.join(game.file);
    if !path.exists() {
        return Ok(None);
    }
    let wrong = |problem: &dyn Display| UsageError::new(format!("{}: {problem}", path.display()));
    let size = std::fs::metadata(&path).map_err(|error| wrong(&error))?.len();
    if size > SCENARIO_TABLE_BYTES {
        return Err(wrong(&format!("more than {SCENARIO_TABLE_BYTES} bytes")).into());
    }
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    Ok(Some(game.crowd(&text).map_err(|error| wrong(&error))?))
}

/// Converts an error in the request to an error of usage.
fn usage(error: ExperimentError) -> anyhow::Error {
    UsageError::new(error.to_string()).into()
}

fn list() -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    for experiment in EXPERIMENTS {
        writeln!(out, "{:<13}{}", experiment.id, experiment.title)?;
    }
    for elsewhere in ELSEWHERE {
        writeln!(out, "{:<13}{}: {}", elsewhere.id, elsewhere.title, elsewhere.command)?;
    }
    Ok(())
}

fn write_figures(directory: &Path, experiment: &Experiment, finding: &Finding) -> anyhow::Result<()> {
    let [picture, numbers] = figures_named(experiment.id);
    write(&directory.join(picture), &finding.figure.standalone()?)?;
    write(&directory.join(numbers), &finding.csv)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
}

fn in_json(id: &str, finding: &Finding) -> Value {
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
    json!({ "id": id, "paper": paper, "ours": ours, "verdict": finding.verdict.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_figure_says_its_cost_and_a_short_one_that_it_is_short() {
        let long = cost_notice("PURGE-T3");
        assert!(long.starts_with("PURGE-T3: takes about ") && long.contains(" s ("), "{long}");
        assert!(cost_notice("INTEL-T1").starts_with("INTEL-T1: takes less than a minute"));
    }
}
