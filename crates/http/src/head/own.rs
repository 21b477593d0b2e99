//! Heads of responses that this gateway makes itself, as lines: no map of fields is made for them.

use http::header::{CONNECTION, CONTENT_LENGTH};
use http::response::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode};

/// Head of a response of the gateway's own.
#[derive(Debug)]
pub struct OwnHead {
    status: StatusCode,
    length: u64,
    /// Whole field lines with their ends.
    lines: Vec<u8>,
    is_last: bool,
    has_date: bool,
}

/// Room for the lines of a usual answer.
const LINES_BYTES: usize = 256;

impl OwnHead {
    /// A head with a body of `length` bytes; an answer to HEAD has the length of GET's.
    #[must_use]
    pub fn new(status: StatusCode, length: u64) -> Self {
        Self { status, length, lines: Vec::with_capacity(LINES_BYTES), is_last: false, has_date: false }
    }

    /// A head of status 200 that begins with these whole field lines, `Date` among them.
    #[must_use]
    pub fn copied(length: u64, lines: &[u8]) -> Self {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"), "whole lines");
        let mut copy = Vec::with_capacity(lines.len() + LINES_BYTES / 2);
        copy.extend_from_slice(lines);
        Self { status: StatusCode::OK, length, lines: copy, is_last: false, has_date: true }
    }

    /// The HTTP/1.1 connection ends after the response.
    #[must_use]
    pub fn closing(self, is_last: bool) -> Self {
        Self { is_last, ..self }
    }

    /// Appends a field whose value is these parts. A value that is no visible ASCII is left out: it could end
    /// the line.
    pub fn put(&mut self, name: &HeaderName, value: &[&str]) {
        let is_text = |part: &&str| part.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !value.iter().all(is_text) {
            debug_assert!(false, "{name} is no text: {value:?}");
            return;
        }
        self.lines.extend_from_slice(name.as_str().as_bytes());
        self.lines.extend_from_slice(b": ");
        value.iter().for_each(|part| self.lines.extend_from_slice(part.as_bytes()));
        self.lines.extend_from_slice(b"\r\n");
    }

    /// Status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// `Date` is among the lines.
    pub(crate) fn has_date(&self) -> bool {
        self.has_date
    }

    pub(crate) fn is_last(&self) -> bool {
        self.is_last
    }

    pub(super) fn to_parts(&self) -> Parts {
        let (mut parts, ()) = Response::new(()).into_parts();
        parts.status = self.status;
        let lines = self.lines.split(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\r"));
        for line in lines {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            // Both were written from such types.
            let name = HeaderName::from_bytes(&line[..colon]);
            let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
            if let (Ok(name), Ok(value)) = (name, value) {
                parts.headers.append(name, value);
            }
        }
        if self.is_last {
            parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        parts.headers.insert(CONTENT_LENGTH, self.length.into());
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{CACHE_CONTROL, RETRY_AFTER};

    #[test]
    fn lines_become_the_same_fields() {
        let mut head = OwnHead::new(StatusCode::SERVICE_UNAVAILABLE, 12).closing(true);
        head.put(&RETRY_AFTER, &["1", "5"]);
        head.put(&CACHE_CONTROL, &["no-store: really"]);
        assert_eq!(head.lines(), b"retry-after: 15\r\ncache-control: no-store: really\r\n");
        let parts = head.to_parts();
        assert_eq!(parts.status, 503);
        assert_eq!(parts.headers[RETRY_AFTER], "15");
        assert_eq!(parts.headers[CACHE_CONTROL], "no-store: really");
        assert_eq!(parts.headers[CONTENT_LENGTH], "12");
        assert_eq!(parts.headers[CONNECTION], "close");
        assert_eq!(parts.headers.len(), 4);
    }
}
