//! A loss of capacity, which ends when dropped.

use crate::machine;
use crate::running::Running;
use flashweir_load::trials::slow::Loss;
use flashweir_testkit::{Process, require_program};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;

/// A program that computes and does nothing else.
const BUSY: [&str; 2] = ["-c", "while :; do :; done"];

pub(crate) enum Lost {
    /// The process is killed when dropped.
    ToNeighbour {
        _process: Process,
    },
    Stopped(Vec<Pid>),
}

impl Lost {
    /// Begins it; `None` if this machine cannot.
    pub(crate) fn begin(loss: Loss, running: &Running) -> Option<Self> {
        match loss {
            Loss::Neighbour => {
                let shell = require_program("sh", "a busy neighbour")?;
                let process = Process::start(&shell, Path::new("/"), BUSY);
                machine::give_core_0(process.id());
                Some(Self::ToNeighbour { _process: process })
            }
            Loss::HalfOfTheWorkers => {
                let half = running.workers.iter().take(running.workers.len() / 2);
                let ids: Vec<Pid> = half.filter_map(|id| Pid::from_raw(id.cast_signed())).collect();
                ids.iter().for_each(|id| signal(*id, Signal::STOP));
                Some(Self::Stopped(ids)).filter(|_| !running.workers.is_empty())
            }
        }
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        if let Self::Stopped(ids) = self {
            ids.iter().for_each(|id| signal(*id, Signal::CONT));
        }
    }
}

/// A worker that has ended needs no signal.
fn signal(id: Pid, signal: Signal) {
    let _ = kill_process(id, signal);
}
