//! Reasons for which a log cannot be read, or a recording not be used as wished.

use crate::recording::format::names;
use crate::recording::problem::{Backwards, RecordLocation, Unparsed};
use flashweir_core::limits::{
    LOG_LINE_SKIPPED_BYTES, LOG_LINES, PROFILE_BINS, RECORDED_DOCUMENTS, RECORDED_REQUESTS,
    RECORDED_TEXT_BYTES,
};
use std::io;
use std::time::Duration;

/// A log cannot be read, or a recording cannot be used as wished.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// Reading failed.
    #[error("{location}: cannot be read")]
    Unreadable {
        /// The location that was to be read next.
        location: RecordLocation,
        /// Error of the reader.
        source: io::Error,
    },
    /// The log is compressed by a program whose work is not undone here, or twice.
    #[error("it is {program}-compressed: pipe it through `{program} -dc`")]
    Compressed {
        /// The program that compressed it and decompresses it.
        program: &'static str,
    },
    /// The beginning fits none of the formats.
    #[error(
        "its beginning is of no log format known here ({names}); name a pattern, such as \
         '$remote_addr - - [$time_local] \"$request\" $status $body_bytes_sent'; {location}: \"{line}\"",
        names = names()
    )]
    UnknownFormat {
        /// The first line that is not empty.
        location: RecordLocation,
        /// Its beginning, made printable.
        line: String,
    },
    /// There is nothing in it.
    #[error("the log is empty")]
    Empty,
    /// There is something in it, and nothing of it is a request.
    #[error("none of its {unparsed} lines or records is a request; {first}")]
    NothingParsed {
        /// Number of lines or records.
        unparsed: u64,
        /// Fault of the first.
        first: Unparsed,
    },
    /// There are requests in it, and none that may be played.
    #[error(
        "none of its {left_out} requests is a GET or HEAD, and only those are replayed unless all methods are asked for"
    )]
    AllLeftOut {
        /// Number of requests.
        left_out: u64,
    },
    /// There are requests in it, and none that reached the server whose log it is.
    #[error(
        "all of its {elsewhere} requests went to other hosts than the first one's, or were answered by the browser's cache"
    )]
    AllElsewhere {
        /// Number of requests.
        elsewhere: u64,
    },
    /// Strict reading: a line does not parse.
    #[error("{0}")]
    NotParsed(Unparsed),
    /// Strict reading: a time lies before one further up.
    #[error("{0}")]
    TimeWentBack(Backwards),
    /// More lines than are read.
    #[error("{0}: more than {LOG_LINES} lines or records")]
    TooManyLines(RecordLocation),
    /// A line without an end.
    #[error("{0}: has no end within {LOG_LINE_SKIPPED_BYTES} bytes: this is no log")]
    EndlessLine(RecordLocation),
    /// More requests than are kept.
    #[error("{0}: more than {RECORDED_REQUESTS} requests; replay a part of the log")]
    TooManyRequests(RecordLocation),
    /// More documents than are kept.
    #[error("{0}: more than {RECORDED_DOCUMENTS} distinct documents; replay a part of the log")]
    TooManyDocuments(RecordLocation),
    /// More text than is kept.
    #[error(
        "{0}: the distinct documents have more than {RECORDED_TEXT_BYTES} bytes of text; replay a part of the log"
    )]
    TooMuchText(RecordLocation),
    /// A factor that is zero, negative, infinite or not a number.
    #[error("{0} is not a factor: expected a finite number above zero")]
    NotAFactor(f64),
    /// So strong a squeeze that nothing is left, or so weak that it overflows.
    #[error("squeezing time {0} times leaves no length that can be expressed (1 ns to centuries)")]
    Squeezed(f64),
    /// Bins of no width, or too many to be kept.
    #[error("bins of {0:?}: expected a width above zero that gives at most {PROFILE_BINS} bins")]
    Bins(Duration),
}
