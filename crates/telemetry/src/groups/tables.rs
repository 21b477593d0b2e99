//! Tables of bounded size in which the new takes the place of the old.

use crate::counter::CounterSet;
use crate::group::{Scrape, WorkerGroup};
use crate::label::labels;

impl WorkerGroup for CounterSet<Table> {
    const TITLE: &'static str = "Tables";

    fn export(copies: &[&Self], scrape: &mut Scrape) {
        let help = "How often something made room for something new in a table of bounded size.";
        scrape.counter_set("table_replacements", help, copies, |table| table);
    }
}

labels! {
    /// A table of bounded size.
    Table, "table" {
        /// The busiest hosts between two samples; a crowd's host stays.
        Hosts => "hosts",
        /// Refusals of the last 64 seconds; of one that is forgotten early, the retry counts as new.
        RefusedAttempts => "refused_attempts",
        /// Refusals that `flashweir explain` can explain.
        Decisions => "decisions",
    }
}
