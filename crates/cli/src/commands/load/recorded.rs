//! How the logs that options name are read.

use super::inputs::{self, Inputs};
use anyhow::Context;
use clap::ValueEnum;
use flashweir_workload::recording::{Format, Methods, Options, Problems, Recording, Stamps};
use std::fmt::Display;
use std::path::Path;

/// How recorded logs are read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "When people come")]
#[group(skip)]
#[command(group = clap::ArgGroup::new("log").args(["replay", "popularity"]).multiple(true))]
pub(crate) struct RecordedArgs {
    /// Format of the log.
    ///
    /// `auto` looks at its beginning. `world-cup` is the 20-byte binary record of the 1998 logs. Compressed logs
    /// are piped: `gzip -dc access.log.gz | flashweir load URL --replay -`.
    #[arg(long, value_enum, default_value_t = LogFormat::Auto, requires = "log")]
    format: LogFormat,
    /// Which of the log's requests count.
    ///
    /// A log holds no bodies, so every replayed request is sent with the --method of this run.
    #[arg(long, value_enum, default_value_t = LogMethods::Safe, requires = "log")]
    methods: LogMethods,
    /// Treatment of stamps in whole seconds.
    #[arg(long, value_enum, default_value_t = LogStamps::Spread, requires = "replay")]
    stamps: LogStamps,
    /// End at the log's first line that does not parse, or whose time goes backwards.
    ///
    /// Without it such lines are counted, and the first five are shown with their numbers.
    #[arg(long, requires = "log")]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// The format in which the log begins.
    Auto,
    /// As Apache and nginx write, the short form.
    Common,
    /// The long form, with referrer and agent.
    Combined,
    /// Tab-separated, as the NASA log of 1995.
    NasaTsv,
    /// 20-byte records, as the World Cup logs of 1998.
    WorldCup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogMethods {
    /// GET and HEAD.
    Safe,
    /// Every one.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogStamps {
    /// The requests of one second are spread evenly over it.
    Spread,
    /// They all come at its beginning.
    AsWritten,
}

impl RecordedArgs {
    /// Reads a log and notes what was wrong in it.
    ///
    /// # Errors
    /// A log that cannot be read or holds nothing to play; with `--strict` the first problem.
    pub(crate) fn read(&self, path: &Path, inputs: &mut Inputs) -> anyhow::Result<Recording> {
        let name = inputs::name(path);
        let log = inputs.open(path)?;
        let recording = match self.format() {
            Some(format) => Recording::read(log, format, &self.options()),
            None => Recording::read_detecting(log, &self.options()).map(|(_, recording)| recording),
        };
        let recording = recording.with_context(|| name.clone())?;
        note_problems(&name, recording.lines(), recording.problems(), inputs);
        Ok(recording)
    }

    fn options(&self) -> Options {
        Options {
            methods: match self.methods {
                LogMethods::Safe => Methods::SafeOnly,
                LogMethods::All => Methods::All,
            },
            stamps: match self.stamps {
                LogStamps::Spread => Stamps::Spread,
                LogStamps::AsWritten => Stamps::AsWritten,
            },
            strict: self.strict,
        }
    }

    fn format(&self) -> Option<Format> {
        match self.format {
            LogFormat::Auto => None,
            LogFormat::Common | LogFormat::Combined => Some(Format::Combined),
            LogFormat::NasaTsv => Some(Format::NasaTsv),
            LogFormat::WorldCup => Some(Format::WorldCupBinary),
        }
    }
}

fn note_problems(name: &str, lines: u64, problems: &Problems, inputs: &mut Inputs) {
    let Problems { unparsed, backwards, left_out, .. } = problems;
    if *unparsed > 0 {
        let what = format!("lines that do not parse: {unparsed} of {lines}, left out");
        inputs.note(with_first(name, &what, *unparsed, &problems.first_unparsed));
    }
    if *backwards > 0 {
        let what = format!("times that go backwards: {backwards}, played at the latest time above them");
        inputs.note(with_first(name, &what, *backwards, &problems.first_backwards));
    }
    if *left_out > 0 {
        inputs.note(format!(
            "{name}: requests other than GET and HEAD: {left_out}, left out (--methods all plays them)"
        ));
    }
}

fn with_first(name: &str, what: &str, count: u64, first: &[impl Display]) -> String {
    let shown = first.iter().map(|problem| format!("\n  {problem}")).collect::<String>();
    let more = if count > first.len() as u64 { "\n  ..." } else { "" };
    format!("{name}: {what}:{shown}{more}")
}
