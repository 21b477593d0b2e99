//! `flashweir load`.

mod arrivals;
mod output;
pub(crate) mod values;

use crate::exit::UsageError;
use anyhow::Context;
use arrivals::ArrivalArgs;
use clap::ValueEnum;
use flashweir_load::{Connections, LoadPlan, StopFlag, Target};
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use output::ProgressLines;
use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Duration;
use values::{duration, header};

/// Send a crowd to a server and tell the truth about what became of everybody.
///
/// Open loop: the moments at which people come are fixed before the run, so a slow server does not slow the
/// crowd down. Latency counts from the moment a person was to come. People whose whole answer has not arrived
/// within their patience close the connection and leave.
///
/// Everybody is accounted for: offered = completed + refused (503, 429) + timed out + errors. Goodput is what
/// was completed (2xx, 3xx) within the target. A run whose generator could not keep up is called saturated:
/// its figures say more about the generator than about the server.
///
/// Ctrl-C ends the run with a full report of what was done; a second one at once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// What people ask for: `http://HOST[:PORT]/PATH`.
    url: String,
    #[command(flatten)]
    arrivals: ArrivalArgs,
    /// How long people wait for the whole answer.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    patience: Duration,
    /// An answer completed within this time is goodput.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    target: Duration,
    /// Client addresses people come from, of 127.77.0.0/16; more than one needs a target on 127.0.0.0/8.
    #[arg(long, value_name = "N", default_value_t = 1)]
    sources: u32,
    /// A new connection for each person, or idle ones reused.
    #[arg(long, value_enum, default_value_t = ConnectionsArg::New)]
    connections: ConnectionsArg,
    /// Draws the moments and the addresses: the same seed is the same crowd.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads that send.
    #[arg(long, value_name = "N", default_value = "1")]
    threads: NonZeroUsize,
    /// Method of the requests.
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: Method,
    /// A field to send; may be repeated.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Print the result as JSON on stdout.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  flashweir load http://127.0.0.1:8080/ --rate 200 --duration 30s
  flashweir load http://127.0.0.1:8080/ --rate 50 --step 500@10s --step 50@20s --duration 30s
  flashweir load http://127.0.0.1:8080/ --crowd --squeeze 520 --peak 1000 --sources 4000
  flashweir load http://127.0.0.1:8080/ --profile counts.csv --column requests --squeeze 480 --peak 2000 --json";

/// Whether people share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConnectionsArg {
    /// A new connection for each person.
    New,
    /// Idle ones reused.
    KeepAlive,
}

impl LoadArgs {
    /// Runs the load and prints its result.
    ///
    /// # Errors
    /// Options that make no run, a target that cannot be reached, a result that cannot be printed.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let plan = self.plan().map_err(|error| UsageError::new(format!("{error:#}")))?;
        stop_on_interrupt(plan.stop.clone())?;
        let mut lines = ProgressLines::new();
        let result = flashweir_load::run(plan, |progress| lines.show(progress));
        lines.end();
        let result = result?;
        if result.saturated {
            eprintln!(
                "generator saturated: it could not keep up, so these figures say more about it than the target"
            );
        }
        let text = if self.json { serde_json::to_string(&result)? + "\n" } else { output::table(&result) };
        std::io::stdout().write_all(text.as_bytes()).context("the result cannot be printed")
    }

    fn plan(&self) -> anyhow::Result<LoadPlan> {
        let schedule = self.arrivals.schedule(self.seed)?;
        let mut target = Target::parse(&self.url)?;
        target.method = self.method.clone();
        for (name, value) in &self.header {
            target.set_header(name.clone(), value.clone());
        }
        let plan = LoadPlan {
            patience: self.patience,
            good_within: self.target,
            sources: self.sources,
            connections: match self.connections {
                ConnectionsArg::New => Connections::New,
                ConnectionsArg::KeepAlive => Connections::KeepAlive,
            },
            seed: self.seed,
            threads: self.threads,
            ..LoadPlan::new(target, schedule)
        };
        plan.check()?;
        Ok(plan)
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
    std::thread::Builder::new().name("load-interrupt".to_owned()).spawn(move || {
        runtime.block_on(async {
            interrupt.recv().await;
            stop.stop();
            interrupt.recv().await;
            std::process::exit(EXIT_INTERRUPTED);
        });
    })?;
    Ok(())
}

/// 128 and the number of SIGINT, as shells count.
const EXIT_INTERRUPTED: i32 = 130;
