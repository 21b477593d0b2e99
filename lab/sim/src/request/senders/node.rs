//! The overloaded node of a run: ladder, sentry and server, and what it says to its senders.

use super::outcome::NodeBin;
use super::scenario::{LadderModel, Scenario, Transport};
use super::sender::NoMac;
use crate::request::gate::{GateStage, SimulatedRequest};
use crate::request::server::Server;
use crate::request::{ClassModel, Policy};
use flashweir_admission::ladder::{
    LadderGate, LadderInput, LadderPlanner, Scheme, level_us, rungs_of_plan, wait_us,
};
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Instant, Rate};
use flashweir_feedback::{Advertisement, Advertiser, Field, KeyRing, Senders};

/// Between two plans of the derived ladder, and two refreshes on responses.
pub(super) const REFRESH: Duration = Duration::from_millis(100);
/// Time for which a message on a response holds.
const TTL: Duration = Duration::from_secs(2);

/// The node.
#[derive(Debug)]
pub(super) struct Node {
    ladder: LadderModel,
    pub(super) gate: GateStage,
    pub(super) server: Server,
    pub(super) serve_at: Option<Instant>,
    /// The flags by the newest level; none before there are thresholds.
    flags: Option<LadderGate>,
    planner: LadderPlanner,
    pub(super) advertiser: Advertiser<NoMac>,
    arrived: [u64; CLASSES],
    /// Calls that the server had completed at the last plan.
    completed: u64,
    /// Calls that the sentry had refused at the last plan.
    refused: u64,
    /// By which a backlog is a level.
    capacity: Rate,
    bin: Duration,
    pub(super) bins: Vec<NodeBin>,
}

/// Decision of the ladder on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Pass,
    Discard,
}

impl Node {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let model = &scenario.node;
        let policy = model.sentry.clone().map_or(Policy::None, Policy::sentry);
        let class = |rank: usize| ClassModel {
            policy_class: rank as u8,
            ..ClassModel::new(format!("rank {rank}"), model.work)
        };
        let classes: Vec<ClassModel> = (0..scenario.ranks()).map(class).collect();
        let flags = match model.ladder {
            LadderModel::Published { settings, .. } => Some(settings.gate()),
            LadderModel::None | LadderModel::Derived => None,
        };
        let ttl = match scenario.feedback.transport {
            Transport::SoftState { refresh } => 4 * refresh,
            Transport::Edges | Transport::Responses => TTL,
        };
        Self {
            ladder: model.ladder,
            gate: GateStage::new(&policy, &classes, None, scenario.seed),
            server: Server::new(model.server, scenario.bin, scenario.bins()),
            serve_at: None,
            flags,
            planner: LadderPlanner::new(),
            advertiser: Advertiser::new(1, ttl, KeyRing::empty(), Senders::new())
                .expect("a time to live within its range"),
            arrived: [0; CLASSES],
            completed: 0,
            refused: 0,
            capacity: Rate::ZERO,
            bin: scenario.bin,
            bins: vec![NodeBin::default(); scenario.bins()],
        }
    }

    /// Each user request is another client's, as behind gateways that forward their clients' addresses.
    pub(super) fn classify(&self, rank: u8, number: u64) -> SimulatedRequest {
        self.gate.classify(rank.into(), 0, number, 0)
    }

    /// Interval at which the ladder is read; none where there is no ladder.
    pub(super) fn interval(&self, transport: Transport) -> Option<Duration> {
        match (self.ladder, transport) {
            (LadderModel::None, _) => None,
            (LadderModel::Published { poll, .. }, Transport::SoftState { refresh }) => {
                Some(poll.min(refresh))
            }
            (LadderModel::Published { poll, .. }, _) => Some(poll),
            (LadderModel::Derived, _) => Some(REFRESH),
        }
    }

    /// A call arrives. `rank` is that of the user request, `urgency` the rank by which the ladder treats this
    /// call.
    pub(super) fn judge(&mut self, now: Instant, sender: u64, weight: u32, rank: u8, urgency: u8) -> Judged {
        self.arrived[usize::from(rank)] += 1;
        let judged = self.advertiser.hear(now, sender, weight, rank);
        if self.ladder != LadderModel::Derived {
            return Judged::Pass;
        }
        let level = level_us(self.backlog_milli(), self.capacity);
        let Some(flags) = &mut self.flags else { return Judged::Pass };
        flags.observe(level);
        let is_excess = judged.is_over_share && urgency == rank && flags.is_discarding_excess();
        if is_excess || flags.is_discarding(urgency) { Judged::Discard } else { Judged::Pass }
    }

    /// Returns true if the network interface drops connections of this rank.
    pub(super) fn is_dropping(&self, rank: u8) -> bool {
        matches!(self.ladder, LadderModel::Published { .. })
            && self.flags.as_ref().is_some_and(|flags| flags.is_discarding(rank))
    }

    /// The ladder is read: what is asked from now on. Whether that began or ended, for messages that say so.
    pub(super) fn refresh(&mut self, now: Instant) -> bool {
        let before = self.advertiser.asks();
        let asks = match self.ladder {
            LadderModel::None => None,
            LadderModel::Published { .. } => self.read_queue(now),
            LadderModel::Derived => self.plan(now),
        };
        self.advertiser.refresh(now, asks);
        let said = |asks: Option<Advertisement>| asks.map(|asks| (asks.from_rank, asks.severity));
        if let Some(bin) = self.bin_mut(now) {
            bin.advertised_rps = asks.map(|asks| asks.rate.per_second());
        }
        said(before) != said(asks)
    }

    /// The field for a sender, as its response would carry it.
    pub(super) fn field(&mut self, now: Instant, sender: u64) -> Option<Field> {
        let slot = self.advertiser.find(sender)?;
        self.advertiser.field(now, slot, b"")
    }

    pub(super) fn bin_mut(&mut self, now: Instant) -> Option<&mut NodeBin> {
        let bin = now.as_nanos() / (self.bin.as_nanos() as u64).max(1);
        self.bins.get_mut(usize::try_from(bin).unwrap_or(usize::MAX))
    }

    /// The paper's tool reads the queue length.
    fn read_queue(&mut self, now: Instant) -> Option<Advertisement> {
        self.server.advance(now);
        let waiting = self.server.waiting() as u64;
        let flags = self.flags.as_mut()?;
        flags.observe(waiting);
        let from_rank = flags.throttled_from()?;
        // The paper's clients go by the severity; the rate is there for the field.
        Some(Advertisement { from_rank, severity: flags.severity().max(1), rate: Rate::ZERO })
    }

    fn plan(&mut self, now: Instant) -> Option<Advertisement> {
        let backlog_milli = self.backlog_milli();
        let (rungs, capacity_rps, wait_us) = match self.gate.sentry_plan() {
            Some(plan) => (rungs_of_plan(plan), plan.explanation.capacity_rps, wait_us(plan)),
            None => (None, 0.0, 0),
        };
        let arrived = std::mem::take(&mut self.arrived);
        let total = self.server.counts().completed;
        let completed_milli = 1_000 * (total - std::mem::replace(&mut self.completed, total));
        let counts = self.gate.counts();
        let refused = counts.shed;
        let is_refusing = refused > std::mem::replace(&mut self.refused, refused);
        let is_short = is_refusing || counts.held > 0;
        let plan = self.planner.plan(
            now,
            &LadderInput {
                backlog_milli,
                rungs,
                capacity_rps,
                arrived,
                completed_milli,
                wait_us,
                is_short,
                is_refusing,
            },
        );
        self.capacity = plan.capacity;
        match (plan.rungs, &mut self.flags) {
            (None, flags) => *flags = None,
            (Some(rungs), Some(flags)) => flags.set_rungs(rungs),
            (Some(rungs), flags) => *flags = Some(LadderGate::new(Scheme::Combined, rungs, &[])),
        }
        self.gate.obey_ladder(plan.holds.map(|rungs| (rungs, self.capacity)));
        plan.asks.map(|(from_rank, rate)| Advertisement { from_rank, severity: plan.severity, rate })
    }

    /// Work in service and before it: all calls cost the same on average.
    fn backlog_milli(&self) -> u64 {
        let counts = self.gate.counts();
        1_000 * (counts.in_flight() + counts.held)
    }
}
