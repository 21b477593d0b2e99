//! A connection, encrypted or not.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Waker};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// An open connection; dropping it closes it. Boxed: a TLS session is forty times the size of a socket.
pub(super) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Nothing arrived unrequested: neither the connection's end nor an answer. Costs no system call unless
/// something did.
pub(super) fn is_quiet(stream: &mut Stream) -> bool {
    let mut space = [MaybeUninit::uninit(); 16];
    let mut unasked = ReadBuf::uninit(&mut space);
    // The next read leaves its own waker.
    Pin::new(stream).poll_read(&mut Context::from_waker(Waker::noop()), &mut unasked).is_pending()
}
