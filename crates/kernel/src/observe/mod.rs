//! An observer in the kernel: watches the traffic of servers that know nothing of it.
//!
//! It decides nothing. At tc, on the interface that faces the clients, two programs (`bpf/observe.bpf.c`) see
//! what comes in for the servers and what goes out from them: they count new connections by destination,
//! telling retransmissions from attempts of their own, and measure every response by a time sliding window
//! over its data (RFC 2859 §3; NEWS §4.1). Packets are only looked at; other filters see them as if there
//! were no observer.
//!
//! A reading costs the same at a hundred flows and at a million, because the kernel keeps the sums: each
//! response counts in one bucket of the interval's histogram of rates, and each of its packets moves it to
//! where it belongs by then. There are two histograms, one for even intervals and one for odd ones; user
//! space reads the one that is not being written.
//!
//! Limits of its knowledge: a connection is one response to it, however many requests it carries; a response
//! that falls silent keeps its last rate until the interval ends, and is not seen in the next; retransmitted
//! data counts as data; packets larger than 64 KiB (BIG TCP, which has to be turned on) are not measured.
//!
//! ```no_run
//! use flashweir_core::limits;
//! use flashweir_kernel::observe::Observer;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut observer = Observer::load(limits::KERNEL_FLOWS_DEFAULT)?;
//! observer.watch(&["192.0.2.80:80".parse()?])?;
//! let _attached = observer.attach("eth0")?;
//! // Every second:
//! let observed = observer.read()?;
//! println!("{} attempts, {} responses", observed.offered, observed.rates[0].responses());
//! # Ok(())
//! # }
//! ```

mod abi;
pub(crate) mod attach;
mod attach_error;
mod filters;
mod histogram;
mod observed;
pub(crate) mod queue;
mod route_netlink;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use flashweir_core::kernel_counts::QueueCounts;
use flashweir_core::limits;

pub use attach::Attachment;
pub use attach_error::AttachError;
pub use histogram::{RATE_BUCKETS, RateBucket, RateHistogram};
pub use observed::{DestinationCount, FlowCounts, Observed};

use crate::clock::monotonic_ns;
use crate::map::Map;
use crate::plain::{Endpoint, bytes_of};
use crate::program::{LoadError, PacketRun, Program};
use abi::{AttemptsAt, Histogram, ObserverCounts, SHARDS, Watching};
use queue::Queue;

/// The programs of `bpf/observe.bpf.c`, as clang left them.
static COMPILED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/observe.o"));
/// Smallest table of flows that makes sense: the kernel sets up to 128 places for each processor aside.
const FLOWS_LEAST: u32 = 1_024;

/// Reading of the first second of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// As in RFC 2859: starts at zero, so short responses read as their size per second (NEWS as published).
    AsPublished,
    /// Bytes over the time since the connection began, 10 ms at least, until that is a second ago.
    #[default]
    Corrected,
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a client to a server.
    ToServer,
    /// From a server to a client.
    ToClient,
}

/// The observer's programs and maps in the kernel. Dropping it leaves attached programs running until their
/// [`Attachment`] is dropped too.
#[derive(Debug)]
pub struct Observer {
    program: Program,
    maps: Maps,
    watching: Watching,
    flows_most: u64,
    /// The totals at the last reading.
    before: ObserverCounts,
    queues: Vec<Queue>,
    time_is_told: bool,
}

/// Error in an order to the observer.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The kernel's side.
    #[error(transparent)]
    Kernel(#[from] LoadError),
    /// More than there is room for.
    #[error("addresses to watch: {0} are more than the kernel's table holds, {most}", most = limits::KERNEL_ENDPOINTS)]
    TooMany(usize),
}

#[derive(Debug)]
struct Maps {
    watching: Map,
    endpoints: Map,
    flows: Map,
    histograms: Map,
    seen: Map,
    destinations: Map,
}

impl Observer {
    /// The most that a reading takes from the kernel's maps, bytes, for any number of flows and processors.
    pub const READING_BYTES: usize = abi::READING_BYTES;

    /// Loads the observer with room for `flows_most` flows at once (1,024 to [`limits::KERNEL_FLOWS`], else
    /// the nearer of them), about 160 bytes each, and the corrected reading. It sees nothing until it is
    /// attached. Takes some 100 ms, most of it the kernel's checks.
    ///
    /// # Errors
    /// When this process may not, or this kernel cannot.
    pub fn load(flows_most: u32) -> Result<Self, LoadError> {
        Self::load_to_read(flows_most, Reading::default())
    }

    /// As [`Observer::load`], with a reading of choice.
    ///
    /// # Errors
    /// As there.
    pub fn load_to_read(flows_most: u32, reading: Reading) -> Result<Self, LoadError> {
        Self::load_with_clock(flows_most, reading, false)
    }

    /// As [`Observer::load_to_read`], for an observer behind a link's classifier ([`crate::link`]): responses
    /// that it cuts are not measured while they are cut, as their rates say nothing about the servers.
    ///
    /// # Errors
    /// As there.
    pub fn load_behind_link(flows_most: u32, reading: Reading) -> Result<Self, LoadError> {
        Self::load_with(flows_most, reading, false, true)
    }

    /// As [`Observer::load_to_read`]; `time_is_told` makes the programs read the time from their map, for
    /// tests.
    fn load_with_clock(flows_most: u32, reading: Reading, time_is_told: bool) -> Result<Self, LoadError> {
        Self::load_with(flows_most, reading, time_is_told, false)
    }

    fn load_with(
        flows_most: u32,
        reading: Reading,
        time_is_told: bool,
        leaves_cut_flows_out: bool,
    ) -> Result<Self, LoadError> {
        let flows_most = flows_most.clamp(FLOWS_LEAST, limits::KERNEL_FLOWS);
        let program = Program::load(COMPILED, |object| {
            let settings = [
                (".rodata.clock", "clock", time_is_told),
                (".rodata.reading", "reading", reading == Reading::AsPublished),
                (".rodata.links", "links", leaves_cut_flows_out),
            ];
            for (section, what, value) in settings {
                let mut constant = object.maps_mut().find(|map| map.name() == section);
                let bytes = constant.as_mut().and_then(|map| map.initial_value_mut());
                bytes.ok_or(LoadError::Missing(what))?.copy_from_slice(bytes_of(&u32::from(value)));
            }
            let mut flows =
                object.maps_mut().find(|map| map.name() == "flows").ok_or(LoadError::Missing("flows"))?;
            flows.set_max_entries(flows_most).map_err(|error| LoadError::Map { map: "flows", error })
        })?;
        let map = |name| Map::of(&program, name);
        let maps = Maps {
            watching: map("watching")?,
            endpoints: map("endpoints")?,
            flows: map("flows")?,
            histograms: map("histograms")?,
            seen: map("seen")?,
            destinations: map("destinations")?,
        };
        let observer = Self {
            program,
            maps,
            // Interval 0 is where flows are that never sent anything.
            watching: Watching { interval: 1, ..Watching::default() },
            flows_most: flows_most.into(),
            before: ObserverCounts::default(),
            queues: Vec::new(),
            time_is_told,
        };
        observer.write_watching()?;
        Ok(observer)
    }

    /// Says whose traffic is looked at, in place of those before: servers by address and port. An unspecified
    /// address (`0.0.0.0`, `::`) stands for every address of its family. Attempts to connect to one that is
    /// no longer watched may be counted until the next reading.
    ///
    /// # Errors
    /// When there are too many, or the kernel does not take them.
    pub fn watch(&mut self, endpoints: &[SocketAddr]) -> Result<(), ObserveError> {
        if endpoints.len() > limits::KERNEL_ENDPOINTS {
            return Err(ObserveError::TooMany(endpoints.len()));
        }
        let entries: Vec<_> = endpoints.iter().map(|&endpoint| (Endpoint::from(endpoint), 0u32)).collect();
        Ok(self.maps.endpoints.replace(&entries)?)
    }

    /// Puts the observer at an interface of this network namespace, both ways: the one that faces the
    /// clients. Its queue is read from then on too, also after the attachment was dropped, for as long as the
    /// interface is there.
    ///
    /// # Errors
    /// When there is no such interface, or it does not take the programs.
    pub fn attach(&mut self, interface: &str) -> Result<Attachment, AttachError> {
        let programs = [self.program.descriptor("flashweir_in")?, self.program.descriptor("flashweir_out")?];
        let attachment = attach::attach(programs, interface)?;
        self.read_queue_of(attachment.index);
        Ok(attachment)
    }

    /// From now on connections that begin are counted separately from those that began before. To be called
    /// when a plan comes into force, best right after [`Observer::read`]: in the interval under way, a
    /// response whose last packet came before this stays where that put it.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn plan_changed(&mut self) -> Result<(), LoadError> {
        self.watching.plan_ticks = self.now_ns() >> abi::TICK_SHIFT;
        self.write_watching()
    }

    /// Returns the observations since the last reading, and begins the next interval. Reads some 51 kB for
    /// any number of flows, in about 20 system calls, and the kernel's list of queues.
    ///
    /// # Errors
    /// When the kernel does not tell. What was seen in the meantime is then part of the next reading, except
    /// for rates.
    pub fn read(&mut self) -> Result<Observed, LoadError> {
        let rates = self.read_rates()?;
        let mut total = ObserverCounts::default();
        for shard in 0..SHARDS {
            total = total.with(self.maps.seen.read(&shard)?, u64::wrapping_add);
        }
        let attempts = self.maps.destinations.drain(limits::KERNEL_DESTINATIONS as u32)?;
        let since = total.with(self.before, u64::wrapping_sub);
        let evicted_until = |counts: &ObserverCounts| counts.placed.saturating_sub(self.flows_most);
        let observed = Observed {
            destinations: busiest(attempts),
            rates,
            offered: since.offered,
            unique_offered: since.unique_offered,
            completed: since.completed,
            flows: FlowCounts {
                tracked: total.placed.min(self.flows_most),
                begun: since.begun,
                evicted: evicted_until(&total) - evicted_until(&self.before),
                expired: since.expired,
                left_out: since.flows_left_out,
            },
            attempts_left_out: since.attempts_left_out,
            queue: self.read_queues(),
        };
        self.before = total;
        Ok(observed)
    }

    /// Bytes of kernel memory that all the maps take. Reads a small file for each.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn memory_bytes(&self) -> std::io::Result<u64> {
        let Maps { watching, endpoints, flows, histograms, seen, destinations } = &self.maps;
        [watching, endpoints, flows, histograms, seen, destinations].into_iter().map(Map::memory_bytes).sum()
    }

    /// Result of running the observer `times` on a frame: no interface is needed, and everything counts.
    ///
    /// # Errors
    /// When the kernel refuses the frame, as one that is shorter than an Ethernet header.
    pub fn try_frame(&self, direction: Direction, frame: &[u8], times: u32) -> Result<PacketRun, LoadError> {
        let program = match direction {
            Direction::ToServer => "flashweir_in",
            Direction::ToClient => "flashweir_out",
        };
        self.program.run(program, frame, times)
    }

    /// Ends the interval and reads its histogram.
    ///
    /// The other one is cleared only now, a whole interval after it was read: so a packet that was on its way
    /// when its interval ended does no harm.
    fn read_rates(&mut self) -> Result<[RateHistogram; 2], LoadError> {
        let ended = self.watching.interval;
        let indices = |interval: u64| (0..SHARDS).map(move |shard| (interval & 1) as u32 * SHARDS + shard);
        for index in indices(ended + 1) {
            self.maps.histograms.write(&index, &Histogram::default())?;
        }
        self.watching.interval += 1;
        self.write_watching()?;
        let mut sums = [0i64; 2 * histogram::RATE_BUCKETS];
        for index in indices(ended) {
            let shard: Histogram = self.maps.histograms.read(&index)?;
            for (sum, flows) in sums.iter_mut().zip(shard.0) {
                *sum += i64::from(flows);
            }
        }
        let (before, since) = sums.split_at(histogram::RATE_BUCKETS);
        Ok([before, since].map(RateHistogram::of_sums))
    }

    fn read_queue_of(&mut self, interface: i32) {
        // Where the kernel reports nothing about queues, the observer is as good without.
        if !self.queues.iter().any(|queue| queue.interface() == interface)
            && self.queues.len() < limits::KERNEL_INTERFACES
            && let Ok(queue) = Queue::of(interface)
        {
            self.queues.push(queue);
        }
    }

    fn read_queues(&mut self) -> Option<QueueCounts> {
        let counts: Vec<_> = self.queues.iter_mut().filter_map(Queue::read).collect();
        counts.into_iter().reduce(|one, other| one.with(other, u64::saturating_add))
    }

    fn now_ns(&self) -> u64 {
        if self.time_is_told { self.watching.test_now_ns } else { monotonic_ns() }
    }

    fn write_watching(&self) -> Result<(), LoadError> {
        self.maps.watching.write(&0u32, &self.watching)
    }
}

fn busiest(attempts: Vec<(Endpoint, AttemptsAt)>) -> Vec<DestinationCount> {
    let mut counts: Vec<_> = attempts
        .into_iter()
        .map(|(endpoint, attempts)| DestinationCount {
            destination: endpoint.into(),
            offered: attempts.offered,
            unique_offered: attempts.unique_offered,
        })
        .collect();
    counts.sort_by_key(|count| (std::cmp::Reverse(count.offered), count.destination));
    counts.truncate(limits::HOT_SPOT_ENTRIES);
    counts
}
