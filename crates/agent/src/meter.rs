//! Difference of two readings of the accounts: how busy the service is, and what it is short of.
//!
//! ```text
//! utilisation    used / (used + what it could have had)          of the processors; could have: idle ones, within the quota
//! busiest thread time in which one thread ran or was ready to / time
//! run queue      time threads were ready and waited / time       Little's law: their mean number
//! pressure       stalled time / time                             PSI, some of the tasks
//!
//! memory     if  pressure of memory ≥ 0.1
//! disk       if  pressure of the disk ≥ 0.2, and by more than the processor
//! processor  if  throttled ≥ 0.1, or the busiest thread ≥ 0.9,
//!            or  utilisation ≥ 0.9, of which half is its own or for which a thread waits all the time
//! nothing    otherwise: a lock, a database, another service
//! ```
//!
//! Memory comes first, because a machine without memory also waits for its disk and burns processor time. A
//! short resource stays named until it is below `LEAVES_AT` of its threshold, so that the word does not
//! change with each reading.
//!
//! Utilisation counts what others take: beside a neighbour that takes all processors nothing is left, however
//! little the service uses. It is short of them only if it wants them: one that waits for a database wants
//! none. Why the busiest thread, and its waiting with it: a service with one thread is short of a processor
//! on a machine with 63 idle ones.
//!
//! Means are over the last `MEAN_OVER`, so that one garbage collection is no shortage. Cold start: no report
//! before the second reading; a gap or accounts that went back begin again. Cost: O(threads).

use crate::account::{GroupCpu, MachineCpu, Pressure, Sockets, ThreadTime};
use flashweir_core::{Duration, Instant, Shortage};
use serde::Serialize;

/// Age at which a reading counts 1/e.
const MEAN_OVER: Duration = Duration::from_secs(2);
/// After a longer gap what was known before says nothing.
const GAP_MAX: Duration = Duration::from_secs(30);
/// Stalls for memory are never free: a tenth is felt in every response.
const MEMORY_PRESSURE: f64 = 0.1;
/// Some waiting for a disk is usual for a service that reads files.
const DISK_PRESSURE: f64 = 0.2;
/// Part of the processors, or of one thread's time, from which responses wait for it.
const PROCESSOR_FULL: f64 = 0.9;
/// Part of the processors it may use that a service itself uses when it fills them.
const OWN_PART: f64 = 0.5;
/// Threads that wait for a processor on average when a service that gets little wants more.
const WAITING_THREADS: f64 = 1.0;
/// Part of the time a quota stops the service.
const THROTTLED: f64 = 0.1;
/// Of its threshold, below which a short resource is no longer named.
const LEAVES_AT: f64 = 0.8;
/// Hundredths of a second: the unit of `/proc/stat` on every architecture.
const TICKS_PER_S: f64 = 100.0;

/// The accounts at one moment; totals since the machine, the group or the process is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The machine's processors.
    pub machine: MachineCpu,
    /// The control group's processor time; none without a group.
    pub group: Option<GroupCpu>,
    /// Processors the group may use; none without a quota.
    pub quota: Option<f64>,
    /// The service's threads, or the first of them; none for a whole machine.
    pub threads: Vec<ThreadTime>,
    /// Tasks on the machine that run or are ready to.
    pub runnable: Option<u64>,
    /// Memory in use, and what there is, bytes.
    pub memory: Option<(u64, u64)>,
    /// Pressure on processors.
    pub cpu_pressure: Option<Pressure>,
    /// Pressure on memory.
    pub memory_pressure: Option<Pressure>,
    /// Pressure on disks.
    pub disk_pressure: Option<Pressure>,
    /// State of the sockets at the service's port.
    pub sockets: Option<Sockets>,
}

/// Load of a service, as its agent serves it. Parts are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReport {
    /// The resource that it is short of.
    #[serde(serialize_with = "as_word")]
    pub short_of: Shortage,
    /// The same as a sentence, with the numbers it rests on.
    pub explanation: String,
    /// Its processors.
    pub processor: ProcessorLoad,
    /// Its memory.
    pub memory: MemoryLoad,
    /// Its disks.
    pub disk: DiskLoad,
    /// Its port, where that is known.
    pub connections: Option<ConnectionLoad>,
    /// The same in ORCA's fields (`xds.data.orca.v3.OrcaLoadReport`).
    pub orca: OrcaReport,
}

/// Load of the processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ProcessorLoad {
    /// Used, of what the service could have.
    pub utilisation: f64,
    /// Processors in use by it, of the machine where no process or group was named.
    pub used: f64,
    /// Part of the time in which the busiest of its threads ran or was ready to; none where they are not
    /// known.
    pub busiest_thread: Option<f64>,
    /// Threads that were ready and waited for a processor, on average.
    pub run_queue: Option<f64>,
    /// Part of the time in which it was stopped by its quota.
    pub throttled: f64,
    /// Part of the time in which work was stalled.
    pub pressure: Option<f64>,
}

/// Load of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MemoryLoad {
    /// In use, of what there is.
    pub utilisation: Option<f64>,
    /// Part of the time in which work was stalled.
    pub pressure: Option<f64>,
}

/// Load of the disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DiskLoad {
    /// Part of the time in which work was stalled.
    pub pressure: Option<f64>,
}

/// Load of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ConnectionLoad {
    /// Connections not accepted yet.
    pub unaccepted: u64,
    /// Connections open.
    pub open: u64,
    /// Connections with a request that was not read yet.
    pub unread: u64,
}

/// ORCA's fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OrcaReport {
    /// Utilisation of the processors.
    pub cpu_utilization: f64,
    /// Of the memory.
    pub mem_utilization: f64,
    /// Further parts by name.
    pub utilization: std::collections::BTreeMap<&'static str, f64>,
    /// Further numbers by name.
    pub named_metrics: std::collections::BTreeMap<&'static str, f64>,
}

fn as_word<S: serde::Serializer>(shortage: &Shortage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(shortage.as_str())
}

/// Turns readings into reports.
#[derive(Debug, Default)]
pub struct Meter {
    last: Option<(Instant, Reading)>,
    means: Option<Means>,
    short_of: Shortage,
}

/// Means over the last seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Means {
    used: f64,
    spare: f64,
    /// Processors that the service may use, with those in use by other processes.
    processors: f64,
    throttled: f64,
    busiest_thread: Option<f64>,
    run_queue: Option<f64>,
    cpu_pressure: Option<f64>,
    memory_pressure: Option<f64>,
    disk_pressure: Option<f64>,
}

impl Meter {
    /// The report with this reading; none with the first.
    pub fn report(&mut self, now: Instant, reading: Reading) -> Option<LoadReport> {
        let (then, before) = self.last.replace((now, reading))?;
        let (_, reading) = self.last.as_ref()?;
        let span = now.saturating_since(then);
        if span.is_zero() {
            return None;
        }
        let Some(fresh) = Means::between(&before, reading, span.as_secs_f64()) else {
            (self.means, self.short_of) = (None, Shortage::Nothing);
            return None;
        };
        let weight = 1.0 - (-span.as_secs_f64() / MEAN_OVER.as_secs_f64()).exp();
        let means = match self.means.filter(|_| span <= GAP_MAX) {
            Some(means) => means.moved(&fresh, weight),
            None => fresh,
        };
        self.means = Some(means);
        self.short_of = means.short_of(self.short_of);
        Some(means.report(self.short_of, reading))
    }
}

impl Means {
    /// Of the time between two readings; none where a total went back.
    fn between(before: &Reading, now: &Reading, span_s: f64) -> Option<Self> {
        let part = |before: u64, now: u64, per_s: f64| Some(now.checked_sub(before)? as f64 / per_s / span_s);
        let stalled = |before: Option<Pressure>, now: Option<Pressure>| {
            part(before?.some_us, now?.some_us, 1e6).map(|part| part.min(1.0))
        };
        let processors = f64::from(now.machine.processors.max(1));
        let idle = part(before.machine.idle_ticks, now.machine.idle_ticks, TICKS_PER_S)?.min(processors);
        let threads = thread_parts(&before.threads, &now.threads, span_s);
        let (used, throttled) = match (before.group, now.group, &threads) {
            (Some(before), Some(now), _) => {
                let used = part(before.usage_us, now.usage_us, 1e6)?;
                (used, part(before.throttled_us, now.throttled_us, 1e6)?)
            }
            (_, _, Some(threads)) => (threads.ran, 0.0),
            _ => (processors - idle, 0.0),
        };
        let spare = now.quota.map_or(idle, |quota| (quota - used).clamp(0.0, idle));
        let machine_queue = now.runnable.map(|runnable| (runnable as f64 - processors).max(0.0));
        Some(Self {
            used,
            spare,
            processors: now.quota.map_or(processors, |quota| quota.min(processors)),
            throttled: throttled.min(1.0),
            busiest_thread: threads.as_ref().map(|threads| threads.busiest.min(1.0)),
            run_queue: threads.as_ref().map(|threads| threads.waited).or(machine_queue),
            cpu_pressure: stalled(before.cpu_pressure, now.cpu_pressure),
            memory_pressure: stalled(before.memory_pressure, now.memory_pressure),
            disk_pressure: stalled(before.disk_pressure, now.disk_pressure),
        })
    }

    /// Part of the way to what is fresh.
    fn moved(&self, fresh: &Self, weight: f64) -> Self {
        let mean = |before: f64, fresh: f64| before + (fresh - before) * weight;
        let option = |before: Option<f64>, fresh: Option<f64>| match (before, fresh) {
            (Some(before), Some(fresh)) => Some(mean(before, fresh)),
            (_, fresh) => fresh,
        };
        Self {
            used: mean(self.used, fresh.used),
            spare: mean(self.spare, fresh.spare),
            processors: fresh.processors,
            throttled: mean(self.throttled, fresh.throttled),
            busiest_thread: option(self.busiest_thread, fresh.busiest_thread),
            run_queue: option(self.run_queue, fresh.run_queue),
            cpu_pressure: option(self.cpu_pressure, fresh.cpu_pressure),
            memory_pressure: option(self.memory_pressure, fresh.memory_pressure),
            disk_pressure: option(self.disk_pressure, fresh.disk_pressure),
        }
    }

    fn utilisation(&self) -> f64 {
        let could_have = self.used + self.spare;
        if could_have > 0.0 { (self.used / could_have).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Ratio of each resource's pressure to its threshold; 1: at it.
    fn excess(&self) -> [(Shortage, f64); 3] {
        let wants_them = self.used >= OWN_PART * self.processors
            || self.run_queue.is_some_and(|waiting| waiting >= WAITING_THREADS);
        let full = if wants_them { self.utilisation() } else { 0.0 };
        let busiest = self.busiest_thread.unwrap_or(0.0).max(full) / PROCESSOR_FULL;
        [
            (Shortage::Memory, self.memory_pressure.unwrap_or(0.0) / MEMORY_PRESSURE),
            (Shortage::Disk, self.disk_pressure.unwrap_or(0.0) / DISK_PRESSURE),
            (Shortage::Processor, busiest.max(self.throttled / THROTTLED)),
        ]
    }

    fn short_of(&self, before: Shortage) -> Shortage {
        let is_short = |(shortage, excess): &(Shortage, f64)| {
            *excess >= if *shortage == before { LEAVES_AT } else { 1.0 }
        };
        let [memory, disk, processor] = self.excess();
        if is_short(&memory) {
            return Shortage::Memory;
        }
        let both = [disk, processor].into_iter().filter(is_short);
        both.max_by(|one, other| one.1.total_cmp(&other.1))
            .map_or(Shortage::Nothing, |(shortage, _)| shortage)
    }

    fn report(&self, short_of: Shortage, reading: &Reading) -> LoadReport {
        let processor = ProcessorLoad {
            utilisation: self.utilisation(),
            used: self.used,
            busiest_thread: self.busiest_thread,
            run_queue: self.run_queue,
            throttled: self.throttled,
            pressure: self.cpu_pressure,
        };
        let memory_part = reading.memory.filter(|&(_, all)| all > 0);
        let memory = MemoryLoad {
            utilisation: memory_part.map(|(used, all)| (used as f64 / all as f64).min(1.0)),
            pressure: self.memory_pressure,
        };
        let disk = DiskLoad { pressure: self.disk_pressure };
        let connections = reading.sockets.map(|sockets| ConnectionLoad {
            unaccepted: sockets.unaccepted,
            open: sockets.open,
            unread: sockets.unread,
        });
        LoadReport {
            short_of,
            explanation: explanation(short_of, &processor, &memory, &disk),
            orca: orca(&processor, &memory, &disk, connections.as_ref()),
            processor,
            memory,
            disk,
            connections,
        }
    }
}

struct ThreadParts {
    ran: f64,
    waited: f64,
    busiest: f64,
}

/// Activity of the threads that were there at both readings; none where there are none. O(threads): both
/// lists are in the order of ids.
fn thread_parts(before: &[ThreadTime], now: &[ThreadTime], span_s: f64) -> Option<ThreadParts> {
    if now.is_empty() {
        return None;
    }
    let mut parts = ThreadParts { ran: 0.0, waited: 0.0, busiest: 0.0 };
    let mut earlier = before.iter().peekable();
    for thread in now {
        while earlier.next_if(|other| other.id < thread.id).is_some() {}
        // A thread that is new since has no earlier account: its beginning is small.
        let Some(known) = earlier.next_if(|other| other.id == thread.id) else { continue };
        let part = |before: u64, now: u64| now.saturating_sub(before) as f64 / 1e9 / span_s;
        let (ran, waited) = (part(known.ran_ns, thread.ran_ns), part(known.waited_ns, thread.waited_ns));
        parts.ran += ran;
        parts.waited += waited;
        parts.busiest = parts.busiest.max(ran + waited);
    }
    Some(parts)
}

fn explanation(short_of: Shortage, cpu: &ProcessorLoad, memory: &MemoryLoad, disk: &DiskLoad) -> String {
    let percent = |part: f64| format!("{:.0} %", part * 100.0);
    let of = |part: Option<f64>| part.map_or_else(|| "an unknown part".to_owned(), percent);
    match short_of {
        Shortage::Memory => format!("Work was stalled for memory {} of the time.", of(memory.pressure)),
        Shortage::Disk => format!("Work was stalled for the disk {} of the time.", of(disk.pressure)),
        Shortage::Processor if cpu.throttled >= THROTTLED * LEAVES_AT => {
            format!("The processor quota stopped the service {} of the time.", percent(cpu.throttled))
        }
        Shortage::Processor if cpu.utilisation >= PROCESSOR_FULL * LEAVES_AT => {
            format!("{} of the processor time it could have was used.", percent(cpu.utilisation))
        }
        Shortage::Processor => {
            format!("Its busiest thread ran, or was ready to, {} of the time.", of(cpu.busiest_thread))
        }
        Shortage::Nothing => format!(
            "{} of the processor time it could have was used, and no work was stalled for long: requests that wait are waiting for a lock, a \
             database or another service.",
            percent(cpu.utilisation)
        ),
    }
}

fn orca(
    cpu: &ProcessorLoad,
    memory: &MemoryLoad,
    disk: &DiskLoad,
    connections: Option<&ConnectionLoad>,
) -> OrcaReport {
    let parts = [
        ("cpu_pressure", cpu.pressure),
        ("memory_pressure", memory.pressure),
        ("disk_pressure", disk.pressure),
        ("busiest_thread", cpu.busiest_thread),
    ];
    let numbers = [
        ("run_queue", cpu.run_queue),
        ("unaccepted_connections", connections.map(|it| it.unaccepted as f64)),
        ("unread_connections", connections.map(|it| it.unread as f64)),
    ];
    let known = |list: &[(&'static str, Option<f64>)]| {
        list.iter().filter_map(|&(name, value)| Some((name, value?))).collect()
    };
    OrcaReport {
        cpu_utilization: cpu.utilisation,
        mem_utilization: memory.utilisation.unwrap_or(0.0),
        utilization: known(&parts),
        named_metrics: known(&numbers),
    }
}

#[cfg(test)]
mod tests;
