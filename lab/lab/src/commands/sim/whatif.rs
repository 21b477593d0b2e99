//! `--whatif`: a recorded log against the gateway's policy.

mod crowd;
mod refusals;
mod report;

use anyhow::{Context as _, ensure};
use flashweir_admission::flash_crowd::{Baseline, Settings};
use flashweir_config::command::exit::UsageError;
use flashweir_config::{Config, Overrides};
use flashweir_core::Duration;
use flashweir_load::command::recorded::{LogFormat, UNKNOWN_TO_LOGS, format_help, problem_notes};
use flashweir_sim::request::{
    self, Departed, FlashCrowdPolicy, NetworkModel, PipelinePolicy, Policy, SentryPolicy, ServerModel,
};
use flashweir_workload::recording::{Options, Recording};
use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A recorded log against a policy.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A recorded log")]
#[group(skip)]
pub(crate) struct WhatIfArgs {
    /// Send the requests of a web server's log against the policy of --config, at the times the log has.
    ///
    /// Prints which documents would have been refused, how often and when; never which client asked. A log
    /// contains nothing about the service behind it, so --service-ms and --workers are assumptions, and the
    /// answer is as good as they are. Nothing is tried again: the log contains all arrivals.
    #[arg(long, value_name = "LOG", requires = "config")]
    whatif: Option<PathBuf>,
    /// The gateway's configuration: the whole pipeline of its first service, classes included, and its bound
    /// on requests in flight.
    ///
    /// A log contains method and path, so classes by host, field, cookie, key or network take no request
    /// here.
    #[arg(long, value_name = "FILE", requires = "whatif")]
    config: Option<PathBuf>,
    /// Format of the log: `auto`, a name, or a pattern as nginx's `log_format` writes it.
    #[arg(long, value_parser = LogFormat::from_str, default_value = "auto", requires = "whatif",
          value_name = "NAME|PATTERN", long_help = format_help())]
    format: LogFormat,
    /// F times as many requests; the copies come within a second of the original.
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true,
          value_parser = flashweir_config::command::numbers::positive, requires = "whatif")]
    scale: f64,
    /// Time runs F times faster.
    #[arg(long, value_name = "F", default_value_t = 1.0, allow_negative_numbers = true,
          value_parser = flashweir_config::command::numbers::positive, requires = "whatif")]
    squeeze: f64,
    /// Assume that a worker needs MS milliseconds for a request, on average (exponential).
    #[arg(long, value_name = "MS", default_value_t = 20.0, allow_negative_numbers = true,
          value_parser = flashweir_config::command::numbers::within(0.001, 3_600_000.0), requires = "whatif")]
    service_ms: f64,
    /// Assume N workers, each with its own processor; further requests wait in their order.
    #[arg(long, value_name = "N", default_value = "4", requires = "whatif")]
    workers: NonZeroU32,
}

impl WhatIfArgs {
    /// Runs it and prints what was found; tables go to `out`.
    ///
    /// # Errors
    /// A log or configuration that cannot be read, more requests than are kept, results that cannot be
    /// written.
    pub(crate) fn run(&self, out: Option<&Path>, as_json: bool) -> anyhow::Result<()> {
        // The parser sees to it that both are there when no scenario is.
        let (Some(log), Some(config)) = (&self.whatif, &self.config) else {
            return Err(UsageError::new("--whatif needs --config").into());
        };
        let config = Config::load(Some(config), &Overrides::default())?;
        let recording = self.recording(log).map_err(|error| UsageError::new(format!("{error:#}")))?;
        if let Some(directory) = out {
            super::judge::make_directory(directory)?;
        }
        let work = Duration::from_secs_f64(self.service_ms / 1e3);
        let crowd = crowd::Crowd::new(&recording, &config, self.scale, work)
            .map_err(|error| UsageError::new(format!("{}: {error:#}", log.display())))?;
        let scenario = request::Scenario {
            schedule: crowd.schedule()?,
            classes: crowd.classes.clone(),
            seed: SEED,
            network: NetworkModel::Delay(Duration::ZERO),
            policy: policy(&config),
            requests_in_flight: Some(config.bounds.max_requests_in_flight as u64),
            server: ServerModel {
                contention: 0.0,
                departed: Departed::WorksOn,
                ..ServerModel::first_come(self.workers.get(), self.workers.get())
            },
            faults: Vec::new(),
            bin: crowd.bin(),
        };
        let outcome = request::run(&scenario).map_err(|error| UsageError::new(error.to_string()))?;
        let refusals = refusals::Refusals { crowd: &crowd, outcome: &outcome, assumption: self.assumption() };
        let text = if as_json { refusals.json()? } else { refusals.text() };
        std::io::stdout().write_all(text.as_bytes()).context("the result cannot be printed")?;
        if let Some(directory) = out {
            refusals.write(directory)?;
            report::write(&refusals, directory)?;
        }
        Ok(())
    }

    fn recording(&self, log: &Path) -> anyhow::Result<Recording> {
        let name = log.display();
        let file = std::fs::File::open(log).with_context(|| format!("{name} cannot be opened"))?;
        let (kind, recording) =
            self.format.read(file, &Options::default()).with_context(|| name.to_string())?;
        eprintln!("{name}: {kind}; {UNKNOWN_TO_LOGS}");
        for note in problem_notes(&name.to_string(), &recording, "") {
            eprintln!("{note}");
        }
        let recording = recording.squeeze(self.squeeze).context("--squeeze")?;
        ensure!(recording.length() <= WEEK, "{name}: it goes on for more than a week; see --squeeze");
        Ok(recording)
    }

    /// Assumptions on which the answer rests.
    fn assumption(&self) -> String {
        let capacity = f64::from(self.workers.get()) * 1e3 / self.service_ms;
        format!(
            "assumed, not measured: {} at work at once, {} ms for a request (at most {capacity:.0} a second); people wait {} s and \
             do not try again; classes are told by method and path alone",
            self.workers,
            self.service_ms,
            crowd::TIMEOUT.as_secs()
        )
    }
}

/// The configured policy, as the gateway would run it for its first service. Shadow is left out: the question
/// is what would be refused.
fn policy(config: &Config) -> Policy {
    let workers = config.gateway.workers.map_or(1, |workers| workers.get());
    let flash_crowd = config.flash_crowd.settings(workers).map(|settings| FlashCrowdPolicy {
        settings: Settings { shadow: false, ..settings },
        baseline: Baseline::default(),
        first_tick: Duration::ZERO,
    });
    let service = &config.services[0];
    let sentry = service.sentry.policy(&service.classes);
    let sentry = sentry.map(|policy| SentryPolicy { workers, ..SentryPolicy::new(policy) });
    Policy::Pipeline(PipelinePolicy { flash_crowd, sentry })
}

/// The log decides who comes; this draws the assumed work and the gate's keys.
const SEED: u64 = 1;
/// The simulator's longest run.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);
