//! Progress as lines on stderr, one about every two seconds; stdout stays free for the numbers.

use super::{Frame, said};
use std::time::Duration;

const LINE_EVERY: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct PlainView {
    visit: &'static str,
    next_line_at: Duration,
}

impl PlainView {
    pub(super) fn announce(&mut self, what: &str) {
        eprintln!("{what}");
    }

    pub(super) fn show(&mut self, frame: &Frame<'_>) {
        if frame.visit != self.visit {
            self.visit = frame.visit;
            self.next_line_at = Duration::ZERO;
            eprintln!("The crowd comes {}:", frame.visit);
        }
        if frame.progress.elapsed >= self.next_line_at {
            self.next_line_at = frame.progress.elapsed + LINE_EVERY;
            eprintln!("{}", line(frame));
        }
    }
}

fn line(frame: &Frame<'_>) -> String {
    let last = &frame.progress.last_second;
    let p99 = frame.progress.last_second_p99_ms.map_or("-".to_owned(), |ms| format!("{ms:.0} ms"));
    format!(
        "{:>5.1} s  {:<19} offered {:>5}/s  goodput {:>4}/s  refused {:>5}/s  gave up {:>4}/s  p99 {p99:>8}  {}",
        frame.progress.elapsed.as_secs_f64(),
        frame.phase,
        last.offered,
        last.goodput,
        last.refused,
        last.timed_out,
        said(frame.state.as_ref()),
    )
}
