//! Recorded logs: who asked a real web server for what, and when, to be played again.
//!
//! Most logs have stamps in whole seconds. Played as they are, the requests of one second would all come at
//! its first instant: bursts that never happened. So they are spread evenly over their second, in their
//! order, the k-th of n at (k − ½)/n ([`Stamps::Spread`]). Stamps with fractions of a second are played as
//! they are.
//!
//! A log is written in the order in which answers *ended*. Where it says when requests *began*, or how long
//! they took, it is put into that order. Elsewhere times that step back a little are normal: such a request
//! is played at the latest time seen above it, and counted ([`Problems::backwards`]), as is a step back of
//! more than an hour anywhere.
//!
//! Only `GET` and `HEAD` are kept unless all is asked for: replaying an order orders again. The identity of
//! clients is never kept. Compressed logs (gzip, zstd) are decompressed as they are read. Reading is one
//! pass, about 0.5 µs a line of the common format; 20 bytes a request and each distinct document once stay in
//! memory (bounds: `RECORDED_*` and `LOG_*` in `flashweir_core::limits`).
//!
//! The formats are those of [`Format`], recognised by their beginning, and those that a [`Pattern`]
//! describes.
//!
//! ```
//! use flashweir_workload::recording::{Format, Options, Recording};
//! use std::time::Duration;
//!
//! let log = "\
//! 192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET /a HTTP/1.1\" 200 170\n\
//! 192.0.2.9 - - [17/May/2015:10:05:03 +0000] \"GET /b HTTP/1.1\" 200 23\n\
//! 192.0.2.1 - - [17/May/2015:10:05:05 +0000] \"GET /a HTTP/1.1\" 304 -\n\
//! 192.0.2.1 - - [17/May/2015:10:05:06 +0000] \"POST /order HTTP/1.1\" 200 9\n";
//! let recording = Recording::read(log.as_bytes(), Format::Combined, &Options::default())?;
//! assert_eq!(recording.moments()[..], [250, 750, 2500].map(Duration::from_millis));
//! assert_eq!(recording.documents()[..], [0, 1, 0]);
//! assert_eq!(recording.document(0).unwrap().path, "/a");
//! assert_eq!(recording.document(0).unwrap().bytes, 170);
//! assert_eq!(recording.problems().left_out, 1);
//! # Ok::<(), flashweir_workload::recording::RecordingError>(())
//! ```

mod alb;
mod collector;
mod combined;
mod decompress;
mod document_table;
mod entry;
mod envoy;
mod error;
mod fields;
mod format;
mod haproxy;
mod har;
mod json;
mod json_lines;
mod log_time;
mod nasa_tsv;
mod path;
mod pattern;
mod peek;
mod problem;
mod read;
mod w3c;
mod world_cup;

use flashweir_core::limits::PROFILE_BINS;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use document_table::Named;
use read::How;

pub use document_table::Document;
pub use error::RecordingError;
pub use format::{Format, UnknownFormatName};
pub use pattern::{Pattern, PatternError};
pub use problem::{Backwards, Defect, Problems, RecordLocation, Unparsed};

/// Options for reading a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Methods of the requests that are kept.
    pub methods: Methods,
    /// Treatment of the whole seconds.
    pub stamps: Stamps,
    /// The first line that does not parse, and the first time that goes back, is an error.
    pub strict: bool,
}

/// Methods of the requests of a log that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Methods {
    /// `GET` and `HEAD`, which change nothing at a server; the others are counted as left out.
    #[default]
    SafeOnly,
    /// Every one, also those that order, pay or delete.
    All,
}

/// Treatment of stamps that have whole seconds only; others are played as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamps {
    /// The requests of one second are spread evenly over it, in their order.
    #[default]
    Spread,
    /// They all come at its beginning.
    AsWritten,
}

/// Requests of a log: when each came and what it asked for. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recording {
    moments: Arc<[Duration]>,
    documents: Arc<[u32]>,
    table: Arc<[Named]>,
    length: Duration,
    problems: Problems,
}

impl Recording {
    /// Reads a log of a known format. Empty lines, and lines that name columns, count as nothing.
    ///
    /// # Errors
    /// A log that cannot be read or decompressed, holds nothing to play or exceeds a bound; with
    /// [`Options::strict`] also the first problem.
    pub fn read(log: impl Read, format: Format, options: &Options) -> Result<Self, RecordingError> {
        read::read(log, How::Format(format), options).map(|(_, recording)| recording)
    }

    /// Reads a log whose lines a pattern describes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_pattern(
        log: impl Read,
        pattern: &Pattern,
        options: &Options,
    ) -> Result<Self, RecordingError> {
        read::read(log, How::Pattern(pattern), options).map(|(_, recording)| recording)
    }

    /// Reads a log whose format is recognised by its beginning, and returns the format.
    ///
    /// # Errors
    /// As [`read`](Self::read), and a beginning of no format.
    pub fn read_detecting(log: impl Read, options: &Options) -> Result<(Format, Self), RecordingError> {
        let (format, recording) = read::read(log, How::Detect, options)?;
        // Without a pattern there is a format.
        Ok((format.unwrap_or(Format::Combined), recording))
    }

    /// Arrival time of each request, never falling: offsets from the beginning of the first request's second.
    #[must_use]
    pub fn moments(&self) -> &Arc<[Duration]> {
        &self.moments
    }

    /// Document of each request: numbers of documents, as many as there are moments.
    #[must_use]
    pub fn documents(&self) -> &Arc<[u32]> {
        &self.documents
    }

    /// A document by number; they are numbered from 0 in order of appearance.
    #[must_use]
    pub fn document(&self, number: u32) -> Option<Document<'_>> {
        self.table.get(number as usize).map(Named::document)
    }

    /// All distinct documents in the order of their numbers.
    pub fn document_table(&self) -> impl ExactSizeIterator<Item = Document<'_>> {
        self.table.iter().map(Named::document)
    }

    /// From the beginning of the first request's second to the end of the last one's.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Faults of the log, and the parts left out.
    #[must_use]
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Lines or records of the log: requests kept, left out, made elsewhere and not parsed.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.moments.len() as u64 + self.problems.left_out + self.problems.unparsed + self.problems.elsewhere
    }

    /// Time runs `factor` times faster (below one: slower). O(requests).
    ///
    /// # Errors
    /// A factor that is not one, or a recording too short or too long afterwards.
    pub fn squeeze(self, factor: f64) -> Result<Self, RecordingError> {
        if !factor.is_finite() || factor <= 0.0 {
            return Err(RecordingError::NotAFactor(factor));
        }
        let squeezed = |time: Duration| Duration::try_from_secs_f64(time.as_secs_f64() / factor).ok();
        let length = squeezed(self.length).filter(|length| !length.is_zero());
        let length = length.ok_or(RecordingError::Squeezed(factor))?;
        // No moment is later than the end, so what holds for the length holds for all; rounding may not break
        // it.
        let squeeze = |moment: &Duration| squeezed(*moment).unwrap_or(length).min(length);
        Ok(Self { moments: self.moments.iter().map(squeeze).collect(), length, ..self })
    }

    /// Number of requests for each document, by its number.
    #[must_use]
    pub fn popularity_counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.table.len()];
        for document in self.documents.iter() {
            counts[*document as usize] += 1;
        }
        counts
    }

    /// Requests in each stretch of `bin`; the last stretch may reach beyond the end.
    ///
    /// # Errors
    /// Bins of no width, or more than `PROFILE_BINS` of them.
    pub fn counts_per_bin(&self, bin: Duration) -> Result<Vec<u64>, RecordingError> {
        let index = |moment: Duration| moment.as_nanos().checked_div(bin.as_nanos());
        let last = index(self.length.saturating_sub(Duration::from_nanos(1)))
            .and_then(|last| usize::try_from(last).ok())
            .filter(|last| *last < PROFILE_BINS)
            .ok_or(RecordingError::Bins(bin))?;
        let mut counts = vec![0; last + 1];
        for moment in self.moments.iter() {
            // Squeezing may round a moment up to the very end, which belongs to the last bin.
            let bin = index(*moment).map_or(last, |bin| last.min(bin as usize));
            counts[bin] += 1;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
