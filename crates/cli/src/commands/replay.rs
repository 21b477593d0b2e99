//! `flashweir replay`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};
use flashweir_config::{Config, Overrides};
use flashweir_gateway::sentry_policies;
use flashweir_wire::recorder::segment_path;
use flashweir_wire::recording::{Head, Segment};
use flashweir_wire::replay::{OtherPolicy, Replay, Summary};

use flashweir_config::command::exit::UsageError;

/// Let the planners decide again what they decided when `flashweir run --record FILE` recorded it, and
/// compare.
///
/// The same samples give the same plans, bit for bit: then there is one line, and the exit code is 0. Else it
/// prints where the plans part and in which fields, and the exit code is 1. Full segments beside FILE
/// (FILE.0, FILE.1, …) are read first.
#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The recording.
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Decide by this configuration instead of the recorded one, and tell where the decisions part. The
    /// samples are still those of gates that obeyed the recorded plans: what would have followed from other
    /// plans is not in them.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Also print how the planners were configured when the recording was made.
    #[arg(long)]
    configuration: bool,
}

impl ReplayArgs {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut replay = match &self.policy {
            Some(file) => Replay::with(other_policy(file)?),
            None => Replay::new(),
        };
        let read = read_all(&self.recording, &mut replay)?;
        let (summary, took_s) = (replay.summary(), begun.elapsed().as_secs_f64());
        if self.configuration {
            println!("{}", read.head.configuration);
        }
        read.trouble.iter().for_each(|trouble| println!("{trouble}"));
        show_partings(summary, self.policy.is_none());
        let speed = summary.span.as_secs_f64() / took_s.max(1e-9);
        let of = format!(
            "{} plans of {} planners over {:.1} s, recorded by flashweir {} under configuration {:016x}",
            summary.plans,
            summary.planners,
            summary.span.as_secs_f64(),
            read.head.build,
            read.head.configuration_hash()
        );
        if summary.plans == 0 {
            bail!("{}: there are no plans in it", self.recording.display());
        }
        match (&self.policy, summary.different) {
            (Some(policy), different) => {
                println!(
                    "{different} of {of} would be others under {} ({speed:.0} times real time)",
                    policy.display()
                );
            }
            (None, 0) => println!("all {of} are the same, bit for bit ({speed:.0} times real time)"),
            (None, different) => bail!("{different} of {of} differ{}", reason(summary)),
        }
        Ok(())
    }
}

/// Reason for plans that differ although the code is the same.
fn reason(summary: &Summary) -> String {
    let mut reasons = String::new();
    if summary.begins_in_the_middle {
        reasons.push_str(
            "; the recording begins in the middle: what the planners had learned before is not known",
        );
    }
    if summary.lost > 0 {
        reasons.push_str(&format!("; {} records were lost while it was made", summary.lost));
    }
    reasons
}

fn show_partings(summary: &Summary, with_fields: bool) {
    for parting in &summary.partings {
        println!("{parting}");
        for found in parting.differences.iter().filter(|_| with_fields) {
            println!("  {}: recorded {}, now {}", found.field, found.first, found.second);
        }
    }
    if summary.partings.len() == flashweir_core::limits::REPLAY_PARTINGS {
        println!("further places where plans part are not shown");
    }
}

/// Planners that a configuration file asks for.
fn other_policy(file: &Path) -> anyhow::Result<OtherPolicy> {
    let config = Config::load(Some(file), &Overrides::default())?;
    let flash_crowd = config.flash_crowd.settings(1);
    let sentries: std::collections::BTreeMap<_, _> = sentry_policies(&config).collect();
    if flash_crowd.is_none() && sentries.is_empty() {
        let file = file.display();
        return Err(UsageError::new(format!(
            "{file}: asks for no planner: detection and every service's policing are off"
        ))
        .into());
    }
    let candidate = config.flash_crowd_candidate.as_ref();
    let flash_crowd_candidate = candidate.and_then(|candidate| candidate.settings(1));
    Ok(OtherPolicy { flash_crowd, flash_crowd_candidate, sentries })
}

/// Content of the segments that were read.
struct Read {
    head: Head,
    trouble: Vec<String>,
}

/// Reads the segments in turn. A segment that is cut off is read until there.
fn read_all(file: &Path, replay: &mut Replay) -> anyhow::Result<Read> {
    let last = std::fs::read(file).with_context(|| file.display().to_string())?;
    let head = open(file, &last)?.head().clone();
    let mut trouble = Vec::new();
    for number in 0..head.segment {
        let before = segment_path(file, number);
        let Ok(bytes) = std::fs::read(&before) else { continue };
        let segment = open(&before, &bytes)?;
        // One of an earlier run has nothing to do with this one.
        if segment.head().run == head.run {
            trouble.extend(read(&before, segment, replay));
        }
    }
    trouble.extend(read(file, open(file, &last)?, replay));
    Ok(Read { head, trouble })
}

fn open<'a>(file: &Path, bytes: &'a [u8]) -> anyhow::Result<Segment<'a>> {
    Segment::open(bytes).with_context(|| file.display().to_string())
}

/// Reads a segment into `replay`; returns the segment's fault, if it has one.
fn read(file: &Path, mut segment: Segment<'_>, replay: &mut Replay) -> Option<String> {
    loop {
        match segment.records() {
            Ok(Some(records)) => records.into_iter().for_each(|record| replay.take(record)),
            Ok(None) if segment.is_ended() => return None,
            Ok(None) => {
                return Some(format!(
                    "{}: it has no end: cut off there, or still being written",
                    file.display()
                ));
            }
            Err(error) => return Some(format!("{}: {error}; what is before it was read", file.display())),
        }
    }
}
