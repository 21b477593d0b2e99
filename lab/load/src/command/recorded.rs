//! Reading of the logs that options name.

use super::inputs::{self, Inputs};
use anyhow::Context;
use clap::ValueEnum;
use flashweir_workload::recording::{
    Format, Methods, Options, Pattern, PatternError, Problems, Recording, RecordingError, Stamps,
    UnknownFormatName,
};
use std::fmt::Display;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

/// How recorded logs are read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "When people come")]
#[group(skip)]
#[command(group = clap::ArgGroup::new("log").args(["replay", "popularity"]).multiple(true))]
pub(crate) struct RecordedArgs {
    /// Format of the log: `auto`, a name, or a pattern as nginx's `log_format` writes it.
    #[arg(long, value_parser = LogFormat::from_str, default_value = "auto", requires = "log",
          value_name = "NAME|PATTERN", long_help = format_help(), hide_short_help = true)]
    format: LogFormat,
    /// Which of the log's requests count.
    ///
    /// A log holds no bodies, so every replayed request is sent with the --method of this run.
    #[arg(long, value_enum, default_value_t = LogMethods::Safe, requires = "log", hide_short_help = true)]
    methods: LogMethods,
    /// Treatment of stamps in whole seconds; stamps with fractions of a second are played as they are.
    #[arg(long, value_enum, default_value_t = LogStamps::Spread, requires = "replay", hide_short_help = true)]
    stamps: LogStamps,
    /// End at the log's first line that does not parse, or whose time goes backwards.
    ///
    /// Without it such lines are counted, and the first five are shown with their numbers.
    #[arg(long, requires = "log", hide_short_help = true)]
    strict: bool,
}

/// Source of a log's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// By the log's beginning.
    Auto,
    /// A format that has a name.
    Named(Format),
    /// A pattern as nginx's `log_format` writes it.
    Pattern(Pattern),
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
        let (kind, recording) =
            self.format.read(inputs.open(path)?, &self.options()).with_context(|| name.clone())?;
        inputs.note(format!(
            "{name}: {kind}; {UNKNOWN_TO_LOGS}: see --patience, --sources, --header and --body"
        ));
        let notes = problem_notes(&name, &recording, " (--methods all plays them)");
        notes.into_iter().for_each(|note| inputs.note(note));
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
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if text.contains('$') {
            return text.parse().map(Self::Pattern).map_err(|error: PatternError| error.to_string());
        }
        text.parse().map(Self::Named).map_err(|error: UnknownFormatName| error.to_string())
    }
}

impl LogFormat {
    /// Reads a log, and says what it was read as and what such logs lack.
    ///
    /// # Errors
    /// As [`Recording::read`].
    pub fn read(&self, log: impl Read, options: &Options) -> Result<(String, Recording), RecordingError> {
        let (format, recording) = match self {
            Self::Auto => Recording::read_detecting(log, options)?,
            Self::Named(format) => (*format, Recording::read(log, *format, options)?),
            Self::Pattern(pattern) => {
                return Ok((
                    "read by the pattern".to_owned(),
                    Recording::read_pattern(log, pattern, options)?,
                ));
            }
        };
        let lacks = format.lacks();
        let separator = if lacks.is_empty() { "" } else { "; " };
        Ok((format!("read as {format} ({}){separator}{lacks}", format.writer()), recording))
    }
}

/// The facts that every log lacks.
pub const UNKNOWN_TO_LOGS: &str =
    "no log says how long people wait, where they come from, and which fields and bodies they send";

/// The help for `--format`, with the names of the table by which formats are recognised.
#[must_use]
pub fn format_help() -> String {
    let known = Format::all().map(|format| format!("\n  {format:<11} {}", format.writer()));
    format!(
        "Format of the log: `auto`, a name, or a pattern as nginx's `log_format` writes it.\n\n\
         `auto` looks at the log's beginning. `common` is another name for combined, `iis` for w3c. A pattern needs a time \
         ($time_local, $time_iso8601 or $msec) and $request, or $request_method and $request_uri (or $uri, $args); it is \
         written in single quotes. Logs that gzip or zstd compressed are read as they are.\n{}",
        known.collect::<String>()
    )
}

/// Notes on the faults of a log and on the parts left out; `remedy` follows the count of requests that may
/// change something.
#[must_use]
pub fn problem_notes(name: &str, recording: &Recording, remedy: &str) -> Vec<String> {
    let problems = recording.problems();
    let Problems { unparsed, backwards, left_out, elsewhere, .. } = problems;
    let mut notes = Vec::new();
    if *unparsed > 0 {
        let what = format!("lines that do not parse: {unparsed} of {}, left out", recording.lines());
        notes.push(with_first(name, &what, *unparsed, &problems.first_unparsed));
    }
    if *backwards > 0 {
        let what = format!("times that go backwards: {backwards}, played at the latest time above them");
        notes.push(with_first(name, &what, *backwards, &problems.first_backwards));
    }
    if *left_out > 0 {
        notes.push(format!("{name}: requests other than GET and HEAD: {left_out}, left out{remedy}"));
    }
    if *elsewhere > 0 {
        notes.push(format!(
            "{name}: requests to other hosts than the first one's, or answered by the browser's cache: {elsewhere}, left out"
        ));
    }
    notes
}

fn with_first(name: &str, what: &str, count: u64, first: &[impl Display]) -> String {
    let shown = first.iter().map(|problem| format!("\n  {problem}")).collect::<String>();
    let more = if count > first.len() as u64 { "\n  ..." } else { "" };
    format!("{name}: {what}:{shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_auto_a_name_or_a_pattern() {
        assert_eq!("auto".parse(), Ok(LogFormat::Auto));
        assert_eq!("iis".parse(), Ok(LogFormat::Named(Format::W3c)));
        assert!(matches!("[$time_local] $request".parse(), Ok(LogFormat::Pattern(_))));
        assert!("apache".parse::<LogFormat>().unwrap_err().contains("expected har, cloudfront, w3c"));
        assert!("$request".parse::<LogFormat>().unwrap_err().contains("has no time"));
    }

    #[test]
    fn help_and_manual_name_every_format() {
        let manual = include_str!("../../../../docs/load.md");
        for format in Format::all() {
            assert!(format_help().contains(&format!("\n  {format} ")), "{format}");
            assert!(manual.contains(&format!("\n| `{format}`")), "docs/load.md has no row for {format}");
        }
    }
}
