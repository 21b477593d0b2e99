//! The head of the latest request on a connection, as it was sent, and whether any byte of its answer has
//! come.
//!
//! hyper consumes a request when it sends it. A request that may have to be sent once more is therefore read
//! from the bytes that went out: copying those costs less than a tenth of what a copy of the head would, and
//! allocates nothing.

use super::interim_reader::InterimReader;
use crate::interim::Interims;
use flashweir_core::limits::REPEATED_HEAD_BYTES;
use http::{Request, Version};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Memory that an idle connection keeps for the next head: most heads fit.
const KEPT_BYTES: usize = 2 << 10;
/// Fields that a recorded head may have.
const FIELDS_MAX: usize = 512;

/// The record of one connection. Both of its owners are on one thread; it has atomics and a lock, which is
/// never waited for, because hyper wants a connection that may be upgraded to be `Send`.
#[derive(Debug, Default)]
pub(super) struct Record {
    is_kept: AtomicBool,
    has_answer: AtomicBool,
    sent: Mutex<Vec<u8>>,
    /// Takes the interim responses to the latest request.
    interims: Mutex<Option<Interims>>,
}

/// A stream whose bytes are recorded.
#[derive(Debug)]
pub(super) struct Recorded<Io> {
    io: Io,
    record: Arc<Record>,
    /// Bytes that were recorded when they were offered, and that the stream has not taken yet.
    ahead: usize,
    reader: InterimReader,
}

impl Record {
    /// A request is about to be sent; `is_kept` if it may be sent once more. `interims` takes the interim
    /// responses to it.
    pub(super) fn begin(&self, is_kept: bool, interims: Option<&Interims>) {
        *self.interims() = interims.cloned();
        self.has_answer.store(false, Relaxed);
        self.is_kept.store(is_kept, Relaxed);
        if is_kept {
            self.sent().clear();
        }
    }

    /// Any byte has come since the request began.
    pub(super) fn has_answer(&self) -> bool {
        self.has_answer.load(Relaxed)
    }

    /// The recorded request, with this body; none if its head is longer than [`REPEATED_HEAD_BYTES`].
    pub(super) fn request<B>(&self, body: B) -> Option<Request<B>> {
        parse(&self.sent(), body)
    }

    /// The request was answered: a long head is not kept in memory while the connection is idle, nor what
    /// belongs to its client.
    pub(super) fn end(&self) {
        *self.interims() = None;
        if self.is_kept.load(Relaxed) {
            let mut sent = self.sent();
            if sent.capacity() > KEPT_BYTES {
                *sent = Vec::new();
            }
        }
    }

    /// Hands over the interim responses among the next bytes of an answer.
    fn hear(&self, reader: &mut InterimReader, bytes: &[u8]) {
        let interims = self.interims();
        reader.read(bytes, |status, fields| {
            interims.iter().for_each(|interims| interims.push(status, fields));
        });
    }

    fn interims(&self) -> MutexGuard<'_, Option<Interims>> {
        self.interims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sent(&self) -> MutexGuard<'_, Vec<u8>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Io> Recorded<Io> {
    pub(super) fn new(io: Io, record: Arc<Record>) -> Self {
        Self { io, record, ahead: 0, reader: InterimReader::default() }
    }

    /// Records what is offered and was not before: a stream may refuse it, and then hyper doesn't give it
    /// back.
    fn record<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]>) {
        if !self.record.is_kept.load(Relaxed) {
            return;
        }
        let (mut sent, mut known) = (self.record.sent(), self.ahead);
        for slice in slices {
            let new = &slice[known.min(slice.len())..];
            known = known.saturating_sub(slice.len());
            self.ahead += new.len();
            let room = REPEATED_HEAD_BYTES - sent.len();
            sent.extend_from_slice(&new[..new.len().min(room)]);
        }
    }

    fn taken(&mut self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = polled {
            self.ahead = self.ahead.saturating_sub(count);
        }
        polled
    }
}

/// Reads a head that we wrote.
fn parse<B>(head: &[u8], body: B) -> Option<Request<B>> {
    let mut fields = vec![httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    if !parsed.parse(head).ok()?.is_complete() {
        return None;
    }
    let request = Request::builder().method(parsed.method?).uri(parsed.path?).version(Version::HTTP_11);
    let request =
        parsed.headers.iter().fold(request, |request, field| request.header(field.name, field.value));
    request.body(body).ok()
}

impl<Io: AsyncRead + Unpin> AsyncRead for Recorded<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        let this = &mut *self;
        if buf.filled().len() > before {
            if !this.record.has_answer.load(Relaxed) {
                this.record.has_answer.store(true, Relaxed);
                this.reader.begin();
            }
            if !this.reader.is_over() {
                this.record.hear(&mut this.reader, &buf.filled()[before..]);
            }
        }
        polled
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Recorded<Io> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.record(std::iter::once(bytes));
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.taken(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.record(slices.iter().map(|slice| &**slice));
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.taken(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    const HEAD: &[u8] = b"GET /a?b=^c HTTP/1.1\r\nhost: shop.example\r\ncookie: a=1\r\ncookie: b=2\r\n\r\n";

    /// Takes this many bytes of each write, then refuses.
    struct Narrow(Vec<usize>);

    impl AsyncWrite for Narrow {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            match self.0.pop() {
                Some(room) => Poll::Ready(Ok(room.min(bytes.len()))),
                None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Writes as hyper does: what is left of the buffer is offered again.
    fn write(rooms: &[usize], bytes: &[u8], record: &Arc<Record>) {
        let mut io = Recorded::new(Narrow(rooms.to_vec()), Arc::clone(record));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut left = bytes;
        while let Poll::Ready(Ok(count)) = Pin::new(&mut io).poll_write(&mut cx, left) {
            left = &left[count..];
            if left.is_empty() {
                return;
            }
        }
    }

    #[test]
    fn a_request_is_read_back_however_little_of_it_the_stream_took() {
        for rooms in [&[][..], &[1_000], &[10], &[0, 7, 3]] {
            let record = Arc::new(Record::default());
            record.begin(true, None);
            write(rooms, HEAD, &record);
            let request = record.request(()).expect("a request");
            assert_eq!((request.method().as_str(), request.uri().to_string().as_str()), ("GET", "/a?b=^c"));
            assert_eq!(request.headers().get_all("cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
            assert_eq!(request.headers()["host"], "shop.example");
        }
    }

    #[test]
    fn only_the_latest_request_is_there_and_only_where_it_is_kept() {
        let record = Arc::new(Record::default());
        record.begin(true, None);
        write(&[1_000], b"GET /first HTTP/1.1\r\n\r\n", &record);
        record.begin(true, None);
        write(&[1_000], HEAD, &record);
        assert_eq!(record.request(()).expect("a request").uri().path(), "/a");
        let unkept = Arc::new(Record::default());
        unkept.begin(false, None);
        write(&[1_000], HEAD, &unkept);
        assert!(unkept.request(()).is_none());
    }

    #[test]
    fn a_head_beyond_the_bound_cannot_be_sent_again_and_memory_is_given_back() {
        let long =
            [b"GET / HTTP/1.1\r\ncookie: ", vec![b'a'; REPEATED_HEAD_BYTES].as_slice(), b"\r\n\r\n"].concat();
        let record = Arc::new(Record::default());
        record.begin(true, None);
        write(&[usize::MAX], &long, &record);
        assert!(record.request(()).is_none());
        assert_eq!(record.sent().len(), REPEATED_HEAD_BYTES);
        record.end();
        assert_eq!(record.sent().capacity(), 0);
    }

    #[tokio::test]
    async fn one_byte_is_an_answer() {
        let record = Arc::new(Record::default());
        let mut io = Recorded::new(&b"H"[..], Arc::clone(&record));
        record.begin(true, None);
        assert!(!record.has_answer());
        io.read_u8().await.expect("a byte");
        assert!(record.has_answer());
        record.begin(true, None);
        assert!(io.read_u8().await.is_err(), "the end is no answer");
        assert!(!record.has_answer());
    }
}
