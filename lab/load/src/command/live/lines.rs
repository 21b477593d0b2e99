//! Progress on stderr: one line that renews itself on a terminal, one line a second elsewhere.

use crate::Progress;
use std::io::{self, Write};
use std::time::Duration;

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(1);

pub(super) struct ProgressLines {
    on_terminal: bool,
    next_line: Duration,
}

impl ProgressLines {
    pub(super) fn new(on_terminal: bool) -> Self {
        Self { on_terminal, next_line: LINE_EVERY }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        let mut stderr = io::stderr();
        // A closed stderr is no reason to end the run.
        let _ = if self.on_terminal {
            write!(stderr, "\r\x1b[K{}", line(progress)).and_then(|()| stderr.flush())
        } else if self.is_due(progress.elapsed) {
            writeln!(stderr, "{}", line(progress))
        } else {
            Ok(())
        };
    }

    fn is_due(&mut self, elapsed: Duration) -> bool {
        let due = elapsed >= self.next_line;
        if due {
            self.next_line = elapsed + LINE_EVERY;
        }
        due
    }

    pub(super) fn end(&self) {
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
        "{:>4.0} of {:.0} s  last second: offered {}  goodput {}  refused {}  timed out {}  abandoned {}  errors {}  \
         p99 {p99}  in flight {}",
        progress.elapsed.as_secs_f64(),
        progress.length.as_secs_f64(),
        last.offered,
        last.goodput,
        last.refused,
        last.timed_out,
        last.abandoned,
        last.errors(),
        progress.totals.in_flight(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;

    #[test]
    fn a_line_tells_every_outcome() {
        let line = line(&sample::progress(12));
        for wanted in ["12 of 40 s", "offered 240", "goodput 190", "refused 7", "abandoned 3", "p99 321 ms"] {
            assert!(line.contains(wanted), "{line} lacks {wanted}");
        }
    }

    #[test]
    fn lines_come_a_second_apart() {
        let mut lines = ProgressLines::new(false);
        let due: Vec<_> = (0..20).filter(|n| lines.is_due(Duration::from_millis(200 * n))).collect();
        assert_eq!(due, [5, 10, 15]);
    }
}
