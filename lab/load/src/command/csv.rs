//! `--csv`: what happened second by second, for other tools.

use crate::{ErrorKind, LoadResult, Second};
use anyhow::Context as _;
use csv::Writer;
use flashweir_core::Reason;
use std::path::Path;

/// The class of the lines that count all classes: a class of this name could not be distinguished from it.
pub(crate) const TOTAL: &str = "total";

/// Refusals that Flashweir did not make.
const OTHER: &str = "other";

/// Writes a header and one line for each second and class, all classes (`total`) first: RFC 4180, CRLF as
/// there.
///
/// `seconds` is how long a stretch the line counts: 1, in long runs 2, 4, …; times are empty where nothing
/// was completed.
///
/// # Errors
/// A file that cannot be written, by its name.
pub(crate) fn write(result: &LoadResult, path: &Path) -> anyhow::Result<()> {
    let text = text(result)?;
    super::file::write(path, &text).with_context(|| format!("{}: cannot be written", path.display()))
}

fn text(result: &LoadResult) -> anyhow::Result<String> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(header())?;
    // Every series begins at second 0 without gaps, that of all classes is the longest.
    for (place, everybody) in result.totals.series.iter().enumerate() {
        line(&mut writer, TOTAL, result.series_bin_s, everybody)?;
        for (class, tally) in &result.classes {
            if let Some(second) = tally.series.get(place) {
                line(&mut writer, class, result.series_bin_s, second)?;
            }
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn header() -> Vec<String> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut header =
        words(&["second", "seconds", "class", "offered", "unique_offered", "sent", "completed", "goodput"]);
    header.extend(words(&["refused", "refused_429"]));
    header.extend(reasons().map(|reason| format!("refused_{reason}")));
    header.extend(words(&["timed_out", "abandoned", "errors"]));
    header.extend(kinds().map(|kind| format!("errors_{kind}")));
    header.extend(words(&["body_bytes", "latency_p50_ms", "latency_p99_ms", "lag_max_us"]));
    header
}

/// Every reason has a column in every file, so that files of different runs can be put together.
fn reasons() -> impl Iterator<Item = &'static str> {
    Reason::ALL.into_iter().map(Reason::as_str).chain([OTHER])
}

fn kinds() -> impl Iterator<Item = &'static str> {
    ErrorKind::ALL.into_iter().map(ErrorKind::as_str)
}

fn line(writer: &mut Writer<Vec<u8>>, class: &str, seconds: u64, second: &Second) -> csv::Result<()> {
    let number = |count: u64| count.to_string();
    let time = |ms: Option<f64>| ms.map_or_else(String::new, |ms| format!("{ms:.3}"));
    let mut cells = vec![number(second.second), number(seconds), class.to_owned()];
    cells.extend([second.offered, second.unique_offered, second.sent].map(number));
    cells.extend([second.completed, second.goodput, second.refused, second.refused_429].map(number));
    cells.extend(reasons().map(|reason| number(second.refused_by_reason.get(reason).copied().unwrap_or(0))));
    cells.extend([second.timed_out, second.abandoned, second.errors].map(number));
    cells.extend(kinds().map(|kind| number(second.errors_by_kind.get(kind).copied().unwrap_or(0))));
    cells.extend([number(second.body_bytes), time(second.latency_p50_ms), time(second.latency_p99_ms)]);
    cells.push(number(second.lag_max_us));
    writer.write_record(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::sample;

    #[test]
    fn seconds_and_classes_have_a_line_each_that_adds_up() {
        let result = sample::result();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.csv");
        write(&result, &path).unwrap();

        let mut reader = csv::Reader::from_path(&path).unwrap();
        let header = reader.headers().unwrap().clone();
        let place = |name: &str| header.iter().position(|column| column == name).unwrap();
        let lines: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), 10 * (1 + result.classes.len()));
        assert_eq!([&lines[0][0], &lines[0][2], &lines[1][2], &lines[3][0]], ["0", TOTAL, "browsers", "1"]);
        let sum = |column: &str, of_total: bool| -> u64 {
            let lines = lines.iter().filter(|line| (&line[place("class")] == TOTAL) == of_total);
            lines.map(|line| line[place(column)].parse::<u64>().unwrap()).sum()
        };
        let columns =
            ["offered", "unique_offered", "completed", "refused", "errors", "body_bytes", "refused_other"];
        for column in columns {
            assert_eq!(sum(column, true), sum(column, false), "{column}");
        }
        assert_eq!(sum("offered", true), result.totals.offered);
        assert_eq!(sum("refused_flash_crowd", true) + sum("refused_other", true), result.totals.refused);
    }

    #[test]
    fn what_csv_must_quote_is_quoted() {
        let mut result = sample::result();
        let tally = result.classes["buyers"].clone();
        result.classes.insert("a,\"b\"\n".to_owned(), tally);
        let text = text(&result).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert!(reader.records().map(Result::unwrap).any(|line| &line[2] == "a,\"b\"\n"));
        assert!(text.starts_with("second,seconds,class,offered") && text.contains("lag_max_us\r\n"));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let said = write(&sample::result(), Path::new("no-such-directory/run.csv")).unwrap_err();
        assert!(said.to_string().contains("no-such-directory/run.csv: cannot be written"), "{said}");
    }
}
