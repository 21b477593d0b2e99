//! Progress of a figure on standard error: a line at its end, and one each ten seconds until then, whether or
//! not a run ends.

use crate::experiments::Progress;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two lines; where standard error is a terminal, the line is written again each second.
const INTERVAL: Duration = Duration::from_secs(10);
const INTERVAL_ON_TERMINAL: Duration = Duration::from_secs(1);

/// Runs of the present step of the figure that are over, and all of it.
static DONE: AtomicUsize = AtomicUsize::new(0);
static OF: AtomicUsize = AtomicUsize::new(0);

/// Takes the progress of a laboratory.
pub(super) fn record(progress: Progress) {
    DONE.store(progress.done, Ordering::Relaxed);
    OF.store(progress.of, Ordering::Relaxed);
}

/// A figure that runs.
#[derive(Debug)]
pub(super) struct ProgressLines {
    end: Sender<()>,
    writer: JoinHandle<()>,
}

impl ProgressLines {
    /// Shows the progress of the figure until [`end`](Self::end).
    pub(super) fn begin(id: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let interval = if is_terminal { INTERVAL_ON_TERMINAL } else { INTERVAL };
        record(Progress { done: 0, of: 0 });
        Self::every(interval, move |elapsed, is_last| {
            let progress = Progress { done: DONE.load(Ordering::Relaxed), of: OF.load(Ordering::Relaxed) };
            let line = line(id, progress, elapsed, is_last);
            let (before, after) = match (is_terminal, is_last) {
                (true, false) => ("\r\x1b[K", ""),
                (true, true) => ("\r\x1b[K", "\n"),
                (false, _) => ("", "\n"),
            };
            // Not written when standard error is closed.
            let _unwritten = write!(std::io::stderr(), "{before}{line}{after}");
        })
    }

    /// Calls `write` with the time since the beginning each interval, and with true at the end.
    fn every(interval: Duration, mut write: impl FnMut(Duration, bool) + Send + 'static) -> Self {
        let (end, ended) = channel();
        let start = Instant::now();
        let writer = std::thread::spawn(move || {
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                write(start.elapsed(), false);
            }
            write(start.elapsed(), true);
        });
        Self { end, writer }
    }

    /// Writes the last line.
    pub(super) fn end(self) {
        drop(self.end);
        // A panic of the writer loses progress lines only.
        let _ended = self.writer.join();
    }
}

fn line(id: &str, Progress { done, of }: Progress, elapsed: Duration, is_last: bool) -> String {
    let seconds = elapsed.as_secs_f64();
    match (is_last, of) {
        (true, _) => format!("{id}: done in {seconds:.1} s"),
        (false, 0) => format!("{id}: {seconds:.0} s"),
        (false, _) => format!("{id}: {seconds:.0} s, {done} of {of} runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_the_runs_are_and_how_long_they_took() {
        let seconds = Duration::from_secs;
        assert_eq!(line("X", Progress { done: 2, of: 9 }, seconds(20), false), "X: 20 s, 2 of 9 runs");
        // Before the first run of a step is over, and for what is measured.
        assert_eq!(line("X", Progress { done: 0, of: 0 }, seconds(10), false), "X: 10 s");
        assert_eq!(line("X", Progress { done: 9, of: 9 }, seconds(61), true), "X: done in 61.0 s");
    }

    /// Goal: a figure whose runs take long gives a sign all the same, and one at its end. Method: no run is
    /// over while four lines are awaited.
    #[test]
    fn there_is_a_sign_without_any_run_that_ends() {
        let (wrote, lines) = channel();
        let shown = ProgressLines::every(Duration::from_millis(1), move |_, is_last| {
            // The receiver is there until the end of the test.
            wrote.send(is_last).expect("a receiver");
        });
        assert_eq!(lines.iter().take(4).collect::<Vec<_>>(), [false; 4]);
        shown.end();
        assert_eq!(lines.iter().last(), Some(true));
    }
}
