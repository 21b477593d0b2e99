//! The W3C's extended format, as IIS and CloudFront write it: lines that begin with `#` say what the columns
//! of the others are.
//!
//! IIS writes milliseconds into `time-taken`, CloudFront seconds; both write the line, and its time, when the
//! answer ends.

use crate::recording::entry::{Entry, EntryTarget, Flaw, checked_method, checked_size};
use crate::recording::fields::next_field;
use crate::recording::log_time;
use crate::recording::problem::Defect;
use flashweir_core::limits::{LOG_COLUMNS, LOG_REORDERED_S};
use std::time::Duration;

const FIELDS: &[u8] = b"#Fields:";
const DATE: &[u8] = b"#Date:";
/// A column that only CloudFront has.
const CLOUDFRONT_COLUMN: &[u8] = b"x-edge-location";

/// Content of a column, of those that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Date,
    Time,
    Method,
    Stem,
    Query,
    Bytes,
    Taken,
}

const COLUMNS: [(&[u8], Column); 7] = [
    (b"date", Column::Date),
    (b"time", Column::Time),
    (b"cs-method", Column::Method),
    (b"cs-uri-stem", Column::Stem),
    (b"cs-uri-query", Column::Query),
    (b"sc-bytes", Column::Bytes),
    (b"time-taken", Column::Taken),
];

/// Reads the lines of one file, with the columns that the last directive named.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Content of each column; empty before the first directive.
    columns: Vec<Option<Column>>,
    /// Of the last `#Date:`, for logs whose lines have only a time.
    date: Vec<u8>,
    is_cloudfront: bool,
}

impl Reader {
    /// Reads a line; `None` for a directive. O(length of the line).
    pub(super) fn parse<'a>(&mut self, line: &'a [u8]) -> Result<Option<Entry<'a>>, Flaw<'a>> {
        if line.starts_with(b"#") {
            self.direct(line);
            return Ok(None);
        }
        if self.columns.is_empty() {
            return Err(Defect::NoColumns.unshown());
        }
        self.entry(line).map(Some)
    }

    fn direct(&mut self, line: &[u8]) {
        if let Some(names) = line.strip_prefix(FIELDS) {
            self.columns = names_in(names).take(LOG_COLUMNS).map(column).collect();
            self.is_cloudfront = names_in(names).any(|name| name == CLOUDFRONT_COLUMN);
        } else if let Some(date) = line.strip_prefix(DATE) {
            // `2015-05-17 10:05:03`: the part before the space.
            self.date = date.trim_ascii().split(|byte| *byte == b' ').next().unwrap_or_default().to_vec();
        }
    }

    fn entry<'a>(&self, line: &'a [u8]) -> Result<Entry<'a>, Flaw<'a>> {
        let mut rest = line;
        let mut found: [Option<&[u8]>; COLUMNS.len()] = [None; COLUMNS.len()];
        for column in &self.columns {
            let field = next_field(&mut rest).ok_or(Defect::FewColumns.unshown())?;
            if let Some(column) = column {
                found[*column as usize] = Some(field).filter(|field| *field != b"-");
            }
        }
        let of = |column: Column| found[column as usize];
        let needed = |column: Column, name| of(column).ok_or(Defect::Missing(name).unshown());
        let (date, clock) = (of(Column::Date).unwrap_or(self.date.as_slice()), needed(Column::Time, "time")?);
        let end = log_time::iso(&[date, &b" "[..], clock].concat()).ok_or(Defect::BadStamp.at(clock))?;
        let unit_ns = if self.is_cloudfront { 1_000_000_000 } else { 1_000_000 };
        let taken = of(Column::Taken).and_then(|taken| log_time::length(taken, unit_ns));
        let taken = taken.filter(|taken| *taken <= Duration::from_secs(LOG_REORDERED_S));
        let method = checked_method(needed(Column::Method, "cs-method")?)?;
        let path = needed(Column::Stem, "cs-uri-stem")?.into();
        let bytes = of(Column::Bytes).map_or(Ok(None), checked_size)?;
        Ok(Entry {
            time: end.before(taken.unwrap_or_default()),
            method,
            target: EntryTarget::Split { path, query: of(Column::Query).map(Into::into) },
            bytes,
        })
    }
}

/// Returns whether a log that begins so is such a one: of CloudFront, or of others.
pub(super) fn looks_like(lines: impl Iterator<Item = impl AsRef<[u8]>>, of_cloudfront: bool) -> bool {
    lines.into_iter().any(|line| {
        let names = line.as_ref().trim_ascii_end().strip_prefix(FIELDS);
        names.is_some_and(|names| names_in(names).any(|name| name == CLOUDFRONT_COLUMN) == of_cloudfront)
    })
}

fn names_in(names: &[u8]) -> impl Iterator<Item = &[u8]> {
    names.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty())
}

fn column(name: &[u8]) -> Option<Column> {
    COLUMNS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, column)| *column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::log_time::Stamp;

    const IIS: &str =
        "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) sc-status time-taken";

    fn parse<'a>(fields: &str, line: &'a str) -> Result<Entry<'a>, Flaw<'a>> {
        let mut reader = Reader::default();
        assert_eq!(reader.parse(b"#Date: 2015-05-17 00:00:00").ok(), Some(None));
        assert_eq!(reader.parse(fields.as_bytes()).ok(), Some(None));
        reader.parse(line.as_bytes()).map(|entry| entry.expect("no directive"))
    }

    fn target<'a>(path: &'a str, query: Option<&'a str>) -> EntryTarget<'a> {
        EntryTarget::Split { path: path.as_bytes().into(), query: query.map(|query| query.as_bytes().into()) }
    }

    #[test]
    fn a_request_came_when_the_answer_ended_less_the_time_it_took() {
        let entry = parse(IIS, "2015-05-17 10:05:13 ::1 GET /a b=c 2001:db8::1 Agent+x 200 10000").unwrap();
        assert_eq!((entry.time, &*entry.method), (Stamp::whole(1_431_857_103), &b"GET"[..]));
        assert_eq!((entry.target, entry.bytes), (target("/a", Some("b=c")), None));
        let fields =
            "#Fields: date time x-edge-location sc-bytes cs-method cs-uri-stem cs-uri-query time-taken";
        let entry = parse(fields, "2015-05-17\t10:05:03\tFRA2\t392\tGET\t/x%20y\t-\t0.001").unwrap();
        assert_eq!(entry.time, Stamp::whole(1_431_857_102));
        assert_eq!((entry.target, entry.bytes), (target("/x%20y", None), Some(392)));
        let entry = parse(fields, "2015-05-17\t10:05:03\tFRA2\t392\tGET\t/a\t-\t86400.5").unwrap();
        assert_eq!(entry.time, Stamp::whole(1_431_857_103), "no answer takes a day");
    }

    #[test]
    fn fields_in_quotes_and_a_date_from_its_directive() {
        let entry =
            parse("#Fields: time cs(User-Agent) cs-method cs-uri-stem", "10:05:03 \"a \"\"b\"\" c\" GET /x");
        assert_eq!(entry.unwrap().time, Stamp::whole(1_431_857_103));
    }

    #[test]
    fn every_defect_shows_its_part_and_never_the_client() {
        let check = |fields: &str, line: &str, defect: Defect, part: &str| {
            assert_eq!(parse(fields, line), Err(defect.at(part.as_bytes())), "{line}");
        };
        check("#Version: 1.0", "2015-05-17 10:05:03 192.0.2.1 GET /", Defect::NoColumns, "");
        check("#Fields: date time c-ip", "2015-05-17 10:05:03 192.0.2.1", Defect::Missing("cs-method"), "");
        check(IIS, "2015-05-17 10:05:03 192.0.2.1 GET /", Defect::FewColumns, "");
        let line = "2015-05-17 10:05:03 ::1 GET /a - 192.0.2.1 x 200 1";
        check(IIS, &line.replace("10:05", "10-05"), Defect::BadStamp, "10-05:03");
        check(IIS, &line.replace("10:05:03", "-"), Defect::Missing("time"), "");
        check(IIS, &line.replace("GET", "G(T"), Defect::BadMethod, "G(T");
        check(IIS, &line.replace("/a", "-"), Defect::Missing("cs-uri-stem"), "");
    }
}
