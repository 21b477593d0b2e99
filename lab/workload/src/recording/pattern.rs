//! Logs in a format of one's own, named by a pattern as nginx's `log_format` writes it:
//! `$remote_addr [$time_local] "$request" $status $body_bytes_sent`.

use crate::recording::entry::{Entry, EntryTarget, Flaw, checked_method, checked_size, method_and_target};
use crate::recording::log_time;
use crate::recording::problem::Defect;
use flashweir_core::limits::{LOG_PATTERN_PARTS, LOG_REORDERED_S};
use std::str::FromStr;
use std::time::Duration;

/// Description of a line: text, and variables of which some are used.
///
/// ```
/// use flashweir_workload::recording::{Options, Pattern, Recording};
///
/// let pattern: Pattern = "$remote_addr [$time_iso8601] $request_method $request_uri $status".parse()?;
/// let log = "192.0.2.1 [2015-05-17T10:05:03+00:00] GET /a?b=c 200\n";
/// let recording = Recording::read_pattern(log.as_bytes(), &pattern, &Options::default())?;
/// assert_eq!(recording.document(0).unwrap().path, "/a?b=c");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
}

/// A text that is no pattern of a log that can be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing says when a request came.
    #[error("the pattern has no time: expected $time_local, $time_iso8601 or $msec")]
    NoTime,
    /// Nothing says what was asked for.
    #[error("the pattern has no request: expected $request, or $request_method and $request_uri (or $uri)")]
    NoRequest,
    /// A variable whose name is missing.
    #[error("byte {at} of the pattern: expected the name of a variable after the $")]
    NoName {
        /// The place of the `$`, counted from 1.
        at: usize,
    },
    /// Nothing says where the first of two variables ends.
    #[error(
        "the pattern has no text between ${{{first}}} and ${{{second}}}, so the end of the first is unknown"
    )]
    Adjacent {
        /// Name of the first.
        first: String,
        /// Name of the second.
        second: String,
    },
    /// More than is expected of a line.
    #[error("the pattern has more than {LOG_PATTERN_PARTS} variables and texts")]
    TooLong,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<[u8]>),
    Variable(Meaning),
}

/// Content of a variable, of those that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Time,
    Took,
    Request,
    Method,
    /// Path and query.
    Target,
    Query,
    Bytes,
    /// Anything else, which is passed over.
    Other,
}

/// The variables of nginx that are used. Two of the same meaning: the last that has a value counts.
const VARIABLES: [(&str, Meaning); 13] = [
    ("time_local", Meaning::Time),
    ("time_iso8601", Meaning::Time),
    ("msec", Meaning::Time),
    ("request_time", Meaning::Took),
    ("request", Meaning::Request),
    ("request_method", Meaning::Method),
    ("uri", Meaning::Target),
    ("document_uri", Meaning::Target),
    ("request_uri", Meaning::Target),
    ("args", Meaning::Query),
    ("query_string", Meaning::Query),
    ("bytes_sent", Meaning::Bytes),
    ("body_bytes_sent", Meaning::Bytes),
];
const MEANINGS: usize = Meaning::Other as usize + 1;

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let mut parts = Vec::new();
        let mut before: Option<&str> = None;
        let mut rest = text;
        while !rest.is_empty() {
            if parts.len() == LOG_PATTERN_PARTS {
                return Err(PatternError::TooLong);
            }
            let end = rest.find('$').unwrap_or(rest.len());
            if end > 0 {
                parts.push(Part::Text(rest.as_bytes()[..end].into()));
                (before, rest) = (None, &rest[end..]);
                continue;
            }
            let (name, after) =
                variable(&rest[1..]).ok_or(PatternError::NoName { at: text.len() - rest.len() + 1 })?;
            if let Some(first) = before {
                return Err(PatternError::Adjacent { first: first.to_owned(), second: name.to_owned() });
            }
            let known = VARIABLES.iter().find(|(known, _)| *known == name);
            parts.push(Part::Variable(known.map_or(Meaning::Other, |(_, meaning)| *meaning)));
            (before, rest) = (Some(name), after);
        }
        let pattern = Self { parts };
        if !pattern.has(Meaning::Time) {
            return Err(PatternError::NoTime);
        }
        let in_parts = pattern.has(Meaning::Method) && pattern.has(Meaning::Target);
        if !pattern.has(Meaning::Request) && !in_parts {
            return Err(PatternError::NoRequest);
        }
        Ok(pattern)
    }
}

impl Pattern {
    fn has(&self, meaning: Meaning) -> bool {
        self.parts.contains(&Part::Variable(meaning))
    }

    /// Splits one line. O(length of the line times that of the longest text of the pattern).
    pub(super) fn parse<'a>(&'a self, line: &'a [u8]) -> Result<Entry<'a>, Flaw<'a>> {
        let values = self.values(line)?;
        let of =
            |meaning: Meaning| values[meaning as usize].filter(|value| !value.is_empty() && *value != b"-");
        let time = of(Meaning::Time).ok_or(Defect::Missing("the time").unshown())?;
        let time = log_time::any(time).ok_or(Defect::BadStamp.at(time))?;
        let took = of(Meaning::Took).and_then(|took| log_time::length(took, 1_000_000_000));
        let took = took.filter(|took| *took <= Duration::from_secs(LOG_REORDERED_S));
        let time = time.before(took.unwrap_or_default());
        let bytes = of(Meaning::Bytes).map_or(Ok(None), checked_size)?;
        if self.has(Meaning::Request) {
            let request = of(Meaning::Request).ok_or(Defect::NoRequest.unshown())?;
            let (method, target) = method_and_target(request)?;
            return Ok(Entry { time, method: method.into(), target: EntryTarget::escaped(target), bytes });
        }
        let method = checked_method(of(Meaning::Method).ok_or(Defect::Missing("the method").unshown())?)?;
        let target = of(Meaning::Target).ok_or(Defect::Missing("the path").unshown())?;
        let target = match of(Meaning::Query) {
            Some(query) if !target.contains(&b'?') => EntryTarget::escaped([target, b"?", query].concat()),
            _ => EntryTarget::escaped(target),
        };
        Ok(Entry { time, method, target, bytes })
    }

    /// The value of each meaning.
    fn values<'a>(&'a self, line: &'a [u8]) -> Result<[Option<&'a [u8]>; MEANINGS], Flaw<'a>> {
        let mut values = [None; MEANINGS];
        let mut rest = line;
        let mut parts = self.parts.iter().peekable();
        while let Some(part) = parts.next() {
            match part {
                Part::Text(text) => {
                    // Only the pattern is shown: the line may name the client.
                    rest = rest.strip_prefix(&**text).ok_or(Defect::NotOfPattern.at(&**text))?;
                }
                Part::Variable(meaning) => {
                    let end = match parts.peek() {
                        Some(Part::Text(text)) => find(rest, text).ok_or(Defect::NotOfPattern.at(&**text))?,
                        _ => rest.len(),
                    };
                    let (value, after) = rest.split_at(end);
                    if !value.is_empty() && value != b"-" {
                        values[*meaning as usize] = Some(value);
                    }
                    rest = after;
                }
            }
        }
        Ok(values)
    }
}

/// The first place of `text`; a quote that a backslash escapes ends no value.
fn find(line: &[u8], text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'\\' if text.first() == Some(&b'"') => at += 1,
            _ if line[at..].starts_with(text) => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The name of the variable at the beginning of `text`, behind its `$`, and what follows: `name` or `{name}`.
fn variable(text: &str) -> Option<(&str, &str)> {
    if let Some(braced) = text.strip_prefix('{') {
        return braced.split_once('}').filter(|(name, _)| !name.is_empty());
    }
    let end = text.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let (name, rest) = text.split_at(end.unwrap_or(text.len()));
    (!name.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::log_time::Stamp;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn check(text: &str, line: &str, time: Stamp, target: &str, bytes: Option<u64>) {
        let pattern = pattern(text);
        let entry = pattern.parse(line.as_bytes()).unwrap_or_else(|flaw| panic!("{line}: {flaw:?}"));
        let target = EntryTarget::escaped(target.as_bytes());
        assert_eq!(entry, Entry { time, method: b"GET".into(), target, bytes }, "{line}");
    }

    const WHOLE: Stamp = Stamp { second: 1_431_857_103, nanosecond: None };
    const EXACT: Stamp = Stamp { second: 1_431_857_103, nanosecond: Some(250_000_000) };

    #[test]
    fn lines_as_patterns_say() {
        check(
            r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer""#,
            r#"2001:db8::1 - - [17/May/2015:10:05:03 +0000] "GET /a\x22 \"b HTTP/1.1" 200 17 "-""#,
            WHOLE,
            r#"/a\x22 \"b"#,
            Some(17),
        );
        check(
            "${msec}|$request_time|$request_method|$uri|$args|$bytes_sent",
            "1431857103.750|0.500|GET|/a|b=c|-",
            EXACT,
            "/a?b=c",
            None,
        );
        check(
            r#"{"t":"$time_iso8601","m":"$request_method","u":"$request_uri"}"#,
            r#"{"t":"2015-05-17T10:05:03+00:00","m":"GET","u":"/a?b=\u0022"}"#,
            WHOLE,
            r"/a?b=\u0022",
            None,
        );
    }

    #[test]
    fn a_text_that_is_no_pattern_is_an_error_that_says_why() {
        let check = |text: &str, wanted: &str| {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        };
        check("", "has no time");
        check("$request", "has no time");
        check("[$time_local] $status", "has no request");
        check("[$time_local] $request_uri", "has no request");
        check("$time_local$request", "between ${time_local} and ${request}");
        check("[$time_local] $", "byte 15 of the pattern");
        check("[$time_local] ${", "byte 15 of the pattern");
        check(&"$a ".repeat(99), "more than 64");
    }

    #[test]
    fn every_defect_shows_its_part_and_never_the_client() {
        let pattern = pattern("$remote_addr [$time_local] \"$request\" $body_bytes_sent");
        let check = |line: &str, defect: Defect, part: &str| {
            assert_eq!(pattern.parse(line.as_bytes()), Err(defect.at(part.as_bytes())), "{line}");
        };
        check("192.0.2.1", Defect::NotOfPattern, " [");
        check("192.0.2.1 [noon] \"GET / HTTP/1.1\" 5", Defect::BadStamp, "noon");
        check("192.0.2.1 [-] \"GET / HTTP/1.1\" 5", Defect::Missing("the time"), "");
        check("192.0.2.1 [1431857103] \"-\" 5", Defect::NoRequest, "");
        check("192.0.2.1 [1431857103] \"GET / HTTP/1.1\\\" 5", Defect::NotOfPattern, "\" ");
        check("192.0.2.1 [1431857103] \"GET / HTTP/1.1\" five", Defect::BadSize, "five");
    }
}
