//! Faults of a recorded log: everything counted, the first few of each kind kept to be shown.

use flashweir_core::limits::{
    LOG_LINE_BYTES, LOG_PROBLEMS_SHOWN, LOG_SNIPPET_CHARACTERS, RECORDED_METHOD_BYTES, RECORDED_PATH_BYTES,
    RECORDED_SPAN_S,
};
use std::fmt;

/// All that was wrong, or left out, while a log was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// Lines that do not parse; nothing of them is played.
    pub unparsed: u64,
    /// The first of them, at most [`LOG_PROBLEMS_SHOWN`].
    pub first_unparsed: Vec<Unparsed>,
    /// Requests whose time lies before one further up. They are played, at the latest time seen before them:
    /// servers write a line when an answer ends, so small steps back are normal.
    pub backwards: u64,
    /// The first of them, at most [`LOG_PROBLEMS_SHOWN`].
    pub first_backwards: Vec<Backwards>,
    /// Requests that parse and are not played, since their method may change something at the server.
    pub left_out: u64,
    /// HTTP archives: requests to other hosts than the first one's, and those that the browser's cache
    /// answered.
    pub elsewhere: u64,
}

/// One line that does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unparsed {
    /// Location in the log.
    pub location: RecordLocation,
    /// The fault.
    pub defect: Defect,
    /// The part at fault, made printable, at most [`LOG_SNIPPET_CHARACTERS`] characters; empty where it might
    /// name the client.
    pub snippet: String,
}

/// One request whose time lies before that of one further up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backwards {
    /// Location in the log.
    pub location: RecordLocation,
    /// Distance before the latest time seen, seconds.
    pub by_s: u64,
}

/// Location of a record in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordLocation {
    /// Line of a text, the first being 1.
    Line(u64),
    /// Record of a binary file, the first being 1.
    Record(u64),
}

/// Reason for which a line or record is no request that can be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// The line is too long to be one.
    #[error("longer than {LOG_LINE_BYTES} bytes")]
    TooLong,
    /// Common formats: nothing in the line looks like its time.
    #[error("no time in brackets, such as [17/May/2015:10:05:03 +0000]")]
    NoTime,
    /// Common formats: a time that is none.
    #[error("not a time such as [17/May/2015:10:05:03 +0000]")]
    BadTime,
    /// Common formats: no request where it should be, or an empty one (a connection that asked for nothing).
    #[error("no request in quotes after the time")]
    NoRequest,
    /// Common formats: the quote before the request has no counterpart with a status behind it.
    #[error("the quote before the request is not closed")]
    OpenRequest,
    /// Tab-separated: not enough fields.
    #[error("fewer than seven fields with tabs between")]
    FewFields,
    /// Tab-separated: a time that is none.
    #[error("not a time in whole seconds since 1970")]
    BadSecond,
    /// A time in none of the forms that are read.
    #[error("not a time: expected 2015-05-17T10:05:03Z, 17/May/2015:10:05:03 +0000, or seconds since 1970")]
    BadStamp,
    /// Something by which a format is recognised is missing.
    #[error("{format} has {what}")]
    Expected {
        /// The format.
        format: &'static str,
        /// The missing part of the line, and its place.
        what: &'static str,
    },
    /// A line that ends too early.
    #[error("fewer than the {fewest} fields of {format}")]
    FewFieldsOf {
        /// The format.
        format: &'static str,
        /// Fields that every line has.
        fewest: u8,
    },
    /// W3C: no line says what the columns are.
    #[error("no line that begins with #Fields: above it says what its columns are")]
    NoColumns,
    /// W3C: a line that ends too early.
    #[error("fewer columns than the #Fields: line above it names")]
    FewColumns,
    /// A part without which there is no request is missing, empty or `-`.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// JSON: a line that is none.
    #[error("not a JSON object")]
    NotJson,
    /// HTTP archives: the document is damaged, or ends too early; what follows is not read.
    #[error("the archive is no JSON from here on, or ends too early")]
    BrokenArchive,
    /// HTTP archives: a URL of another scheme, such as `data:`, which is not sent.
    #[error("what is asked for is not a URL of http or https")]
    NotHttp,
    /// The line is none of those that the pattern describes.
    #[error("a text of the pattern is missing, or not where the pattern has it")]
    NotOfPattern,
    /// A method that cannot be sent.
    #[error("not a method (a word of at most {RECORDED_METHOD_BYTES} letters)")]
    BadMethod,
    /// World Cup: a code that stands for no method known.
    #[error("{0} is not the code of a method (0 to 7)")]
    UnknownMethodCode(u8),
    /// A request without anything asked for.
    #[error("no path after the method")]
    NoTarget,
    /// The requested target is not below this server's root.
    #[error("what is asked for is not a path (which begins with /)")]
    NotAPath,
    /// A path that no server would accept.
    #[error("the path is longer than {RECORDED_PATH_BYTES} bytes")]
    PathTooLong,
    /// No status where it should be.
    #[error("not a status of three digits")]
    BadStatus,
    /// No size where it should be.
    #[error("not a size in bytes (a number, or - for none)")]
    BadSize,
    /// World Cup: the file ends too early.
    #[error("the file ends inside a record (of 20 bytes)")]
    PartialRecord,
    /// A time that would make the recording absurdly long.
    #[error("the time is more than {} days after the first", RECORDED_SPAN_S / 86_400)]
    TooFarAhead,
}

impl Problems {
    pub(super) fn note_unparsed(&mut self, unparsed: Unparsed) {
        self.unparsed += 1;
        if self.first_unparsed.len() < LOG_PROBLEMS_SHOWN {
            self.first_unparsed.push(unparsed);
        }
    }

    pub(super) fn note_backwards(&mut self, backwards: Backwards) {
        self.backwards += 1;
        if self.first_backwards.len() < LOG_PROBLEMS_SHOWN {
            self.first_backwards.push(backwards);
        }
    }
}

impl Unparsed {
    pub(super) fn new(location: RecordLocation, defect: Defect, part: &[u8]) -> Self {
        Self { location, defect, snippet: snippet(part) }
    }
}

impl fmt::Display for Unparsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.defect)?;
        if self.snippet.is_empty() { Ok(()) } else { write!(f, ": \"{}\"", self.snippet) }
    }
}

impl fmt::Display for Backwards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} s before the latest time above it", self.location, self.by_s)
    }
}

impl fmt::Display for RecordLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Record(number) => write!(f, "record {number}"),
        }
    }
}

/// The beginning of `part` as printable text: a log may hold anything, terminal commands included.
pub(super) fn snippet(part: &[u8]) -> String {
    let mut text = String::new();
    let mut characters = 0;
    for chunk in part.utf8_chunks() {
        let valid = chunk.valid().chars().map(|character| character.escape_debug().to_string());
        let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
        for shown in valid.chain(invalid) {
            characters += shown.len().min(shown.chars().count());
            // One is kept for the mark that there is more.
            if characters >= LOG_SNIPPET_CHARACTERS {
                text.push('…');
                return text;
            }
            text.push_str(&shown);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_are_short_and_harmless() {
        assert_eq!(snippet(b"GET /a"), "GET /a");
        assert_eq!(snippet(b"\x1b[31m\xff\0\n"), r"\u{1b}[31m\xff\0\n");
        assert_eq!(snippet("\u{202e}evil é".as_bytes()), r"\u{202e}evil é");
        assert_eq!(snippet(&[b'a'; 79]), "a".repeat(79));
        assert_eq!(snippet(&[b'a'; 80]), "a".repeat(79) + "…");
        assert!(snippet(&[0xff; 70_000]).chars().count() <= LOG_SNIPPET_CHARACTERS);
    }

    #[test]
    fn messages_name_the_place_and_the_part() {
        let unparsed = Unparsed::new(RecordLocation::Line(7), Defect::BadSize, b"five");
        assert_eq!(unparsed.to_string(), "line 7: not a size in bytes (a number, or - for none): \"five\"");
        let unparsed = Unparsed::new(RecordLocation::Record(3), Defect::PartialRecord, b"");
        assert_eq!(unparsed.to_string(), "record 3: the file ends inside a record (of 20 bytes)");
        let backwards = Backwards { location: RecordLocation::Line(8), by_s: 31 };
        assert_eq!(backwards.to_string(), "line 8: 31 s before the latest time above it");
    }

    #[test]
    fn only_the_first_few_are_kept() {
        let mut problems = Problems::default();
        for line in 1..=9 {
            problems.note_unparsed(Unparsed::new(RecordLocation::Line(line), Defect::NoTime, b""));
            problems.note_backwards(Backwards { location: RecordLocation::Line(line), by_s: 1 });
        }
        assert_eq!((problems.unparsed, problems.backwards), (9, 9));
        let lines: Vec<_> = problems.first_unparsed.iter().map(|unparsed| unparsed.location).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5].map(RecordLocation::Line));
        assert_eq!(problems.first_backwards.len(), 5);
    }
}
