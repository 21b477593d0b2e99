//! Messages on standard error.
//!
//! A separate thread writes them. Where standard error is a pipe whose reader stalls, a write blocks for as
//! long as that takes: the thread waits, and requests, planners and the admin listener go on. Lines beyond a
//! bound are dropped and counted.

mod journal;

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flashweir_config::command::environment;
use flashweir_config::{Log, LogFormat, LogLevel};
use flashweir_runtime::{Drain, LineQueue};
use journal::Journal;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// Sends events to standard error from now on. Libraries beside our own are heard from warnings on, because
/// their lower levels name clients.
pub(crate) fn start(log: &Log) {
    let level = match log.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let filter = Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("flashweir", level);
    let queue = queue(io::stderr(), LINES_QUEUED);
    let lines = fmt::layer().with_writer(move || queue.clone()).with_ansi(io::stderr().is_terminal());
    let journal = environment::journal_stream().and_then(|stream| Journal::for_stream(&stream));
    let lines = match log.format {
        LogFormat::Text => match journal {
            Some(journal) => lines.event_format(journal).boxed(),
            None => lines.boxed(),
        },
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // Fails only when a subscriber is set already, and then messages are heard all the same.
    let _set_before = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}

/// Waits until the lines so far are written, for a second at most: before the process ends.
pub(crate) fn flush() {
    if let Some(drain) = DRAIN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        drain.wait(FLUSH_WITHIN);
    }
}

/// Lines that wait for standard error, at most: some 1 MB.
const LINES_QUEUED: usize = 4_096;
/// Time that the last lines get to be written: a reader that stalls does not keep the process from ending.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);

/// The thread that writes.
static DRAIN: Mutex<Option<Drain>> = Mutex::new(None);

fn queue(out: impl io::Write + Send + 'static, lines: usize) -> LineQueue {
    let (queue, drain) = flashweir_runtime::line_queue("log", out, lines);
    let counted = queue.clone();
    flashweir_telemetry::count_dropped_lines(move || counted.dropped_lines());
    *DRAIN.lock().unwrap_or_else(PoisonError::into_inner) = Some(drain);
    queue
}
