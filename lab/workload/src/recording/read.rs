//! Converts bytes, valid or not, to lines and records.

use crate::recording::collector::{Bounds, Collector};
use crate::recording::decompress;
use crate::recording::entry::{Entry, Flaw};
use crate::recording::format::{self, Order};
use crate::recording::json_lines::{self, Layout};
use crate::recording::peek::{Peeked, peek};
use crate::recording::problem::{Defect, RecordLocation, snippet};
use crate::recording::world_cup::RECORD_BYTES;
use crate::recording::{Format, Options, Pattern, Recording, RecordingError};
use crate::recording::{alb, combined, envoy, haproxy, har, nasa_tsv, w3c, world_cup};
use flashweir_core::limits::{LOG_LINE_BYTES, LOG_LINE_SKIPPED_BYTES, LOG_LINES};
use std::io::{self, BufRead, BufReader, Read};

/// Read at once. Larger gains nothing.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes by which the format is recognised.
const BEGINNING_BYTES: u64 = 64 << 10;
/// Mark that Windows programs put before text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Source of a log's format.
#[derive(Clone, Copy, Debug)]
pub(super) enum How<'p> {
    /// By its beginning.
    Detect,
    Format(Format),
    Pattern(&'p Pattern),
}

/// Reader of the lines of a text.
enum Lines<'p> {
    /// Each line by itself.
    Each(fn(&[u8]) -> Result<Entry<'_>, Flaw<'_>>),
    NasaTsv,
    Json(&'static Layout),
    W3c(w3c::Reader),
    Pattern(&'p Pattern),
}

/// Reads a log; the format is that by which it was read, `None` with a pattern.
pub(super) fn read(
    source: impl Read,
    how: How<'_>,
    options: &Options,
) -> Result<(Option<Format>, Recording), RecordingError> {
    let Peeked { beginning, mut all } = peek(decompress::open(source), BEGINNING_BYTES);
    if let Some(program) = decompress::other_program(&beginning) {
        return Err(RecordingError::Compressed { program });
    }
    if beginning.is_empty() {
        let failure = all.read(&mut [0]).err();
        let unreadable = |source| RecordingError::Unreadable { location: RecordLocation::Line(1), source };
        return Err(failure.map_or(RecordingError::Empty, unreadable));
    }
    let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&beginning);
    let format = match how {
        How::Detect => Some(Format::detect(beginning).ok_or_else(|| unknown(beginning))?),
        How::Format(format) => Some(format),
        How::Pattern(_) => None,
    };
    let reader = BufReader::with_capacity(BUFFER_BYTES, all);
    // A pattern with the time that a request took says when requests came as well.
    let order = format.map_or(Order::ByEnd, Format::order);
    let mut collector = Collector::new(options, Bounds::NAMED, order);
    read_all(reader, format, how, &mut collector)?;
    Ok((format, collector.finish()?))
}

fn read_all(
    mut reader: impl BufRead,
    format: Option<Format>,
    how: How<'_>,
    collector: &mut Collector<'_>,
) -> Result<(), RecordingError> {
    let lines = match (format, how) {
        (_, How::Pattern(pattern)) => Lines::Pattern(pattern),
        (Some(Format::WorldCupBinary), _) => return read_records(reader, collector),
        (Some(Format::Har), _) => {
            skip_mark(&mut reader).map_err(|source| RecordingError::Unreadable {
                location: RecordLocation::Record(1),
                source,
            })?;
            return har::read(reader, collector);
        }
        (Some(Format::NasaTsv), _) => Lines::NasaTsv,
        (Some(Format::Alb), _) => Lines::Each(alb::parse),
        (Some(Format::CloudFront | Format::W3c), _) => Lines::W3c(w3c::Reader::default()),
        (Some(Format::Haproxy), _) => Lines::Each(haproxy::parse),
        (Some(Format::Envoy), _) => Lines::Each(envoy::parse),
        (Some(Format::EnvoyJson), _) => Lines::Json(&json_lines::ENVOY),
        (Some(Format::Caddy), _) => Lines::Json(&json_lines::CADDY),
        (Some(Format::Traefik), _) => Lines::Json(&json_lines::TRAEFIK),
        (Some(Format::NginxJson), _) => Lines::Json(&json_lines::NGINX),
        (Some(Format::Combined) | None, _) => Lines::Each(combined::parse),
    };
    skip_mark(&mut reader)
        .map_err(|source| RecordingError::Unreadable { location: RecordLocation::Line(1), source })?;
    read_lines(reader, lines, collector)
}

/// The error for a beginning of no format, with the first line that is not empty.
fn unknown(beginning: &[u8]) -> RecordingError {
    let mut lines = (1..).zip(format::lines(beginning));
    let (number, line) = lines.find(|(_, line)| !line.is_empty()).unwrap_or((1, b""));
    RecordingError::UnknownFormat { location: RecordLocation::Line(number), line: snippet(line) }
}

fn skip_mark(reader: &mut impl BufRead) -> io::Result<()> {
    // The whole beginning was read at once, so the buffer has the mark if there is one.
    if reader.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        reader.consume(BYTE_ORDER_MARK.len());
    }
    Ok(())
}

impl Lines<'_> {
    /// Reads a line; `None` if it names columns.
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Option<Entry<'a>>, Flaw<'a>> {
        match self {
            Self::Each(parse) => parse(line).map(Some),
            Self::NasaTsv if nasa_tsv::is_header(line) => Ok(None),
            Self::NasaTsv => nasa_tsv::parse(line).map(Some),
            Self::Json(layout) => json_lines::parse(line, layout).map(Some),
            Self::W3c(reader) => reader.parse(line),
            Self::Pattern(pattern) => pattern.parse(line).map(Some),
        }
    }
}

fn read_lines(
    mut reader: impl BufRead,
    mut lines: Lines<'_>,
    collector: &mut Collector<'_>,
) -> Result<(), RecordingError> {
    let mut line = Vec::new();
    for number in 1.. {
        let location = RecordLocation::Line(number);
        // Empty lines as well: a few compressed bytes may hold any number of them.
        if number > LOG_LINES {
            return Err(RecordingError::TooManyLines(location));
        }
        let length = read_line(&mut reader, &mut line);
        match length.map_err(|source| RecordingError::Unreadable { location, source })? {
            Line::End => break,
            Line::Whole => {
                let line = without_line_end(&line);
                if line.is_empty() {
                    continue;
                }
                match lines.parse(line) {
                    Ok(None) => {}
                    Ok(Some(entry)) => collector.take(location, Ok(entry))?,
                    Err(flaw) => collector.take(location, Err(flaw))?,
                }
            }
            // Nothing is shown of it: its beginning names the client.
            Line::TooLong => collector.take(location, Err(Defect::TooLong.unshown()))?,
            Line::Endless => return Err(RecordingError::EndlessLine(location)),
        }
    }
    Ok(())
}

enum Line {
    Whole,
    /// It was skipped.
    TooLong,
    /// It was given up.
    Endless,
    /// There is none left.
    End,
}

/// Reads the next line, of which at most [`LOG_LINE_BYTES`] are kept and [`LOG_LINE_SKIPPED_BYTES`] skipped.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    let length = reader.by_ref().take(LOG_LINE_BYTES as u64 + 1).read_until(b'\n', line)?;
    if length == 0 {
        return Ok(Line::End);
    }
    if length <= LOG_LINE_BYTES || line.last() == Some(&b'\n') {
        return Ok(Line::Whole);
    }
    let skipped = reader.by_ref().take(LOG_LINE_SKIPPED_BYTES).skip_until(b'\n')?;
    Ok(if skipped as u64 == LOG_LINE_SKIPPED_BYTES { Line::Endless } else { Line::TooLong })
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn read_records(mut reader: impl BufRead, collector: &mut Collector<'_>) -> Result<(), RecordingError> {
    let mut bytes = Vec::with_capacity(RECORD_BYTES);
    for number in 1.. {
        let location = RecordLocation::Record(number);
        bytes.clear();
        let record = reader.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut bytes);
        record.map_err(|source| RecordingError::Unreadable { location, source })?;
        match bytes.first_chunk() {
            Some(record) => collector.take(location, world_cup::parse(record))?,
            None if bytes.is_empty() => break,
            // The next round finds the end.
            None => collector.take(location, Err(Defect::PartialRecord.unshown()))?,
        }
    }
    Ok(())
}
