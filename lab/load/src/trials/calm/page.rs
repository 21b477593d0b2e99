//! The page of a measurement in calm.

use super::{CASES, COLD_REQUESTS, LENGTH_S, Row};
use std::fmt::Write as _;

/// The page, in Markdown; `machine` describes where the rows were measured.
#[must_use]
pub fn page(rows: &[Row], machine: &str) -> String {
    let mut page = format!(
        "# Services in calm\n\n\
         Written by `make bench-calm`, all rows in one run on one machine. [Slow requests](slow-requests.md) says what happens to them.\n\n\
         Machine: {machine}\n\n\
         `flashweir run` with its defaults before `flashweir origin`, which only waits and has 400 workers: nothing is short, so nothing is to be \
         refused. Each case takes {LENGTH_S} s with a fresh gateway, from a cold start; 30 pages a second, where a rate steps in second 20 \
         to 150 (to 60 where all take 800 ms). Where the service warms up or starts again, its next {COLD_REQUESTS} requests take 2 s each. In the last two \
         cases requests wait for another service from second 15 to second 35, those of one URL of two and all of them; 40 a second for each URL. \
         Where a case says one URL, its requests differ in their query, which is no part of it.\n\n\
         | case | requests | offered | refused | of these in 10 s | lost | median, ms | p99, ms | verdict |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---|\n"
    );
    for row in rows {
        for (number, kind) in row.kinds.iter().enumerate() {
            let (name, cause) = if number == 0 { (row.name, row.cause.as_str()) } else { ("", "") };
            let note =
                if row.is_spoilt && number == 0 { " (spoilt: the load generator was late)" } else { "" };
            let ms = |time: Option<f64>| time.map_or_else(|| "–".to_owned(), |time| format!("{time:.0}"));
            // Writing to a string cannot fail.
            let _ = writeln!(
                page,
                "| {name}{note} | {} | {} | {} | {} | {} | {} | {} | {cause} |",
                kind.name,
                kind.offered,
                kind.refused,
                kind.refused_early,
                kind.lost,
                ms(kind.p50_ms),
                ms(kind.p99_ms),
            );
        }
    }
    let refused: Vec<&str> =
        rows.iter().filter(|row| row.kinds.iter().any(|kind| kind.refused > 0)).map(|row| row.name).collect();
    let missed = if refused.is_empty() {
        "Nothing was refused.".to_owned()
    } else {
        format!("Missed: something was refused in {}.", refused.join(", "))
    };
    let _ = writeln!(page, "\n{missed}");
    if rows.len() < CASES.len() {
        let _ = writeln!(page, "\n{} of {} cases were measured.", rows.len(), CASES.len());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::super::KindResult;
    use super::*;

    fn row(refused: u64) -> Row {
        let kind = KindResult {
            name: "polls",
            offered: 100,
            refused,
            refused_early: refused,
            lost: 0,
            p50_ms: Some(20_000.4),
            p99_ms: None,
        };
        Row { name: "polls of 20 s", kinds: vec![kind], cause: "calm".to_owned(), is_spoilt: false }
    }

    #[test]
    fn a_page_names_the_cases_in_which_something_was_refused() {
        let calm = page(&[row(0)], "a machine");
        assert!(calm.contains("| polls of 20 s | polls | 100 | 0 | 0 | 0 | 20000 | – | calm |"), "{calm}");
        assert!(calm.contains("Nothing was refused.") && calm.contains("1 of 17 cases"), "{calm}");
        let missed = page(&[row(0), row(3)], "a machine");
        assert!(missed.contains("Missed: something was refused in polls of 20 s."), "{missed}");
    }
}
