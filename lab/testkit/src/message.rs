//! HTTP/1.1 messages as they are on the wire, read without help from any HTTP library.

use std::io::{self, Read};

/// Heads longer than this are a mistake of the test.
const HEAD_BYTES: usize = 4 << 20;

/// One request or response, its body put together.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The request line or status line.
    pub start: String,
    /// The fields of the head, in their order.
    pub fields: Fields,
    /// The head as it came, the empty line included.
    pub head: Vec<u8>,
    /// The body, chunks joined.
    pub body: Vec<u8>,
    /// The fields after a chunked body.
    pub trailers: Fields,
}

/// Field names and values, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<(String, String)>);

/// Reason for which no whole message came.
#[derive(Debug)]
pub enum ReadError {
    /// The stream ended properly between messages.
    Closed,
    /// The stream ended inside a message: what had come by then.
    CutShort(Message),
    /// The stream failed (reset, time out).
    Failed(io::Error),
    /// It is not HTTP/1.
    NotHttp(String),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl Fields {
    /// All values of a field; names compare without case.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// The first value of a field.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// Returns whether there is such a field.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    pub(crate) fn parse(lines: &[u8]) -> Self {
        let text = String::from_utf8_lossy(lines);
        let field = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        };
        Self(text.split("\r\n").filter_map(field).collect())
    }
}

impl Message {
    /// The status of a response; 0 when this is a request.
    #[must_use]
    pub fn status(&self) -> u16 {
        let digits = self.start.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// The first value of a field of the head.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.first(name)
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON: {error}: {}", self.text()))
    }

    fn is_chunked(&self) -> bool {
        self.fields.all("transfer-encoding").iter().any(|value| value.eq_ignore_ascii_case("chunked"))
    }

    fn content_length(&self) -> Option<usize> {
        self.field("content-length").and_then(|value| value.parse().ok())
    }
}

/// Side that sent the message that is read: the rules for the end of its body differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Response,
    /// A response to HEAD: it has no body, even with fields that announce one.
    ResponseToHead,
}

/// Reads messages from a stream; bytes after one message stay for the next.
#[derive(Debug)]
pub(crate) struct MessageReader<R> {
    stream: R,
    unread: Vec<u8>,
}

impl<R: Read> MessageReader<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, unread: Vec::new() }
    }

    /// A whole message.
    pub(crate) fn read(&mut self, kind: Kind) -> Result<Message, ReadError> {
        let mut message = self.read_head()?;
        match self.read_body(kind, &mut message) {
            Ok(true) => Ok(message),
            Ok(false) => Err(ReadError::CutShort(message)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(ReadError::NotHttp(error.to_string()))
            }
            Err(error) => Err(ReadError::Failed(error)),
        }
    }

    /// The head alone; the body stays unread.
    pub(crate) fn read_head(&mut self) -> Result<Message, ReadError> {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at + 4;
            }
            if self.unread.len() > HEAD_BYTES {
                return Err(ReadError::NotHttp(format!("no end of the head in {HEAD_BYTES} bytes")));
            }
            if !self.fill()? {
                let head = std::mem::take(&mut self.unread);
                let cut = || ReadError::CutShort(Message { head: head.clone(), ..Message::default() });
                return Err(if head.is_empty() { ReadError::Closed } else { cut() });
            }
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let first_line = find(&head, b"\r\n").unwrap_or(0);
        let start = String::from_utf8_lossy(&head[..first_line]).into_owned();
        if !start.contains("HTTP/1.") {
            return Err(ReadError::NotHttp(start));
        }
        let fields = Fields::parse(&head[first_line..]);
        Ok(Message { start, fields, head, ..Message::default() })
    }

    /// The body that belongs to `message`; false when the stream ended before the body did.
    pub(crate) fn read_body(&mut self, kind: Kind, message: &mut Message) -> io::Result<bool> {
        let status = message.status();
        if kind == Kind::ResponseToHead || (100..200).contains(&status) || status == 204 || status == 304 {
            return Ok(true);
        }
        if message.is_chunked() {
            return self.read_chunks(message);
        }
        match (message.content_length(), kind) {
            (Some(length), _) => self.read_exactly(length, &mut message.body),
            (None, Kind::Request) => Ok(true),
            (None, _) => {
                while self.fill()? {}
                message.body = std::mem::take(&mut self.unread);
                Ok(true)
            }
        }
    }

    /// The next bytes, at most `most`; empty at the end of the stream.
    pub(crate) fn read_some(&mut self, most: usize) -> io::Result<Vec<u8>> {
        if self.unread.is_empty() {
            self.fill()?;
        }
        let count = self.unread.len().min(most);
        Ok(self.unread.drain(..count).collect())
    }

    /// All that comes until the stream ends.
    pub(crate) fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        while self.fill()? {}
        Ok(std::mem::take(&mut self.unread))
    }

    /// Exactly `count` bytes into `into`; false (with what there was) when the stream ends before.
    pub(crate) fn read_exactly(&mut self, count: usize, into: &mut Vec<u8>) -> io::Result<bool> {
        let wanted = into.len() + count;
        loop {
            let part = self.unread.len().min(wanted - into.len());
            into.extend(self.unread.drain(..part));
            if into.len() == wanted {
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    fn read_chunks(&mut self, message: &mut Message) -> io::Result<bool> {
        loop {
            let Some(line) = self.read_line()? else { return Ok(false) };
            let digits = line.split(';').next().unwrap_or("").trim();
            let size = usize::from_str_radix(digits, 16)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("chunk size `{line}`")))?;
            if size == 0 {
                return self.read_trailers(message);
            }
            if !self.read_exactly(size, &mut message.body)? {
                return Ok(false);
            }
            match self.read_line()? {
                Some(line) if line.is_empty() => {}
                Some(line) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, format!("after chunk: `{line}`")));
                }
                None => return Ok(false),
            }
        }
    }

    fn read_trailers(&mut self, message: &mut Message) -> io::Result<bool> {
        loop {
            match self.read_line()? {
                None => return Ok(false),
                Some(line) if line.is_empty() => return Ok(true),
                Some(line) => message.trailers.0.extend(Fields::parse(line.as_bytes()).0),
            }
        }
    }

    fn read_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(at) = find(&self.unread, b"\r\n") {
                let line: Vec<u8> = self.unread.drain(..at + 2).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..at]).into_owned()));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// False at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        let mut buffer = [0u8; 64 << 10];
        let count = self.stream.read(&mut buffer)?;
        self.unread.extend_from_slice(&buffer[..count]);
        Ok(count > 0)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], kind: Kind) -> Result<Message, ReadError> {
        MessageReader::new(bytes).read(kind)
    }

    #[test]
    fn chunks_are_joined_and_trailers_kept() {
        let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nSum: 5\r\n\r\n";
        let message = read(wire, Kind::Response).unwrap();
        assert_eq!((message.status(), message.text().as_str()), (200, "abcde"));
        assert_eq!(message.trailers.first("sum"), Some("5"));
    }

    #[test]
    fn a_body_cut_short_is_told_from_a_whole_one() {
        let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc";
        assert!(matches!(read(wire, Kind::Response), Err(ReadError::CutShort(part)) if part.body == b"abc"));
        let wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
        assert!(matches!(read(wire, Kind::Response), Err(ReadError::CutShort(part)) if part.body == b"abc"));
        assert!(matches!(read(b"", Kind::Response), Err(ReadError::Closed)));
        assert!(matches!(read(b"rubbish\r\n\r\n", Kind::Response), Err(ReadError::NotHttp(_))));
    }

    #[test]
    fn one_message_ends_where_the_next_begins() {
        let wire = b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nContent-Length: 1\r\n\r\nx";
        let mut reader = MessageReader::new(&wire[..]);
        assert_eq!(reader.read(Kind::Request).unwrap().start, "GET /1 HTTP/1.1");
        assert_eq!(reader.read(Kind::Request).unwrap().body, b"x");
        assert!(matches!(reader.read(Kind::Request), Err(ReadError::Closed)));
    }
}
