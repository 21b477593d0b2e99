//! Finds interim responses (1xx) in the bytes of an upstream's answer: hyper's client reads over them.
//!
//! hyper can report them too, by a callback that each request would have to bring, which costs four
//! allocations for each. Here an answer without any costs one comparison. Pure: bytes in, heads out.

use flashweir_core::limits::{INTERIM_RESPONSE_BYTES, INTERIM_RESPONSE_FIELDS};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// Beginning of each interim response.
const BEGINNING: &[u8] = b"HTTP/1.1 1";

/// Place within one answer.
#[derive(Debug, Default)]
pub(super) struct InterimReader {
    /// The final response has begun.
    is_over: bool,
    /// Bytes of an interim response that is not complete, at most [`INTERIM_RESPONSE_BYTES`] and a read.
    head: Vec<u8>,
}

impl InterimReader {
    /// An answer begins.
    pub(super) fn begin(&mut self) {
        self.is_over = false;
        self.head.clear();
    }

    /// No interim response comes any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Reads the next bytes, however they are split. What cannot be read ends the search: hyper judges it.
    pub(super) fn read(&mut self, bytes: &[u8], mut found: impl FnMut(StatusCode, &HeaderMap)) {
        if self.head.is_empty() && !may_be_interim(bytes) {
            self.is_over = true;
            return;
        }
        self.head.extend_from_slice(bytes);
        while !self.head.is_empty() && may_be_interim(&self.head) {
            match parse(&self.head) {
                Parsed::Head(length, status, fields) => {
                    found(status, &fields);
                    self.head.drain(..length);
                }
                Parsed::Partly if self.head.len() <= INTERIM_RESPONSE_BYTES => return,
                Parsed::Partly | Parsed::Other => break,
            }
        }
        self.is_over = !self.head.is_empty();
        self.head = Vec::new();
    }
}

enum Parsed {
    /// Bytes of a complete head.
    Head(usize, StatusCode, HeaderMap),
    Partly,
    /// No interim response: 101 ends the exchange, and the rest is an error.
    Other,
}

/// Returns whether the bytes, as far as they go, begin an interim response.
fn may_be_interim(bytes: &[u8]) -> bool {
    let compared = bytes.len().min(BEGINNING.len());
    bytes[..compared] == BEGINNING[..compared]
}

fn parse(bytes: &[u8]) -> Parsed {
    let mut fields = [httparse::EMPTY_HEADER; INTERIM_RESPONSE_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Parsed::Partly,
        Err(_) => return Parsed::Other,
    };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let Some(status) = status.filter(|status| *status != StatusCode::SWITCHING_PROTOCOLS) else {
        return Parsed::Other;
    };
    let mut map = HeaderMap::with_capacity(response.headers.len());
    for field in response.headers {
        let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(field.name.as_bytes()), HeaderValue::from_bytes(field.value))
        else {
            return Parsed::Other;
        };
        map.append(name, value);
    }
    Parsed::Head(length, status, map)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statuses found where the bytes come in pieces of this size.
    fn found(bytes: &[u8], piece: usize) -> (Vec<u16>, bool) {
        let (mut reader, mut statuses) = (InterimReader::default(), Vec::new());
        reader.begin();
        for part in bytes.chunks(piece) {
            if !reader.is_over() {
                reader.read(part, |status, _| statuses.push(status.as_u16()));
            }
        }
        (statuses, reader.is_over())
    }

    #[test]
    fn each_is_found_once_however_the_answer_is_split() {
        let answer = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
            HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 103 in a body\r\n\r\n";
        for piece in [1, 2, 9, 10, 11, 38, 39, 70, 1_000] {
            assert_eq!(found(answer, piece), (vec![103, 102], true), "in pieces of {piece}");
        }
        let hints = &answer[..answer.len() - 45];
        assert_eq!(found(hints, 1_000), (vec![103, 102], false), "the final response is still to come");
    }

    #[test]
    fn what_is_no_interim_response_ends_the_search() {
        for other in [
            &b"HTTP/1.1 200 OK\r\n\r\n"[..],
            b"HTTP/1.0 103 Early\r\n\r\n",
            b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
            b"HTTP/1.1 1x3 no\r\n\r\n",
            b"HTTP/1.1 103 E\r\nbad name: x\r\n\r\n",
            b"SSH-2.0\r\n",
        ] {
            for piece in [1, 1_000] {
                assert_eq!(found(other, piece), (vec![], true), "{}", String::from_utf8_lossy(other));
            }
        }
        let endless = [b"HTTP/1.1 103 E\r\na: ", vec![b'x'; 2 * INTERIM_RESPONSE_BYTES].as_slice()].concat();
        assert_eq!(found(&endless, 1_000), (vec![], true));
    }
}
