//! A body of any size that takes no memory.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

static TEXT: [u8; 16 * 1024] = [b'w'; 16 * 1024];

/// A body of a given length, in pieces of at most 16 KiB.
#[derive(Debug)]
pub(crate) struct Filler {
    pub(crate) left: u64,
}

impl Body for Filler {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = &TEXT[..TEXT.len().min(usize::try_from(self.left).unwrap_or(usize::MAX))];
        self.left -= piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
