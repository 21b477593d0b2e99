//! The head of an HTTP/1 answer: only what says how it goes on is looked at.

use super::answer::{DECISION_FIELD, RetryAfter, flashweir_reason};
use flashweir_core::Reason;
use flashweir_core::limits::LOAD_ANSWER_FIELDS;
use httparse::{ParserConfig, Response, Status};
use std::mem::MaybeUninit;

/// An answer's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// The connection may carry another request after this answer.
    pub(super) keeps_alive: bool,
    pub(super) reason: Option<Reason>,
    pub(super) retry_after: Option<RetryAfter>,
}

/// Framing: the rule by which the end of the body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// This number of bytes; none for answers that have no body.
    Length(u64),
    /// Chunks, then trailers.
    Chunked,
    /// Until the server closes the connection.
    UntilClose,
}

/// The arriving bytes are not HTTP/1, or contradict themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The length of the head at the front of `bytes` and what it says; `None` if it has not arrived whole.
/// `asks_for_body` is false for `HEAD`. Cost: one pass over the head, no allocation.
pub(super) fn parse(bytes: &[u8], asks_for_body: bool) -> Result<Option<(usize, Head)>, Malformed> {
    let mut space = [const { MaybeUninit::uninit() }; LOAD_ANSWER_FIELDS];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, &mut space);
    let length = match parsed.map_err(|_| Malformed)? {
        Status::Complete(length) => length,
        Status::Partial => return Ok(None),
    };
    // Both are there once the head is complete.
    let (Some(status), Some(minor)) = (response.code, response.version) else { return Err(Malformed) };
    let mut fields = Fields::default();
    for field in response.headers.iter() {
        fields.look_at(field.name, field.value)?;
    }
    Ok(Some((length, fields.conclude(status, minor, asks_for_body)?)))
}

/// The fields that matter, gathered.
#[derive(Debug, Default)]
struct Fields<'a> {
    content_length: Option<u64>,
    transfer_encoding: Option<TransferEncoding>,
    says_close: bool,
    says_keep_alive: bool,
    reason: Option<Reason>,
    retry_after: Option<&'a [u8]>,
    date: Option<&'a [u8]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransferEncoding {
    EndsChunked,
    EndsOtherwise,
}

impl<'a> Fields<'a> {
    fn look_at(&mut self, name: &str, value: &'a [u8]) -> Result<(), Malformed> {
        // The length first: most fields are distinguished without comparing any text.
        match name.len() {
            4 if name.eq_ignore_ascii_case("date") => self.date = Some(value),
            10 if name.eq_ignore_ascii_case("connection") => self.connection(value),
            11 if name.eq_ignore_ascii_case("retry-after") => self.retry_after = Some(value),
            14 if name.eq_ignore_ascii_case("content-length") => self.content_length(value)?,
            17 if name.eq_ignore_ascii_case("transfer-encoding") => self.transfer_encoding(value)?,
            18 if name.eq_ignore_ascii_case(DECISION_FIELD) => self.reason = flashweir_reason(value),
            _ => {}
        }
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.says_close |= option.eq_ignore_ascii_case(b"close");
            self.says_keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// The same length repeated is one length (RFC 9110 §8.6); two different ones make no sense.
    fn content_length(&mut self, value: &[u8]) -> Result<(), Malformed> {
        for length in list(value) {
            let digits = std::str::from_utf8(length).map_err(|_| Malformed)?;
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(Malformed);
            }
            let length = digits.parse().map_err(|_| Malformed)?;
            if self.content_length.is_some_and(|known| known != length) {
                return Err(Malformed);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    /// Chunked at most once, and then last (RFC 9112 §6.1).
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Malformed> {
        for coding in list(value).filter(|coding| !coding.is_empty()) {
            if self.transfer_encoding == Some(TransferEncoding::EndsChunked) {
                return Err(Malformed);
            }
            self.transfer_encoding = Some(if coding.eq_ignore_ascii_case(b"chunked") {
                TransferEncoding::EndsChunked
            } else {
                TransferEncoding::EndsOtherwise
            });
        }
        Ok(())
    }

    fn conclude(self, status: u16, minor: u8, asks_for_body: bool) -> Result<Head, Malformed> {
        // No request asks to switch protocols, and no status begins with 0.
        if status == 101 || status < 100 {
            return Err(Malformed);
        }
        let has_no_body = !asks_for_body || matches!(status, 100..=199 | 204 | 304);
        let framing = match (self.transfer_encoding, self.content_length) {
            _ if has_no_body => Framing::Length(0),
            // One of them is wrong, and it is unknown which (RFC 9112 §6.3).
            (Some(_), Some(_)) => return Err(Malformed),
            (Some(TransferEncoding::EndsChunked), None) => Framing::Chunked,
            (Some(TransferEncoding::EndsOtherwise), None) => Framing::UntilClose,
            (None, Some(length)) => Framing::Length(length),
            (None, None) => Framing::UntilClose,
        };
        // An HTTP/1.0 server that sends chunks does not know what it does (RFC 9112 §6.1).
        let keeps_alive = match minor {
            0 => self.says_keep_alive && self.transfer_encoding.is_none(),
            _ => true,
        };
        Ok(Head {
            status,
            framing,
            keeps_alive: keeps_alive && !self.says_close && framing != Framing::UntilClose,
            reason: self.reason,
            retry_after: self.retry_after.and_then(|value| RetryAfter::read(value, self.date)),
        })
    }
}

/// The elements of a comma-separated list.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Head, Malformed> {
        parse(text.as_bytes(), true).map(|head| {
            let (length, head) = head.expect("a whole head");
            assert_eq!(length, text.len());
            head
        })
    }

    #[test]
    fn the_end_of_the_body_is_told_by_the_head() {
        let check = |fields: &str, wanted: Result<Framing, Malformed>| {
            let head = read(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
            assert_eq!(head.map(|head| head.framing), wanted, "{fields}");
        };
        check("content-length: 5\r\n", Ok(Framing::Length(5)));
        check("Content-Length: 5, 5\r\ncontent-length: 5\r\n", Ok(Framing::Length(5)));
        check("content-length: 5\r\ncontent-length: 6\r\n", Err(Malformed));
        check("content-length: 5, 6\r\n", Err(Malformed));
        check("content-length: \r\n", Err(Malformed));
        check("content-length: +5\r\n", Err(Malformed));
        check("content-length: 99999999999999999999\r\n", Err(Malformed));
        check("Transfer-Encoding: gzip, Chunked\r\n", Ok(Framing::Chunked));
        check("transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n", Ok(Framing::Chunked));
        check("transfer-encoding: chunked, gzip\r\n", Err(Malformed));
        check("transfer-encoding: chunked, chunked\r\n", Err(Malformed));
        check("transfer-encoding: gzip\r\n", Ok(Framing::UntilClose));
        check("transfer-encoding: chunked\r\ncontent-length: 5\r\n", Err(Malformed));
        check("server: x\r\n", Ok(Framing::UntilClose));
    }

    #[test]
    fn answers_without_a_body_have_none_whatever_they_say() {
        for status in ["204 No Content", "304 Not Modified", "103 Early Hints"] {
            let head = read(&format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\n")).unwrap();
            assert_eq!((head.framing, head.keeps_alive), (Framing::Length(0), true), "{status}");
        }
        let asked = parse(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", false).unwrap().unwrap().1;
        assert_eq!((asked.framing, asked.keeps_alive), (Framing::Length(0), true));
    }

    #[test]
    fn who_keeps_the_connection_says_so() {
        let check = |version: &str, fields: &str, wanted: bool| {
            let text = format!("{version} 200 OK\r\ncontent-length: 0\r\n{fields}\r\n");
            assert_eq!(read(&text).unwrap().keeps_alive, wanted, "{version} {fields}");
        };
        check("HTTP/1.1", "", true);
        check("HTTP/1.1", "Connection: Keep-Alive\r\n", true);
        check("HTTP/1.1", "connection: x, Close\r\n", false);
        check("HTTP/1.0", "", false);
        check("HTTP/1.0", "connection: keep-alive\r\n", true);
        assert!(!read("HTTP/1.1 200 OK\r\n\r\n").unwrap().keeps_alive);
        assert!(
            !read("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n")
                .unwrap()
                .keeps_alive
        );
    }

    #[test]
    fn what_flashweir_says_is_read() {
        let head = read(
            "HTTP/1.1 503 Short\r\nFlashweir-Decision: 0; reason=draining\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n",
        );
        let head = head.unwrap();
        assert_eq!((head.status, head.reason), (503, Some(Reason::Draining)));
        assert_eq!(head.retry_after, RetryAfter::read(b"7", None));
    }

    #[test]
    fn what_is_not_an_answer_is_malformed() {
        for text in ["rubbish, not HTTP at all\r\n\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 99 x\r\n\r\n"] {
            assert_eq!(read(text), Err(Malformed), "{text}");
        }
        assert_eq!(read("HTTP/1.1 101 Switching\r\n\r\n"), Err(Malformed));
        assert_eq!(read("HTTP/1.1 042 Odd\r\n\r\n"), Err(Malformed));
        let many = "x: y\r\n".repeat(LOAD_ANSWER_FIELDS + 1);
        assert_eq!(read(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")), Err(Malformed));
        assert_eq!(parse(b"HTTP/1.1 200 O", true), Ok(None));
        assert_eq!(parse(b"", true), Ok(None));
    }
}
