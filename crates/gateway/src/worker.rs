//! One worker: a thread with its own runtime, listeners, gate, upstream connections and measurements.

use crate::accept::accept_all;
use crate::acks::{Acks, Finished, Pushed};
use crate::admit::Gatekeeper;
use crate::classify::Classifier;
use crate::commands::{Command, Stopped, WorkerEnds};
use crate::sentry::{Candidate, CandidateStage, GateSample, Sentry, SlowClients, Stage, Uploading};
use crate::settings::{serve_settings, upstream_capacity};
use crate::shared::{Live, Shared};
use crate::transfers::Transfers;
use flashweir_admission::flash_crowd::Sample;
use flashweir_admission::pace::SWEEP_INTERVAL;
use flashweir_core::{Instant, Rng};
use flashweir_http::listen::WorkerListeners;
use flashweir_http::serve::Server;
use flashweir_http::upstream::{UpstreamShared, Upstreams};
use flashweir_telemetry::{Bound, ClassSlot, Unmeasured, WorkerMetrics};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{LocalSet, spawn_local};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What all connections of one worker share; never leaves its thread.
#[derive(Debug)]
pub(crate) struct Worker {
    /// Its number.
    index: usize,
    /// What all workers share.
    pub(crate) shared: Arc<Shared>,
    /// What this worker counts.
    pub(crate) metrics: Arc<WorkerMetrics>,
    /// Decides who is let in.
    pub(crate) gatekeeper: RefCell<Gatekeeper>,
    /// Responses on their way to the client.
    pub(crate) transfers: RefCell<Transfers>,
    /// Requests whose clients may be slower than the origin.
    pub(crate) slow_clients: RefCell<SlowClients>,
    /// Wakes the sweeper when there is something to sweep.
    pub(crate) sweep_wanted: Notify,
    /// Admitted requests that have not ended.
    pub(crate) requests_open: Cell<usize>,
    /// Cancelled when connections are to end gracefully.
    pub(crate) draining: CancellationToken,
    /// One entry for each connection being served.
    pub(crate) connections: TaskTracker,
    acks: RefCell<Acks>,
    /// Where its sentry gates report.
    gate_samples: mpsc::Sender<GateSample>,
    current: RefCell<Rc<Current>>,
}

/// The configuration in force as this worker uses it.
#[derive(Debug)]
pub(crate) struct Current {
    /// What was configured.
    pub(crate) live: Arc<Live>,
    /// Serves connections with the configured bounds and timeouts.
    pub(crate) server: Server,
    /// What this worker has of each service, in the configuration's order.
    pub(crate) served: Vec<Rc<Served>>,
    /// The sentry's gate for each, unless policing is off; kept over reloads that leave the policy alone.
    pub(crate) stages: Vec<Option<Rc<Stage>>>,
    /// Where each class of each service is counted.
    pub(crate) slots: Vec<Box<[ClassSlot]>>,
    /// Finds a request's service and makes the gate's keys.
    pub(crate) classifier: Classifier,
}

/// One worker's part of one service; kept over reloads that leave the service's upstreams alone.
#[derive(Debug)]
pub(crate) struct Served {
    /// Connections to the upstreams.
    pub(crate) upstreams: Upstreams<Uploading>,
    /// Requests they can carry at once.
    pub(crate) upstream_capacity: usize,
    /// Admitted requests to the service that have not ended.
    pub(crate) requests_open: Cell<usize>,
}

/// Runs worker `index` to its end on the calling thread.
pub(crate) fn run(index: usize, shared: Arc<Shared>, listeners: WorkerListeners, ends: WorkerEnds) {
    let mut report = Report { stopped: ends.stopped.clone(), how: Stopped::by_panic() };
    let outcome = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        let _entered = runtime.enter();
        let listeners = listeners.into_tokio()?;
        Ok(LocalSet::new().block_on(&runtime, work(index, shared, listeners, ends)))
    });
    report.how = match outcome {
        Ok(requests_cut) => Stopped { requests_cut, failure: None },
        Err(error) => Stopped { requests_cut: 0, failure: Some(error.to_string()) },
    };
}

/// Tells the control thread how a worker ended, a panic included: a gateway that silently serves with fewer workers
/// than it should is worse than one that stops.
struct Report {
    stopped: mpsc::Sender<Stopped>,
    how: Stopped,
}

impl Drop for Report {
    fn drop(&mut self) {
        // The channel has room for one message of each worker; a control thread that is gone needs none.
        let _ = self.stopped.try_send(self.how.clone());
    }
}

/// Serves until told to drain and drained, or the time for that is over; returns how many requests were cut.
async fn work(index: usize, shared: Arc<Shared>, listeners: Vec<TcpListener>, ends: WorkerEnds) -> usize {
    let worker = Worker::new(index, shared, ends.gate_samples);
    worker.attend(worker.current().new_stages(None));
    spawn_local(worker.clone().sweep());
    spawn_local(worker.clone().sample(ends.sample_wanted, ends.samples));
    let accepting = CancellationToken::new();
    let acceptors = TaskTracker::new();
    for listener in listeners {
        acceptors.spawn_local(accept_all(worker.clone(), listener, accepting.clone()));
    }
    worker.obey(ends.commands).await;
    accepting.cancel();
    acceptors.close();
    // Each takes what the kernel has queued for it, then closes its listener.
    acceptors.wait().await;
    worker.draining.cancel();
    worker.connections.close();
    let drain_timeout = worker.current().live.config.bounds.drain_timeout;
    match tokio::time::timeout(drain_timeout, worker.connections.wait()).await {
        Ok(()) => 0,
        Err(_) => worker.requests_open.get(),
    }
}

impl Worker {
    pub(crate) fn new(index: usize, shared: Arc<Shared>, gate_samples: mpsc::Sender<GateSample>) -> Rc<Self> {
        let live = shared.live.load_full();
        let current = Current::new(&shared, index, live, None, Rng::new(shared.seed).fork(index as u64));
        Rc::new(Self {
            index,
            metrics: shared.telemetry.worker(index),
            gatekeeper: RefCell::new(Gatekeeper::new(&shared, index)),
            transfers: RefCell::default(),
            slow_clients: RefCell::default(),
            sweep_wanted: Notify::new(),
            requests_open: Cell::new(0),
            draining: CancellationToken::new(),
            connections: TaskTracker::new(),
            acks: RefCell::default(),
            gate_samples,
            current: RefCell::new(Rc::new(current)),
            shared,
        })
    }

    /// The configuration in force; a request keeps the one it began with.
    pub(crate) fn current(&self) -> Rc<Current> {
        self.current.borrow().clone()
    }

    /// Waits for the client to have a response before judging it.
    pub(crate) fn await_acknowledgement(&self, now: Instant, finished: Finished) {
        let unmeasured = &self.metrics.measurement.unmeasured;
        // The guard must be gone before anything else may look at the list.
        let pushed = self.acks.borrow_mut().push(now, finished);
        match pushed {
            Pushed::Taken => self.sweep_wanted.notify_one(),
            Pushed::LeftOut => unmeasured.increment(Unmeasured::LeftOut),
            Pushed::Full => {
                self.metrics.bound_hits.increment(Bound::AcksAwaited);
                unmeasured.increment(Unmeasured::AcksOverflow);
            }
        }
    }

    /// Does what the control thread wants until that is to drain (or the control thread is gone).
    async fn obey(&self, mut commands: mpsc::Receiver<Command>) {
        while let Some(command) = commands.recv().await {
            match command {
                Command::Explain(id, reply) => {
                    // Whoever asked may have given up.
                    let _ = reply.send(self.gatekeeper.borrow().explain(id));
                }
                Command::Reload => self.reload(),
                Command::Drain => return,
            }
        }
    }

    fn reload(&self) {
        let live = self.shared.live.load_full();
        let before = self.current();
        let rng = Rng::new(self.shared.seed ^ self.shared.clock.now().as_nanos());
        let current = Rc::new(Current::new(&self.shared, self.index, live, Some(&before), rng));
        *self.current.borrow_mut() = current.clone();
        self.attend(current.new_stages(Some(&before)));
    }

    /// Has somebody look after each of these gates, for as long as it is used.
    fn attend<'a>(&self, stages: impl Iterator<Item = &'a Rc<Stage>>) {
        for stage in stages {
            let metrics = self.metrics.clone();
            let full = move || metrics.bound_hits.increment(Bound::SamplesQueued);
            spawn_local(Stage::attend(Rc::downgrade(stage), self.gate_samples.clone(), full));
        }
    }

    /// Looks every 10 ms at what awaits acknowledgement; sleeps while nothing does.
    async fn sweep(self: Rc<Self>) {
        loop {
            while self.nothing_to_sweep() {
                self.sweep_wanted.notified().await;
            }
            tokio::time::sleep(SWEEP_INTERVAL).await;
            let now = self.shared.clock.now();
            self.slow_clients.borrow_mut().sweep(now);
            let mut gatekeeper = self.gatekeeper.borrow_mut();
            let swept = self.acks.borrow_mut().sweep(now, |response| gatekeeper.observe_response(response));
            self.transfers.borrow_mut().sweep(now, |response| gatekeeper.observe_response(response));
            self.metrics.measurement.measured.add(swept.measured as u64);
            self.metrics.measurement.unmeasured.add(Unmeasured::Unacknowledged, swept.lost as u64);
        }
    }

    fn nothing_to_sweep(&self) -> bool {
        self.acks.borrow().is_empty()
            && self.transfers.borrow().is_empty()
            && self.slow_clients.borrow().is_empty()
    }

    /// Hands over what the gate saw whenever the planner asks; keeps accumulating while the queue is full.
    async fn sample(self: Rc<Self>, mut wanted: watch::Receiver<u64>, samples: mpsc::Sender<Sample>) {
        while wanted.changed().await.is_ok() {
            let Ok(place) = samples.try_reserve() else {
                self.metrics.bound_hits.increment(Bound::SamplesQueued);
                continue;
            };
            let sample = self.gatekeeper.borrow_mut().drain(self.shared.clock.now());
            self.metrics.requests.unique_offered.add(sample.unique_offered);
            self.metrics.bound_hits.add(Bound::LatencyCells, sample.responses_unclassed);
            place.send(sample);
        }
    }
}

impl Current {
    /// Takes over what there is for services that stay; requests under way to others keep theirs until they end.
    fn new(shared: &Shared, worker: usize, live: Arc<Live>, before: Option<&Self>, rng: Rng) -> Self {
        let served = live.upstreams.iter().enumerate().map(|(index, upstreams)| {
            let mut known = before.iter().flat_map(|before| &before.served);
            let kept = known.find(|served| Arc::ptr_eq(served.upstreams.shared(), upstreams));
            kept.cloned().unwrap_or_else(|| Rc::new(Served::new(upstreams.clone(), rng.fork(index as u64))))
        });
        let stages = live.sentries.iter().map(|sentry| {
            let sentry = sentry.as_ref()?;
            let kept = before.and_then(|before| before.stage_of(sentry)).cloned();
            Some(kept.unwrap_or_else(|| Stage::new(sentry.clone(), worker, shared)))
        });
        let stages: Vec<_> = stages.collect();
        for (stage, wanted) in stages.iter().zip(&live.candidates) {
            if let Some(stage) = stage {
                let kept = before.and_then(|before| before.candidate_stage_of(wanted.as_ref()?));
                let new = || Some(CandidateStage::new(wanted.clone()?, worker, shared.clock));
                stage.set_candidate(kept.or_else(new));
            }
        }
        let control = shared.telemetry.control();
        let slots = live.config.services.iter().map(|service| {
            service.classes.iter().map(|class| control.class_slot(&service.name, &class.name)).collect()
        });
        Self {
            slots: slots.collect(),
            server: Server::new(serve_settings(&live.config)),
            served: served.collect(),
            stages,
            classifier: Classifier::new(shared.hasher, &live.config),
            live,
        }
    }

    fn stage_of(&self, sentry: &Arc<Sentry>) -> Option<&Rc<Stage>> {
        self.stages.iter().flatten().find(|stage| Arc::ptr_eq(stage.sentry(), sentry))
    }

    fn candidate_stage_of(&self, candidate: &Arc<Candidate>) -> Option<Rc<CandidateStage>> {
        let mut stages = self.stages.iter().flatten().filter_map(|stage| stage.candidate());
        stages.find(|stage| Arc::ptr_eq(stage.candidate(), candidate))
    }

    /// The gates that `before` did not have.
    fn new_stages<'a>(&'a self, before: Option<&'a Self>) -> impl Iterator<Item = &'a Rc<Stage>> {
        let is_new =
            move |stage: &&Rc<Stage>| before.is_none_or(|before| before.stage_of(stage.sentry()).is_none());
        self.stages.iter().flatten().filter(is_new)
    }
}

impl Served {
    fn new(upstreams: Arc<UpstreamShared>, rng: Rng) -> Self {
        Self {
            upstream_capacity: upstream_capacity(upstreams.settings()),
            upstreams: Upstreams::new(upstreams, rng),
            requests_open: Cell::new(0),
        }
    }
}
