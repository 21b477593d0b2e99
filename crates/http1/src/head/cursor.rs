//! Place of a reader in the lines of a head that may come in pieces.

/// Beginning of the line to read next, and how far its end has been looked for: no byte is searched twice,
/// so a head that comes byte by byte costs as much as one that comes whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineCursor {
    /// Beginning of the line.
    at: usize,
    /// No line end before this place.
    searched: usize,
}

/// Whole line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// It ended in LF without CR.
    pub(crate) is_bare: bool,
}

impl LineCursor {
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns whether the line has not been searched yet: the reader of ordinary lines may try it.
    #[inline]
    pub(crate) fn is_fresh(&self) -> bool {
        self.searched <= self.at
    }

    /// Goes on to the line that begins at `next`.
    #[inline]
    pub(crate) fn go_to(&mut self, next: usize) {
        self.at = next;
    }

    /// Line at the cursor, which goes on behind it; `None` until its end has come.
    pub(crate) fn take_line(&mut self, bytes: &[u8]) -> Option<Line> {
        if bytes.get(self.at..)?.starts_with(b"\r\n") {
            let start = self.at;
            self.at += 2;
            return Some(Line { start, end: start, is_bare: false });
        }
        let from = self.searched.max(self.at);
        let Some(line_feed) = memchr::memchr(b'\n', bytes.get(from..)?) else {
            self.searched = bytes.len();
            return None;
        };
        let (start, line_feed) = (self.at, from + line_feed);
        self.at = line_feed + 1;
        let is_bare = line_feed == start || bytes[line_feed - 1] != b'\r';
        Some(Line { start, end: line_feed - usize::from(!is_bare), is_bare })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_however_they_come() {
        let bytes = b"a\r\n\nb\r\n";
        let expected = [
            Line { start: 0, end: 1, is_bare: false },
            Line { start: 3, end: 3, is_bare: true },
            Line { start: 4, end: 5, is_bare: false },
        ];
        for step in 1..=bytes.len() {
            let (mut cursor, mut lines) = (LineCursor::default(), Vec::new());
            for end in (0..=bytes.len()).filter(|end| end % step == 0 || *end == bytes.len()) {
                lines.extend(core::iter::from_fn(|| cursor.take_line(&bytes[..end])));
                assert!(cursor.searched <= end);
            }
            assert_eq!(lines, expected, "in steps of {step}");
        }
    }

    /// A line end that appears in bytes that were searched shows whether they are searched again.
    #[test]
    fn no_byte_is_searched_twice() {
        let mut cursor = LineCursor::default();
        assert_eq!(cursor.take_line(b"abcd"), None);
        assert_eq!(cursor.take_line(b"ab\nde"), None);
        assert_eq!(cursor.take_line(b"ab\ndef\n"), Some(Line { start: 0, end: 6, is_bare: true }));
    }
}
