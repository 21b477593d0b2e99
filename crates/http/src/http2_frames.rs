//! Follows the frames of one HTTP/2 connection from a client, to know when a request's head is under way.
//!
//! A head may be spread over a HEADERS frame and any number of CONTINUATION frames, and nothing else may come
//! in between (RFC 9113 §4.3). A client that sends it byte by byte holds the connection with all its streams;
//! the HTTP/2 library has no timer for that.
//!
//! Frames that carry no work are counted: see [`http2_budget`](crate::http2_budget).
//!
//! Pure: bytes in, whether a head is under way out. Reads nine bytes of each frame, skips the rest, keeps
//! nothing.

use crate::http2_budget::FrameBudget;
use std::time::Duration;

/// RFC 9113 §3.4.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// RFC 9113 §4.1.
const FRAME_HEADER_BYTES: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const GOAWAY: u8 = 7;
const END_HEADERS: u8 = 4;
/// An error code of RFC 9113 §7.
const ENHANCE_YOUR_CALM: u8 = 11;

/// Position of one connection among its frames.
#[derive(Debug)]
pub(crate) struct FrameWatch {
    preface_left: usize,
    header: [u8; FRAME_HEADER_BYTES],
    header_len: usize,
    payload_left: usize,
    heads: u64,
    is_in_head: bool,
    last_stream: [u8; 4],
    budget: FrameBudget,
}

impl FrameWatch {
    /// Before the preface.
    pub(crate) fn new() -> Self {
        Self {
            preface_left: PREFACE.len(),
            header: [0; FRAME_HEADER_BYTES],
            header_len: 0,
            payload_left: 0,
            heads: 0,
            is_in_head: false,
            last_stream: [0; 4],
            budget: FrameBudget::default(),
        }
    }

    /// Returns whether some but not all of a head has come.
    pub(crate) fn is_in_head(&self) -> bool {
        self.is_in_head
    }

    /// Number of heads that have begun.
    pub(crate) fn heads(&self) -> u64 {
        self.heads
    }

    /// Counts bytes that have gone to the client.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.budget.send(bytes);
    }

    /// Returns whether the client sends more frames that carry no work than it may.
    pub(crate) fn is_flooded(&mut self, since_begin: impl FnOnce() -> Duration) -> bool {
        self.budget.is_exceeded(since_begin)
    }

    /// The frame that ends a connection whose client sends too many: GOAWAY with ENHANCE_YOUR_CALM (RFC 9113
    /// §6.8, §7).
    pub(crate) fn go_away(&self) -> [u8; 17] {
        let mut frame = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ENHANCE_YOUR_CALM];
        frame[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + 4].copy_from_slice(&self.last_stream);
        frame
    }

    /// Follows the next bytes, however they are split. Linear in the number of frames, not of bytes.
    pub(crate) fn inspect(&mut self, mut bytes: &[u8]) {
        bytes = skip(&mut self.preface_left, bytes);
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                bytes = skip(&mut self.payload_left, bytes);
                self.end_of_frame();
                continue;
            }
            let taken = bytes.len().min(FRAME_HEADER_BYTES - self.header_len);
            self.header[self.header_len..self.header_len + taken].copy_from_slice(&bytes[..taken]);
            self.header_len += taken;
            bytes = &bytes[taken..];
            if self.header_len == FRAME_HEADER_BYTES {
                self.begin_frame();
            }
        }
    }

    fn begin_frame(&mut self) {
        self.header_len = 0;
        let [high, middle, low, kind, _, stream @ ..] = self.header;
        self.payload_left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        if kind == HEADERS && !self.is_in_head {
            self.is_in_head = true;
            self.heads += 1;
            self.last_stream = stream;
        }
        self.budget.receive(kind, self.payload_left);
        self.end_of_frame();
    }

    /// The head is over with the last byte of a frame that says so.
    fn end_of_frame(&mut self) {
        let [_, _, _, kind, flags, ..] = self.header;
        if self.payload_left == 0 && matches!(kind, HEADERS | CONTINUATION) && flags & END_HEADERS != 0 {
            self.is_in_head = false;
        }
    }
}

fn skip<'a>(left: &mut usize, bytes: &'a [u8]) -> &'a [u8] {
    let skipped = bytes.len().min(*left);
    *left -= skipped;
    &bytes[skipped..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn a_head_lasts_from_headers_to_the_frame_that_ends_it() {
        let cut = [
            (PREFACE.to_vec(), false),
            (frame(4, 0, b""), false),
            (frame(HEADERS, 0, b"abc"), true),
            (frame(CONTINUATION, 0, b""), true),
            (frame(CONTINUATION, END_HEADERS, b"d"), false),
            // A DATA frame whose payload looks like frames.
            (frame(0, END_HEADERS, &frame(HEADERS, 0, b"x")), false),
            (frame(HEADERS, END_HEADERS, b""), false),
            (frame(HEADERS, END_HEADERS, b"whole"), false),
        ];
        for piece in [1, 2, 7, 1_000] {
            let mut watch = FrameWatch::new();
            for (bytes, is_in_head) in &cut {
                bytes.chunks(piece).for_each(|part| watch.inspect(part));
                assert_eq!(watch.is_in_head(), *is_in_head, "{bytes:?} in pieces of {piece}");
            }
            assert_eq!(watch.heads(), 3);
        }
    }

    #[test]
    fn a_head_without_its_last_byte_is_under_way() {
        let mut watch = FrameWatch::new();
        watch.inspect(PREFACE);
        let head = frame(HEADERS, END_HEADERS, b"abc");
        watch.inspect(&head[..head.len() - 1]);
        assert!(watch.is_in_head());
        watch.inspect(&head[head.len() - 1..]);
        assert!(!watch.is_in_head());
    }

    #[test]
    fn the_last_frame_names_the_last_request() {
        let mut watch = FrameWatch::new();
        watch.inspect(PREFACE);
        watch.inspect(&frame(HEADERS, END_HEADERS, b"abc"));
        assert_eq!(watch.go_away(), *b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\x0b");
    }
}
