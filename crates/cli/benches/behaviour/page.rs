//! The page: one table, the configurations, and the reports. Pure.

use crate::case::{Case, Verdict, Word};
use crate::proxies::Kind;
use crate::reports::{self, Report};
use std::fmt::Write as _;

/// One case and a cell for each proxy.
pub(crate) struct Row {
    pub(crate) case: Case,
    /// In the order of [`Kind::ALL`].
    pub(crate) cells: [Result<Verdict, String>; 4],
}

impl Row {
    /// Flashweir is wrong, and an RFC has a word.
    pub(crate) fn is_wrong(&self) -> bool {
        self.case.word != Word::Open && !self.is_right()
    }

    fn is_right(&self) -> bool {
        self.cells[0].as_ref().is_ok_and(|verdict| verdict.is_right)
    }

    fn verdict(&self) -> &'static str {
        match (self.is_right(), self.case.word) {
            (true, _) => "right",
            (false, Word::Open) => "open",
            (false, _) => "**wrong**",
        }
    }
}

/// Mark and text of a cell.
pub(crate) fn parts(cell: Result<&Verdict, &String>) -> (&'static str, String) {
    match cell {
        Ok(Verdict { is_right: true, cell }) => ("✓", cell.clone()),
        Ok(Verdict { is_right: false, cell }) => ("✗", cell.clone()),
        Err(why) => ("–", why.clone()),
    }
}

/// The whole page.
pub(crate) fn text(rows: &[Row], restarts: &str, versions: &[String; 4]) -> String {
    let counted = rows.iter().filter(|row| row.case.word != Word::Open).count();
    let right = |column: usize| {
        let is_right = |row: &&Row| {
            row.case.word != Word::Open && row.cells[column].as_ref().is_ok_and(|verdict| verdict.is_right)
        };
        rows.iter().filter(is_right).count()
    };
    let totals: Vec<String> = Kind::ALL
        .iter()
        .enumerate()
        .map(|(column, kind)| format!("{} {}", kind.name(), right(column)))
        .collect();
    let mut page = format!(
        "# What is passed on, repeated, changed

Written by `make compare-behaviour`, which sends each case to Flashweir, nginx, HAProxy and Caddy in front of the same scripted origin, and fails where
Flashweir is wrong on a point on which an RFC has a word. {} cases, of which {counted} have such a word; right in these: {}.

✓: as the RFC demands (MUST, SHOULD), or as it allows or describes (says). Where it leaves the point open, the mark shows what this project prefers, and the
row does not count. Statuses are those that the client gets, in order; *silence*: no response within the time of the case, 3 s at most; *closed*, *reset*: the
connection ended without one; *response cut*: it ended inside one. Where HAProxy closes instead of repeating a request, it leaves that to the client, as browsers
do it.

| case | what is sent | RFC | Flashweir | nginx | HAProxy | Caddy | Flashweir is |
|---|---|---|---|---|---|---|---|
",
        rows.len(),
        totals.join(", ")
    );
    for row in rows {
        let Case { name, sent, rfc, asks, word, .. } = &row.case;
        let cells = row.cells.iter().map(|cell| {
            let (mark, text) = parts(cell.as_ref());
            format!("{mark} {text}")
        });
        let cells: Vec<String> = [(*name).to_owned(), (*sent).to_owned(), format!("{rfc}, {word}: {asks}")]
            .into_iter()
            .chain(cells)
            .chain([row.verdict().to_owned()])
            .map(|cell| escape(&cell))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    page.push_str(
        "\nThe counts of rows in which connections close under requests differ a little from run to run.\n",
    );
    page.push_str(restarts);
    page.push_str("\n## Versions and settings\n");
    for (kind, version) in Kind::ALL.into_iter().zip(versions) {
        let _ = write!(page, "\n{version}\n\n```{}\n{}```\n", kind.language(), kind.shown_config());
    }
    page.push_str(
        "\nnginx has a listener for HTTP/2 alone, since its version takes either protocol in the clear on a port; HAProxy has one with `proto h2`.\n",
    );
    page.push_str(&reports_table(rows));
    page
}

/// Reports of users of other proxies, each with the row that stands for it.
fn reports_table(rows: &[Row]) -> String {
    let mut text = String::from(
        "\n## Reports of users of other proxies and servers\n\nEach is tried by the row named beside it.\n\n| report | in one line | case | Flashweir is |\n|---|---|---|---|\n",
    );
    for Report { address, line, case } in reports::ALL {
        let verdict = rows.iter().find(|row| row.case.name == *case).map_or("not tried", Row::verdict);
        let name = address
            .trim_start_matches("https://github.com/")
            .replace("/issues/", " #")
            .replace("/pull/", " #");
        let cells =
            [format!("[{name}]({address})"), (*line).to_owned(), (*case).to_owned(), verdict.to_owned()];
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// A cell's text: no line ends, and no column ends inside.
pub(crate) fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace(['\r', '\n'], " ")
}
