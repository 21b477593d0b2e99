//! What a run says while it goes on and at its end.

use flashweir_load::{LoadResult, Percentiles, Progress};
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Progress on stderr: one line that renews itself on a terminal, one line a second elsewhere.
pub(crate) struct ProgressLines {
    on_terminal: bool,
    next_line: Duration,
}

impl ProgressLines {
    pub(crate) fn new() -> Self {
        Self { on_terminal: io::stderr().is_terminal(), next_line: LINE_EVERY }
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        let mut stderr = io::stderr();
        // A closed stderr is no reason to end the run.
        let _ = if self.on_terminal {
            write!(stderr, "\r\x1b[K{}", line(progress)).and_then(|()| stderr.flush())
        } else if progress.elapsed >= self.next_line {
            self.next_line = progress.elapsed + LINE_EVERY;
            writeln!(stderr, "{}", line(progress))
        } else {
            Ok(())
        };
    }

    pub(crate) fn end(&self) {
        if self.on_terminal {
            // As in `show`.
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(progress: &Progress) -> String {
    let last = &progress.last_second;
    let p99 = progress.last_second_p99_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"));
    format!(
        "{:>4.0} of {:.0} s  last second: offered {}  goodput {}  refused {}  timed out {}  errors {}  p99 {p99}  \
         in flight {}",
        progress.elapsed.as_secs_f64(),
        progress.length.as_secs_f64(),
        last.offered,
        last.goodput,
        last.refused,
        last.timed_out,
        last.errors(),
        progress.totals.in_flight(),
    )
}

/// The result as a table.
pub(crate) fn table(result: &LoadResult) -> String {
    let mut text = String::new();
    let mut row = |name: &str, count: u64| {
        let share = 100.0 * count as f64 / result.offered.max(1) as f64;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<26}{count:>10}{share:>8.1} %");
    };
    row("offered", result.offered);
    row("completed", result.completed);
    row("  of these goodput", result.goodput);
    row("refused", result.refused);
    result.refused_by_reason.iter().for_each(|(reason, count)| row(&format!("  {reason}"), *count));
    row("timed out", result.timed_out);
    row("errors", result.errors);
    result.errors_by_kind.iter().for_each(|(kind, count)| row(&format!("  {kind}"), *count));
    if result.in_flight > 0 {
        row("in flight", result.in_flight);
    }
    let _ = writeln!(text, "\n{:<26}{:>10}{:>10}{:>10}{:>10}{:>10}", "", "p50", "p90", "p99", "p99.9", "max");
    text += &times("latency of completed, ms", &result.latency_ms);
    text += &times("latency of refused, ms", &result.refusal_ms);
    text += &times("time to first byte, ms", &result.ttfb_ms);
    text += &times("lag of the generator, us", &result.lag_us);
    text
}

fn times(name: &str, points: &Percentiles) -> String {
    let mut text = format!("{name:<26}");
    for point in [points.p50, points.p90, points.p99, points.p999, points.max] {
        let point = point.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        // As in `table`.
        let _ = write!(text, "{point:>10}");
    }
    text + "\n"
}
