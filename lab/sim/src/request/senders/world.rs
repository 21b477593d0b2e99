//! One run with senders: its events and their order.

use super::node::{Judged, Node};
use super::outcome::{SenderOutcome, SendersOutcome};
use super::scenario::{Obedience, Scenario, ScenarioError, SenderModel, Transport};
use super::sender::Sender;
use crate::engine::{EventHash, Queue, QueueError};
use crate::request::gate::{Decided, ReleasedTry, SimulatedRequest};
use crate::request::server::Offered;
use crate::request::slab::{Id, Slab};
use flashweir_admission::gapping::{Decision, Released};
use flashweir_admission::pipeline::{FailureSource, OriginReport, Permit, RequestOutcome};
use flashweir_core::limits::SIM_PEOPLE;
use flashweir_core::{Duration, Instant, Rng};
use flashweir_feedback::Field;

/// A run that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The scenario makes no run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Too many events wait.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// Too many requests or messages at once.
    #[error("more than {SIM_PEOPLE} requests or messages at once: the scenario is too large for this bound")]
    Requests,
}

/// A pending event. Numbers are those of senders, except in `CallWorker`.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A user request arrives at a sender.
    Arrive(u16),
    /// A sender looks after those that wait, and at whether its limit has expired.
    Wake(u16),
    /// A call reaches the node.
    Reach(Id),
    /// The server may have finished a call.
    Serve,
    /// An answer reaches its sender.
    Answer(Id),
    /// A message that goes without an answer, or comes later than one, reaches its sender.
    Message(Id),
    /// The sentry's planner is due.
    Tick,
    /// One of the gate's workers looks after those that wait.
    CallWorker(u16),
    /// The ladder is read.
    Refresh,
    /// All senders look at whether their limits have expired.
    Look,
}

/// A user request under way.
#[derive(Debug)]
struct Request {
    sender: u16,
    rank: u8,
    /// Names it among all.
    number: u64,
    begun: Instant,
    /// Calls that are completed.
    calls_done: u32,
    asked: Option<SimulatedRequest>,
    permit: Option<Permit>,
    /// Its answer, once there is one: whether the call was served.
    is_served: bool,
    connection_tries: u32,
}

/// Feedback on its way.
#[derive(Debug)]
struct Message {
    sender: u16,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Field(Field),
    /// The paper's "on" (a severity) and "off" (0).
    Edge(u8),
}

struct World<'a> {
    scenario: &'a Scenario,
    queue: Queue<Event>,
    hash: EventHash,
    senders: Vec<Sender>,
    node: Node,
    requests: Slab<Request>,
    messages: Slab<Message>,
    numbers: u64,
    work: Rng,
    /// Random source that chooses important requests, and connections to drop.
    choices: Rng,
    fates: Rng,
    outcomes: Vec<SenderOutcome>,
    last_limited: Option<Duration>,
    ends_at: Instant,
}

/// Runs a scenario from its beginning to its end.
///
/// # Errors
/// A scenario that makes no run, or one that meets a bound.
pub fn run(scenario: &Scenario) -> Result<SendersOutcome, RunError> {
    scenario.check()?;
    let mut world = World::new(scenario)?;
    while let Some((now, event)) = world.queue.pop() {
        world.handle(now, event)?;
        world.release_held(now)?;
    }
    debug_assert_eq!(world.requests.len(), 0, "a user request has no end");
    Ok(world.outcome())
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self, RunError> {
        let root = Rng::new(scenario.seed).fork(SENDERS);
        let senders = scenario.senders.iter().zip(0u64..).map(|(model, index)| {
            let mut seeds = root.fork(index);
            Sender::new(model, seeds.next_u64(), seeds.fork(1))
        });
        let mut world = Self {
            scenario,
            queue: Queue::new(),
            hash: EventHash::new(),
            senders: senders.collect(),
            node: Node::new(scenario),
            requests: Slab::with_bound(SIM_PEOPLE),
            messages: Slab::with_bound(SIM_PEOPLE),
            numbers: 0,
            work: root.fork(u64::MAX),
            choices: root.fork(u64::MAX - 1),
            fates: root.fork(u64::MAX - 2),
            outcomes: vec![SenderOutcome::default(); scenario.senders.len()],
            last_limited: None,
            ends_at: Instant::from_duration(scenario.length),
        };
        (0..world.senders.len() as u16).try_for_each(|sender| world.schedule_arrival(sender))?;
        if let Some(first) = world.node.gate.next_tick_at() {
            world.queue.schedule(first, Event::Tick)?;
        }
        if let Some(interval) = world.node.interval(scenario.feedback.transport) {
            world.queue.schedule(Instant::ZERO + interval, Event::Refresh)?;
            world.queue.schedule(Instant::ZERO + LOOK_INTERVAL, Event::Look)?;
        }
        Ok(world)
    }

    fn handle(&mut self, now: Instant, event: Event) -> Result<(), RunError> {
        let (kind, number) = event.for_hash();
        self.hash.fold(now, kind, number);
        match event {
            Event::Arrive(sender) => self.arrive(now, sender),
            Event::Wake(sender) => self.wake(now, sender),
            Event::Reach(request) => self.reach(now, request),
            Event::Serve => self.serve(now),
            Event::Answer(request) => self.answer(now, request),
            Event::Message(message) => self.message(now, message),
            Event::Tick => {
                self.node.gate.tick(now, 0.0);
                self.repeat(self.node.gate.next_tick_at(), Event::Tick)
            }
            Event::CallWorker(worker) => {
                self.node.gate.call(now, worker);
                Ok(())
            }
            Event::Refresh => self.refresh(now),
            Event::Look => {
                (0..self.senders.len() as u16).try_for_each(|sender| self.wake(now, sender))?;
                self.repeat(Some(now + LOOK_INTERVAL), Event::Look)
            }
        }
    }

    fn model(&self, sender: u16) -> &'a SenderModel {
        &self.scenario.senders[usize::from(sender)]
    }

    /// Counts to which a user request that began at this time belongs; none outside the measured time.
    fn outcome_of(&mut self, sender: u16, begun: Instant) -> Option<&mut SenderOutcome> {
        let is_measured = self.scenario.measured.contains(&begun.saturating_since(Instant::ZERO));
        is_measured.then(|| &mut self.outcomes[usize::from(sender)])
    }

    /// Planners go on until the end of the arrivals and of what is under way.
    fn repeat(&mut self, at: Option<Instant>, event: Event) -> Result<(), RunError> {
        match at {
            Some(at) if at < self.ends_at || self.requests.len() > 0 => Ok(self.queue.schedule(at, event)?),
            _ => Ok(()),
        }
    }

    fn schedule_arrival(&mut self, sender: u16) -> Result<(), RunError> {
        let next = self.senders[usize::from(sender)].next_at();
        let model = self.model(sender);
        match next.filter(|&at| at < self.ends_at && model.is_present(at)) {
            Some(at) => Ok(self.queue.schedule(at.max(self.queue.now()), Event::Arrive(sender))?),
            None => Ok(()),
        }
    }

    fn arrive(&mut self, now: Instant, sender: u16) -> Result<(), RunError> {
        let model = self.model(sender);
        let place = &mut self.senders[usize::from(sender)];
        if let Obedience::Stretches(gaps) = model.obedience
            && let Some(level) = usize::from(place.severity(now)).checked_sub(1)
        {
            // The time until the next request of the trace grows by the gap.
            place.behind += gaps[level.min(gaps.len() - 1)];
        }
        place.advance();
        place.observe_offered(now);
        self.schedule_arrival(sender)?;
        let is_important = model.important_share > 0.0 && self.choices.unit_f64() < model.important_share;
        let rank = if is_important { 0 } else { model.rank };
        self.numbers += 1;
        let request = Request {
            sender,
            rank,
            number: self.numbers,
            begun: now,
            calls_done: 0,
            asked: None,
            permit: None,
            is_served: false,
            connection_tries: 0,
        };
        let id = self.requests.insert(request).ok_or(RunError::Requests)?;
        self.outcome_of(sender, now).into_iter().for_each(|outcome| outcome.offered += 1);
        if !matches!(model.obedience, Obedience::Gaps(_)) {
            return self.send(now, id);
        }
        match self.senders[usize::from(sender)].target.arrive(now, rank, id) {
            Decision::Send(id) => self.send(now, id),
            Decision::Refuse(id, _) => self.refuse_here(id),
            Decision::Queued(displaced) => {
                displaced.map_or(Ok(()), |id| self.refuse_here(id))?;
                self.schedule_wake(now, sender)
            }
        }
    }

    fn wake(&mut self, now: Instant, sender: u16) -> Result<(), RunError> {
        let place = &mut self.senders[usize::from(sender)];
        if place.wakes_at.is_some_and(|at| at <= now) {
            place.wakes_at = None;
        }
        place.restrict(now);
        if place.target.restriction().is_some() {
            self.last_limited = Some(now.saturating_since(Instant::ZERO));
        }
        while let Some(released) = self.senders[usize::from(sender)].target.next(now) {
            match released {
                Released::Send(id) => self.send(now, id)?,
                Released::Refuse(id) => self.refuse_here(id)?,
            }
        }
        self.schedule_wake(now, sender)
    }

    fn schedule_wake(&mut self, now: Instant, sender: u16) -> Result<(), RunError> {
        let place = &mut self.senders[usize::from(sender)];
        let Some(at) = place.target.next_wake(now) else { return Ok(()) };
        if place.wakes_at.is_some_and(|pending| pending <= at) {
            return Ok(());
        }
        place.wakes_at = Some(at);
        Ok(self.queue.schedule(at.max(now), Event::Wake(sender))?)
    }

    fn refuse_here(&mut self, id: Id) -> Result<(), RunError> {
        if let Some(Request { sender, begun, .. }) = self.requests.remove(id) {
            self.outcome_of(sender, begun).into_iter().for_each(|outcome| outcome.refused_here += 1);
        }
        Ok(())
    }

    fn send(&mut self, now: Instant, id: Id) -> Result<(), RunError> {
        Ok(self.queue.schedule(now + self.scenario.one_way_delay, Event::Reach(id))?)
    }

    fn reach(&mut self, now: Instant, id: Id) -> Result<(), RunError> {
        let Some(&Request { sender, rank, number, begun, calls_done, .. }) = self.requests.get(id) else {
            return Ok(());
        };
        let model = self.model(sender);
        if self.node.is_dropping(rank)
            && model.dropped_share > 0.0
            && self.choices.unit_f64() < model.dropped_share
        {
            return self.drop_connection(now, id);
        }
        self.node.bin_mut(now).into_iter().for_each(|bin| bin.calls += 1);
        self.outcome_of(sender, begun).into_iter().for_each(|outcome| outcome.calls += 1);
        // Only a sender that charges them to its rate may have its continued calls treated as the most
        // important.
        let is_continued = calls_done > 0 && matches!(model.obedience, Obedience::Gaps(_));
        let urgency = if is_continued { 0 } else { rank };
        if self.node.judge(now, sender.into(), model.weight, rank, urgency) == Judged::Discard {
            self.node.bin_mut(now).into_iter().for_each(|bin| bin.discarded += 1);
            return self.refuse_at_node(now, id);
        }
        let asked = self.node.classify(urgency, number);
        if let Some(request) = self.requests.get_mut(id) {
            request.asked = Some(asked);
        }
        match self.node.gate.decide(now, id, &asked) {
            Decided::Admitted(permit) => self.admit(now, id, permit),
            Decided::Refused(_) => self.refuse_at_node(now, id),
            Decided::Held(_) => Ok(()),
            Decided::HeldInsteadOf(_, other, _) => self.refuse_at_node(now, other),
        }
    }

    /// The network interface drops the connection; the client's kernel tries again.
    fn drop_connection(&mut self, now: Instant, id: Id) -> Result<(), RunError> {
        let Some(request) = self.requests.get_mut(id) else { return Ok(()) };
        let tries = request.connection_tries;
        request.connection_tries += 1;
        let (sender, begun) = (request.sender, request.begun);
        if tries < self.model(sender).connection_retries {
            let again = now + FIRST_RETRY * (1 << tries.min(10));
            return Ok(self.queue.schedule(again, Event::Reach(id))?);
        }
        self.requests.remove(id);
        self.outcome_of(sender, begun).into_iter().for_each(|outcome| outcome.dropped += 1);
        Ok(())
    }

    fn admit(&mut self, now: Instant, id: Id, permit: Permit) -> Result<(), RunError> {
        let Some(request) = self.requests.get_mut(id) else { return Ok(()) };
        request.permit = Some(permit);
        let draws = self.work.fork(request.number).fork(request.calls_done.into());
        let work = self.scenario.node.work.draw(|| draws, || 0);
        match self.node.server.offer(now, id, work) {
            Offered::Accepted(_) => self.arm_server(),
            Offered::Refused(at) => {
                self.finish(now, id, RequestOutcome::Failed(FailureSource::Origin));
                self.refuse_at_node(at, id)
            }
            Offered::Dropped | Offered::Reset => {
                self.finish(now, id, RequestOutcome::Failed(FailureSource::Origin));
                self.refuse_at_node(now, id)
            }
        }
    }

    fn finish(&mut self, now: Instant, id: Id, outcome: RequestOutcome) {
        let Some(request) = self.requests.get_mut(id) else { return };
        if let (Some(asked), Some(permit)) = (request.asked, request.permit.take()) {
            let delivery = self.node.gate.finish(now, &asked, permit, outcome);
            self.node.gate.deliver(&asked, delivery, true);
        }
    }

    fn refuse_at_node(&mut self, at: Instant, id: Id) -> Result<(), RunError> {
        self.node.bin_mut(at).into_iter().for_each(|bin| bin.refused += 1);
        self.send_answer(at, id, false)
    }

    fn serve(&mut self, now: Instant) -> Result<(), RunError> {
        if self.node.serve_at == Some(now) {
            self.node.serve_at = None;
        }
        while let Some(id) = self.node.server.finish_next(now) {
            self.finish(now, id, RequestOutcome::Completed(OriginReport::default()));
            self.send_answer(now, id, true)?;
        }
        self.arm_server()
    }

    fn arm_server(&mut self) -> Result<(), RunError> {
        let Some(done_at) = self.node.server.next_done_at() else { return Ok(()) };
        if self.node.serve_at.is_some_and(|serve_at| serve_at <= done_at) {
            return Ok(());
        }
        self.node.serve_at = Some(done_at);
        Ok(self.queue.schedule(done_at, Event::Serve)?)
    }

    /// Admits or refuses the queued calls that the sentry releases.
    fn release_held(&mut self, now: Instant) -> Result<(), RunError> {
        while let Some(released) = self.node.gate.release(now) {
            match released {
                ReleasedTry::Admitted(id, permit) => self.admit(now, id, permit)?,
                ReleasedTry::Refused(id, _) => self.refuse_at_node(now, id)?,
            }
        }
        while let Some((at, worker)) = self.node.gate.next_call(now) {
            self.queue.schedule(at, Event::CallWorker(worker))?;
        }
        Ok(())
    }

    /// An answer sets out, with the field if there is one.
    fn send_answer(&mut self, at: Instant, id: Id, is_served: bool) -> Result<(), RunError> {
        let Some(request) = self.requests.get_mut(id) else { return Ok(()) };
        request.is_served = is_served;
        let sender = request.sender;
        let arrives = at + self.scenario.one_way_delay;
        if self.scenario.feedback.transport == Transport::Responses
            && let Some(field) = self.node.field(self.queue.now(), sender.into())
        {
            self.post(arrives, Message { sender, content: Content::Field(field) })?;
        }
        Ok(self.queue.schedule(arrives, Event::Answer(id))?)
    }

    fn answer(&mut self, now: Instant, id: Id) -> Result<(), RunError> {
        let Some(request) = self.requests.get_mut(id) else { return Ok(()) };
        let (sender, begun, is_served) = (request.sender, request.begun, request.is_served);
        request.calls_done += u32::from(is_served);
        let model = &self.scenario.senders[usize::from(sender)];
        let goes_on = is_served && request.calls_done < model.calls;
        if is_served && let Some(outcome) = self.outcome_of(sender, begun) {
            outcome.served += 1;
        }
        if goes_on {
            if matches!(model.obedience, Obedience::Gaps(_)) {
                self.senders[usize::from(sender)].target.arrive_continued(now);
            }
            return self.send(now, id);
        }
        self.requests.remove(id);
        let (target, taken) = (self.scenario.target, now.saturating_since(begun));
        if let Some(outcome) = self.outcome_of(sender, begun) {
            if is_served {
                outcome.completed += 1;
                outcome.good += u64::from(taken <= target);
                outcome.response_us.record(taken.as_micros() as u64);
                outcome.response_sum_s += taken.as_secs_f64();
            } else {
                outcome.refused_at_node += 1;
            }
        }
        Ok(())
    }

    fn refresh(&mut self, now: Instant) -> Result<(), RunError> {
        let has_changed = self.node.refresh(now);
        let transport = self.scenario.feedback.transport;
        if transport == Transport::Responses || (transport == Transport::Edges && !has_changed) {
            return self.repeat(self.node.interval(transport).map(|it| now + it), Event::Refresh);
        }
        let severity = self.node.advertiser.asks().map_or(0, |asks| asks.severity);
        let from_rank = self.node.advertiser.asks().map_or(0, |asks| asks.from_rank);
        for sender in 0..self.senders.len() as u16 {
            let model = self.model(sender);
            if model.obedience == Obedience::Ignores {
                continue;
            }
            // Nothing is asked of a sender of a more important rank.
            let severity = if model.rank >= from_rank { severity } else { 0 };
            let content = match transport {
                Transport::Edges => Some(Content::Edge(severity)),
                _ => self
                    .node
                    .field(now, sender.into())
                    .filter(|_| model.rank >= from_rank)
                    .map(Content::Field),
            };
            if let Some(content) = content {
                self.post(now + self.scenario.one_way_delay, Message { sender, content })?;
            }
        }
        self.repeat(self.node.interval(transport).map(|it| now + it), Event::Refresh)
    }

    /// A message sets out, gets lost or comes late.
    fn post(&mut self, arrives: Instant, message: Message) -> Result<(), RunError> {
        let feedback = &self.scenario.feedback;
        if feedback.lost_share > 0.0 && self.fates.unit_f64() < feedback.lost_share {
            return Ok(());
        }
        let is_late = feedback.late_share > 0.0 && self.fates.unit_f64() < feedback.late_share;
        let late = if is_late { self.fates.below(feedback.late_by.as_nanos() as u64) } else { 0 };
        let id = self.messages.insert(message).ok_or(RunError::Requests)?;
        Ok(self.queue.schedule(arrives + Duration::from_nanos(late), Event::Message(id))?)
    }

    fn message(&mut self, now: Instant, id: Id) -> Result<(), RunError> {
        let Some(Message { sender, content }) = self.messages.remove(id) else { return Ok(()) };
        if self.model(sender).obedience == Obedience::Ignores {
            return Ok(());
        }
        let place = &mut self.senders[usize::from(sender)];
        match content {
            Content::Edge(severity) => {
                place.edge_severity = severity;
                Ok(())
            }
            Content::Field(field) => {
                let offered = place.offered(now);
                let taken = place.intake.take(now, field.as_bytes(), || offered);
                debug_assert!(taken.is_ok(), "the node's own field is refused: {taken:?}");
                self.wake(now, sender)
            }
        }
    }

    fn outcome(mut self) -> SendersOutcome {
        let now = self.queue.now();
        self.node.server.advance(now);
        SendersOutcome {
            senders: self.outcomes,
            node: self.node.bins,
            levels: self.node.server.into_levels(),
            event_hash: self.hash.value(),
            last_limited: self.last_limited,
        }
    }
}

impl Event {
    /// Its kind, by a fixed number, and what it is about.
    fn for_hash(self) -> (u8, u64) {
        match self {
            Self::Arrive(sender) => (1, sender.into()),
            Self::Wake(sender) => (2, sender.into()),
            Self::Reach(id) => (3, id.number()),
            Self::Serve => (4, 0),
            Self::Answer(id) => (5, id.number()),
            Self::Message(id) => (6, id.number()),
            Self::Tick => (7, 0),
            Self::CallWorker(worker) => (8, worker.into()),
            Self::Refresh => (9, 0),
            Self::Look => (10, 0),
        }
    }
}

/// Interval at which a sender checks if its limit has expired.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// A dropped connection is tried again after this time, then after twice as long each time (§4.2).
const FIRST_RETRY: Duration = Duration::from_millis(1_500);
/// Names the forks of the seed: "send" in ASCII.
const SENDERS: u64 = 0x7365_6E64 << 32;
