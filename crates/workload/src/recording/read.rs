//! Converts bytes, valid or not, to lines and records.

use crate::recording::collector::{Bounds, Collector};
use crate::recording::entry::{Entry, Flaw};
use crate::recording::problem::{Defect, Place};
use crate::recording::world_cup::RECORD_BYTES;
use crate::recording::{Format, Options, Recording, RecordingError};
use crate::recording::{combined, nasa_tsv, world_cup};
use flashweir_core::limits::{LOG_LINE_BYTES, LOG_LINE_SKIPPED_BYTES};
use std::io::{self, BufRead, BufReader, Read};

/// Read at once. Larger gains nothing.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes by which the format is recognised.
const BEGINNING_BYTES: u64 = 64 << 10;
/// How compressed files begin, and the programs that make them, each of which undoes it with `-dc`.
const COMPRESSED: [(&[u8], &str); 3] =
    [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz")];

/// Reads a log of this format, or of the one recognised by its beginning.
pub(super) fn read(
    mut text: impl Read,
    format: Option<Format>,
    options: &Options,
) -> Result<(Format, Recording), RecordingError> {
    let mut beginning = Vec::new();
    let failure = text.by_ref().take(BEGINNING_BYTES).read_to_end(&mut beginning).err();
    if let Some((_, program)) = COMPRESSED.iter().find(|(magic, _)| beginning.starts_with(magic)) {
        return Err(RecordingError::Compressed { program });
    }
    if beginning.is_empty() {
        let unreadable = |source| RecordingError::Unreadable { place: Place::Line(1), source };
        return Err(failure.map_or(RecordingError::Empty, unreadable));
    }
    let format = format.or_else(|| Format::detect(&beginning)).ok_or(RecordingError::UnknownFormat)?;
    let rest = Rest { failure, text };
    let reader = BufReader::with_capacity(BUFFER_BYTES, beginning.as_slice().chain(rest));
    let mut collector = Collector::new(options, Bounds::NAMED);
    match format {
        Format::Combined => read_lines(reader, combined::parse, |_| false, &mut collector)?,
        Format::NasaTsv => read_lines(reader, nasa_tsv::parse, nasa_tsv::is_header, &mut collector)?,
        Format::WorldCupBinary => read_records(reader, &mut collector)?,
    }
    Ok((format, collector.finish()?))
}

/// The bytes after the beginning. A failure met while reading the beginning comes in its turn, so that its message
/// names the line it struck.
struct Rest<R> {
    failure: Option<io::Error>,
    text: R,
}

impl<R: Read> Read for Rest<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.failure.take().map_or_else(|| self.text.read(buffer), Err)
    }
}

fn read_lines(
    mut reader: impl BufRead,
    parse: fn(&[u8]) -> Result<Entry<'_>, Flaw<'_>>,
    is_header: fn(&[u8]) -> bool,
    collector: &mut Collector<'_>,
) -> Result<(), RecordingError> {
    let mut line = Vec::new();
    for number in 1.. {
        let place = Place::Line(number);
        let length = read_line(&mut reader, &mut line);
        match length.map_err(|source| RecordingError::Unreadable { place, source })? {
            Line::End => break,
            Line::Whole => {
                let line = without_line_end(&line);
                let is_header = number == 1 && is_header(line);
                if !line.is_empty() && !is_header {
                    collector.take(place, parse(line))?;
                }
            }
            // Nothing is shown of it: its beginning names the client.
            Line::TooLong => collector.take(place, Err(Defect::TooLong.at(b"")))?,
            Line::Endless => return Err(RecordingError::EndlessLine(place)),
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
        let place = Place::Record(number);
        bytes.clear();
        let record = reader.by_ref().take(RECORD_BYTES as u64).read_to_end(&mut bytes);
        record.map_err(|source| RecordingError::Unreadable { place, source })?;
        match bytes.first_chunk() {
            Some(record) => collector.take(place, world_cup::parse(record))?,
            None if bytes.is_empty() => break,
            // The next round finds the end.
            None => collector.take(place, Err(Defect::PartialRecord.at(b"")))?,
        }
    }
    Ok(())
}
