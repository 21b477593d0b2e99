//! Responses of one worker on their way to clients: each is measured when its client has acknowledged it, and
//! clients that read too slowly are noticed.

use crate::acks::{Acks, Finished, Pushed};
use crate::pipeline::PipelineHost;
use crate::shared::Shared;
use crate::slow_readers::{Reading, SlowReaders};
use crate::transfers::{Transfer, Transfers};
use flashweir_core::Instant;
use flashweir_http::pipe::Pipes;
use flashweir_telemetry::{Bound, ConnectionFailure, Unmeasured, WorkerMetrics};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

/// State that the responses of one worker share; never leaves its thread.
#[derive(Debug)]
pub(crate) struct Responses {
    /// State that all workers share.
    pub(crate) shared: Arc<Shared>,
    /// Metrics of this worker.
    pub(crate) metrics: Arc<WorkerMetrics>,
    /// Learns how each request ended.
    pub(crate) pipeline: Rc<PipelineHost>,
    /// Pipes for large bodies.
    pub(crate) pipes: Rc<Pipes>,
    readers: SlowReaders,
    transfers: RefCell<Transfers>,
    acks: RefCell<Acks>,
    /// Wakes the sweeper when there is something to sweep.
    sweep_wanted: Rc<Notify>,
}

impl Responses {
    /// Of a worker with this pipeline, none on its way yet.
    pub(crate) fn new(
        shared: Arc<Shared>,
        metrics: Arc<WorkerMetrics>,
        pipeline: Rc<PipelineHost>,
        pipes: Rc<Pipes>,
        sweep_wanted: Rc<Notify>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shared,
            metrics,
            pipeline,
            pipes,
            readers: SlowReaders::default(),
            transfers: RefCell::default(),
            acks: RefCell::default(),
            sweep_wanted,
        })
    }

    /// The time now.
    pub(crate) fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Has a long response report before it ends.
    pub(crate) fn watch_transfer(&self, transfer: &Rc<Transfer>) {
        self.transfers.borrow_mut().watch(transfer);
        self.sweep_wanted.notify_one();
    }

    /// Looks from now on at how fast a response of several parts is read.
    pub(crate) fn watch_reader(&self, reading: &Rc<Reading>) {
        self.readers.watch(reading);
    }

    /// Has the sweeper look, where nothing else of the response has it do so.
    pub(crate) fn want_sweep(&self) {
        self.sweep_wanted.notify_one();
    }

    /// Waits for the client to have a response before judging it.
    pub(crate) fn await_acknowledgement(&self, now: Instant, finished: Finished) {
        let unmeasured = &self.metrics.measurement.unmeasured;
        // The guard must be gone before anything else may look at the list.
        let pushed = self.acks.borrow_mut().push(now, finished);
        match pushed {
            Pushed::Taken => self.sweep_wanted.notify_one(),
            Pushed::LeftOut(delivery) => {
                unmeasured.increment(Unmeasured::LeftOut);
                self.pipeline.deliver(delivery, true);
            }
            Pushed::Full(delivery) => {
                self.pipeline.deliver(delivery, true);
                self.metrics.bound_hits.increment(Bound::AcksAwaited);
                unmeasured.increment(Unmeasured::AcksOverflow);
            }
        }
    }

    /// Returns true if a sweep would find nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.acks.borrow().is_empty() && self.transfers.borrow().is_empty() && self.readers.is_empty()
    }

    /// Looks at everything that is on its way.
    pub(crate) fn sweep(&self, now: Instant) {
        let pipeline = &self.pipeline;
        self.metrics.connections.failed.add(ConnectionFailure::SlowReader, self.readers.sweep(now));
        let swept = self.acks.borrow_mut().sweep(now, |delivery, response| {
            pipeline.deliver(delivery, response.is_some());
            response.into_iter().for_each(|response| pipeline.observe_response(response));
        });
        self.transfers.borrow_mut().sweep(now, |response| pipeline.observe_response(response));
        self.metrics.measurement.measured.add(swept.measured as u64);
        self.metrics.measurement.unmeasured.add(Unmeasured::Unacknowledged, swept.lost as u64);
    }
}
