//! HTTP archives (HAR 1.2): what a browser sent while one person used it. One JSON document, read as a
//! stream, so that the contents of the answers in it cost no memory.

use crate::recording::RecordingError;
use crate::recording::collector::Collector;
use crate::recording::entry::{Entry, EntryTarget, Flaw, checked_method, checked_size};
use crate::recording::json;
use crate::recording::log_time;
use crate::recording::problem::{Defect, RecordLocation};
use hifijson::{Error, IterLexer, Lex};
use std::io::BufRead;

/// The parts of an entry that are used.
#[derive(Debug, Default)]
struct Fields {
    started: Option<Vec<u8>>,
    method: Option<Vec<u8>>,
    url: Option<Vec<u8>>,
    body_size: Option<Vec<u8>>,
    content_size: Option<Vec<u8>>,
    /// Chrome says `disk` or `memory` of what its cache answered.
    from_cache: Option<Vec<u8>>,
}

/// Reads an archive. Entries for another host than the first one's, and answers of the browser's cache, are
/// counted and left out: they did not reach the server that is asked.
pub(super) fn read(stream: impl BufRead, collector: &mut Collector<'_>) -> Result<(), RecordingError> {
    let mut lexer = IterLexer::new(stream.bytes());
    let mut number = 0;
    let mut host: Option<Vec<u8>> = None;
    let mut stopped = None;
    let whole = entries(&mut lexer, |fields| {
        number += 1;
        take(&fields, RecordLocation::Record(number), &mut host, collector).map_err(|error| {
            stopped = Some(error);
            // Any error ends the reading.
            Error::Depth
        })
    });
    let location = RecordLocation::Record(number + 1);
    match (stopped, lexer.error, whole) {
        (Some(error), ..) => Err(error),
        (None, Some(source), _) => Err(RecordingError::Unreadable { location, source }),
        (None, None, Err(_)) => collector.take(location, Err(Defect::BrokenArchive.unshown())),
        (None, None, Ok(())) => Ok(()),
    }
}

fn entries<L: Lex>(lexer: &mut L, mut visit: impl FnMut(Fields) -> Result<(), Error>) -> Result<(), Error> {
    json::object(lexer, |key, lexer| {
        if key != b"log" {
            return json::skip(lexer);
        }
        json::object(lexer, |key, lexer| {
            if key != b"entries" {
                return json::skip(lexer);
            }
            json::array(lexer, |lexer| {
                let mut fields = Fields::default();
                fields.read(lexer)?;
                visit(fields)
            })
        })
    })
}

impl Fields {
    fn read<L: Lex>(&mut self, lexer: &mut L) -> Result<(), Error> {
        json::object_or_other(lexer, |key, lexer| match key {
            b"startedDateTime" => json::scalar(lexer).map(|value| self.started = value),
            b"_fromCache" => json::scalar(lexer).map(|value| self.from_cache = value),
            b"request" => json::object_or_other(lexer, |key, lexer| match key {
                b"method" => json::scalar(lexer).map(|value| self.method = value),
                b"url" => json::scalar(lexer).map(|value| self.url = value),
                _ => json::skip(lexer),
            }),
            b"response" => json::object_or_other(lexer, |key, lexer| match key {
                b"bodySize" => json::scalar(lexer).map(|value| self.body_size = value),
                b"content" => json::object_or_other(lexer, |key, lexer| match key {
                    b"size" => json::scalar(lexer).map(|value| self.content_size = value),
                    _ => json::skip(lexer),
                }),
                _ => json::skip(lexer),
            }),
            _ => json::skip(lexer),
        })
    }

    fn entry(&self) -> Result<Entry<'_>, Flaw<'_>> {
        let started = self.started.as_deref().ok_or(Defect::Missing("startedDateTime").unshown())?;
        let time = log_time::iso(started).ok_or(Defect::BadStamp.at(started))?;
        let method = self.method.as_deref().ok_or(Defect::Missing("request.method").unshown())?;
        let url = self.url.as_deref().ok_or(Defect::Missing("request.url").unshown())?;
        // Minus one where the browser does not know.
        let size = |value: &Option<Vec<u8>>| checked_size(value.as_deref().unwrap_or(b"-")).ok().flatten();
        let bytes = size(&self.body_size).filter(|bytes| *bytes > 0).or_else(|| size(&self.content_size));
        Ok(Entry {
            time,
            method: checked_method(method)?,
            target: EntryTarget::plain(without_fragment(url)),
            bytes,
        })
    }
}

fn take(
    fields: &Fields,
    location: RecordLocation,
    host: &mut Option<Vec<u8>>,
    collector: &mut Collector<'_>,
) -> Result<(), RecordingError> {
    let Some(of) = fields.url.as_deref().and_then(host_of) else {
        // `data:` and `blob:` never leave the browser.
        let flaw = if fields.url.is_some() { Defect::NotHttp } else { Defect::Missing("request.url") };
        return collector.take(location, Err(flaw.unshown()));
    };
    let host = host.get_or_insert_with(|| of.to_ascii_lowercase());
    if fields.from_cache.is_some() || !of.eq_ignore_ascii_case(host) {
        return collector.pass_over(location);
    }
    collector.take(location, fields.entry())
}

/// Host and port of an `http` or `https` URL.
fn host_of(url: &[u8]) -> Option<&[u8]> {
    let after_scheme = |scheme: &[u8]| {
        let (start, rest) = url.split_at_checked(scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let rest = after_scheme(b"https://").or_else(|| after_scheme(b"http://"))?;
    rest.split(|byte| matches!(byte, b'/' | b'?' | b'#')).next().filter(|host| !host.is_empty())
}

/// A fragment stays in the browser.
fn without_fragment(url: &[u8]) -> &[u8] {
    url.split(|byte| *byte == b'#').next().unwrap_or_default()
}
