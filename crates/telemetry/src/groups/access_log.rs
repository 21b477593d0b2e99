//! Lines of the access log.

use crate::counter::CounterSet;
use crate::group::{Scrape, WorkerGroup};
use crate::label::labels;

/// Lines of the access log, by what became of them; none where it is off.
#[derive(Debug, Default)]
pub struct AccessLogMetrics {
    /// By outcome.
    pub lines: CounterSet<AccessLineOutcome>,
}

impl WorkerGroup for AccessLogMetrics {
    const TITLE: &'static str = "Access log";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        let help = "Lines of the access log, by what became of them; none where it is off.";
        scrape.counter_set("access_log_lines", help, copies, |log| &log.lines);
    }
}

labels! {
    /// Outcome of a line of the access log.
    AccessLineOutcome, "outcome" {
        /// Handed to the thread that writes.
        Written => "written",
        /// Not made: more refused requests came in its second than get a line.
        LeftOut => "left_out",
        /// Dropped: too many lines waited for the file.
        Dropped => "dropped",
        /// Handed over, and the file could not be written.
        Lost => "lost",
    }
}
