//! Interim responses of an upstream (1xx) on their way to one client (RFC 9110 §15.2: a proxy forwards them).
//!
//! To a client of HTTP/1.1 the task of its connection writes them before the final response; a stream of
//! HTTP/2 sends its own. An upstream's 100 is not among them: it only releases a body that waits for it,
//! and the client is sent a 100 of this server when the service reads that body. Nothing is locked by two
//! cores: both ends of an exchange run on one worker.

use crate::fields::prepare_response;
use flashweir_core::limits::INTERIM_RESPONSE_BYTES;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response, StatusCode};
use std::future::poll_fn;
use std::mem::take;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Heads that wait to be written to a client; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Interims(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_waiting: AtomicBool,
    passed_on: AtomicU64,
    dropped: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    heads: Vec<Response<()>>,
    /// Length of `heads` as HTTP/1.1.
    bytes: usize,
    /// Wakes the task of the client's connection, or of its stream.
    waker: Option<Waker>,
    expectation: Expectation,
}

/// State of the request's `Expect: 100-continue`, as far as its origin is asked.
#[derive(Debug, Default)]
enum Expectation {
    /// There is none, or the origin has let it pass.
    #[default]
    None,
    /// The origin has not agreed; wakes the task that waits for it.
    Open(Option<Waker>),
    /// The origin wants the body.
    Agreed,
}

/// Interim responses since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterimCounts {
    /// On their way to the client.
    pub passed_on: u64,
    /// Not passed on: no room, or a head that cannot be made fit.
    pub dropped: u64,
}

/// Answer of an origin that was asked whether it wants the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectationEnd {
    /// It wanted the body.
    Agreed,
    /// It answered without the body, which was never asked for.
    Answered,
    /// It said nothing, and got the body after a time.
    Silence,
}

impl Interims {
    /// Waits for `answer`; interim responses meanwhile wake the task that waits.
    pub async fn during<T>(&self, mut answer: Pin<&mut impl Future<Output = T>>) -> T {
        poll_fn(|cx| {
            let answered = answer.as_mut().poll(cx);
            if answered.is_pending() {
                self.wake_with(cx);
            }
            answered
        })
        .await
    }

    /// Interim responses from now on wake this task.
    pub(crate) fn wake_with(&self, cx: &Context<'_>) {
        let waker = &mut self.lock().waker;
        if waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// Counts since the last call, if there were any.
    #[must_use]
    pub fn take_counts(&self) -> Option<InterimCounts> {
        let Shared { passed_on, dropped, .. } = &*self.0;
        let is_any = passed_on.load(Relaxed) | dropped.load(Relaxed) > 0;
        is_any.then(|| InterimCounts {
            passed_on: passed_on.swap(0, Relaxed),
            dropped: dropped.swap(0, Relaxed),
        })
    }

    /// The request that is about to be sent asks its origin whether it wants the body.
    pub fn expect_continue(&self) {
        self.lock().expectation = Expectation::Open(None);
    }

    /// The body is sent whether the origin has agreed or not.
    pub fn expect_no_more(&self) {
        self.lock().expectation = Expectation::None;
    }

    /// Ready once the origin has agreed, or was not asked.
    pub fn poll_agreed(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.lock().expectation {
            Expectation::Open(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Expectation::None | Expectation::Agreed => Poll::Ready(()),
        }
    }

    /// Ends what [`expect_continue`](Self::expect_continue) began, once the origin has answered.
    #[must_use]
    pub fn end_expectation(&self) -> ExpectationEnd {
        match take(&mut self.lock().expectation) {
            Expectation::None => ExpectationEnd::Silence,
            Expectation::Open(_) => ExpectationEnd::Answered,
            Expectation::Agreed => ExpectationEnd::Agreed,
        }
    }

    /// Returns whether any waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_waiting.load(Relaxed)
    }

    /// All that wait, for a connection where all before them have been written.
    pub(crate) fn take(&self) -> Vec<Response<()>> {
        self.lock().bytes = 0;
        self.take_for_stream()
    }

    /// All that wait, for a stream. When they are written is not known, so they do not make room for others:
    /// the bound is for all of a request.
    pub(crate) fn take_for_stream(&self) -> Vec<Response<()>> {
        self.0.is_waiting.store(false, Relaxed);
        take(&mut self.lock().heads)
    }

    /// Sends `100 Continue`, so that the client of a stream sends its body.
    pub(crate) fn say_continue(&self) {
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::CONTINUE;
        self.add(&mut self.lock(), head);
    }

    /// An interim response has come.
    pub(crate) fn push(&self, status: StatusCode, headers: &HeaderMap) {
        let mut waiting = self.lock();
        if status == StatusCode::CONTINUE {
            if let Expectation::Open(waker) = &mut waiting.expectation {
                let waker = waker.take();
                waiting.expectation = Expectation::Agreed;
                waker.iter().for_each(Waker::wake_by_ref);
            }
            return;
        }
        let head = fit(status, headers).filter(|head| waiting.bytes + length(head) <= INTERIM_RESPONSE_BYTES);
        let Some(head) = head else {
            self.0.dropped.fetch_add(1, Relaxed);
            return;
        };
        self.0.passed_on.fetch_add(1, Relaxed);
        self.add(&mut waiting, head);
    }

    fn add(&self, waiting: &mut Waiting, head: Response<()>) {
        waiting.bytes += length(&head);
        waiting.heads.push(head);
        self.0.is_waiting.store(true, Relaxed);
        waiting.waker.iter().for_each(Waker::wake_by_ref);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Heads are added whole.
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A head without what belongs to the upstream's connection; none where that cannot be done.
fn fit(status: StatusCode, headers: &HeaderMap) -> Option<Response<()>> {
    let (mut head, ()) = Response::new(()).into_parts();
    (head.status, head.headers) = (status, headers.clone());
    prepare_response(&mut head).ok()?;
    // A server must not send it (RFC 9110 §8.6), and some clients end the stream for it.
    head.headers.remove(CONTENT_LENGTH);
    Some(Response::from_parts(head, ()))
}

/// Bytes of a head in HTTP/1.1.
fn length(head: &Response<()>) -> usize {
    let fields =
        head.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + b": \r\n".len());
    b"HTTP/1.1 100 \r\n\r\n".len() + reason(head).len() + fields.sum::<usize>()
}

/// Writes a head as HTTP/1.1.
pub(crate) fn write(head: &Response<()>, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(format!("HTTP/1.1 {} {}\r\n", head.status().as_u16(), reason(head)).as_bytes());
    for (name, value) in head.headers() {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
}

fn reason(head: &Response<()>) -> &'static str {
    head.status().canonical_reason().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn link(bytes: usize) -> HeaderMap {
        let value = HeaderValue::from_str(&"x".repeat(bytes)).expect("a value");
        HeaderMap::from_iter([(http::header::LINK, value)])
    }

    fn written(interims: &Interims) -> Vec<u8> {
        let mut bytes = Vec::new();
        interims.take().iter().for_each(|head| write(head, &mut bytes));
        bytes
    }

    #[test]
    fn heads_are_those_of_this_hop_and_100_is_left_to_the_server() {
        let interims = Interims::default();
        let mut fields = link(3);
        fields.insert("connection", HeaderValue::from_static("x-secret"));
        fields.insert("x-secret", HeaderValue::from_static("1"));
        fields.insert("content-length", HeaderValue::from_static("0"));
        interims.push(StatusCode::CONTINUE, &fields);
        assert!(!interims.is_waiting());
        assert_eq!(interims.end_expectation(), ExpectationEnd::Silence, "no expectation");
        interims.push(StatusCode::EARLY_HINTS, &fields);
        interims.push(StatusCode::PROCESSING, &HeaderMap::new());
        assert_eq!(interims.take_counts(), Some(InterimCounts { passed_on: 2, dropped: 0 }));
        assert_eq!(interims.take_counts(), None);
        let text = String::from_utf8(written(&interims)).expect("text");
        assert_eq!(
            text,
            "HTTP/1.1 103 Early Hints\r\nlink: xxx\r\nvia: 1.1 flashweir\r\n\r\nHTTP/1.1 102 Processing\r\nvia: 1.1 flashweir\r\n\r\n"
        );
        assert!(!interims.is_waiting() && interims.take().is_empty());
    }

    #[test]
    fn an_expectation_ends_with_100_or_with_the_answer() {
        let interims = Interims::default();
        let mut cx = Context::from_waker(Waker::noop());
        interims.expect_continue();
        assert!(interims.poll_agreed(&mut cx).is_pending());
        interims.push(StatusCode::EARLY_HINTS, &HeaderMap::new());
        assert!(interims.poll_agreed(&mut cx).is_pending());
        interims.push(StatusCode::CONTINUE, &HeaderMap::new());
        assert!(interims.poll_agreed(&mut cx).is_ready());
        assert_eq!(interims.end_expectation(), ExpectationEnd::Agreed);
        interims.expect_continue();
        assert_eq!(interims.end_expectation(), ExpectationEnd::Answered);
        interims.expect_continue();
        interims.expect_no_more();
        assert_eq!(interims.end_expectation(), ExpectationEnd::Silence);
    }

    #[test]
    fn what_waits_is_bounded() {
        let interims = Interims::default();
        (0..100).for_each(|_| interims.push(StatusCode::EARLY_HINTS, &link(1_000)));
        let InterimCounts { passed_on, dropped } = interims.take_counts().expect("some");
        assert!(passed_on > 10 && passed_on + dropped == 100, "{passed_on}");
        let bytes = interims.lock().bytes;
        let written = written(&interims).len();
        assert!(written == bytes && bytes <= INTERIM_RESPONSE_BYTES, "{written} bytes, counted {bytes}");
        let of_stream = Interims::default();
        for _ in 0..100 {
            of_stream.push(StatusCode::EARLY_HINTS, &link(1_000));
            let _sent = of_stream.take_for_stream();
        }
        assert_eq!(of_stream.take_counts(), Some(InterimCounts { passed_on, dropped }));
    }
}
