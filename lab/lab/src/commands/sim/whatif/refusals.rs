//! Requests that would have been refused, and when.

use super::crowd::Crowd;
use crate::commands::sim::csv;
use flashweir_sim::request::{ClassOutcome, Counts, RunOutcome};
use serde_json::json;
use std::fmt::Write as _;
use std::path::Path;

/// Rows of a table on the terminal; all are in the files of `--out`.
const ROWS: usize = 20;
/// Characters of a path on the terminal.
const PATH_CHARACTERS: usize = 60;

/// Findings to be reported.
pub(super) struct Refusals<'a> {
    pub(super) crowd: &'a Crowd,
    pub(super) outcome: &'a RunOutcome,
    pub(super) assumption: String,
}

impl Refusals<'_> {
    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.assumption, self.summary());
        if self.outcome.totals().shed_total() == 0 {
            return text + "no request would have been refused\n";
        }
        let refused: Vec<(u64, Counts)> =
            self.stretches().filter(|(_, counts)| counts.shed_total() > 0).collect();
        let unit = if self.outcome.bin.as_secs() == 60 { "minute" } else { "hour" };
        let _ = writeln!(text, "\n{unit} from     offered    refused");
        for (from_s, counts) in refused.iter().take(ROWS) {
            let (offered, shed) = (number(counts.offered), number(counts.shed_total()));
            let _ = writeln!(
                text,
                "{:<11} {offered:>9}  {shed:>9}  {}",
                clock(*from_s),
                percent(counts.shed_total(), counts.offered)
            );
        }
        more(&mut text, refused.len());
        let documents = self.refused_documents();
        let _ = writeln!(text, "\n  offered    refused  document");
        for class in documents.iter().take(ROWS) {
            let (offered, shed) = (number(class.totals.offered), number(class.totals.shed_total()));
            let name: String = class.name.chars().take(PATH_CHARACTERS).collect();
            let _ = writeln!(text, "{offered:>9}  {shed:>9}  {name}");
        }
        more(&mut text, documents.len());
        text
    }

    /// In one sentence.
    pub(super) fn summary(&self) -> String {
        let totals = self.outcome.totals();
        format!(
            "{} requests in {}: {} refused ({}), {} completed, {} gave up waiting",
            number(totals.offered),
            clock(self.crowd.length.as_secs()),
            number(totals.shed_total()),
            percent(totals.shed_total(), totals.offered),
            number(totals.completed),
            number(totals.timed_out)
        )
    }

    /// For programs.
    pub(super) fn json(&self) -> serde_json::Result<String> {
        let totals = self.outcome.totals();
        let stretches: Vec<_> = self.stretches()
            .map(|(from_s, counts)| json!({"from_s": from_s, "offered": counts.offered, "refused": counts.shed_total()}))
            .collect();
        let documents: Vec<_> = self.refused_documents().iter()
            .map(|class| json!({"document": class.name, "offered": class.totals.offered, "refused": class.totals.shed_total()}))
            .collect();
        let whole = json!({
            "assumption": self.assumption,
            "offered": totals.offered,
            "refused": totals.shed_total(),
            "completed": totals.completed,
            "timed_out": totals.timed_out,
            "stretch_s": self.outcome.bin.as_secs(),
            "stretches": stretches,
            "documents": documents,
        });
        Ok(serde_json::to_string(&whole)? + "\n")
    }

    /// Writes `refused_over_time.csv` and `refused_documents.csv`.
    ///
    /// # Errors
    /// A file that cannot be written, by its name.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        let mut table = csv::table();
        table.write_record(["from_s", "offered", "refused", "completed", "timed_out"])?;
        for (from_s, counts) in self.stretches() {
            let numbers = [from_s, counts.offered, counts.shed_total(), counts.completed, counts.timed_out];
            table.write_record(numbers.map(|number| number.to_string()))?;
        }
        csv::put(&directory.join("refused_over_time.csv"), &csv::text(table)?)?;
        let mut table = csv::table();
        table.write_record(["document", "offered", "refused"])?;
        for class in self.refused_documents() {
            let totals = &class.totals;
            table.write_record([
                class.name.clone(),
                totals.offered.to_string(),
                totals.shed_total().to_string(),
            ])?;
        }
        csv::put(&directory.join("refused_documents.csv"), &csv::text(table)?)
    }

    /// Stretches of the log and the counts of all classes in them, by their beginning in seconds.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, Counts)> {
        let bin_s = self.outcome.bin.as_secs();
        let count = self.crowd.length.as_secs().div_ceil(bin_s);
        (0..count).map(move |place| {
            // A log of a week has a few thousand minutes.
            let place_bin = place as usize;
            (place * bin_s, self.outcome.began_within(place_bin..place_bin + 1))
        })
    }

    /// Documents of which requests were refused, those refused most first.
    pub(super) fn refused_documents(&self) -> Vec<&ClassOutcome> {
        let mut refused: Vec<_> =
            self.outcome.classes.iter().filter(|class| class.totals.shed_total() > 0).collect();
        refused.sort_by_key(|class| std::cmp::Reverse(class.totals.shed_total()));
        refused
    }
}

/// With thin gaps between thousands.
pub(super) fn number(count: u64) -> String {
    flashweir_load::report::number(count as f64, 0)
}

fn more(text: &mut String, rows: usize) {
    if rows > ROWS {
        let _ = writeln!(text, "... and {} more: see --out and --json", rows - ROWS);
    }
}

/// Time since the first second of the log.
pub(super) fn clock(seconds: u64) -> String {
    format!("+{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

pub(super) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
