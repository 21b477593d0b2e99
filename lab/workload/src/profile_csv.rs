//! A rate profile from a table of counts, such as requests per minute.

use crate::profile::{ProfileError, RateProfile};
use flashweir_core::limits::PROFILE_BINS;
use std::io::Read;
use std::time::Duration;

/// Column of the table that holds the counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// By the name in the header line.
    Name(String),
    /// By place, the first being 1. The header line may then be missing.
    Place(usize),
}

impl Column {
    /// A whole number is a place, anything else a name.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Place)
    }
}

/// The table cannot be read as counts.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// Reading or splitting into fields failed.
    #[error("line {line}: cannot be read as comma-separated text")]
    Unreadable {
        /// Line of the file, the first being 1.
        line: u64,
        /// Error of the reader.
        source: csv::Error,
    },
    /// The header has no such name.
    #[error("line {line}: no column is called \"{name}\" (found: {found})")]
    NoSuchName {
        /// Line of the header.
        line: u64,
        /// The name wanted.
        name: String,
        /// The names there are.
        found: String,
    },
    /// A line is too short.
    #[error("line {line}: no column {place}, the line has {fields} (columns are counted from 1)")]
    NoSuchPlace {
        /// Line of the file, the first being 1.
        line: u64,
        /// The column wanted, the first being 1.
        place: usize,
        /// Number of columns.
        fields: usize,
    },
    /// A field is not a count.
    #[error("line {line}: \"{text}\" is not a count: expected a finite number, zero or more")]
    NotACount {
        /// Line of the file, the first being 1.
        line: u64,
        /// The text there, at most 40 characters of it.
        text: String,
    },
    /// More bins than are kept in memory.
    #[error("line {line}: more than {PROFILE_BINS} bins")]
    TooMany {
        /// The first line too many.
        line: u64,
    },
    /// The numbers were read but make no profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// Reads counts per bin of the given width from comma-separated text: one bin a line, lines that begin with
/// `#` and empty lines left out, and a header line where the first line's field is not a number.
///
/// # Errors
/// The first line that cannot be understood, by number; no bins at all; more than [`PROFILE_BINS`].
pub fn read_profile(text: impl Read, column: &Column, bin: Duration) -> Result<RateProfile, CsvError> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).comment(Some(b'#')).from_reader(text);
    let mut record = csv::StringRecord::new();
    let mut place = None;
    let mut rates = Vec::new();
    loop {
        let line = reader.position().line();
        if !reader.read_record(&mut record).map_err(|source| CsvError::Unreadable { line, source })? {
            break;
        }
        let line = record.position().map_or(line, csv::Position::line);
        let place = match place {
            Some(place) => place,
            None => {
                let first = FirstLine::read(&record, column, line)?;
                place = Some(first.place);
                if first.is_header {
                    continue;
                }
                first.place
            }
        };
        if rates.len() == PROFILE_BINS {
            return Err(CsvError::TooMany { line });
        }
        rates.push(count(&record, place, line)? / bin.as_secs_f64());
    }
    Ok(RateProfile::from_bins(bin, rates)?)
}

/// Findings of the first line: where the counts stand, and whether it holds one itself.
struct FirstLine {
    place: usize,
    is_header: bool,
}

impl FirstLine {
    fn read(record: &csv::StringRecord, column: &Column, line: u64) -> Result<Self, CsvError> {
        match column {
            Column::Name(name) => {
                let place = record.iter().position(|field| field.trim() == name);
                let found = || record.iter().take(20).collect::<Vec<_>>().join(", ");
                place
                    .map(|place| Self { place: place + 1, is_header: true })
                    .ok_or_else(|| CsvError::NoSuchName { line, name: name.clone(), found: found() })
            }
            Column::Place(place) => {
                let text = field(record, *place, line)?;
                Ok(Self { place: *place, is_header: text.parse::<f64>().is_err() })
            }
        }
    }
}

fn count(record: &csv::StringRecord, place: usize, line: u64) -> Result<f64, CsvError> {
    let text = field(record, place, line)?;
    text.parse::<f64>()
        .ok()
        .filter(|count| count.is_finite() && *count >= 0.0)
        .ok_or_else(|| CsvError::NotACount { line, text: text.chars().take(40).collect() })
}

fn field(record: &csv::StringRecord, place: usize, line: u64) -> Result<&str, CsvError> {
    let index = place.checked_sub(1);
    index.and_then(|index| record.get(index)).map(str::trim).ok_or(CsvError::NoSuchPlace {
        line,
        place,
        fields: record.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn rates(text: &str, column: &str) -> Result<Vec<f64>, String> {
        read_profile(text.as_bytes(), &Column::parse(column), MINUTE)
            .map(|profile| profile.segments().iter().map(|segment| segment.from_per_s).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn columns_by_name_and_by_place_agree() {
        let text = "# a comment\nminute, requests\n00:00, 60\n\n# another\n00:01, 120\n";
        assert_eq!(rates(text, "requests"), Ok(vec![1.0, 2.0]));
        assert_eq!(rates(text, "2"), Ok(vec![1.0, 2.0]));
    }

    #[test]
    fn a_bare_column_of_numbers_needs_no_header() {
        assert_eq!(rates("60\n30\n", "1"), Ok(vec![1.0, 0.5]));
    }

    #[test]
    fn errors_name_the_line() {
        let check = |text, column, wanted: &str| {
            let message = rates(text, column).unwrap_err();
            assert!(message.contains(wanted), "{message:?} does not contain {wanted:?}");
        };
        check("# c\na,b\n1,2\n1,x\n", "b", "line 4: \"x\" is not a count");
        check("a,b\n1,2\n1\n", "b", "line 3: no column 2, the line has 1");
        check("a,b\n1,-2\n", "b", "line 2: \"-2\" is not a count");
        check("a,b\n1,inf\n", "b", "line 2: \"inf\" is not a count");
        check("a,b\n", "c", "line 1: no column is called \"c\" (found: a, b)");
        check("a,b\n1,2\n", "0", "line 1: no column 0");
        check("", "1", "at least one stretch");
        check("a\n", "a", "at least one stretch");
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_with_its_line() {
        let error = read_profile(&b"a\n1\n\xff\xfe\n"[..], &Column::Place(1), MINUTE).unwrap_err();
        assert!(error.to_string().starts_with("line 3:"), "{error}");
    }
}
