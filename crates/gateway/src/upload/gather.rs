//! Waits for a body, or a first part of it, before its request takes anything that others need.

use super::body::PartialBody;
use super::room::{HoldOptions, UploadRoom, UploadTicket};
use bytes::{Bytes, BytesMut};
use flashweir_core::{Duration, limits};
use flashweir_http::serve::IncomingBody;
use flashweir_runtime::Clock;
use http::HeaderMap;
use http_body::{Body as _, Frame};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A body of unknown length that pauses for this time may be one half of a conversation (gRPC), whose other
/// half it waits for.
const CONVERSATION_PAUSE: Duration = Duration::from_millis(100);

/// Options for gathering one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherOptions {
    pub(crate) client: u64,
    /// Time for the first part to come.
    pub(crate) within: Duration,
    /// The connections it will take one of.
    pub(crate) pool: HoldOptions,
    /// It has been admitted already, so it counts as holding a connection.
    pub(crate) is_admitted: bool,
    /// The upstream can answer before it has the whole body (HTTP/2).
    pub(crate) may_converse: bool,
    pub(crate) trailers_max: usize,
}

/// Reason for a missing first part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GatherError {
    /// The body broke off, or its framing is wrong.
    Broken,
    /// The client was too slow.
    Cut,
}

/// Reads a body, of which there is some, until it is whole or
/// [`UPLOAD_FIRST_PART_BYTES`](limits::UPLOAD_FIRST_PART_BYTES) of it are here.
pub(crate) async fn gather(
    room: &Rc<UploadRoom>,
    clock: Clock,
    body: IncomingBody,
    options: GatherOptions,
) -> Result<PartialBody, GatherError> {
    let is_unknown = body.size_hint().exact().is_none();
    let mut gathering =
        Gathering { room, clock, body, options, first: Part::Empty, trailers: None, ticket: None };
    let first_part = poll_fn(|cx| gathering.poll(cx));
    let is_whole = if options.may_converse && is_unknown {
        match tokio::time::timeout(CONVERSATION_PAUSE, first_part).await {
            Ok(gathered) => gathered?,
            Err(_) if room.may_stream(options.client, options.pool) => false,
            Err(_) => poll_fn(|cx| gathering.poll(cx)).await?,
        }
    } else {
        first_part.await?
    };
    let Gathering { body, first, trailers, ticket, .. } = gathering;
    Ok(PartialBody::new(first.into_bytes(), (!is_whole).then_some(body), trailers, ticket.is_some()))
}

struct Gathering<'a> {
    room: &'a Rc<UploadRoom>,
    clock: Clock,
    body: IncomingBody,
    options: GatherOptions,
    first: Part,
    trailers: Option<HeaderMap>,
    /// Since the client was waited for.
    ticket: Option<UploadTicket>,
}

/// A part that has arrived. A single frame is kept as it is; several are copied together, for each would keep
/// a whole buffer alive however little is in it.
enum Part {
    Empty,
    Frame(Bytes),
    Joined(BytesMut),
}

impl Gathering<'_> {
    /// Returns whether the body is whole, once enough of it has come.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, GatherError>> {
        loop {
            if self.ticket.as_ref().is_some_and(|ticket| ticket.cut().is_some()) {
                return Poll::Ready(Err(GatherError::Cut));
            }
            let Poll::Ready(polled) = Pin::new(&mut self.body).poll_frame(cx) else {
                ready!(self.wait(cx));
                continue;
            };
            match polled {
                None => return Poll::Ready(Ok(true)),
                Some(Err(_)) => return Poll::Ready(Err(GatherError::Broken)),
                Some(Ok(frame)) => self.take(frame)?,
            }
            if self.trailers.is_some() || self.body.is_end_stream() {
                return Poll::Ready(Ok(true));
            }
            if self.first.len() >= limits::UPLOAD_FIRST_PART_BYTES {
                return Poll::Ready(Ok(false));
            }
        }
    }

    /// The client is waited for. Ready only if the upload was cut by its own entering.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.clock.now();
        let GatherOptions { client, within, pool, is_admitted, .. } = self.options;
        let ticket = self.ticket.get_or_insert_with(|| match is_admitted {
            true => self.room.hold(client, pool, Some(now + within)),
            false => self.room.gather(now, client, now + within),
        });
        ticket.waits(now, cx.waker());
        if ticket.cut().is_some() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn take(&mut self, frame: Frame<Bytes>) -> Result<(), GatherError> {
        let frame = match frame.into_data() {
            Ok(data) => {
                self.ticket.iter().for_each(|ticket| ticket.received(self.clock.now(), data.len()));
                self.first.push(data);
                return Ok(());
            }
            Err(frame) => frame,
        };
        if let Ok(mut trailers) = frame.into_trailers() {
            super::body::check_trailers(&mut trailers, self.options.trailers_max)
                .map_err(|_| GatherError::Broken)?;
            self.trailers = Some(trailers);
        }
        Ok(())
    }
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Frame(bytes) => bytes.len(),
            Self::Joined(bytes) => bytes.len(),
        }
    }

    fn push(&mut self, data: Bytes) {
        match self {
            Self::Empty => *self = Self::Frame(data),
            Self::Frame(first) => {
                let mut joined = BytesMut::with_capacity(first.len() + data.len());
                joined.extend_from_slice(first);
                joined.extend_from_slice(&data);
                *self = Self::Joined(joined);
            }
            Self::Joined(joined) => joined.extend_from_slice(&data),
        }
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::Frame(bytes) => bytes,
            Self::Joined(bytes) => bytes.freeze(),
        }
    }
}
