//! Commands of the control thread to a worker, and the channels on which workers report.

use crate::decisions::Explained;
use crate::flash_crowd_candidate::FlashCrowdSample;
use crate::sentry::GateSample;
use flashweir_core::{DecisionId, limits};
use tokio::sync::{mpsc, oneshot, watch};

/// Commands on their way to one worker: they are rare, so a full queue means a stuck worker.
const COMMANDS_QUEUED: usize = 64;

/// One wish of the control thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Asks for the decision with this id.
    Explain(DecisionId, oneshot::Sender<Option<Explained>>),
    /// Take over the configuration now in force.
    Reload,
    /// Take no new connections, end idle ones, finish requests, then stop.
    Drain,
}

/// The control thread's ends.
#[derive(Debug)]
pub(crate) struct ControlEnds {
    /// One for each worker, in order.
    pub(crate) commands: Vec<mpsc::Sender<Command>>,
    /// Counts the times samples were asked for.
    pub(crate) sample_wanted: watch::Sender<u64>,
    /// Samples of the workers' flash-crowd gates.
    pub(crate) samples: mpsc::Receiver<FlashCrowdSample>,
    /// Samples of the workers' sentry gates.
    pub(crate) gate_samples: mpsc::Receiver<GateSample>,
    /// One message from each worker as it stops.
    pub(crate) stopped: mpsc::Receiver<Stopped>,
}

/// One worker's ends.
#[derive(Debug)]
pub(crate) struct WorkerEnds {
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) sample_wanted: watch::Receiver<u64>,
    pub(crate) samples: mpsc::Sender<FlashCrowdSample>,
    pub(crate) gate_samples: mpsc::Sender<GateSample>,
    pub(crate) stopped: mpsc::Sender<Stopped>,
}

/// End of a worker.
#[derive(Clone, Debug)]
pub(crate) struct Stopped {
    /// Requests that were cut because the drain took too long.
    pub(crate) requests_cut: usize,
    /// Reason for which it could not run, if so.
    pub(crate) failure: Option<String>,
}

impl Stopped {
    /// The report of a worker that ended without one.
    pub(crate) fn by_panic() -> Self {
        Self { requests_cut: 0, failure: Some("it panicked".to_owned()) }
    }
}

/// Connects the control thread with `workers` workers.
pub(crate) fn connect(workers: usize) -> (ControlEnds, Vec<WorkerEnds>) {
    let (sample_wanted, sample_asked) = watch::channel(0);
    let (samples_in, samples) = mpsc::channel(limits::SAMPLES_QUEUED * workers);
    let (gate_samples_in, gate_samples) = mpsc::channel(limits::SAMPLES_QUEUED * workers);
    let (stopped_in, stopped) = mpsc::channel(workers);
    let mut commands = Vec::with_capacity(workers);
    let worker_ends = (0..workers).map(|_| {
        let (command_in, command_out) = mpsc::channel(COMMANDS_QUEUED);
        commands.push(command_in);
        WorkerEnds {
            commands: command_out,
            sample_wanted: sample_asked.clone(),
            samples: samples_in.clone(),
            gate_samples: gate_samples_in.clone(),
            stopped: stopped_in.clone(),
        }
    });
    let worker_ends = worker_ends.collect();
    (ControlEnds { commands, sample_wanted, samples, gate_samples, stopped }, worker_ends)
}
