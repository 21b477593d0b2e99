//! The end of a forwarded response: who learns how it went, and whether it says anything about the service.
//!
//! A response ends in one of three ways. *Finished*: its last byte was handed to the HTTP library; the
//! request counts as completed and, unless excluded (docs/algorithms/news.md), waits for the client's
//! acknowledgement to be measured. *Failed*: the upstream broke off; the client's connection is cut, never
//! ended cleanly. *Dropped*: the client went away; the permit counts it as abandoned and the upstream's
//! connection closes with the body.

use crate::acks::{Finished, RATE_BYTES_MIN};
use crate::feedback::TrailerQuota;
use crate::load_report;
use crate::pipeline::Permit;
use crate::responses::Responses;
use crate::slow_readers::Reading;
use crate::tracked::Wire;
use crate::transfers::Transfer;
use crate::upload::UploadBody;
use crate::upstream_error::count_failure;
use bytes::{Buf, Bytes};
use flashweir_admission::pipeline::{FailureSource, Judged};
use flashweir_core::limits::UPSTREAM_READ_BYTES;
use flashweir_core::{Duration, Instant};
use flashweir_http::fields::prepare_trailers;
use flashweir_http::pipe::{PipeSource, PolledPipe};
use flashweir_http::serve::StreamCut;
use flashweir_http::upstream::{UpstreamBody, UpstreamError};
use flashweir_telemetry::{Bound, Unmeasured};
use http::{StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Silence of the origin within a body that makes its speed the origin's choice, not the network's.
const GAP: Duration = Duration::from_secs(1);

/// A body goes through pipes if this much of it is still in the origin's socket, or still to come to it: as
/// much as one read takes. Of less, the system calls cost more than copying it (`make compare-cost`).
const MOVED_BYTES_MIN: u64 = UPSTREAM_READ_BYTES as u64;
/// A part that leaves half of a pipe empty is short: the origin is slow, or its bytes came in small
/// packets, each of which takes one of the pipe's sixteen slots, so that a part costs two system calls and
/// moves little.
const SHORT_PART_BYTES: usize = 32 << 10;
/// After this number of short parts in a row, the rest of a body is copied.
const SHORT_PARTS_MAX: u8 = 3;

pin_project! {
    /// Source of a response's body.
    #[project = SourceProjection]
    pub(crate) enum Source {
        /// From the upstream, all of it still to be read.
        Upstream { #[pin] body: UpstreamBody<UploadBody> },
        /// A part has been read before it was known for whom it is.
        Begun { first: VecDeque<Frame<Bytes>>, rest: Pin<Box<UpstreamBody<UploadBody>>> },
    }
}

pin_project! {
    /// An upstream's response body on its way to the client.
    pub(crate) struct ForwardedBody {
        #[pin]
        inner: Source,
        // Boxed: a response's body is moved often on its way into hyper.
        watch: Option<Box<Watch>>,
    }
}

/// State of a response while it is sent.
pub(crate) struct Watch {
    responses: Rc<Responses>,
    permit: Box<Permit>,
    wire: Rc<Wire>,
    client_version: Version,
    status: StatusCode,
    url_class: u32,
    first_byte_at: Instant,
    bytes: u64,
    /// Short parts that came in a row in pipes.
    short_parts: u8,
    waiting_since: Option<Instant>,
    /// Time since the first byte in which the client had everything that the origin had sent.
    waited: Duration,
    unmeasured: Option<Unmeasured>,
    transfer: Option<Rc<Transfer>>,
    stream: Option<StreamCut>,
    quota: Option<TrailerQuota>,
    write_stall_timeout: Duration,
    /// Since the client was handed a first part.
    reading: Option<Rc<Reading>>,
}

/// The parts of which a [`Watch`] is made.
pub(crate) struct Begun {
    pub(crate) responses: Rc<Responses>,
    pub(crate) permit: Box<Permit>,
    pub(crate) wire: Rc<Wire>,
    pub(crate) client_version: Version,
    pub(crate) status: StatusCode,
    pub(crate) url_class: u32,
    pub(crate) unmeasured: Option<Unmeasured>,
    /// Ends the response's stream, where it has a separate one.
    pub(crate) stream: Option<StreamCut>,
    /// Hears of the quota in its trailers.
    pub(crate) quota: Option<TrailerQuota>,
    /// Ends the connection of a client that takes nothing for this time.
    pub(crate) write_stall_timeout: Duration,
}

impl ForwardedBody {
    /// Watches `inner` from the moment its head goes out.
    pub(crate) fn new(begun: Begun, inner: Source) -> Self {
        let responses = begun.responses;
        let now = responses.now();
        responses.metrics.responses.first_byte.record(now.saturating_since(begun.permit.received()));
        let mut watch = Box::new(Watch {
            responses,
            permit: begun.permit,
            wire: begun.wire,
            client_version: begun.client_version,
            status: begun.status,
            url_class: begun.url_class,
            first_byte_at: now,
            bytes: 0,
            short_parts: 0,
            waiting_since: None,
            waited: Duration::ZERO,
            unmeasured: begun.unmeasured,
            transfer: None,
            stream: begun.stream,
            quota: begun.quota,
            write_stall_timeout: begun.write_stall_timeout,
            reading: None,
        });
        if inner.is_end_stream() {
            watch.finish();
            return Self { inner, watch: None };
        }
        watch.permit.answered(now);
        watch.report_if_long(now, &inner.size_hint());
        Self { inner, watch: Some(watch) }
    }

    /// The upstream that answers, by its place in the configuration.
    pub(crate) fn upstream(&self) -> usize {
        match &self.inner {
            Source::Upstream { body } => body.upstream(),
            Source::Begun { rest, .. } => rest.upstream(),
        }
    }
}

impl Watch {
    /// Only what may last is watched for progress: a known small body ends before its first report.
    fn report_if_long(&mut self, now: Instant, size: &SizeHint) {
        let may_last = size.exact().is_none_or(|bytes| bytes >= RATE_BYTES_MIN);
        if may_last && self.unmeasured.is_none() && self.client_version != Version::HTTP_2 {
            let started = self.permit.sent();
            let judged_from = match self.permit.judged() {
                Judged::Whole => started,
                Judged::Delivery => now,
            };
            let transfer = Transfer::begin(now, (started, judged_from), self.url_class, self.wire.clone());
            self.responses.watch_transfer(&transfer);
            self.transfer = Some(transfer);
        }
    }

    /// The origin has nothing to send yet; remembered once for each wait.
    fn wait(&mut self) {
        if self.waiting_since.is_none() {
            self.waiting_since = Some(self.responses.now());
        }
    }

    fn receive(&mut self, bytes: u64) {
        if let Some(since) = self.waiting_since.take() {
            let waited = self.responses.now().saturating_since(since);
            self.waited += waited;
            if waited > GAP {
                self.unmeasured = self.unmeasured.or(Some(Unmeasured::Paused));
                self.transfer = None;
            }
        }
        self.bytes += bytes;
        self.reading.iter().for_each(|reading| reading.brought(bytes));
    }

    /// The client wants the next part.
    fn asked_for_more(&self) {
        self.permit.asked_for_more();
        self.reading.iter().for_each(|reading| reading.asked(|| self.responses.now()));
    }

    /// The client was handed a part that is not the last.
    fn handed_part(&mut self) {
        let now = self.responses.now();
        self.permit.handed_part(now);
        let reading = self.reading.get_or_insert_with(|| {
            let reading = Reading::new(self.wire.clone(), self.stream.clone(), self.write_stall_timeout);
            self.responses.watch_reader(&reading);
            reading
        });
        reading.handed(now);
    }

    /// A part goes to the client. The body is not asked for more once it is known that nothing more comes.
    fn pass(watch: &mut Option<Box<Self>>, is_last: bool) {
        match watch {
            Some(_) if is_last => watch.take().into_iter().for_each(|watch| watch.finish()),
            Some(watch) => watch.handed_part(),
            None => {}
        }
    }

    /// The last byte was handed over.
    fn finish(self) {
        let responses = self.responses.clone();
        let (received, sent, now) = (self.permit.received(), self.permit.sent(), responses.now());
        responses.metrics.responses.duration.record(now.saturating_since(received));
        // The origin's own part of the time is not the delivery's.
        let (judged_from, delivered_from, target_stretch) = match self.permit.judged() {
            Judged::Whole => (sent, self.first_byte_at, self.permit.target_stretch()),
            Judged::Delivery => {
                let from = self.first_byte_at + self.waited;
                (from, from, 1.0)
            }
        };
        let Some(delivery) = self.permit.handed_over(now, self.status) else {
            let why = self.unmeasured.unwrap_or(Unmeasured::Error);
            responses.metrics.measurement.unmeasured.increment(why);
            return;
        };
        if let Some(why) = self.unmeasured {
            responses.metrics.measurement.unmeasured.increment(why);
            responses.pipeline.deliver(delivery, true);
            return;
        }
        responses.await_acknowledgement(
            now,
            Finished {
                started: sent,
                judged_from,
                delivered_from,
                delivery,
                bytes: self.bytes,
                url_class: self.url_class,
                target_stretch,
                mark: self.wire.ask_mark(),
                wire: self.wire,
            },
        );
    }

    /// The upstream broke off in the middle.
    fn fail(self, error: &UpstreamError) {
        let Responses { shared, metrics, .. } = &*self.responses;
        count_failure(shared, metrics, error);
        metrics.measurement.unmeasured.increment(Unmeasured::Error);
        if self.client_version <= Version::HTTP_10 {
            self.wire.reset_on_close();
        }
        self.permit.failed(FailureSource::Origin);
    }
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        let mut this = self.project();
        this.watch.iter().for_each(|watch| watch.asked_for_more());
        let mut polled = this.inner.as_mut().poll_frame(cx);
        let Some(watch) = this.watch.as_mut() else { return polled };
        if let Poll::Ready(Some(Ok(frame))) = &mut polled
            && let Some(trailers) = frame.trailers_mut()
        {
            watch.quota.iter().for_each(|quota| quota.hear(&watch.responses.pipeline, trailers));
            load_report::take_load(trailers, &watch.responses.metrics.upstream);
            prepare_trailers(trailers);
        }
        match &polled {
            Poll::Pending => watch.wait(),
            Poll::Ready(Some(Ok(frame))) => {
                watch.receive(frame.data_ref().map_or(0, |data| data.remaining() as u64));
                Watch::pass(this.watch, this.inner.is_end_stream());
            }
            Poll::Ready(Some(Err(error))) => {
                this.watch.take().into_iter().for_each(|watch| watch.fail(error))
            }
            Poll::Ready(None) => this.watch.take().into_iter().for_each(|watch| watch.finish()),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl PipeSource for ForwardedBody {
    fn poll_pipe(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledPipe {
        let mut this = self.project();
        let (Some(watch), SourceProjection::Upstream { body }) =
            (&mut *this.watch, this.inner.as_mut().project())
        else {
            return Poll::Ready(None);
        };
        if watch.short_parts >= SHORT_PARTS_MAX {
            return Poll::Ready(None);
        }
        let Some(mut pipe) = watch.responses.pipes.take() else {
            watch.responses.metrics.bound_hits.increment(Bound::Pipes);
            return Poll::Ready(None);
        };
        watch.asked_for_more();
        match body.get_mut().poll_fill(cx, &mut pipe) {
            Poll::Pending => {
                watch.wait();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(()))) => {
                watch.receive(pipe.len() as u64);
                let is_short = pipe.len() < SHORT_PART_BYTES;
                watch.short_parts = if is_short { watch.short_parts + 1 } else { 0 };
                Watch::pass(this.watch, this.inner.is_end_stream());
                Poll::Ready(Some(Ok(pipe)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.watch.take().into_iter().for_each(|watch| watch.fail(&error));
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => Poll::Ready(None),
        }
    }
}

impl Source {
    /// Returns whether the rest of the body is large enough for pipes, and can be moved into them.
    pub(crate) fn is_moved(&self) -> bool {
        matches!(self, Self::Upstream { body } if body.movable_bytes() >= MOVED_BYTES_MIN)
    }
}

impl Body for Source {
    type Data = Bytes;
    type Error = UpstreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UpstreamError>>> {
        match self.project() {
            SourceProjection::Upstream { body } => body.poll_frame(cx),
            SourceProjection::Begun { first, rest } => match first.pop_front() {
                Some(frame) => Poll::Ready(Some(Ok(frame))),
                None => rest.as_mut().poll_frame(cx),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Upstream { body } => body.is_end_stream(),
            Self::Begun { first, rest } => first.is_empty() && rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Upstream { body } => body.size_hint(),
            Self::Begun { first, rest } => {
                let read: u64 = first.iter().filter_map(Frame::data_ref).map(|part| part.len() as u64).sum();
                let (rest, mut hint) = (rest.size_hint(), SizeHint::new());
                hint.set_lower(rest.lower() + read);
                rest.upper().into_iter().for_each(|upper| hint.set_upper(upper + read));
                hint
            }
        }
    }
}
