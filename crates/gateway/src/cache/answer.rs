//! The answer from a stored response, on its way to a client.

use super::counted_as;
use crate::connection::{Body, Client};
use crate::context::WorkerContext;
use crate::pipeline::CopyPermit;
use crate::slow_readers::Reading;
use crate::tracked::Wire;
use bytes::Bytes;
use flashweir_cache::{CacheStatus, Stored};
use flashweir_core::{Duration, Instant};
use flashweir_http::serve::StreamCut;
use flashweir_http::upstream::UpstreamError;
use flashweir_telemetry::StatusClass;
use http::{HeaderMap, Response};
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

struct Watch {
    worker: Rc<WorkerContext>,
    wire: Rc<Wire>,
    stream: Option<StreamCut>,
    stall_timeout: Duration,
    /// Since the client was handed a first part.
    reading: Option<Rc<Reading>>,
}

/// Properties of the request that an answer depends on.
pub(crate) struct Asker<'a> {
    pub(crate) worker: &'a Rc<WorkerContext>,
    pub(crate) client: &'a Client,
    /// The request's fields.
    pub(crate) fields: &'a HeaderMap,
    pub(crate) is_head: bool,
    pub(crate) host_key: u64,
    /// Time at which the request was received.
    pub(crate) received: Instant,
    /// Ends its stream, if it came in one.
    pub(crate) stream: Option<StreamCut>,
}

impl Asker<'_> {
    /// The answer that a stored response gives. Without a permit the request's own end has been counted
    /// already.
    pub(crate) fn answer(
        self,
        stored: &Stored,
        how: CacheStatus,
        permit: Option<CopyPermit>,
    ) -> Response<Body> {
        let worker = self.worker;
        let now = worker.shared.clock.now();
        let response = stored.answer(now, self.is_head, self.fields, how);
        worker.metrics.cache.answers.increment(counted_as(how));
        if permit.is_some() {
            // The others are seen by the detector.
            worker.cache.count_answer(self.host_key);
        }
        self.whole(response, permit)
    }

    /// A response that is in memory.
    pub(crate) fn whole(self, response: Response<Bytes>, permit: Option<CopyPermit>) -> Response<Body> {
        let responses = &self.worker.metrics.responses;
        let took = self.worker.shared.clock.now().saturating_since(self.received);
        responses.first_byte.record(took);
        responses.duration.record(took);
        responses.by_class.increment(StatusClass::of(response.status().as_u16()));
        let (head, body) = response.into_parts();
        Response::from_parts(head, Body::Copy { body: CopyBody::new(body, permit, self) })
    }
}

impl CopyBody {
    fn new(body: Bytes, permit: Option<CopyPermit>, asker: Asker<'_>) -> Self {
        let watch = (body.len() > PART_BYTES).then(|| {
            Box::new(Watch {
                worker: asker.worker.clone(),
                wire: asker.client.wire.clone(),
                stream: asker.stream,
                stall_timeout: asker.worker.current().live.config.bounds.write_stall_timeout,
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
        self.reading.iter().for_each(|reading| reading.asked(|| self.worker.shared.clock.now()));
    }

    fn handed(&mut self, bytes: usize) {
        let now = self.worker.shared.clock.now();
        let Self { worker, wire, stream, stall_timeout, reading } = self;
        let reading = reading.get_or_insert_with(|| {
            let reading = Reading::new(wire.clone(), stream.take(), *stall_timeout);
            worker.readers.watch(&reading);
            worker.sweep_wanted.notify_one();
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
