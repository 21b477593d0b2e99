//! Gates on one count, driven as a shell drives them, and a ledger of our own beside them.

use flashweir_admission::sentry::{
    Arrived, ClassCounts, ClassPlan, ClassPolicy, Common, Costs, Decide, Ending, Permit, Plan, Policy,
    Position, Released, SentryGate, SentryPlanner, SentryRequest, Ticket,
};
use flashweir_admission::token_bucket::TokenBucket;
use flashweir_core::{Duration, Instant, Rate, Reason};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Arrive {
        gate: usize,
        class: u8,
        client: u64,
        url: u32,
    },
    /// And whether the gates are asked at once, or only with the next event: wake-ups take their time.
    End(usize, bool),
    Leave(usize),
    Wait(u64),
    Limit(u32),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let arrive = (0usize..4, 0u8..6, 0u64..5, 0u32..4).prop_map(|(gate, class, client, url)| Step::Arrive {
        gate,
        class,
        client,
        url,
    });
    let step = prop_oneof![
        8 => arrive,
        4 => (0usize..100, any::<bool>()).prop_map(|(which, at_once)| Step::End(which, at_once)),
        1 => (0usize..100).prop_map(Step::Leave),
        2 => (0u64..120).prop_map(Step::Wait),
        1 => (1u32..12).prop_map(Step::Limit),
    ];
    vec(step, 1..250)
}

/// Classes of ranks 0, 0, 1, 2: each later rank has one place less; what is guaranteed is a divisor of a
/// second.
const RANKS: [u8; 4] = [0, 0, 1, 2];

pub(crate) fn plan(epoch: u64, decide: Decide, limit: u32, guaranteed: [u64; 4]) -> Plan {
    let policy =
        Policy { classes: vec![ClassPolicy::default(); 4], ..Policy::single(Duration::from_secs(1)) };
    let mut plan = SentryPlanner::new(Arc::new(policy)).current().clone();
    for (index, class) in plan.classes.iter_mut().enumerate() {
        *class = ClassPlan {
            rank: RANKS[index],
            limit: limit.saturating_sub(RANKS[index].into()).max(1),
            hold_len: 3 + index as u32,
            hold_for: Duration::from_millis(200 + 50 * index as u64),
            newest_first_after: Duration::from_millis(100),
            target: Duration::from_millis(400),
            delay: Duration::from_millis(30 * u64::from(RANKS[index])),
            admit_share: [u32::MAX, u32::MAX, 1 << 31, 0][index],
            guaranteed_rate: Rate::from_milli(guaranteed[index] * 1_000),
            ..*class
        };
    }
    let by_url_class_us = (0..1_024).map(|url| 20_000 * (url % 4)).collect();
    let costs = Arc::new(Costs { by_url_class_us, by_class_us: vec![0; 4], usual_us: 5_000 });
    Plan { epoch, limit, decide, costs, knee_milli: 3_000, ..plan }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    gate: usize,
    class: usize,
    position: Position,
    since: Instant,
    ticket: Ticket,
}

/// Everybody's whereabouts, kept beside the gates.
pub(crate) struct World {
    pub(crate) now: Instant,
    plan: Plan,
    pub(crate) gates: Vec<SentryGate<u64>>,
    pub(crate) held: BTreeMap<u64, Held>,
    in_flight: Vec<(usize, Permit, Position)>,
    /// By gate: completed since the last drain, but for clients over their share.
    judged: Vec<u64>,
    guaranteed: Vec<TokenBucket>,
    /// In flight beyond the limit, at most: those let in because it was guaranteed.
    beyond: u32,
    pub(crate) requests: u64,
    pub(crate) in_flight_nanos: u64,
    /// The most important that was refused for capacity since anything changed that could make room.
    refused_rank: Option<u8>,
    sums: Vec<ClassCounts>,
    sample_nanos: u64,
    /// Every gate that was named was asked since the last request went.
    is_settled: bool,
}

impl World {
    pub(crate) fn new(gates: usize, plan: Plan) -> Self {
        let common = Arc::new(Common::new(gates));
        let policy = Policy::single(Duration::from_secs(1));
        let now = Instant::from_secs(1);
        let bucket = |class: &ClassPlan| {
            TokenBucket::full(now, class.guaranteed_rate, class.guaranteed_rate.as_milli() / 1_000)
        };
        let mut world = Self {
            now,
            gates: (0..gates).map(|index| SentryGate::new(common.clone(), index, &policy, &plan)).collect(),
            held: BTreeMap::new(),
            in_flight: Vec::new(),
            judged: vec![0; gates],
            guaranteed: plan.classes.iter().map(bucket).collect(),
            beyond: 0,
            requests: 0,
            in_flight_nanos: 0,
            refused_rank: None,
            sums: vec![ClassCounts::default(); 4],
            sample_nanos: 0,
            is_settled: true,
            plan,
        };
        world.gates.iter_mut().for_each(|gate| _ = gate.drain(now));
        world
    }

    fn limit_for(&self, class: usize, position: Position) -> u32 {
        let classes = self.plan.classes.iter().map(|class| class.limit);
        match position == Position::OverShare {
            true => classes.fold(self.plan.knee_milli as u32 / 1_000, u32::min),
            false => self.plan.classes[class].limit,
        }
    }

    fn is_reservation(&self) -> bool {
        self.plan.decide == Decide::Reservation
    }

    pub(crate) fn count(&self) -> u32 {
        self.in_flight.len() as u32
    }

    pub(crate) fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Arrive { gate, class, client, url } => {
                let gate = gate % self.gates.len();
                self.arrive(
                    gate,
                    SentryRequest {
                        class,
                        url_class: url,
                        client_key: client,
                        position: Position::ALL[client as usize % 3],
                        is_uncounted: false,
                    },
                )?;
            }
            Step::End(which, at_once) if !self.in_flight.is_empty() => {
                let (gate, permit, position) = self.in_flight.swap_remove(which % self.in_flight.len());
                let ending = Ending { completed: which % 3 > 0, ..Ending::default() };
                self.judged[gate] += u64::from(ending.completed && position < Position::OverShare);
                self.gates[gate].end(self.now, permit, ending);
                self.beyond = self.beyond.min(self.count());
                self.refused_rank = None;
                self.is_settled = false;
                if at_once {
                    self.settle(gate)?;
                }
            }
            Step::Leave(which) if !self.held.is_empty() => {
                let request = *self.held.keys().nth(which % self.held.len()).expect("one waits");
                let held = self.held.remove(&request).expect("it was held");
                prop_assert_eq!(self.gates[held.gate].leave(self.now, held.ticket), Some(request));
                prop_assert_eq!(self.gates[held.gate].leave(self.now, held.ticket), None);
                self.refused_rank = None;
            }
            Step::Wait(ms) => {
                let until = self.now + Duration::from_millis(ms);
                // As timers do: each gate is asked when it said.
                while self.now < until {
                    let wakes = self.gates.iter().filter_map(SentryGate::next_wake).min();
                    let next = wakes.unwrap_or(until).clamp(self.now, until);
                    let passed = next.saturating_since(self.now).as_nanos() as u64;
                    self.in_flight_nanos += u64::from(self.count()) * passed;
                    self.now = next;
                    (0..self.gates.len()).try_for_each(|gate| self.settle(gate))?;
                    let wakes = self.gates.iter().filter_map(SentryGate::next_wake).min();
                    prop_assert!(wakes.is_none_or(|wakes| wakes > self.now), "asked again and again");
                }
                self.refused_rank = None;
            }
            Step::Limit(limit) => {
                let guaranteed = [0, 1, 2, 3]
                    .map(|class: usize| self.plan.classes[class].guaranteed_rate.as_milli() / 1_000);
                self.plan = plan(self.plan.epoch + 1, self.plan.decide, limit, guaranteed);
                // Requests in flight stay at any limit.
                self.beyond = self.beyond.max(self.count().saturating_sub(limit));
                self.refused_rank = None;
                let plan = self.plan.clone();
                self.gates.iter_mut().for_each(|gate| gate.apply(&plan));
                (0..self.gates.len()).try_for_each(|gate| self.settle(gate))?;
            }
            Step::End(..) | Step::Leave(_) => {}
        }
        self.check()
    }

    fn arrive(&mut self, gate: usize, asked: SentryRequest) -> Result<(), TestCaseError> {
        self.requests += 1;
        let request = self.requests;
        let class = usize::from(asked.class).min(3);
        let plan = self.plan.classes[class];
        // A bucket of no rate is not empty at first, but nothing is guaranteed.
        let is_guaranteed = plan.guaranteed_rate > Rate::ZERO
            && self.count() < 2 * self.plan.limit
            && self.guaranteed[class].admit(self.now);
        let has_rounds = matches!(self.plan.decide, Decide::Batch(_));
        let position = if has_rounds { Position::Usual } else { asked.position };
        let is_spare = self.count() < self.limit_for(class, Position::OverShare);
        let waits_before = self.held.values().any(|held| {
            let is_before = (RANKS[held.class], held.position) <= (plan.rank, position);
            is_before && (held.position < Position::OverShare || is_spare || position == Position::OverShare)
        });
        let has_room = self.count() < self.limit_for(class, position);
        let places = if position == Position::OverShare { plan.hold_len.div_ceil(4) } else { plan.hold_len };
        let alike = |held: &Held| held.class == class && held.position == position;
        let total = self.held.values().filter(|held| alike(held)).count() as u32;
        let arrived = self.gates[gate].arrive(self.now, asked, request);
        if is_guaranteed {
            prop_assert!(matches!(arrived, Arrived::Admit(..)), "guaranteed, and {:?}", arrived);
            self.beyond += u32::from(self.count() >= self.plan.limit);
        }
        match arrived {
            Arrived::Admit(_, permit) => {
                if !is_guaranteed {
                    prop_assert!(has_room);
                    prop_assert!(!self.is_reservation() || !waits_before, "overtook");
                    let is_before = self.refused_rank.is_none_or(|refused| refused >= plan.rank);
                    prop_assert!(!self.is_reservation() || is_before, "a more important one was refused");
                }
                self.in_flight.push((gate, permit, position));
            }
            Arrived::Held(ticket) => {
                prop_assert!(total < places);
                self.held.insert(request, Held { gate, class, position, since: self.now, ticket });
            }
            Arrived::HeldInsteadOf(ticket, displaced, shed) => {
                let gone = self.held.remove(&displaced).expect("it was held");
                prop_assert_eq!((gone.class, gone.gate, gone.position), (class, gate, position));
                prop_assert!(matches!(shed.reason, Reason::ClientShare | Reason::Deadline));
                self.held.insert(request, Held { gate, class, position, since: self.now, ticket });
            }
            Arrived::Shed(_, shed) => {
                let is_first = self.is_reservation() && has_room && !waits_before;
                prop_assert!(!is_first, "refused though none was before it and there was room");
                match shed.reason {
                    Reason::Capacity | Reason::Reserved => {
                        let is_kept = plan.limit < self.plan.limit && self.count() < self.plan.limit;
                        prop_assert_eq!(shed.reason == Reason::Reserved, is_kept);
                        self.refused_rank =
                            Some(self.refused_rank.map_or(plan.rank, |rank| rank.min(plan.rank)));
                    }
                    Reason::ClientShare => prop_assert!(position == Position::OverShare && total == places),
                    Reason::Threshold => prop_assert!(plan.admit_share < u32::MAX),
                    Reason::Batch => prop_assert!(plan.delay.is_zero()),
                    other => prop_assert!(false, "{}", other),
                }
            }
        }
        // A shell may ask at any time.
        self.settle(gate)
    }

    /// Settles like a shell after every event: this gate's `next` until there is none, then the gate that has
    /// a request.
    fn settle(&mut self, first: usize) -> Result<(), TestCaseError> {
        let mut gate = first;
        for _ in 0..100 {
            while let Some(released) = self.gates[gate].next(self.now) {
                self.released(gate, released)?;
            }
            match self.gates[gate].who_waits() {
                Some(other) => gate = other,
                None => {
                    self.is_settled = true;
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "gates wake each other for ever");
        Ok(())
    }

    fn released(&mut self, gate: usize, released: Released<u64>) -> Result<(), TestCaseError> {
        match released {
            Released::Admit(request, permit) => {
                let held = self.held.remove(&request).expect("it was held");
                let plan = self.plan.classes[held.class];
                prop_assert!(self.now.saturating_since(held.since) < plan.hold_for, "expired, and admitted");
                prop_assert!(self.count() < self.limit_for(held.class, held.position));
                let is_spare = self.count() < self.limit_for(held.class, Position::OverShare);
                let is_passed = |other: &Held| {
                    let is_before = (RANKS[other.class], other.position) < (plan.rank, held.position);
                    // Of those over their share another gate knows only where no other request waits.
                    let is_known = other.position < Position::OverShare || is_spare && other.gate == gate;
                    is_before && is_known && self.is_alive(other)
                };
                prop_assert!(!self.is_reservation() || !self.held.values().any(is_passed), "passed over");
                self.in_flight.push((gate, permit, held.position));
            }
            Released::Shed(request, shed) => {
                let held = self.held.remove(&request).expect("it was held");
                let waited = self.now.saturating_since(held.since);
                let is_due = waited >= self.plan.classes[held.class].hold_for;
                let in_batch = matches!(self.plan.decide, Decide::Batch(_)) && shed.reason == Reason::Batch;
                let late =
                    if held.position == Position::OverShare { Reason::ClientShare } else { Reason::Deadline };
                prop_assert!(is_due && shed.reason == late || in_batch, "refused before its time");
            }
        }
        Ok(())
    }

    fn is_alive(&self, held: &Held) -> bool {
        self.now.saturating_since(held.since) < self.plan.classes[held.class].hold_for
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.gates[0].in_flight(), self.count());
        prop_assert!(self.count() <= self.plan.limit + self.beyond, "{} in flight", self.count());
        prop_assert_eq!(self.gates.iter().map(SentryGate::held).sum::<usize>(), self.held.len());
        for (index, gate) in self.gates.iter().enumerate() {
            let expires = |held: &Held| held.since + self.plan.classes[held.class].hold_for;
            let own = self.held.values().filter(|held| held.gate == index);
            let first = own.map(expires).min();
            prop_assert!(gate.next_wake().is_none() == first.is_none() && gate.next_wake() <= first);
            prop_assert!(!self.is_reservation() || gate.next_wake() == first);
        }
        for held in self.held.values() {
            let room = self.limit_for(held.class, held.position);
            prop_assert!(
                !self.is_settled || !self.is_reservation() || self.count() >= room,
                "a request waits and there is room"
            );
        }
        Ok(())
    }

    /// Only a shell that woke every gate since the time moved on may ask this.
    pub(crate) fn nobody_waits_too_long(&self) -> bool {
        self.held.values().all(|held| self.is_alive(held))
    }

    pub(crate) fn drain(&mut self) -> Result<(), TestCaseError> {
        for index in 0..self.gates.len() {
            let sample = self.gates[index].drain(self.now);
            self.sample_nanos += sample.in_flight_nanos;
            prop_assert_eq!(sample.age_us.count(), u64::from(sample.in_flight));
            prop_assert_eq!(sample.latency_us.count(), std::mem::take(&mut self.judged[index]));
            for (class, (sum, counts)) in self.sums.iter_mut().zip(&sample.classes).enumerate() {
                sum.offered += counts.offered;
                sum.admitted += counts.admitted;
                sum.shed += counts.shed;
                sum.left += counts.left;
                let held =
                    self.held.values().filter(|held| (held.gate, held.class) == (index, class)).count();
                prop_assert_eq!(counts.held as usize, held);
                prop_assert!(
                    counts.good <= counts.completed
                        && counts.shed_cost_us <= counts.offered_cost_us + sum.offered_cost_us
                );
                sum.offered_cost_us += counts.offered_cost_us;
            }
        }
        for (class, sum) in self.sums.iter().enumerate() {
            let held = self.held.values().filter(|held| held.class == class).count() as u64;
            prop_assert_eq!(sum.offered, sum.admitted + sum.shed + sum.left + held);
        }
        prop_assert_eq!(self.sums.iter().map(|sum| sum.offered).sum::<u64>(), self.requests);
        prop_assert_eq!(self.sample_nanos, self.in_flight_nanos);
        Ok(())
    }
}
