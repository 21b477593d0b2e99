//! Messages on standard error.
//!
//! A separate thread writes them. Where standard error is a pipe whose reader stalls, a write blocks for as long as that takes: the
//! thread waits, and requests, planners and the admin listener go on. Lines beyond a bound are dropped, and counted in the log.

use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use flashweir_config::{Log, LogFormat, LogLevel};
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
    let lines = fmt::layer().with_writer(writer()).with_ansi(io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // Fails only when a subscriber is set already, and then messages are heard all the same.
    let _set_before = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}

/// Waits until the lines so far are written, for a moment at most: before the process ends.
pub(crate) fn flush() {
    let Some(LogWriter::Queue(queue)) = WRITER.get() else { return };
    let (done, is_done) = channel();
    // A full queue, or a stalled reader, is not waited for.
    if queue.try_send(Entry::Flush(done)).is_ok() {
        let _late = is_done.recv_timeout(FLUSH_TIMEOUT);
    }
}

/// Lines that wait for standard error, at most: some 1 MB.
const LINES_QUEUED: usize = 4_096;
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

static WRITER: OnceLock<LogWriter> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

enum Entry {
    Line(Vec<u8>),
    Flush(Sender<()>),
}

/// The way of a line to standard error.
#[derive(Clone)]
enum LogWriter {
    Queue(SyncSender<Entry>),
    /// Where no thread could be started.
    Direct,
}

fn writer() -> impl Fn() -> LogWriter {
    let writer = WRITER.get_or_init(|| {
        let (queue, entries) = sync_channel(LINES_QUEUED);
        let thread = thread::Builder::new().name("log".to_owned());
        let started = thread.spawn(move || write_all(&entries, &mut io::stderr()));
        started.map_or(LogWriter::Direct, |_| LogWriter::Queue(queue))
    });
    || writer.clone()
}

fn write_all(entries: &Receiver<Entry>, out: &mut impl Write) {
    for entry in entries {
        match entry {
            // A full disk, or no reader at all, is no reason to stop serving.
            Entry::Line(line) => {
                let _lost = out.write_all(&line);
            }
            Entry::Flush(done) => {
                let _late = done.send(());
            }
        }
        let dropped = DROPPED.swap(0, Relaxed);
        if dropped > 0 {
            let _lost = writeln!(out, "{dropped} lines of the log were dropped: standard error took none");
        }
    }
}

impl Write for LogWriter {
    /// Takes a whole line: the subscriber formats it first.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self {
            Self::Queue(queue) => {
                if queue.try_send(Entry::Line(line.to_vec())).is_err() {
                    DROPPED.fetch_add(1, Relaxed);
                }
                Ok(line.len())
            }
            Self::Direct => io::stderr().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// containerd/containerd#9342: nginx answered no request while nothing read its log.
    #[test]
    fn a_reader_that_stalls_costs_lines_and_no_time() {
        let (queue, entries) = sync_channel(2);
        let mut writer = LogWriter::Queue(queue);
        for line in ["a\n", "b\n", "c\n"] {
            writer.write_all(line.as_bytes()).unwrap();
        }
        drop(writer);
        let mut out = Vec::new();
        write_all(&entries, &mut out);
        let dropped = "1 lines of the log were dropped: standard error took none\n";
        assert_eq!(String::from_utf8(out).unwrap(), format!("a\n{dropped}b\n"));
    }
}
