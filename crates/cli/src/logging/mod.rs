//! Messages on standard error.
//!
//! A separate thread writes them. Where standard error is a pipe whose reader stalls, a write blocks for as
//! long as that takes: the thread waits, and requests, planners and the admin listener go on. Lines beyond a
//! bound are dropped and counted.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};

use flashweir_config::{Log, LogFormat, LogLevel};
use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
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
    let lines =
        fmt::layer().with_writer(writer(io::stderr(), LINES_QUEUED)).with_ansi(io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // Fails only when a subscriber is set already, and then messages are heard all the same.
    let _set_before = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}

/// Waits until the lines so far are written, for a second at most: before the process ends.
pub(crate) fn flush() {
    drop(GUARD.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Lines that wait for standard error, at most: some 1 MB.
const LINES_QUEUED: usize = 4_096;

/// Ends the thread that writes, after the lines that it has.
static GUARD: Mutex<Option<WorkerGuard>> = Mutex::new(None);

fn writer(out: impl io::Write + Send + 'static, lines: usize) -> NonBlocking {
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(lines).thread_name("log");
    let (writer, guard) = builder.finish(out);
    let errors = writer.error_counter();
    flashweir_telemetry::count_dropped_lines(move || errors.dropped_lines() as u64);
    *GUARD.lock().unwrap_or_else(PoisonError::into_inner) = Some(guard);
    writer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::mpsc::{Receiver, channel};

    /// Takes a line only when it is allowed to.
    struct Stalled(Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _at_the_end = self.0.recv();
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// containerd/containerd#9342: nginx answered no request while nothing read its log.
    #[test]
    fn a_reader_that_stalls_costs_lines_and_no_time() {
        let (go_on, wait) = channel();
        let mut writer = writer(Stalled(wait), 2);
        let dropped = writer.error_counter();
        for _ in 0..10 {
            writer.write_all(b"a line\n").unwrap();
        }
        // Two wait, and one may be in the hands of the thread.
        assert!((7..=8).contains(&dropped.dropped_lines()), "{}", dropped.dropped_lines());
        drop(go_on);
        flush();
    }
}
