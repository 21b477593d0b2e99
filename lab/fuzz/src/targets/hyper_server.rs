//! hyper's server over bytes in memory: the requests that it reads in them.

use crate::reference::Message;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// A client that has sent all and takes every answer.
struct Sent<'b>(&'b [u8]);

impl Read for Sent<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let (now, later) = self.0.split_at(self.0.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for Sent<'_> {
    fn poll_write(self: Pin<&mut Self>, _cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Times that the connection is polled, at most: nothing in it waits for anything.
const POLLS_MAX: usize = 10_000;

/// Whole requests of `bytes`, as far as hyper reads them.
pub(super) fn requests(bytes: &[u8]) -> Vec<Message> {
    let requests = RefCell::new(Vec::new());
    let service = service_fn(async |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let fields = head.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
        let start = format!("{} {} {:?}", head.method, head.uri, head.version);
        requests.borrow_mut().push(Message { start, fields: fields.collect(), body: body.to_vec() });
        let mut response = Response::new(Empty::<Bytes>::new());
        *response.status_mut() = http::StatusCode::FORBIDDEN;
        Ok::<_, hyper::Error>(response)
    });
    {
        let mut connection =
            pin!(http1::Builder::new().half_close(true).serve_connection(Sent(bytes), service));
        let mut cx = Context::from_waker(Waker::noop());
        // An error ends it as well: what was whole before has been read.
        let is_over = (0..POLLS_MAX).any(|_| connection.as_mut().poll(&mut cx).is_ready());
        assert!(is_over, "hyper does not end");
    }
    requests.into_inner()
}
