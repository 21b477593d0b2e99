//! The classifier of a link: counts flows in the kernel, and drops and marks by probabilities that user space
//! writes.
//!
//! `bpf/link.bpf.c` stands at tc at one interface, before its queue or behind it. User space reads it every
//! quarter of a second and writes what follows: for each heavy flow the probability with which its packets
//! are dropped, and for all other packets that of a mark. The rules are `flashweir_aqm`'s. A classifier that
//! hears nothing for three seconds lets everything pass; its process ended, it is gone.
//!
//! Tables are bounded: the sketch of distinct flows has 12 KB, the table of heavy flows
//! [`limits::LINK_FLOWS`] places, each in two halves, of which user space reads the one that is not written
//! to. Flows are known by hashes under a key drawn at start.
//!
//! ```no_run
//! use flashweir_kernel::link::{FlowKey, LinkClassifier, LinkOrders, Side};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut classifier = LinkClassifier::load(FlowKey::FiveTuple)?;
//! let _attached = classifier.attach("eth0", Side::Egress)?;
//! // Every quarter of a second:
//! let reading = classifier.read()?;
//! classifier.apply(LinkOrders { mark: 0, cuts: &[(reading.flows[0].0, 1 << 31)] })?;
//! # Ok(())
//! # }
//! ```

mod abi;
mod attach;
mod reading;
#[cfg(test)]
mod tests;

use flashweir_core::kernel_counts::LinkCounts;
use flashweir_core::limits;

pub use attach::{LinkAttachment, Side};
pub use reading::{LinkReading, SketchResidues};

use crate::clock::{monotonic_ns, random_key};
use crate::map::Map;
pub use crate::observe::AttachError;
use crate::plain::bytes_of;
use crate::program::{LoadError, PacketRun, Program};
use abi::{Counts, CutSet, FlowSet, Key, Orders, SETS, SHARDS, Sketch, WAYS};

/// The program of `bpf/link.bpf.c`, as clang left it.
static COMPILED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/link.o"));
const PROGRAM: &str = "flashweir_link";
/// Time for which the classifier acts on orders without new ones, nanoseconds: twelve periods.
const ORDERS_LAST_NS: u64 = 3_000_000_000;

/// Key that makes two packets one flow: `flashweir_aqm::FlowIdentity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowKey {
    /// Source, destination, protocol and ports.
    #[default]
    FiveTuple,
    /// The source address; of IPv6 its /64.
    Source,
    /// The source's network: /24 of IPv4, /48 of IPv6.
    SourcePrefix,
}

/// Orders to the classifier from now on.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkOrders<'a> {
    /// Probability with which a packet that passes is marked (or dropped, where its sender does not
    /// understand marks), in 2⁻³².
    pub mark: u32,
    /// Flows that are cut, by hash, each with the probability of a drop in 2⁻³². Of flows that share a set
    /// the first eight.
    pub cuts: &'a [(u64, u32)],
}

/// The classifier and its maps in the kernel. Dropping it leaves an attached program running until its
/// [`LinkAttachment`] is dropped too.
#[derive(Debug)]
pub struct LinkClassifier {
    program: Program,
    maps: Maps,
    orders: Orders,
    /// The cuts written last.
    cuts: Vec<CutSet>,
    /// The totals at the last reading.
    before: LinkCounts,
}

#[derive(Debug)]
struct Maps {
    orders: Map,
    sketches: Map,
    flow_sets: Map,
    cut_sets: Map,
    counts: Map,
}

impl LinkClassifier {
    /// Loads the program, under a key that this draws. It sees nothing until it is attached. Some 500 ms,
    /// most of it the kernel's checks.
    ///
    /// # Errors
    /// When this process may not, or this kernel cannot.
    pub fn load(flow_key: FlowKey) -> Result<Self, LoadError> {
        Self::load_with_key(flow_key, random_key()?)
    }

    /// As [`LinkClassifier::load`], under this key: for tests that compare hashes.
    fn load_with_key(flow_key: FlowKey, key: [u64; 2]) -> Result<Self, LoadError> {
        let identity = match flow_key {
            FlowKey::FiveTuple => 0u32,
            FlowKey::Source => 1,
            FlowKey::SourcePrefix => 2,
        };
        let program = Program::load(COMPILED, |object| {
            let key = Key(key);
            for (section, what, value) in [
                (".rodata.key", "key", bytes_of(&key)),
                (".rodata.identity", "identity", bytes_of(&identity)),
            ] {
                let mut constant = object.maps_mut().find(|map| map.name() == section);
                let bytes = constant.as_mut().and_then(|map| map.initial_value_mut());
                bytes.ok_or(LoadError::Missing(what))?.copy_from_slice(value);
            }
            Ok(())
        })?;
        let map = |name| Map::of(&program, name);
        let maps = Maps {
            orders: map("orders")?,
            sketches: map("sketches")?,
            flow_sets: map("flow_sets")?,
            cut_sets: map("cut_sets")?,
            counts: map("counts")?,
        };
        for half in 0..2 * SHARDS {
            maps.sketches.write(&half, &Sketch::default())?;
        }
        let cuts = vec![CutSet::default(); SETS as usize];
        Ok(Self { program, maps, orders: Orders::default(), cuts, before: LinkCounts::default() })
    }

    /// Puts the classifier at an interface of this network namespace, before programs that stand there
    /// already.
    ///
    /// # Errors
    /// When there is no such interface, or it does not take the program.
    pub fn attach(&self, interface: &str, side: Side) -> Result<LinkAttachment, AttachError> {
        attach::attach(&self.program.descriptor(PROGRAM)?, interface, side)
    }

    /// Returns the counts since the last reading, and begins the next interval. About 300 KB in 20 system
    /// calls, for any number of flows and processors. Packets that are being counted at this moment may be
    /// missing in both intervals.
    ///
    /// # Errors
    /// When the kernel does not hand it over.
    pub fn read(&mut self) -> Result<LinkReading, LoadError> {
        let half = |interval: u64| (interval & 1) as u32;
        let (ended, next) = (half(self.orders.interval), half(self.orders.interval + 1));
        // Cleared a whole interval after it was read, so that a packet that was on its way then does no harm.
        for shard in 0..SHARDS {
            self.maps.sketches.write(&(next * SHARDS + shard), &Sketch::default())?;
        }
        self.maps.flow_sets.clear_range::<FlowSet>(next * SETS, SETS)?;
        self.orders.interval += 1;
        self.write_orders()?;
        let mut reading = LinkReading::default();
        for shard in 0..SHARDS {
            let sketch: Sketch = self.maps.sketches.read(&(ended * SHARDS + shard))?;
            reading.sketches.push(Box::new(sketch.0));
        }
        let sets: Vec<FlowSet> = self.maps.flow_sets.read_array()?;
        let sets = sets.iter().skip((ended * SETS) as usize).take(SETS as usize);
        let flows = sets.flat_map(|set| set.flow.into_iter().zip(set.bytes));
        reading.flows.extend(flows.filter(|(flow, _)| *flow != 0));
        let mut total = LinkCounts::default();
        for shard in 0..SHARDS {
            total = total.plus(self.maps.counts.read::<_, Counts>(&shard)?.into());
        }
        reading.counts = total.since(std::mem::replace(&mut self.before, total));
        Ok(reading)
    }

    /// Puts orders into force, in place of those before, for three seconds. One system call, and one for each
    /// set of flows in which anything changed.
    ///
    /// # Errors
    /// When the kernel does not take them.
    pub fn apply(&mut self, orders: LinkOrders<'_>) -> Result<(), LoadError> {
        let mut sets = vec![CutSet::default(); SETS as usize];
        for &(flow, drop) in orders.cuts.iter().filter(|(flow, drop)| *flow != 0 && *drop != 0) {
            let set = &mut sets[flow as usize & (SETS as usize - 1)];
            if let Some(way) = (0..WAYS).find(|&way| set.flow[way] == 0) {
                set.flow[way] = flow;
                set.drop[way] = drop;
            }
        }
        for (index, (set, before)) in sets.iter().zip(&mut self.cuts).enumerate() {
            if set != before {
                self.maps.cut_sets.write(&(index as u32), set)?;
                *before = *set;
            }
        }
        self.orders.mark = orders.mark;
        self.orders.expires_ns = monotonic_ns() + ORDERS_LAST_NS;
        self.write_orders()
    }

    /// Bytes of kernel memory that all the maps take. Reads a small file for each.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn memory_bytes(&self) -> std::io::Result<u64> {
        let Maps { orders, sketches, flow_sets, cut_sets, counts } = &self.maps;
        [orders, sketches, flow_sets, cut_sets, counts].into_iter().map(Map::memory_bytes).sum()
    }

    /// Result of running the classifier `times` on a frame: no interface is needed, and everything counts.
    ///
    /// # Errors
    /// When the kernel refuses the frame, as one that is shorter than an Ethernet header.
    pub fn try_frame(&self, frame: &[u8], times: u32) -> Result<PacketRun, LoadError> {
        self.program.run(PROGRAM, frame, times)
    }

    /// The most flows that are counted in one interval.
    #[must_use]
    pub const fn flows_max() -> usize {
        limits::LINK_FLOWS
    }

    fn write_orders(&self) -> Result<(), LoadError> {
        self.maps.orders.write(&0u32, &self.orders)
    }
}
