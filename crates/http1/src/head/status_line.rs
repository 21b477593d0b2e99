//! Reads a status line: `HTTP/1.x SP status [SP reason]` (RFC 9112 §4).

use super::field::Span;
use super::request_line::Version;
use crate::byte_class::TEXT;

/// Parts of a status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusLine {
    pub(crate) version: Version,
    /// 100 to 999.
    pub(crate) status: u16,
    /// May be empty; says nothing to a program.
    pub(crate) reason: Span,
}

impl StatusLine {
    /// No line.
    pub(crate) const NONE: Self = Self { version: Version::Http11, status: 0, reason: Span::EMPTY };
}

/// Reads a whole line, which is `bytes[at..end]` without its line end. The reason phrase may hold any text or
/// be missing, with the blank before it, as many servers send it.
pub(crate) fn read_status_line(bytes: &[u8], at: usize, end: usize) -> Option<StatusLine> {
    let line = bytes.get(at..end)?;
    let (version, rest) = match line.split_first_chunk()? {
        (b"HTTP/1.1 ", rest) => (Version::Http11, rest),
        (b"HTTP/1.0 ", rest) => (Version::Http10, rest),
        _ => return None,
    };
    let (digits, reason) = rest.split_first_chunk::<3>()?;
    if !digits.iter().all(u8::is_ascii_digit) || digits[0] == b'0' {
        return None;
    }
    let status = digits.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    let reason = match reason.split_first() {
        None => Span::new(end, end),
        Some((b' ', reason)) if TEXT.has_all(reason) => Span::new(end - reason.len(), end),
        Some(_) => return None,
    };
    Some(StatusLine { version, status, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(Version, u16, &str)> {
        let read = read_status_line(line.as_bytes(), 0, line.len())?;
        Some((read.version, read.status, &line[read.reason.start as usize..read.reason.end as usize]))
    }

    #[test]
    fn the_reason_is_free_and_the_rest_is_not() {
        assert_eq!(read("HTTP/1.1 200 OK"), Some((Version::Http11, 200, "OK")));
        assert_eq!(
            read("HTTP/1.0 404 Not  \tF\u{e4}und "),
            Some((Version::Http10, 404, "Not  \tF\u{e4}und "))
        );
        assert_eq!(read("HTTP/1.1 204 "), Some((Version::Http11, 204, "")));
        assert_eq!(read("HTTP/1.1 204"), Some((Version::Http11, 204, "")));
        assert_eq!(read("HTTP/1.1 999 x"), Some((Version::Http11, 999, "x")));
        for bad in [
            "",
            "HTTP/1.1",
            "HTTP/1.1 ",
            "HTTP/1.1 20",
            "HTTP/1.1 2000",
            "HTTP/1.1 099 x",
            "HTTP/1.1 2x0 x",
            "HTTP/1.1  200 x",
            "HTTP/2.0 200 x",
            "HTTP/1.2 200 x",
            "http/1.1 200 x",
            "HTTP/1.1 200\tx",
            "HTTP/1.1 200 a\rb",
            "HTTP/1.1 200 \0",
            " HTTP/1.1 200 x",
            "ICY 200 OK",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
