//! The run: people come, pages go, intervals end.

use super::crowd::Crowd;
use super::outcome::{Bin, People};
use super::server::{Served, Worker};
use super::topology::{self, Topology};
use super::{NewsError, Outcome, Scenario, Server};
use crate::network::{FlowEnd, FlowId, FlowRecord, FlowSettings, Happening, Response};
use crate::router::{GateCounts, Router, Tick};
use flashweir_core::Instant;

/// Simulates a flash crowd to the end of its arrivals.
///
/// About one event in 0.1 to 0.5 µs, and 30 to 100 events for each person. Memory: about 800 bytes for each person who
/// waits, which without a controller may be everybody the bottleneck cannot carry.
///
/// # Errors
/// Settings out of range, or more flows or packets at once than the simulator's bounds.
///
/// # Panics
/// If people or packets are not conserved: an invariant of the simulator, not a result.
pub fn run(scenario: &Scenario) -> Result<Outcome, NewsError> {
    scenario.check()?;
    let crowd = Crowd::new(scenario);
    let mut world = World::new(scenario, &crowd)?;
    let mut arrivals = crowd.arrivals();
    let end = Instant::from_duration(scenario.length());
    let mut coming = arrivals.next();
    if let Some((at, _)) = coming {
        world.topology.network.wake_at(at, ARRIVAL)?;
    }
    while let Some((now, happening)) = world.topology.network.next(&mut world.router, end)? {
        match happening {
            Happening::Woken { token: ARRIVAL } => {
                if let Some((_, person)) = coming {
                    world.open(now, person)?;
                }
                coming = arrivals.next();
                if let Some((at, _)) = coming {
                    world.topology.network.wake_at(at, ARRIVAL)?;
                }
            }
            Happening::Woken { token: TICK } => {
                world.ticks.push(world.router.tick(now));
                world.topology.network.wake_at(now + scenario.router.interval, TICK)?;
            }
            Happening::Woken { .. } => {
                world.close_bin();
                world.topology.network.wake_at(now + Outcome::BIN, BIN)?;
            }
            Happening::RequestReceived { flow, token } => world.request(now, flow, token)?,
            Happening::Ended(record) => world.ended(&record),
        }
    }
    Ok(world.outcome())
}

/// The server that the crowd goes to, and the one beside it.
const TARGET: u64 = 1;
const BYSTANDER: u64 = 5;
/// What wake-ups are for.
const ARRIVAL: u64 = 0;
const TICK: u64 = 1;
const BIN: u64 = 2;
/// The token of the bulk transfer; people have their numbers.
const BULK: u64 = u64::MAX;
/// A request line with its headers, bytes.
const REQUEST_BYTES: u64 = 300;

struct World<'a> {
    scenario: &'a Scenario,
    crowd: &'a Crowd,
    topology: Topology,
    router: Router,
    worker: Worker,
    bulk: Option<FlowId>,
    people: People,
    bin: Bin,
    bins: Vec<Bin>,
    ticks: Vec<Tick>,
    before: Before,
}

/// Counters that only grow, as they were when the bin began.
#[derive(Default)]
struct Before {
    gate: GateCounts,
    response_packets: u64,
    response_packets_lost: u64,
    bulk_bytes: u64,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, crowd: &'a Crowd) -> Result<Self, NewsError> {
        let mut topology = topology::build(scenario)?;
        let mut router = Router::new(&scenario.router, scenario.seed);
        let mut bulk = None;
        if let Some((route, tcp)) = topology.bulk {
            let response = Response::Bytes(u64::MAX);
            let settings = FlowSettings { route, tcp, request_bytes: REQUEST_BYTES, response, token: BULK };
            let flow = topology.network.open(Instant::ZERO, settings)?;
            router.expect(flow, BYSTANDER, false);
            bulk = Some(flow);
        }
        topology.network.wake_at(Instant::from_duration(scenario.first_tick), TICK)?;
        topology.network.wake_at(Instant::ZERO + Outcome::BIN, BIN)?;
        Ok(Self {
            scenario,
            crowd,
            topology,
            router,
            worker: Worker::new(scenario.server),
            bulk,
            people: People::default(),
            bin: Bin::default(),
            bins: Vec::new(),
            ticks: Vec::new(),
            before: Before::default(),
        })
    }

    fn open(&mut self, now: Instant, person: u64) -> Result<(), NewsError> {
        let response = match self.scenario.server {
            Server::Immediate => Response::Bytes(self.crowd.page_bytes(self.scenario, person)),
            Server::FirstComeFirstServed { .. } => Response::Decided,
        };
        let route = self.topology.routes[self.crowd.client(person)];
        let settings = FlowSettings {
            route,
            tcp: self.topology.tcp,
            request_bytes: REQUEST_BYTES,
            response,
            token: person,
        };
        let flow = self.topology.network.open(now, settings)?;
        self.router.expect(flow, TARGET, true);
        if let Some(patience) = self.crowd.patience(person) {
            self.topology.network.abandon(now + patience, flow)?;
        }
        self.people.unique_offered += 1;
        self.people.in_flight += 1;
        self.bin.unique_offered += 1;
        Ok(())
    }

    fn request(&mut self, now: Instant, flow: FlowId, person: u64) -> Result<(), NewsError> {
        let bytes = self.crowd.page_bytes(self.scenario, person);
        match self.worker.request(now, bytes) {
            Served::At(at) => self.topology.network.respond(at, flow, bytes)?,
            Served::Dropped => {
                self.people.dropped_by_server += 1;
                self.topology.network.abandon(now, flow)?
            }
        };
        Ok(())
    }

    fn ended(&mut self, record: &FlowRecord) {
        if record.token == BULK {
            // A transfer without end can only be given up; its bytes so far are in the bins.
            self.bulk = None;
            return;
        }
        self.people.in_flight -= 1;
        match record.end {
            Some(FlowEnd::Completed) => {
                self.people.completed += 1;
                self.bin.completed += 1;
            }
            Some(FlowEnd::NotConnected) => self.people.not_connected += 1,
            Some(FlowEnd::GivenUp) => self.people.given_up += 1,
            Some(FlowEnd::Abandoned) => self.people.abandoned += 1,
            // Holds because only ended flows are told as ended.
            None => unreachable!("a flow ended without an end"),
        }
    }

    fn close_bin(&mut self) {
        let link = self.topology.network.link(self.topology.responses);
        let bulk_record = self.bulk.and_then(|flow| self.topology.network.flow(flow));
        let now = Before {
            gate: self.router.counts(),
            response_packets: link.offered,
            response_packets_lost: link.dropped(),
            bulk_bytes: bulk_record.map_or(self.before.bulk_bytes, |record| record.response_bytes),
        };
        let before = core::mem::replace(&mut self.before, now);
        let now = &self.before;
        self.bin.gate = now.gate.minus(&before.gate);
        self.bin.response_packets = now.response_packets - before.response_packets;
        self.bin.response_packets_lost = now.response_packets_lost - before.response_packets_lost;
        self.bin.bulk_bytes = now.bulk_bytes - before.bulk_bytes;
        self.bins.push(core::mem::take(&mut self.bin));
    }

    fn outcome(self) -> Outcome {
        let network = &self.topology.network;
        if let Err(problem) = network.check() {
            panic!("packets are not conserved: {problem}");
        }
        let gate = self.router.counts();
        assert!(self.people.is_conserved(), "people are not conserved: {:?}", self.people);
        assert_eq!(gate.offered, gate.admitted + gate.shed, "the gate lost a connection: {gate:?}");
        Outcome {
            people: self.people,
            gate,
            bins: self.bins,
            ticks: self.ticks,
            events: network.hash().events(),
            event_hash: network.hash().value(),
        }
    }
}
