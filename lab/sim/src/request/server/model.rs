//! Model of a server: its parameters, and the effect of load on its speed.

use crate::request::FaultKind;
use flashweir_core::Duration;
use flashweir_core::limits::SIM_PROCESSORS;
use std::num::NonZeroU32;

/// A server: processors, workers that hold requests, a queue before them, and the handling of requests that
/// find it full.
///
/// ```
/// use flashweir_core::Duration;
/// use flashweir_sim::request::{Overflow, ServerModel};
/// // The server of the Intel study (calibrated to its Table 1): one processor, 30 in service, 256 waiting, 4 ms for a refusal.
/// let refusal = Overflow::Refuse { cost: Duration::from_millis(4) };
/// let intel = ServerModel { queue: Some(256), overflow: refusal, ..ServerModel::first_come(1, 30) };
/// assert_eq!(intel.processors.get(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerModel {
    /// Assignment of processors to requests.
    pub discipline: Discipline,
    /// Number of processors: requests that make full progress at once.
    pub processors: NonZeroU32,
    /// Maximum number of requests in service at once (threads, processes); `None`: no limit.
    pub workers: Option<NonZeroU32>,
    /// Maximum number of requests waiting for a worker; `None`: no limit.
    pub queue: Option<u32>,
    /// Handling of requests that find workers and queue full.
    pub overflow: Overflow,
    /// Memory that requests in service take, where it can run short.
    pub memory: Option<Memory>,
    /// Slowdown of every request in service by each further one (locks, caches): with n of them in service,
    /// work takes 1 + contention · (n − 1) times as long, so that throughput falls where n exceeds the
    /// processors. 0: not at all.
    pub contention: f64,
    /// Handling of a request whose client has gone.
    pub departed: Departed,
}

/// Assignment of processors to requests in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// All requests in service alike (processor sharing).
    Shared,
    /// The requests in service that came first, one processor each, until they are done.
    FirstCome,
}

/// Handling of a request that finds every worker and every queue place taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It is answered that the server is too busy.
    Refuse {
        /// Processor time for accepting, parsing and answering, taken before any request in service gets more
        /// (c_stb in the study of intelligent network cards; on several processors all of them share it).
        cost: Duration,
    },
    /// It is dropped before any work was done, without an answer.
    Drop,
    /// It is dropped before any work was done, and its connection breaks.
    Reset,
}

/// Memory that runs short: beyond it, part of what requests touch must be fetched from a slow disk, so that
/// they take 1 + penalty · (1 − memory/resident) times as long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// Resident memory with nothing in service, bytes.
    pub base_bytes: u64,
    /// Resident memory that each request in service adds, bytes.
    pub request_bytes: u64,
    /// Relative increase of the time for work with all of it on the disk, 0 or more.
    pub penalty: f64,
}

/// Handling of a request whose client has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departed {
    /// Notices, and stops at once.
    Stops,
    /// Completes the request without a client, as most programs do.
    WorksOn,
}

impl ServerModel {
    /// Processor sharing without bounds: threads or processes of one machine, none refused.
    ///
    /// # Panics
    /// Without processors.
    #[must_use]
    pub fn processor_sharing(processors: u32) -> Self {
        Self {
            discipline: Discipline::Shared,
            processors: NonZeroU32::new(processors).expect("a server has a processor"),
            workers: None,
            queue: None,
            overflow: Overflow::Drop,
            memory: None,
            contention: 0.0,
            departed: Departed::Stops,
        }
    }

    /// First come, first served by `workers`, of whom as many make progress as there are processors; the
    /// queue has no bound.
    ///
    /// # Panics
    /// Without processors or workers.
    #[must_use]
    pub fn first_come(processors: u32, workers: u32) -> Self {
        let workers = Some(NonZeroU32::new(workers).expect("a server has a worker"));
        Self { discipline: Discipline::FirstCome, workers, ..Self::processor_sharing(processors) }
    }

    /// The first problem of the model, if any.
    pub(in crate::request) fn problem(&self) -> Option<String> {
        if self.processors.get() > SIM_PROCESSORS {
            return Some(format!("{} processors are more than {SIM_PROCESSORS}", self.processors));
        }
        if !(0.0..=CONTENTION_MOST).contains(&self.contention) {
            return Some(format!("a contention of {}: expected 0 to {CONTENTION_MOST}", self.contention));
        }
        let Memory { memory_bytes, penalty, .. } = self.memory?;
        if memory_bytes == 0 {
            return Some("a machine without memory".to_owned());
        }
        (!(0.0..=PENALTY_MOST).contains(&penalty))
            .then(|| format!("a swapping penalty of {penalty}: expected 0 to {PENALTY_MOST}"))
    }

    /// The reason why a fault cannot happen to the server, if any.
    pub(in crate::request) fn problem_with(&self, fault: &FaultKind) -> Option<String> {
        let FaultKind::Processors(processors) = fault else { return None };
        if self.discipline != Discipline::Shared {
            return Some("the number of processors changes only under processor sharing".to_owned());
        }
        Self { processors: *processors, ..*self }.problem()
    }

    /// Factor on the time for work with `in_service` requests in service.
    pub(super) fn slowdown(&self, in_service: usize) -> f64 {
        self.memory_slowdown(in_service) * (1.0 + self.contention * in_service.saturating_sub(1) as f64)
    }

    /// Returns true if the number of requests in service changes the speed of each.
    pub(super) fn slows_with_load(&self) -> bool {
        self.memory.is_some() || self.contention > 0.0
    }

    fn memory_slowdown(&self, in_service: usize) -> f64 {
        let Some(memory) = self.memory else { return 1.0 };
        let resident =
            memory.base_bytes.saturating_add(memory.request_bytes.saturating_mul(in_service as u64));
        if resident <= memory.memory_bytes {
            return 1.0;
        }
        1.0 + memory.penalty * (1.0 - memory.memory_bytes as f64 / resident as f64)
    }
}

/// A disk is five orders of magnitude slower than memory.
const PENALTY_MOST: f64 = 100_000.0;
/// One more request doubles the work of all: no server contends harder and still serves.
const CONTENTION_MOST: f64 = 1.0;
