//! A gate in the kernel: refuses new connections before the TCP stack hears of them.
//!
//! The program (`bpf/gate.bpf.c`) judges every new connection of the protected services by the plan it was
//! given last; user space makes plans, reads counters, and says at least every second that it lives
//! ([`KernelGate::beat`]). If it does not for three seconds the gate lets everything in. When the process
//! ends, however it ends, the kernel detaches the program and forgets it; but for a gate that was pinned,
//! which stands until another process takes it over or its pin is removed.
//!
//! ```no_run
//! use flashweir_core::{Duration, Rate};
//! use flashweir_kernel::gate::{
//!     Ceiling, ExcessTreatment, Hook, KernelGate, Page, Service, ServicePlan, Tiers,
//! };
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut gate = KernelGate::load()?;
//! let endpoints = vec!["192.0.2.80:80".parse()?];
//! gate.set_services(vec![Service { endpoints, speaks_tls: false, page: Page::default() }])?;
//! let _attached = gate.attach("eth0", Hook::Auto)?;
//! // A hundred new connections a second; clients beyond are asked to return in 5 to 10 seconds.
//! gate.apply(&[ServicePlan {
//!     tiers: Tiers::one(Ceiling { rate: Rate::from_per_second(100.0), burst: 25 }),
//!     refusal: ExcessTreatment::Answer,
//!     retry_after: Duration::from_secs(5),
//!     ..ServicePlan::default()
//! }])?;
//! gate.beat()?;
//! # Ok(())
//! # }
//! ```

mod abi;
mod attach;
mod ceiling;
mod counters;
mod hook;
mod maps;
mod occupant;
mod page;
mod pin;
mod pin_directory;
mod plan;
#[cfg(test)]
mod tests;
mod tiers;

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use flashweir_core::kernel_counts::GateCounts;
use flashweir_core::{Duration, Reason, limits};
use libbpf_rs::MapHandle;
use maps::Maps;

pub use attach::{AttachError, Attachment};
pub use ceiling::Ceiling;
pub use counters::Passed;
pub use hook::{Declined, Hook};
pub use occupant::Occupant;
pub use page::{Page, PageError};
pub use pin::PinError;
pub use pin_directory::PinDirectory;
pub use plan::{ExcessTreatment, Service, ServicePlan};
pub use tiers::{Ranks, TIERS, Tiers};

use crate::clock::{monotonic_ns, random_key};
use crate::plain::{Address, Endpoint, bytes_of};
use crate::program::{LoadError, PacketRun, Program};
use abi::{Control, Network};

/// The programs of `bpf/gate.bpf.c`, as clang left them.
static COMPILED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gate.o"));

/// The program's name in the kernel, as `ip link` and others show it.
const PROGRAM: &str = "flashweir_gate";
/// The map that says whose clock a gate goes by. It belongs to the program; no gate takes over another's.
const CLOCK: &str = ".rodata.clock";

/// The plan of a gate that has been open for this time for want of a sign of life is not taken up again.
const PLAN_LIFE_NS: u64 = 60_000_000_000;
/// A key makes sequence numbers for this time and is honoured for as long again: longer than any handshake
/// takes.
const KEY_LIFE_NS: u64 = 64_000_000_000;

/// The gate's programs and maps in the kernel. Dropping it leaves attached programs running until their
/// [`Attachment`] is dropped too.
#[derive(Debug)]
pub struct KernelGate {
    program: Program,
    maps: Maps,
    control: Control,
    key_since_ns: u64,
    services: Vec<Service>,
    ranks: Ranks,
    /// Retry-After and reason in the present answers of each service.
    answers: Vec<Option<(Duration, Reason)>>,
    time_is_told: bool,
    took_over: bool,
    may_inherit: bool,
    inherited: Option<Vec<Tiers>>,
}

/// Error in an order to the gate.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The kernel's side.
    #[error(transparent)]
    Kernel(#[from] LoadError),
    /// More than there is room for.
    #[error("{what}: {count} are more than the kernel's table holds, {most}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// Number given.
        count: usize,
        /// Maximum accepted.
        most: usize,
    },
    /// A plan for other services than there are.
    #[error("a plan for {plans} services, where there are {services}")]
    OtherServices {
        /// Number of parts in the plan.
        plans: usize,
        /// Number of services.
        services: usize,
    },
    /// A plan that charges connections to a service that is none.
    #[error("connections charged to service {charged_to}, where there are {services}")]
    ChargedToNone {
        /// The place named.
        charged_to: usize,
        /// Number of services.
        services: usize,
    },
    /// A network that cannot be.
    #[error("a network {0} bits long")]
    Network(u8),
    /// A rank that no plan has.
    #[error("rank {0}, where the least important is {last}", last = TIERS - 1)]
    Rank(u8),
    /// A mark that no packet has.
    #[error("mark {0}, where the highest is {last}", last = abi::MARKS - 1)]
    Mark(u8),
}

impl KernelGate {
    /// Loads the gate; it judges nothing until it is attached. Takes some 200 ms, most of it the kernel's
    /// checks.
    ///
    /// # Errors
    /// When this process may not, or this kernel cannot.
    pub fn load() -> Result<Self, LoadError> {
        Self::load_over(&[], false)
    }

    /// As [`KernelGate::load`], over what the gate pinned at `pin` knows, if there is one: its buckets,
    /// counters, keys, purged sources and preferred networks go on, and so does whether it fails closed. Its
    /// plan stays in force until the first [`KernelGate::apply`] if [`KernelGate::set_services`] gets the
    /// same services ([`KernelGate::inherited`]), unless the gate has been open for want of a sign of life,
    /// and that for long: such a plan is out of date. A gate of another layout is replaced without all that
    /// ([`KernelGate::took_over`] says which).
    ///
    /// The process before must not tell the gate anything any more ([`Attachment::hand_over`]). It takes
    /// root: finding a program's maps needs CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// As there, and when something else is pinned there.
    pub fn load_pinned(pin: &Path) -> Result<Self, PinError> {
        let before = pin::open(pin)?.map(|pinned| pin::maps_of(&pinned)).transpose()?;
        Ok(Self::load_over(&before.unwrap_or_default(), false)?)
    }

    /// `time_is_told` makes the program read the time from its map. Only tests may: with it a mistake here
    /// would stop time in a gate that protects something.
    fn load_over(before: &[MapHandle], time_is_told: bool) -> Result<Self, LoadError> {
        let mut took_over = false;
        let program = Program::load(COMPILED, |object| {
            let mut constant = object.maps_mut().find(|map| map.name() == CLOCK);
            let clock = constant.as_mut().and_then(|map| map.initial_value_mut());
            clock.ok_or(LoadError::Missing("clock"))?.copy_from_slice(bytes_of(&u32::from(time_is_told)));
            took_over = pin::inherit(object, before)?;
            Ok(())
        })?;
        let maps = Maps::of(&program)?;
        let control: Control = if took_over { maps.control.read(&0u32)? } else { Control::with_keys()? };
        let mut gate = Self {
            program,
            maps,
            control,
            key_since_ns: 0,
            services: Vec::new(),
            ranks: Ranks::default(),
            answers: Vec::new(),
            time_is_told,
            took_over,
            may_inherit: took_over,
            inherited: None,
        };
        if took_over {
            let silence_ns = gate.now_ns().saturating_sub(control.beat_ns);
            gate.may_inherit = control.flags & abi::CONTROL_FAIL_CLOSED != 0 || silence_ns < PLAN_LIFE_NS;
            // The key's age is unknown; renewed now, it would take the one before from handshakes under way.
            gate.key_since_ns = gate.now_ns();
        }
        gate.beat()?;
        Ok(gate)
    }

    /// Returns whether buckets, counters and keys are those of the gate before ([`KernelGate::load_pinned`]).
    #[must_use]
    pub fn took_over(&self) -> bool {
        self.took_over
    }

    /// The ceilings on all clients at each service, while the plan of the gate before is still in force: from
    /// [`KernelGate::set_services`] to the first [`KernelGate::apply`].
    #[must_use]
    pub fn inherited(&self) -> Option<&[Tiers]> {
        self.inherited.as_deref()
    }

    /// Says which services are protected, in place of those before; each starts with the plan that refuses
    /// nothing. Services keep their counters by their place. After [`KernelGate::rank`]: other ranks of ports
    /// are other services to a plan that is to be taken over.
    ///
    /// # Errors
    /// When there are too many, or the kernel does not take them.
    pub fn set_services(&mut self, services: Vec<Service>) -> Result<(), GateError> {
        let endpoints: usize = services.iter().map(|service| service.endpoints.len()).sum();
        check_count("services", services.len(), abi::SERVICES)?;
        check_count("endpoints of services", endpoints, limits::KERNEL_ENDPOINTS)?;
        self.answers = vec![None; services.len()];
        self.services = services;
        let endpoints = self.endpoints();
        if std::mem::take(&mut self.may_inherit) && self.maps.endpoints.holds(&endpoints)? {
            let plans = (0..self.services.len() as u32).map(|index| self.maps.plans.read(&index));
            let tiers = plans.map(|plan: Result<abi::Plan, _>| Ok(Tiers::of_kernel(&plan?.tiers)));
            self.inherited = Some(tiers.collect::<Result<_, LoadError>>()?);
            return Ok(());
        }
        self.apply(&vec![ServicePlan::default(); self.services.len()])?;
        Ok(self.maps.endpoints.replace(&endpoints)?)
    }

    /// Puts a plan into force, one part for each service in the order they were given. From the moment it is
    /// called, the tokens earned until then count at the old rates; a service that had no ceiling starts with
    /// an empty bucket. About 10 µs, and as much for each service whose `Retry-After` or reason changes.
    ///
    /// # Errors
    /// When it is for other services, charges to one there is not, or the kernel does not take it.
    pub fn apply(&mut self, plans: &[ServicePlan]) -> Result<(), GateError> {
        if plans.len() != self.services.len() {
            return Err(GateError::OtherServices { plans: plans.len(), services: self.services.len() });
        }
        let services = self.services.len();
        if let Some(charged_to) = plans.iter().filter_map(|plan| plan.charged_to).find(|at| *at >= services) {
            return Err(GateError::ChargedToNone { charged_to, services });
        }
        let at_ns = self.now_ns();
        for (index, plan) in plans.iter().enumerate() {
            let service = &self.services[index];
            let says = Some((plan.retry_after, plan.reason));
            if plan.refusal == ExcessTreatment::Answer && self.answers[index] != says {
                for (variant, answer) in
                    service.page.answers(plan.retry_after, plan.reason).iter().enumerate()
                {
                    self.maps.answers.write(&((index * abi::ANSWER_VARIANTS + variant) as u32), answer)?;
                }
                self.answers[index] = says;
            }
            self.maps.plans.write(&(index as u32), &plan.in_kernel(index, at_ns, service.speaks_tls))?;
        }
        self.program.run("apply_plans", &[0; EMPTY_FRAME_BYTES], 1)?;
        self.inherited = None;
        self.control.generation += 1;
        Ok(self.write_control()?)
    }

    /// Says that user space lives, and changes the key of answers when it is old enough. Call it every
    /// second; after three without it the gate lets everything in.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn beat(&mut self) -> Result<(), LoadError> {
        let now_ns = self.now_ns();
        if now_ns.saturating_sub(self.key_since_ns) >= KEY_LIFE_NS {
            let next = 1 - self.control.key_index;
            self.control.answer_keys[next as usize] = random_key()?;
            // First the key, then its use: no SYN is answered with half a key.
            self.write_control()?;
            self.control.key_index = next;
            self.key_since_ns = now_ns;
        }
        self.control.beat_ns = now_ns;
        self.write_control()
    }

    /// Chooses whether the gate goes on judging when user space falls silent. By default it lets everything
    /// in.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn fail_closed(&mut self, closed: bool) -> Result<(), LoadError> {
        self.set_flag(abi::CONTROL_FAIL_CLOSED, closed)
    }

    /// Says which networks (an address and its first bits) are charged to the bucket of preferred ones, in
    /// place of those before.
    ///
    /// # Errors
    /// When there are too many, one is impossible, or the kernel does not take them.
    pub fn prefer(&mut self, networks: &[(IpAddr, u8)]) -> Result<(), GateError> {
        check_count("preferred networks", networks.len(), limits::KERNEL_PREFERRED_NETWORKS)?;
        let entries = networks.iter().map(|&(address, bits)| network(address, bits, 0));
        self.maps.preferred.replace(&entries.collect::<Result<Vec<_>, _>>()?)?;
        Ok(self.set_flag(abi::CONTROL_PREFERS, !networks.is_empty())?)
    }

    /// Says which new connections have which rank, in place of what was said before; preferred networks have
    /// none.
    ///
    /// # Errors
    /// When there are too many networks or ports, one is impossible, or the kernel does not take them.
    pub fn rank(&mut self, ranks: Ranks) -> Result<(), GateError> {
        check_count("networks with a rank", ranks.networks.len(), limits::KERNEL_TIER_NETWORKS)?;
        check_count("ports with a rank", ranks.ports.len(), limits::KERNEL_TIER_PORTS)?;
        ranks.check()?;
        let entries = ranks.networks.iter().map(|&(address, bits, rank)| network(address, bits, rank));
        self.maps.tier_networks.replace(&entries.collect::<Result<Vec<_>, _>>()?)?;
        self.control.mark_ranks = ranks.by_mark();
        self.control.default_rank = ranks.default_rank.into();
        self.set_flag(abi::CONTROL_RANKS_NETWORKS, !ranks.networks.is_empty())?;
        self.ranks = ranks;
        // Before there are services the table may be that of the gate before, and stays.
        if !self.services.is_empty() {
            self.maps.endpoints.replace(&self.endpoints())?;
        }
        Ok(())
    }

    /// Drops new connections of `source`, of IPv6 its /64, for the time `during`, wherever the plan refuses
    /// anything ([`ExcessTreatment::Pass`] does not). Where the table is full, the source longest without
    /// traffic goes.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn purge(&mut self, source: IpAddr, during: Duration) -> Result<(), LoadError> {
        let during_ns = u64::try_from(during.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = self.now_ns().saturating_add(during_ns);
        self.maps.purged.write(&Address::from(source).subscriber(), &until_ns)?;
        self.set_flag(abi::CONTROL_PURGES, true)
    }

    /// Judges new connections of `source` as those of any other again; nothing where it was not purged.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn pardon(&mut self, source: IpAddr) -> Result<(), LoadError> {
        self.maps.purged.remove(&Address::from(source).subscriber())
    }

    /// The same for every source that is purged, those included that a gate taken over has left.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn pardon_all(&mut self) -> Result<(), LoadError> {
        self.maps.purged.replace::<Address, u64>(&[])
    }

    /// Counts of each service, in the order they were given. About a microsecond for each.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn counters(&self) -> Result<Vec<GateCounts>, LoadError> {
        (0..self.services.len() as u32)
            .map(|index| Ok(counters::sum(self.maps.counts.of_processors(&index)?.into_iter())))
            .collect()
    }

    /// Frames that went on unjudged, by reason.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn passed(&self) -> Result<[(Passed, u64); 7], LoadError> {
        let mut passed = Passed::ALL.map(|reason| (reason, 0));
        for (index, (_, count)) in passed.iter_mut().enumerate() {
            *count = self.maps.passes.of_processors::<u64>(&(index as u32))?.into_iter().sum();
        }
        Ok(passed)
    }

    /// Counts plans put into force.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.control.generation
    }

    /// Puts the gate before an interface of this network namespace.
    ///
    /// # Errors
    /// When there is no such interface, or it does not take the program.
    pub fn attach(&self, interface: &str, hook: Hook) -> Result<Attachment, AttachError> {
        attach::attach(&self.program.descriptor(PROGRAM)?, interface, hook)
    }

    /// As [`KernelGate::attach`], pinned at `pin`, a file in a BPF file system: the gate stands when this
    /// process is killed or hands it over, and goes when the attachment is dropped. If a gate is pinned
    /// there, before the same interface, this one takes its place in one step: no packet meets neither.
    ///
    /// # Errors
    /// As there, and when the pin cannot be made or belongs to another program.
    pub fn attach_pinned(&self, interface: &str, hook: Hook, pin: &Path) -> Result<Attachment, AttachError> {
        attach::attach_pinned(&self.program.descriptor(PROGRAM)?, interface, hook, pin)
    }

    /// Result of running the gate `times` on a frame: no interface is needed, and the counters count it. What
    /// one run changes in a packet stays changed for the next, so only a packet that passes or is dropped can
    /// be run often.
    ///
    /// # Errors
    /// When the kernel refuses the frame, as one that is shorter than an Ethernet header.
    pub fn try_frame(&self, frame: &[u8], times: u32) -> Result<PacketRun, LoadError> {
        self.program.run(PROGRAM, frame, times)
    }

    /// Endpoints of the services, with each one's place and the rank of its port.
    fn endpoints(&self) -> Vec<(Endpoint, u32)> {
        let of_service = |(service, index): (&Service, u32)| -> Vec<_> {
            let value = |at: &SocketAddr| abi::place(index, self.ranks.of_port(at.port()));
            service.endpoints.iter().map(|at| (Endpoint::from(*at), value(at))).collect()
        };
        self.services.iter().zip(0..).flat_map(of_service).collect()
    }

    fn now_ns(&self) -> u64 {
        if self.time_is_told { self.control.test_now_ns } else { monotonic_ns() }
    }

    fn set_flag(&mut self, flag: u32, set: bool) -> Result<(), LoadError> {
        self.control.flags = if set { self.control.flags | flag } else { self.control.flags & !flag };
        self.write_control()
    }

    fn write_control(&self) -> Result<(), LoadError> {
        self.maps.control.write(&0u32, &self.control)
    }
}

/// Ethernet's header: the shortest frame that a program is run on.
const EMPTY_FRAME_BYTES: usize = 14;

impl Control {
    fn with_keys() -> Result<Self, LoadError> {
        let answer_keys = [random_key()?, random_key()?];
        Ok(Self { answer_keys, attempts_key: random_key()?, ..Self::default() })
    }
}

fn network(address: IpAddr, bits: u8, rank: u8) -> Result<(Network, u32), GateError> {
    let longest = if address.is_ipv4() { 32 } else { 128 };
    if bits > longest { Err(GateError::Network(bits)) } else { Ok(Network::of(address, bits, rank)) }
}

fn check_count(what: &'static str, count: usize, most: usize) -> Result<(), GateError> {
    if count > most { Err(GateError::TooMany { what, count, most }) } else { Ok(()) }
}
