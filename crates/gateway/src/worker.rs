//! One worker: a thread with its own runtime, listeners, pipeline, upstream connections and measurements.

use crate::accept::{Accepted, Acceptor};
use crate::access_log::hand_over;
use crate::commands::{Command, Stopped, WorkerEnds};
use crate::connection::serve;
use crate::context::WorkerContext;
use crate::flash_crowd_candidate::FlashCrowdSample;
use crate::listening::Purpose;
use crate::pipeline::PipelineHost;
use crate::proxied::serve_proxied;
use crate::replication;
use crate::shared::Shared;
use flashweir_admission::pace::SWEEP_INTERVAL;
use flashweir_admission::pipeline::ServiceKey;
use flashweir_http::listen::WorkerListeners;
use flashweir_telemetry::{Bound, Table};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_local;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Runs worker `index` to its end on the calling thread.
pub(crate) fn run(index: usize, shared: Arc<Shared>, listeners: WorkerListeners, ends: WorkerEnds) {
    let mut report = Report { stopped: ends.stopped.clone(), how: Stopped::by_panic() };
    // Not a `LocalSet` on an ordinary runtime: that writes to its own waker whenever the kernel reports
    // something.
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let outcome =
        runtime.and_then(|runtime| runtime.block_on(async { work(index, shared, listeners, ends).await }));
    report.how = match outcome {
        Ok(requests_cut) => Stopped { requests_cut, failure: None },
        Err(error) => Stopped { requests_cut: 0, failure: Some(error.to_string()) },
    };
}

/// Reports to the control thread how a worker ended, a panic included: a gateway that silently serves with
/// fewer workers than it should is worse than one that stops.
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

/// Serves until it is drained after an order to drain, or until the time for that is over; returns how many
/// requests were cut.
async fn work(
    index: usize,
    shared: Arc<Shared>,
    listeners: WorkerListeners,
    ends: WorkerEnds,
) -> io::Result<usize> {
    let leaves_backlog = listeners.outlive_the_process();
    let listeners = listeners.into_tokio()?;
    let (worker, services) = WorkerContext::new(index, shared, ends.gate_samples);
    attend(&worker, services);
    spawn_local(sweep(worker.clone()));
    worker.access_log.iter().for_each(|log| drop(spawn_local(hand_over(log.clone()))));
    let counted = worker.shared.replication.samples_in.clone();
    spawn_local(replication::sample(index, worker.replication.clone(), counted));
    spawn_local(sample(worker.clone(), ends.sample_wanted, ends.samples));
    let accepting = CancellationToken::new();
    let acceptors = TaskTracker::new();
    let acceptor =
        Acceptor { shared: worker.shared.clone(), metrics: worker.metrics.clone(), leaves_backlog };
    for listener in listeners {
        let redirects = worker.shared.redirecting_on.contains(&listener.local_addr()?);
        let purpose = if redirects { Purpose::Redirect } else { Purpose::Serve };
        let spawn = spawn_connections(worker.clone(), acceptor.clone(), purpose);
        acceptors.spawn_local(acceptor.clone().accept_all(listener, accepting.clone(), spawn));
    }
    obey(&worker, ends.commands).await;
    accepting.cancel();
    acceptors.close();
    // Each takes what the kernel has queued for it, then closes its listener.
    acceptors.wait().await;
    worker.draining.cancel();
    worker.connections.close();
    let drain_timeout = worker.current().live.config.bounds.drain_timeout;
    match tokio::time::timeout(drain_timeout, worker.connections.wait()).await {
        Ok(()) => Ok(0),
        Err(_) => Ok(worker.pipeline.requests_open()),
    }
}

/// Serves each accepted connection in a task.
fn spawn_connections(
    worker: Rc<WorkerContext>,
    acceptor: Acceptor,
    purpose: Purpose,
) -> impl Fn(TcpStream, SocketAddr, Accepted) {
    move |stream, peer, accepted| match accepted {
        Accepted::Direct(guard) => {
            worker.connections.spawn_local(serve(worker.clone(), stream, peer, guard, purpose));
        }
        Accepted::Proxied(place) => {
            let proxied = serve_proxied(worker.clone(), acceptor.clone(), stream, peer, place, purpose);
            worker.connections.spawn_local(proxied);
        }
    }
}

/// Spawns the queue task of each of these services, which ends with its service.
fn attend(worker: &WorkerContext, services: Vec<ServiceKey>) {
    for key in services {
        spawn_local(PipelineHost::attend(Rc::downgrade(&worker.pipeline), key));
    }
}

/// Does what the control thread wants until that is to drain (or the control thread is gone).
async fn obey(worker: &WorkerContext, mut commands: mpsc::Receiver<Command>) {
    while let Some(command) = commands.recv().await {
        match command {
            Command::Explain(id, reply) => {
                // The requester may have given up.
                let _ = reply.send(worker.pipeline.explain(id));
            }
            Command::Reload => attend(worker, worker.reload()),
            Command::Drain => return,
        }
    }
}

/// Looks every 10 ms at what awaits acknowledgement; sleeps while nothing does.
async fn sweep(worker: Rc<WorkerContext>) {
    loop {
        while nothing_to_sweep(&worker) {
            worker.sweep_wanted.notified().await;
        }
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let now = worker.shared.clock.now();
        worker.pipeline.sweep_slow_clients(now);
        worker.uploads.sweep(now);
        worker.responses.sweep(now);
    }
}

fn nothing_to_sweep(worker: &WorkerContext) -> bool {
    worker.responses.is_idle() && worker.pipeline.watches_none() && worker.uploads.is_empty()
}

/// Hands over what was measured of crowds whenever the planner asks; keeps accumulating while the queue is
/// full.
async fn sample(
    worker: Rc<WorkerContext>,
    mut wanted: watch::Receiver<u64>,
    samples: mpsc::Sender<FlashCrowdSample>,
) {
    while wanted.changed().await.is_ok() {
        let Ok(place) = samples.try_reserve() else {
            worker.metrics.bound_hits.increment(Bound::SamplesQueued);
            continue;
        };
        let mut sample = worker.pipeline.drain_flash_crowd(worker.shared.clock.now());
        sample.cached = worker.cache.take_answered();
        sample.spared = worker.cache.take_spared();
        worker.cache.follow();
        worker.metrics.requests.unique_offered.add(sample.live.unique_offered);
        worker.metrics.bound_hits.add(Bound::LatencyCells, sample.live.responses_unclassed);
        count_replacements(&worker);
        place.send(sample);
    }
}

/// The tables count for themselves; here what they counted since the last time is added.
fn count_replacements(worker: &WorkerContext) {
    let (pipeline, decisions) = worker.pipeline.replacements();
    let counters = &worker.metrics.table_replacements;
    for (table, total) in [
        (Table::Hosts, pipeline.hosts),
        (Table::RefusedAttempts, pipeline.refused_attempts),
        (Table::Decisions, decisions),
    ] {
        counters.add(table, total.saturating_sub(counters.value(table)));
    }
}
