//! `flashweir origin`.

use anyhow::Context;
use flashweir_config::command::exit::UsageError;
use flashweir_config::command::numbers::within;
use flashweir_core::limits::{ORIGIN_BODY_BYTES, ORIGIN_WORK_MS};
use flashweir_runtime::{ReadyFile, outlive_user_signals};
use flashweir_testbed::origin::{Cold, Origin, Settings};
use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Serve HTTP/1.1 with a fixed amount of real work for each request, to have something to protect.
///
/// A stand-in for a forking application server: a fixed number of workers, first come first served, and every
/// connection accepted however long the queue gets (only the limit on open files ends it). It works on for
/// clients that have left. That is what makes such servers collapse under a crowd, so do not copy it.
///
/// `/healthz` answers at once, `/completed` with the number of requests completed, `/bytes/N` sends N bytes
/// after the work, any other path the usual number; `?ms=F` changes the work of one request, `?wait=F` its
/// wait, `?max_age=N` lets caches keep the answer for N seconds. `POST /workers/N` lets N of the workers work
/// on and sends the others home, which changes the capacity; `POST /cold/N` makes the next N requests as slow
/// as `--cold-requests` makes the first. The work is calibrated to this machine at start.
#[derive(Debug, clap::Args)]
pub(crate) struct OriginArgs {
    /// Where to listen; port 0 takes a free one, named on stdout.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
    /// Threads that work, one request at a time each.
    #[arg(long, value_name = "N", default_value = "1")]
    workers: NonZeroUsize,
    /// Processor time of each request, milliseconds.
    #[arg(long, value_name = "F", default_value = "5", value_parser = within(0.0, ORIGIN_WORK_MS))]
    work_ms: f64,
    /// How long a thread is then held without working, as by a database, milliseconds.
    #[arg(long, value_name = "F", default_value = "0", value_parser = within(0.0, ORIGIN_WORK_MS))]
    wait_ms: f64,
    /// Number of requests that are slow at first, as while caches, pools and compilers warm up.
    #[arg(long, value_name = "N", default_value_t = 0)]
    cold_requests: u64,
    /// How long each of those holds its thread, in place of its usual wait, milliseconds.
    #[arg(long, value_name = "F", default_value = "2000", value_parser = within(0.0, ORIGIN_WORK_MS))]
    cold_wait_ms: f64,
    /// Size of each answer's body, bytes.
    #[arg(long, value_name = "N", default_value_t = 1024,
          value_parser = clap::value_parser!(u64).range(0..=ORIGIN_BODY_BYTES))]
    body_bytes: u64,
    /// Do the work another origin does: the number it named on stdout. Calibrated at start unless given.
    #[arg(long, value_name = "F", value_parser = within(f64::MIN_POSITIVE, f64::MAX))]
    iterations_per_ms: Option<f64>,
    /// Write where it listens into FILE, as JSON, once it does.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

impl OriginArgs {
    /// Serves until SIGINT or SIGTERM.
    ///
    /// # Errors
    /// The address cannot be bound, or threads cannot be started.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Self { listen, workers, work_ms, wait_ms, body_bytes, iterations_per_ms, ready_file, .. } = self;
        let cold =
            Cold { requests: self.cold_requests, wait: Duration::from_secs_f64(self.cold_wait_ms / 1e3) };
        let ready_file = ready_file.map(|file| ReadyFile::prepare(&file)).transpose();
        let ready_file = ready_file.map_err(|error| UsageError::new(error.to_string()))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let iterations_per_ms = iterations_per_ms.unwrap_or_else(flashweir_testbed::origin::calibrate);
        let settings = Settings {
            listen,
            workers,
            work_ms,
            wait_ms,
            cold,
            body_bytes,
            iterations_per_ms: Some(iterations_per_ms),
        };
        let origin =
            Origin::start(settings).with_context(|| format!("the origin cannot start on {listen}"))?;
        runtime.block_on(async {
            let (mut interrupt, mut terminate) =
                (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
            outlive_user_signals()?;
            let mut stdout = std::io::stdout();
            // A supervisor may end us as soon as it reads this; one that does not read is served all the
            // same.
            let _ = writeln!(
                stdout,
                "origin on http://{} ({workers} workers, {work_ms} ms a request, {iterations_per_ms:.0} iterations a ms)",
                origin.address()
            );
            if let Some(file) = &ready_file {
                file.write(&[("listen", &[origin.address()])])?;
            }
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            anyhow::Ok(())
        })?;
        origin.shutdown();
        Ok(())
    }
}
