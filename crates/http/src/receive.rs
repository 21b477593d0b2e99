//! Receive buffers: reads into them, and parts of them that are handed on.

use bytes::{Buf, Bytes, BytesMut};
use flashweir_core::limits::UPSTREAM_READ_BYTES;
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::AsyncRead;
use tokio_util::io::poll_read_buf;

/// With less room than this, a buffer gets more before it is read into.
const ROOM_MIN: usize = 4 << 10;

/// Content from this length on shares the buffer, which its reader then keeps; less is copied.
const SHARED_MIN: usize = 2 << 10;

/// Buffers that one worker keeps for its next reads.
const SPARE_MAX: usize = 64;

thread_local!(static SPARE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) });

/// Gives an empty buffer up, for another connection of this worker.
pub(crate) fn give_back(buffer: &mut BytesMut) {
    let buffer = std::mem::take(buffer);
    // One that grew for a long head is not kept.
    if (1..=UPSTREAM_READ_BYTES).contains(&buffer.capacity()) {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARE_MAX {
                spare.push(buffer);
            }
        });
    }
}

/// Reads once, at most [`UPSTREAM_READ_BYTES`] where the buffer is empty.
pub(crate) fn read_into<Io: AsyncRead + Unpin>(
    io: &mut Io,
    cx: &mut Context<'_>,
    buffer: &mut BytesMut,
) -> Poll<io::Result<usize>> {
    if buffer.capacity() == 0 {
        *buffer = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    }
    if buffer.capacity() - buffer.len() < ROOM_MIN {
        buffer.reserve(UPSTREAM_READ_BYTES);
    }
    poll_read_buf(Pin::new(io), cx, buffer)
}

/// Takes the first `bytes` as a copy.
pub(crate) fn take_copy(buffer: &mut BytesMut, bytes: usize) -> Bytes {
    let copy = Bytes::copy_from_slice(&buffer[..bytes]);
    buffer.advance(bytes);
    copy
}

/// Takes the first `taken` bytes, and gives those of `range`.
pub(crate) fn take_content(buffer: &mut BytesMut, taken: usize, range: Range<usize>) -> Bytes {
    if range.len() < SHARED_MIN {
        let copy = Bytes::copy_from_slice(&buffer[range]);
        buffer.advance(taken);
        return copy;
    }
    let mut content = buffer.split_to(taken).freeze();
    content.truncate(range.end);
    content.advance(range.start);
    content
}
