//! The body of a stored response, on its way to a client.

use crate::pipeline::CopyPermit;
use crate::responses::Responses;
use crate::slow_readers::Reading;
use crate::tracked::Wire;
use bytes::Bytes;
use flashweir_core::Duration;
use flashweir_http::serve::StreamCut;
use flashweir_http::upstream::UpstreamError;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes handed over at once: a client that reads slowly is noticed between two parts.
const PART_BYTES: usize = 64 << 10;

/// A body that is in memory. It holds its request's place in the gateway until the last part has been handed
/// over.
pub(crate) struct CopyBody {
    rest: Bytes,
    permit: Option<CopyPermit>,
    /// Detects that the client reads slowly; for bodies of several parts.
    watch: Option<Box<Watch>>,
}

/// A client that may read slowly.
pub(super) struct Reader<'a> {
    pub(super) responses: &'a Rc<Responses>,
    pub(super) wire: &'a Rc<Wire>,
    /// Ends the response's stream, where it has a separate one.
    pub(super) stream: Option<StreamCut>,
    /// Ends the connection of a client that takes nothing for this time.
    pub(super) stall_timeout: Duration,
}

struct Watch {
    responses: Rc<Responses>,
    wire: Rc<Wire>,
    stream: Option<StreamCut>,
    stall_timeout: Duration,
    /// Since the client was handed a first part.
    reading: Option<Rc<Reading>>,
}

impl CopyBody {
    pub(super) fn new(body: Bytes, permit: Option<CopyPermit>, reader: Reader<'_>) -> Self {
        let watch = (body.len() > PART_BYTES).then(|| {
            Box::new(Watch {
                responses: reader.responses.clone(),
                wire: reader.wire.clone(),
                stream: reader.stream,
                stall_timeout: reader.stall_timeout,
                reading: None,
            })
        });
        let mut copy = Self { rest: body, permit, watch };
        copy.end_if_over();
        copy
    }

    fn end_if_over(&mut self) {
        if self.rest.is_empty() {
            self.permit.take().into_iter().for_each(CopyPermit::completed);
            self.watch = None;
        }
    }
}

impl Watch {
    fn asked(&self) {
        self.reading.iter().for_each(|reading| reading.asked(|| self.responses.now()));
    }

    fn handed(&mut self, bytes: usize) {
        let now = self.responses.now();
        let Self { responses, wire, stream, stall_timeout, reading } = self;
        let reading = reading.get_or_insert_with(|| {
            let reading = Reading::new(wire.clone(), stream.take(), *stall_timeout);
            responses.watch_reader(&reading);
            responses.want_sweep();
            reading
        });
        reading.brought(bytes as u64);
        reading.handed(now);
    }
}

impl http_body::Body for CopyBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            return Poll::Ready(None);
        }
        this.watch.iter().for_each(|watch| watch.asked());
        let part = this.rest.split_to(this.rest.len().min(PART_BYTES));
        this.end_if_over();
        this.watch.iter_mut().for_each(|watch| watch.handed(part.len()));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
