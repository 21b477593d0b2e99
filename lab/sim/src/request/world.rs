//! Everything there is in a run, and its events.

use super::books::Books;
use super::calm::CalmCheck;
use super::clients::{TimeLimits, Visitor};
use super::event::{Event, Happened};
use super::fault::{FaultKind, Troubles};
use super::gate::{GateStage, LimitTaken, PlanTaken, Refusal, SimulatedRequest, Ticked};
use super::packets::Packets;
use super::server::{Server, Turn};
use super::slab::{Id, Slab};
use super::starvation::Starvation;
use super::{NetworkModel, PacketNetwork, Scenario, ScenarioError};
use crate::engine::{EventHash, Queue, QueueError};
use crate::network::{FlowId, NetworkError};
use flashweir_admission::pipeline::{Delivery, Permit, Ticket};
use flashweir_admission::sentry::Rule;
use flashweir_core::limits::{SIM_PEOPLE, SIM_PLANS};
use flashweir_core::{Duration, Instant, Rng};
use flashweir_workload::Arrival;
use flashweir_workload::schedule::Arrivals;

/// A run that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scenario makes no run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Too many events wait.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Too many packets or connections at once.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Too many people, or tries, at once.
    #[error(
        "more than {SIM_PEOPLE} people or tries at once at {at_s} s: the crowd is too large for this bound"
    )]
    People {
        /// Time, whole seconds.
        at_s: u64,
    },
}

/// Everything there is.
#[derive(Debug)]
pub(super) struct World<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) ends_at: Instant,
    arrivals: Arrivals<'a>,
    pub(super) coming: Option<Arrival>,
    pub(super) queue: Queue<Event>,
    /// From a client to the gate, and back; nothing at the packet level.
    pub(super) one_way_delay: Duration,
    /// The packet level, if there is one, and its description.
    pub(super) packets: Option<(&'a PacketNetwork, Box<Packets>)>,
    pub(super) hash: EventHash,
    pub(super) visitors: Slab<Visitor>,
    /// Visitors with a try under way.
    pub(super) asking: u64,
    pub(super) time_limits: Vec<TimeLimits>,
    pub(super) tries: Slab<Try>,
    pub(super) gate: GateStage,
    pub(super) server: Server,
    /// The earliest pending [`Event::Serve`].
    pub(super) serve_at: Option<Instant>,
    pub(super) troubles: Troubles,
    pub(super) books: Books,
    pub(super) plans: Vec<PlanTaken>,
    pub(super) limits: Vec<LimitTaken>,
    pub(super) plans_left_out: u64,
    /// Each class's generator of work.
    pub(super) work: Vec<Rng>,
    /// Requests of each class that were sent to the server.
    pub(super) sent: Vec<u64>,
    pub(super) starvation: Starvation,
    /// Check of calm periods, where it was asked for.
    pub(super) calm: Option<CalmCheck>,
}

/// A try on its way to the gate, in the service, or on its way back.
#[derive(Debug)]
pub(super) struct Try {
    /// Visitor of the try; a visitor that has given it up is not found by this.
    pub(super) visitor: Id,
    pub(super) asked: SimulatedRequest,
    /// Number of the person; with `request`, the number among their requests, it decides how much work the
    /// request is.
    pub(super) person: u64,
    pub(super) request: u64,
    pub(super) cell: super::books::Cell,
    /// Time at which it reached the gate and, once admitted, at which it was admitted: time in the gate's own
    /// queue says nothing about the service.
    pub(super) sent: Instant,
    /// The server took it in before it was warm.
    pub(super) is_cold: bool,
    /// Its connection, at the packet level.
    pub(super) flow: Option<FlowId>,
    pub(super) state: TryState,
    /// From its admission until its end is reported to the gate.
    pub(super) permit: Option<Permit>,
    /// From then on, if it has a whole answer, until its client has that.
    pub(super) delivery: Option<Delivery>,
}

/// State of a try: where it is on its way to the server and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TryState {
    ToGate,
    Held(Ticket),
    AtServer(Turn),
    /// At a server that works on for a client who has gone.
    Deserted,
    ToClient(Answer),
    /// At the packet level: the server will never answer, and the connection stays until the client gives up.
    Dropped,
    /// At the packet level: the client has its answer, and the last acknowledgement is still to come.
    Answered(Answer),
}

/// Result that a client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Whole,
    Shed(Refusal),
    ServerBusy,
    Broken,
}

impl<'a> World<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, RunError> {
        let (bin, bins) = (scenario.bin, scenario.bins());
        let classes = scenario.classes.len();
        let root = Rng::new(scenario.seed).fork(WORK);
        let mut arrivals = scenario.schedule.arrivals();
        let (one_way_delay, packets) = match &scenario.network {
            NetworkModel::Delay(delay) => (*delay, None),
            NetworkModel::Packets(described) => {
                (Duration::ZERO, Some((&**described, Box::new(Packets::new(described, scenario)?))))
            }
        };
        let mut world = Self {
            scenario,
            ends_at: scenario.ends_at(),
            coming: arrivals.next(),
            arrivals,
            queue: Queue::new(),
            one_way_delay,
            packets,
            hash: EventHash::new(),
            visitors: Slab::with_bound(SIM_PEOPLE),
            asking: 0,
            time_limits: (0..classes).map(|_| TimeLimits::default()).collect(),
            tries: Slab::with_bound(SIM_PEOPLE),
            gate: GateStage::new(
                &scenario.policy,
                &scenario.classes,
                scenario.requests_in_flight,
                scenario.seed,
            ),
            server: Server::new(scenario.server, bin, bins),
            serve_at: None,
            troubles: Troubles::default(),
            books: Books::new(scenario.classes.iter().map(|class| class.good_within), bin, bins),
            plans: Vec::new(),
            limits: Vec::new(),
            plans_left_out: 0,
            work: (0..classes).map(|class| root.fork(class as u64)).collect(),
            sent: vec![0; classes],
            starvation: Starvation::of(scenario),
            calm: None,
        };
        for (fault, index) in scenario.faults.iter().zip(0..) {
            world.queue.schedule(fault.during.start, Event::Fault { index, begins: true })?;
            world.queue.schedule(fault.during.end, Event::Fault { index, begins: false })?;
        }
        if let Some(first) = world.gate.next_tick_at() {
            world.queue.schedule(first, Event::Tick)?;
        }
        world.schedule_packet_level()?;
        world.schedule_coming()?;
        Ok(world)
    }

    /// Returns true if no visitor is present or still to come; planners go on until the end of the schedule.
    pub(super) fn is_over(&self) -> bool {
        let planner_goes_on = self.gate.next_tick_at().is_some_and(|next| next < self.ends_at);
        let packets_go_on = self.packets.as_ref().is_some_and(|(_, packets)| {
            packets.has_bins_to_close() || packets.next_tick_at().is_some_and(|next| next < self.ends_at)
        });
        self.coming.is_none() && self.visitors.len() == 0 && !planner_goes_on && !packets_go_on
    }

    pub(super) fn handle(&mut self, now: Instant, event: Event) -> Result<(), RunError> {
        match event {
            Event::Come => self.come(now)?,
            Event::Ask(visitor) => self.ask(now, visitor)?,
            Event::LosePatience(visitor) => self.lose_patience(now, visitor)?,
            Event::TimeLimit(class) => self.meet_time_limits(now, class)?,
            Event::Arrive(attempt) => self.arrive(now, attempt)?,
            Event::Depart(attempt) => self.depart(now, attempt)?,
            Event::Serve => self.serve(now)?,
            Event::Answer(attempt) => self.answer(now, attempt)?,
            Event::CallWorker(worker) => self.gate.call(now, worker),
            Event::Tick => self.tick(now)?,
            Event::Fault { index, begins } => self.change_fault(now, index, begins)?,
            Event::RouterTick => self.router_tick(now)?,
            Event::CloseBin => self.close_bin(now)?,
        }
        Ok(())
    }

    /// The next person is taken from the schedule.
    pub(super) fn take_coming(&mut self) -> Result<Option<Arrival>, RunError> {
        let come = std::mem::replace(&mut self.coming, self.arrivals.next());
        self.schedule_coming()?;
        Ok(come)
    }

    pub(super) fn happened(&mut self, now: Instant, what: Happened, number: u64) {
        self.hash.fold(now, what as u8, number);
    }

    pub(super) fn too_many(&self) -> RunError {
        RunError::People { at_s: self.now().as_nanos() / 1_000_000_000 }
    }

    fn schedule_coming(&mut self) -> Result<(), RunError> {
        if let Some(next) = self.coming {
            self.queue.schedule(Instant::from_duration(next.moment), Event::Come)?;
        }
        Ok(())
    }

    fn tick(&mut self, now: Instant) -> Result<(), RunError> {
        let Ticked { flash_crowd, sentry } = self.gate.tick(now, self.troubles.lost_feedback());
        if let Some(plan) = flash_crowd {
            let ceiling_milli = plan.explanation.ceiling_rps.map_or(u64::MAX, |rps| (rps * 1e3) as u64);
            self.happened(now, Happened::Planned, ceiling_milli);
            if self.has_room_for_plan() {
                self.plans.push(plan);
            }
        }
        if let Some(taken) = sentry
            && !matches!(taken.plan.explanation.rule, Rule::None | Rule::Quiet)
        {
            self.happened(now, Happened::Planned, taken.plan.limit.into());
            if self.has_room_for_plan() {
                self.limits.push(taken);
            }
        }
        if let Some(next) = self.gate.next_tick_at() {
            self.queue.schedule(next, Event::Tick)?;
        }
        Ok(())
    }

    /// Returns true if one more plan is kept for the report; if not, it is counted.
    fn has_room_for_plan(&mut self) -> bool {
        let has_room = self.plans.len() + self.limits.len() < SIM_PLANS;
        self.plans_left_out += u64::from(!has_room);
        has_room
    }

    fn change_fault(&mut self, now: Instant, index: u16, begins: bool) -> Result<(), RunError> {
        let kind = self.scenario.faults[usize::from(index)].kind;
        self.troubles.change(kind, begins);
        let what = if begins { Happened::FaultBegan } else { Happened::FaultEnded };
        self.happened(now, what, index.into());
        match kind {
            FaultKind::Crash => self.follow_crash(now),
            FaultKind::Slow(_) => {
                self.server.slow_down(now, self.troubles.slowdown());
                self.arm_server()
            }
            FaultKind::Processors(_) => {
                let own = self.scenario.server.processors;
                self.server.change_processors(now, self.troubles.processors().unwrap_or(own));
                self.arm_server()
            }
            FaultKind::LinkCut => {
                let is_cut = self.troubles.link_is_cut();
                if let Some((_, packets)) = &mut self.packets {
                    packets.cut(is_cut);
                }
                Ok(())
            }
            FaultKind::LostFeedback(_) => Ok(()),
        }
    }
}

/// Names the forks that work is drawn from: "work" in ASCII.
const WORK: u64 = 0x776F_726B << 32;
