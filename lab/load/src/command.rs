//! `flashweir load`: the command line of the program `flashweir-load`.

mod arrivals;
mod asking;
mod assertion;
mod class;
mod classes;
mod compare;
mod csv;
mod ending;
pub mod file;
mod html;
mod inputs;
mod live;
mod merge;
mod metric;
mod output;
mod people;
mod plan;
pub mod recorded;
mod result_file;
#[cfg(test)]
mod sample;
mod start_at;
mod transport;
mod values;

use crate::{CrowdWindow, LoadError, StopFlag};
use anyhow::Context;
use clap::Parser;
use class::ClassArgs;
use ending::EndingArgs;
use flashweir_config::command::exit::{self, UsageError};
use flashweir_config::command::help;
use flashweir_workload::Part;
use inputs::Inputs;
use live::Live;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;
use transport::TransportArgs;

/// Send a crowd to a server and report the outcome of every request truthfully.
///
/// The load is open: the moments at which people come are fixed before the run by the options and the seed,
/// so a slow server does not slow the crowd down, and latency counts from the moment a request was to begin.
/// A run whose generator could not keep up is called saturated: its figures say more about the generator than
/// about the server.
///
/// When people come: at a --rate, which may have a --step, a --ramp or a --spike; as often as a table counts
/// (--profile), as at a World Cup semi-final (--crowd), or when a log says (--replay). Around a rate they
/// fall independently of each other unless --arrivals says otherwise. Benchmark tools pace --workers instead;
/// a closed loop is among their ways, so that you can see what it hides.
///
/// Requests ask for the URL. In its path `{document}` stands for the number of a document and `{bytes}` for
/// its size: see --documents, --zipf and --sizes. Or the paths of a list (--url-list) or of a log
/// (--popularity).
///
/// People behave like this: a person comes for one request or a --session of several. Each request may take
/// several tries (--retry). A try ends with an answer or with the client's --timeout; the person leaves when
/// --patience ends.
///
/// The books: offered (tries) = completed (2xx, 3xx) + refused (503, 429) + timed out + abandoned + errors.
/// Unique offered are requests, their tries counted once. Goodput is what was completed within the --target.
/// What cannot be sent because the generator is full counts as its own error kind.
///
/// Several kinds of people: --classes FILE, a TOML file of `[[class]]` tables. Each has a `name`, keys that
/// are the long names of the options about when people come, what they ask for and what they do (`think =
/// "exp:8s"`; several values in an array, `true` for an option without value), and, unless it says itself
/// when its people come, a `weight`: its share of the people that the command line makes come (with --replay:
/// at the log's times). Names of files are as on the command line.
///
/// Several machines: each runs the same command with its --shard of the schedule from the same --start-at,
/// and `flashweir load merge` adds their --out files; histograms add exactly.
///
/// Times are written 500ms, 1.5s, 2m or 1h. Ctrl-C ends the run with a full report of what was done; a second
/// one ends it at once. Exit codes: 0 done, 1 failed or an assertion did not hold, 64 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "flashweir-load", bin_name = "flashweir load", after_help = MORE, after_long_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct CommandLine {
    #[command(subcommand)]
    with_results: Option<WithResults>,
    #[command(flatten)]
    run: RunArgs,
}

/// Command on the results of runs.
#[derive(Debug, clap::Subcommand)]
enum WithResults {
    Merge(merge::MergeArgs),
    Compare(compare::CompareArgs),
}

/// A run.
#[derive(Debug, clap::Args)]
#[group(skip)]
struct RunArgs {
    /// URL that people ask for: `http://HOST[:PORT]/PATH`, or https.
    ///
    /// `{document}` and `{bytes}` in the path are filled in; quote the URL then.
    #[arg(required = true)]
    url: Option<String>,
    #[command(flatten)]
    class: ClassArgs,
    /// Several kinds of people, each a `[[class]]` of a TOML file; the beginning of --help-all says how.
    #[arg(long, value_name = "FILE", help_heading = "What people do", conflicts_with_all = ["asking", "people"], hide_short_help = true)]
    classes: Option<PathBuf>,
    #[command(flatten)]
    transport: TransportArgs,
    /// Draws the moments, the people and what they ask for: the same seed is the same crowd.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        help_heading = "When people come",
        hide_short_help = true
    )]
    seed: u64,
    /// Send part I of N of the schedule, every N-th person.
    #[arg(long, value_name = "I/N", default_value = "1/1", value_parser = values::part,
          help_heading = "Several machines", hide_short_help = true)]
    shard: Part,
    /// Begin at this time: 2026-11-21T20:00:00Z, or seconds since 1970 [default: at once].
    #[arg(long, value_name = "TIME", value_parser = start_at::start_at, help_heading = "Several machines", hide_short_help = true)]
    start_at: Option<SystemTime>,
    /// When the crowd comes and leaves, to judge the recovery by, like 10s-20s [default: as the rate says].
    ///
    /// Recovered is the target when goodput and the 99th percentile of the latency are back to what they were
    /// before the crowd, three seconds in a row.
    #[arg(long, value_name = "FROM-TO", value_parser = values::crowd_window, help_heading = "Results", hide_short_help = true)]
    crowd_window: Option<CrowdWindow>,
    /// Print plain lines even on a terminal.
    #[arg(long, help_heading = "Results", hide_short_help = true)]
    no_live: bool,
    #[command(flatten)]
    ending: EndingArgs,
}

const MORE: &str = "`flashweir load --help-all` says more and has examples.";

const EXAMPLES: &str = "\
Examples:
  A steady rate:
    flashweir load http://127.0.0.1:8080/ --rate 200 --duration 30s
  A flash crowd of people who try again, and whether the service recovers:
    flashweir load http://127.0.0.1:8080/ --rate 50 --spike 500@10s --half-life 5s --duration 60s \\
      --patience exp:8s --retry backoff:500ms-10s --sources 4000
  An evening of 1998 in half a minute:
    flashweir load http://127.0.0.1:8080/ --crowd --squeeze 520 --peak 1000 --sources 4000
  Yesterday's log, ten times as fast:
    flashweir load http://127.0.0.1:8080 --replay access.log --speed-up 10
  Popular and rare pages of all sizes, from readers who stay:
    flashweir load 'http://127.0.0.1:3000/bytes/{bytes}?page={document}' --rate 100 --documents 5000 --zipf 0.8 \\
      --sizes pareto:1.3:1170 --session geometric:5 --think exp:8s
  What a closed loop makes of the same server:
    flashweir load http://127.0.0.1:8080/ --workers 50 --timing closed --connections keep-alive
  A gate in continuous integration:
    flashweir load http://127.0.0.1:8080/ --rate 200 --assert 'goodput_ratio >= 0.99' --assert 'p99 < 500ms'
  The first of two machines:
    flashweir load http://10.0.0.1/ --rate 20000 --shard 1/2 --start-at 2026-11-21T20:00:00Z --out one.json";

/// The program `flashweir-load`: parses its arguments, runs, and maps errors to exit codes.
#[must_use]
pub fn main() -> ExitCode {
    let command_line = match help::parse::<CommandLine>() {
        Ok(command_line) => command_line,
        Err(error) => return exit::after_parsing(&error),
    };
    match command_line.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::after_failure(&error, false),
    }
}

impl CommandLine {
    /// Runs the load, or what the sub-command says.
    ///
    /// # Errors
    /// Options that make no run, a target that cannot be reached, a result that cannot be handed over,
    /// assertions that do not hold.
    fn run(self) -> anyhow::Result<()> {
        match self.with_results {
            Some(WithResults::Merge(arguments)) => arguments.run(),
            Some(WithResults::Compare(arguments)) => arguments.run(),
            None => self.run.run(),
        }
    }
}

impl RunArgs {
    fn run(&self) -> anyhow::Result<()> {
        let mut inputs = Inputs::default();
        let plan = plan::plan(self, &mut inputs).map_err(|error| UsageError::new(format!("{error:#}")))?;
        let classes: Vec<_> = plan.classes.iter().map(|class| class.name.as_str()).collect();
        assertion::check(&self.ending.assertions, &classes, plan.crowd.is_some()).map_err(UsageError::new)?;
        self.ending.check_places()?;
        for note in inputs.notes() {
            eprintln!("{note}");
        }
        eprintln!("{}", plan::announcement(&plan));
        stop_on_interrupt(plan.stop.clone())?;
        let title = format!("flashweir load {}", self.url.as_deref().unwrap_or_default());
        let mut live = Live::start(title, !self.no_live, plan.stop.clone());
        let result = crate::run(plan, |progress| live.show(progress));
        live.end();
        self.ending.deliver(&result.map_err(as_usage)?)
    }
}

/// Converts errors in the options that only the run itself could find, certificates to trust for one.
fn as_usage(error: LoadError) -> anyhow::Error {
    match error {
        LoadError::Plan(_) | LoadError::Url { .. } => UsageError::new(error.to_string()).into(),
        other => other.into(),
    }
}

/// The first Ctrl-C ends the run with its report, the second the program.
fn stop_on_interrupt(stop: StopFlag) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let mut interrupt = {
        let _context = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?
    };
    // Ends with the program.
    let thread = std::thread::Builder::new().name("load-interrupt".to_owned());
    let waiting = thread.spawn(move || {
        runtime.block_on(async {
            interrupt.recv().await;
            stop.stop();
            interrupt.recv().await;
            live::give_terminal_back();
            std::process::exit(EXIT_INTERRUPTED);
        });
    });
    waiting.context("the load generator cannot start").map(drop)
}

/// 128 and the number of SIGINT, as shells count.
const EXIT_INTERRUPTED: i32 = 130;
