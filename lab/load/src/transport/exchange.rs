//! One request and its whole answer on one HTTP/1 connection: a write, a read, and nothing between.
//!
//! Writing and reading go on at the same time, so that a server which answers before it has read a large
//! body, or echoes it, blocks no connection. Arriving bytes are read to the stack and understood there: a
//! waiting connection holds no buffer, so that tens of thousands cost little.

use super::answer::Answer;
use super::answer_reader::{AnswerReader, Fed};
use super::request::Prepared;
use super::stream::Stream;
use crate::ErrorKind;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read at once: small answers come whole, large ones in few calls, and it fits the first-level cache.
const READ_BYTES: usize = 16_384;

/// The exchange; polled until it has ended.
pub(super) struct Exchange<'a, Sent> {
    stream: &'a mut Stream,
    prepared: &'a Prepared,
    path: &'a str,
    keep: bool,
    sending: Sending,
    /// Set once, when all was sent or the answer shows that enough was.
    sent: &'a mut Option<Sent>,
    reader: AnswerReader,
    /// Some byte of an answer arrived.
    begun: bool,
    head_at: Option<Instant>,
}

/// Progress of sending the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// This number of bytes was written.
    Writing(usize),
    /// All were; an encrypted connection may hold some back.
    Flushing,
    Done,
    /// The server takes no more; it may have answered nevertheless.
    Failed,
}

/// End of the exchange.
#[derive(Debug)]
pub(super) enum Ended {
    /// With a whole answer; the connection may carry another request or not.
    Answered { answer: Answer, reusable: bool },
    /// The server closed the connection before any byte of an answer.
    Unanswered,
    /// In the middle.
    Broken(ErrorKind),
}

impl<'a, Sent: FnOnce()> Exchange<'a, Sent> {
    /// `keep` asks the server to keep the connection; `sent` is called once and taken.
    pub(super) fn new(
        stream: &'a mut Stream,
        prepared: &'a Prepared,
        path: &'a str,
        keep: bool,
        sent: &'a mut Option<Sent>,
    ) -> Self {
        Self {
            stream,
            prepared,
            path,
            keep,
            sending: Sending::Writing(0),
            sent,
            reader: AnswerReader::new(),
            begun: false,
            head_at: None,
        }
    }

    /// Sends and reads what can be sent and read now.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if !matches!(self.sending, Sending::Done | Sending::Failed) {
            match self.poll_send(cx) {
                Poll::Ready(Ok(())) => {
                    self.sending = Sending::Done;
                    self.tell_sent();
                }
                Poll::Ready(Err(_)) => self.sending = Sending::Failed,
                Poll::Pending => {}
            }
        }
        self.poll_answer(cx)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Sending::Writing(written) = self.sending {
            let mut pieces = self.prepared.http1(self.path, self.keep);
            let mut left = &mut pieces[..];
            IoSlice::advance_slices(&mut left, written);
            if left.is_empty() {
                self.sending = Sending::Flushing;
                break;
            }
            match ready!(Pin::new(&mut *self.stream).poll_write_vectored(cx, left))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => self.sending = Sending::Writing(written + more),
            }
        }
        Pin::new(&mut *self.stream).poll_flush(cx)
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let mut space = [const { MaybeUninit::uninit() }; READ_BYTES];
        // Ends: the runtime makes reading pause after a while, however much there is.
        loop {
            let mut piece = ReadBuf::uninit(&mut space);
            let read = ready!(Pin::new(&mut *self.stream).poll_read(cx, &mut piece));
            let now = Instant::now();
            match read {
                Ok(()) if piece.filled().is_empty() => return Poll::Ready(self.end_by_close(now)),
                Ok(()) => {}
                Err(error) => return Poll::Ready(self.end_by_error(&error)),
            }
            self.begun = true;
            let fed = match self.reader.feed(piece.filled(), self.prepared.asks_for_body()) {
                Ok(fed) => fed,
                Err(_) => return Poll::Ready(Ended::Broken(ErrorKind::Malformed)),
            };
            if self.head_at.is_none() && self.reader.head().is_some() {
                self.head_at = Some(now);
                self.tell_sent();
            }
            if let Fed::Whole { in_order } = fed {
                return Poll::Ready(self.conclude(in_order, now));
            }
        }
    }

    fn end_by_close(&mut self, now: Instant) -> Ended {
        if !self.begun {
            return Ended::Unanswered;
        }
        if self.reader.finish() {
            return self.conclude(false, now);
        }
        Ended::Broken(ErrorKind::Closed)
    }

    fn end_by_error(&self, error: &io::Error) -> Ended {
        match error.kind() {
            // The received bytes cannot be decrypted; only TLS reports this error.
            io::ErrorKind::InvalidData => Ended::Broken(ErrorKind::Tls),
            _ if !self.begun => Ended::Unanswered,
            _ => Ended::Broken(ErrorKind::Closed),
        }
    }

    fn conclude(&self, in_order: bool, end_at: Instant) -> Ended {
        // Without a head, no answer is whole.
        let Some(head) = self.reader.head() else { return Ended::Broken(ErrorKind::Malformed) };
        let answer = Answer {
            status: head.status,
            reason: head.reason,
            retry_after: head.retry_after.map(|asked| asked.wait(SystemTime::now)),
            head_at: self.head_at.unwrap_or(end_at),
            end_at,
            body_bytes: self.reader.body_bytes(),
        };
        let reusable = self.keep && in_order && head.keeps_alive && self.sending == Sending::Done;
        Ended::Answered { answer, reusable }
    }

    fn tell_sent(&mut self) {
        if let Some(sent) = self.sent.take() {
            sent();
        }
    }
}
