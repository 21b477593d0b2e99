//! Transport of requests: connections to one target, and one try over them.
//!
//! A [`Transport`] belongs to one sending thread. HTTP/1 is done here on the socket itself: it is what nearly
//! all runs use, and a general client's channels and tasks cost more than the requests. HTTP/2, where many
//! requests share a connection, is hyper's.

mod answer;
mod answer_reader;
mod counts;
mod dial;
mod exchange;
mod http1;
mod http2;
mod http2_pool;
mod idle;
mod reach;
mod request;
mod stream;
#[cfg(test)]
mod tests;
mod tls;

pub(crate) use answer::Answer;
pub use counts::ConnectionCounts;
pub(crate) use reach::reachable;
pub use request::Prepared;
pub use tls::TlsOptions;

use crate::{ErrorKind, LoadError, LoadTarget};
use dial::Dialler;
use http1::Http1;
use http2::Http2;
use std::net::IpAddr;

/// Options for the transport of requests.
#[derive(Clone, Debug, Default)]
pub struct TransportOptions {
    /// The protocol, and whether people share connections.
    pub protocol: Protocol,
    /// Connections one sending thread has at most, idle ones included; no bound if absent. A person who finds
    /// none free waits for one, in the order in which they came. 0 counts as 1.
    pub connections_most: Option<usize>,
    /// Certificates to trust when the target's URL says `https://`.
    pub tls: TlsOptions,
}

/// The protocol, and whether people share connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, a new connection for each request, closed after it: what a crowd of strangers does.
    #[default]
    Http1New,
    /// HTTP/1.1, an idle connection left by a person from the same address (and thread), or a new one if
    /// there is none.
    Http1KeepAlive,
    /// HTTP/2, connections shared by all people from the same address (and thread), by prior knowledge where
    /// the URL says `http://` and by agreement (ALPN) where it says `https://`.
    Http2,
}

/// Connections to one target, for one sending thread.
pub(crate) struct Transport {
    dialler: Dialler,
    spoken: Spoken,
}

enum Spoken {
    Http1(Http1),
    Http2(Http2),
}

impl Transport {
    /// Opens nothing yet, but reads the trusted certificates of an `https://` target (blocking).
    ///
    /// # Errors
    /// [`LoadError::Plan`]: certificates that cannot be read.
    pub(crate) fn new(target: &LoadTarget, options: &TransportOptions) -> Result<Self, LoadError> {
        let most = options.connections_most;
        let spoken = match options.protocol {
            Protocol::Http1New => Spoken::Http1(Http1::new(false, most)),
            Protocol::Http1KeepAlive => Spoken::Http1(Http1::new(true, most)),
            Protocol::Http2 => Spoken::Http2(Http2::new(most)),
        };
        Ok(Self { dialler: Dialler::new(target, options)?, spoken })
    }

    /// One try: sends the request for `path` from `source` and reads the whole answer; the body is counted
    /// and forgotten. `path` begins with `/` and holds no space or control character: nothing looks at it
    /// again.
    ///
    /// `sent` is called once, when the request was handed to the kernel or the HTTP/2 connection; not at all
    /// if that failed. Dropping the future closes the connection, or resets the stream. Only the caller
    /// bounds the time. Cost over a kept HTTP/1 connection: a write, a read, no allocation.
    ///
    /// # Errors
    /// Errors of [`ErrorKind`] that are about connections and framing; any status is an answer.
    pub(crate) async fn ask(
        &self,
        source: Option<IpAddr>,
        prepared: &Prepared,
        path: &str,
        sent: impl FnOnce(),
    ) -> Result<Answer, ErrorKind> {
        debug_assert!(path.starts_with('/') && path.bytes().all(|byte| byte > b' '), "{path:?}");
        match &self.spoken {
            Spoken::Http1(http1) => http1.ask(&self.dialler, source, prepared, path, sent).await,
            // Boxed: it is several times the size of the other.
            Spoken::Http2(http2) => Box::pin(http2.ask(&self.dialler, source, prepared, path, sent)).await,
        }
    }

    /// Counts of connections so far. Cheap; may be called from another thread.
    pub(crate) fn connection_counts(&self) -> ConnectionCounts {
        self.dialler.look()
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").field("connections", &self.connection_counts()).finish_non_exhaustive()
    }
}
