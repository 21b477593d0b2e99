//! The sentry in the simulator: its planner, and the workers whose gates share one limit.

use super::asked::{Asked, Decided, ReleasedTry};
use super::counts::GateCounts;
use super::reason::{Refusal, ShedReason};
use super::witness::{How, Witness};
use super::worker::{Waiting, Worker};
use crate::request::slab::Id;
use flashweir_admission::PlannerDriver;
use flashweir_admission::retry_after::RetryAfter;
use flashweir_admission::sentry::{
    Arrived, Asked as SentryAsked, Common, Costs, Ending, Permit, Plan, Policing, Policy, Released,
    SentryPlanner, Ticket,
};
use flashweir_core::hash::mix;
use flashweir_core::limits::{CLASSES, WORKERS};
use flashweir_core::{Instant, Rng, Shed};
use std::sync::Arc;

/// The sentry with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SentryPolicy {
    /// Classes and targets.
    pub policy: Arc<Policy>,
    /// Limits set by hand, each from its moment on (in order), instead of learned ones: what somebody who knows the
    /// server would do, with the same queue.
    pub known_limits: Vec<(Instant, u32)>,
    /// Workers, each with a gate of its own; the limit is on all of them together. What one of several tells another
    /// (a plan, that there is room) takes up to 200 µs to get there. A client's requests go to one worker.
    pub workers: usize,
}

/// A plan of the sentry that changed something.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitTaken {
    /// When it was made.
    pub at: Instant,
    /// What the gate was told, and why; without what requests cost, as a table for each plan would fill the memory.
    pub plan: Plan,
}

impl SentryPolicy {
    /// The sentry as it is: it learns the limit. One worker.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self { policy: Arc::new(policy), known_limits: Vec::new(), workers: 1 }
    }

    /// What is wrong with it, if anything, and in which part.
    pub(in crate::request) fn problem(&self) -> Option<(&'static str, String)> {
        let Policy { classes, target, ladder, interval, .. } = &*self.policy;
        if self.workers == 0 || self.workers > WORKERS {
            return Some(("gates", format!("{} gates", self.workers)));
        }
        if classes.is_empty() || classes.len() > CLASSES {
            return Some(("classes", format!("{} classes: at least 1, at most {CLASSES}", classes.len())));
        }
        if let Some(class) = classes.iter().find(|class| !(class.revenue > 0.0 && class.revenue.is_finite()))
        {
            return Some(("revenue", format!("{} is no worth", class.revenue)));
        }
        let targets = classes.iter().filter_map(|class| class.target);
        if targets
            .chain(ladder.iter().map(|step| step.target))
            .chain([*target])
            .any(|target| target.is_zero())
        {
            return Some(("target", "nobody is answered in no time".to_owned()));
        }
        if !ladder.is_sorted_by(|one, next| one.below_rps < next.below_rps) {
            return Some(("ladder", "its rates do not rise".to_owned()));
        }
        interval.is_zero().then(|| ("interval", "more than no time".to_owned()))
    }
}

/// The gates and the planner of one service.
#[derive(Debug)]
pub(super) struct SentryStage {
    policy: SentryPolicy,
    /// The policy's class of each of the scenario's.
    classes: Vec<u8>,
    planner: PlannerDriver<SentryPlanner>,
    common: Arc<Common>,
    workers: Vec<Worker>,
    /// The newest; each worker takes it over when it is called.
    plan: Plan,
    no_costs: Arc<Costs>,
    next_tick_at: Instant,
    /// Spreads what clients are told.
    jitter: Rng,
    /// Decides which samples get lost.
    losses: Rng,
    /// How long it takes until a worker hears of something.
    crossings: Rng,
    witness: Witness,
}

impl SentryStage {
    pub(super) fn new(policy: &SentryPolicy, classes: Vec<u8>, keys: &Rng) -> Self {
        let planner = PlannerDriver::new(SentryPlanner::new(policy.policy.clone()), Instant::ZERO);
        let mut plan = planner.planner().current().clone();
        replace_limit(&mut plan, &policy.known_limits, Instant::ZERO);
        let common = Arc::new(Common::new(policy.workers));
        let worker = |index| Worker::new(common.clone(), index, &policy.policy, &plan);
        Self {
            workers: (0..policy.workers).map(worker).collect(),
            classes,
            planner,
            common,
            plan,
            no_costs: Arc::new(Costs { by_url_class_us: Vec::new(), by_class_us: Vec::new(), usual_us: 0 }),
            next_tick_at: Instant::ZERO + policy.policy.interval,
            policy: policy.clone(),
            jitter: keys.fork(1),
            losses: keys.fork(2),
            crossings: keys.fork(3),
            witness: Witness::new(&policy.policy, policy.workers),
        }
    }

    /// A try arrives at its worker. Also the class (the scenario's) of the one that it displaced.
    pub(super) fn arrive(&mut self, now: Instant, attempt: Id, asked: &Asked) -> (Decided, Option<u16>) {
        let class = self.classes[usize::from(asked.class)];
        let to_gate = SentryAsked { class, url_class: asked.url_class(), client_key: asked.client_key };
        let place = self.place(asked);
        let worker = &mut self.workers[place];
        let waiting = Waiting { attempt, class: asked.class };
        self.witness.offered(class.into());
        match worker.gate.arrive(now, to_gate, waiting) {
            Arrived::Admit(_, permit) => {
                self.witness.admitted(place, class.into(), How::AtOnce);
                (Decided::Admitted(Some(permit)), None)
            }
            Arrived::Shed(_, shed) => {
                self.witness.shed(place, class.into(), false);
                (Decided::Refused(self.refusal(shed)), None)
            }
            Arrived::Held(ticket) => {
                self.witness.held(place, class.into());
                (Decided::Held(ticket), None)
            }
            Arrived::HeldInsteadOf(ticket, other, shed) => {
                self.witness.held(place, class.into());
                self.witness.shed(place, self.classes[usize::from(other.class)].into(), true);
                (Decided::HeldInsteadOf(ticket, other.attempt, self.refusal(shed)), Some(other.class))
            }
        }
    }

    /// The next who waits no longer, with the scenario's class, at any worker that has reason to look.
    pub(super) fn release(&mut self, now: Instant) -> Option<(ReleasedTry, u16)> {
        for index in 0..self.workers.len() {
            if !self.workers[index].looks {
                continue;
            }
            if let Some(released) = self.workers[index].gate.next(now) {
                self.workers[index].offers_room = true;
                let (Released::Admit(who, _) | Released::Shed(who, _)) = &released;
                let class = usize::from(self.classes[usize::from(who.class)]);
                return Some(match released {
                    Released::Admit(who, permit) => {
                        self.witness.admitted(index, class, How::AfterWaiting);
                        (ReleasedTry::Admitted(who.attempt, permit), who.class)
                    }
                    Released::Shed(who, shed) => {
                        self.witness.shed(index, class, true);
                        (ReleasedTry::Refused(who.attempt, self.refusal(shed)), who.class)
                    }
                });
            }
            self.workers[index].looks = false;
            // Nobody more waits here for the room that there is: perhaps somebody does elsewhere.
            if std::mem::take(&mut self.workers[index].offers_room)
                && let Some(other) = self.workers[index].gate.who_waits()
            {
                self.tell(now, other);
            }
        }
        None
    }

    /// A worker that is to be called, and when. To be asked until there is none.
    pub(super) fn next_call(&mut self, now: Instant) -> Option<(Instant, u16)> {
        let mut workers = self.workers.iter_mut().zip(0..);
        workers.find_map(|(worker, index)| Some((worker.next_call(now)?, index)))
    }

    /// A worker hears what it was told, or looks who has waited too long.
    pub(super) fn call(&mut self, now: Instant, worker: u16) {
        self.workers[usize::from(worker)].hear(now, &self.plan);
    }

    pub(super) fn leave(&mut self, now: Instant, asked: &Asked, ticket: Ticket) -> bool {
        let place = self.place(asked);
        let left = self.workers[place].gate.leave(now, ticket);
        if let Some(who) = left {
            self.witness.left(place, self.classes[usize::from(who.class)].into());
        }
        left.is_some()
    }

    pub(super) fn end(&mut self, now: Instant, asked: &Asked, permit: Permit, ending: Ending) {
        let place = self.place(asked);
        let worker = &mut self.workers[place];
        worker.gate.end(now, permit, ending);
        worker.look();
    }

    pub(super) fn next_tick_at(&self) -> Instant {
        self.next_tick_at
    }

    /// Samples, plan; the workers are told.
    pub(super) fn tick(&mut self, now: Instant, lost_feedback: f64) -> Plan {
        for worker in &mut self.workers {
            let sample = worker.gate.drain(now);
            self.witness.told(&sample);
            let is_lost = lost_feedback > 0.0 && self.losses.unit_f64() < lost_feedback;
            if !is_lost {
                self.planner.observe(now, &sample);
            }
        }
        self.witness.compare();
        self.plan = self.planner.plan(now);
        replace_limit(&mut self.plan, &self.policy.known_limits, now);
        for worker in 0..self.workers.len() {
            self.tell(now, worker);
        }
        self.next_tick_at = self.planner.next_plan_at();
        Plan { costs: self.no_costs.clone(), ..self.plan.clone() }
    }

    /// What was promised: the shared count is that of everybody in flight, and no room is forgotten.
    pub(super) fn check(&self, now: Instant, counts: &GateCounts) -> Result<(), String> {
        let (counted, in_flight) = (u64::from(self.common.in_flight()), counts.in_flight());
        if counted != in_flight {
            return Err(format!("{counted} in flight by the gates' count, but {in_flight} are"));
        }
        let held = self.workers.iter().map(|worker| worker.gate.held() as u64).sum::<u64>();
        if held != counts.held {
            return Err(format!("{held} wait by the gates' count, but {} do", counts.held));
        }
        self.witness.check()?;
        if let Some(worker) = self.workers.iter().position(Worker::spins) {
            return Err(format!("worker {worker} is to look again and again at this very moment"));
        }
        if self.policy.policy.policing != Policing::Reservation {
            // Others let people wait although there is room.
            return Ok(());
        }
        // Below the least of all limits there is room for whoever waits, so somebody has to be about to look.
        let least = self.plan.classes.iter().map(|class| class.limit).min().unwrap_or(0).min(self.plan.limit);
        let is_looked_after = self.workers.iter().any(|worker| worker.is_awaited(now));
        if in_flight < u64::from(least) && held > 0 && !is_looked_after {
            return Err(format!("{held} wait with {in_flight} of {least} in flight, and nobody is called"));
        }
        Ok(())
    }

    /// A worker is told of something. A single one needs no telling: it is where it happens.
    fn tell(&mut self, now: Instant, worker: usize) {
        if let [only] = &mut self.workers[..] {
            only.hear(now, &self.plan);
        } else {
            self.workers[worker].tell(now, &mut self.crossings);
        }
    }

    /// The worker that has this client's connection.
    fn place(&self, asked: &Asked) -> usize {
        ((u128::from(mix(asked.client_key)) * self.workers.len() as u128) >> 64) as usize
    }

    /// A refusal as the client is told of it.
    fn refusal(&mut self, shed: Shed) -> Refusal {
        // At most 60 s.
        let told_s = RetryAfter::new(shed.retry_after, self.jitter.next_u64(), 0).jittered_s as u16;
        Refusal { reason: ShedReason::Gateway(shed.reason), retry_after_s: Some(told_s) }
    }
}

fn replace_limit(plan: &mut Plan, known: &[(Instant, u32)], now: Instant) {
    if let Some((_, limit)) = known.iter().rev().find(|(from, _)| *from <= now) {
        plan.limit = *limit;
        plan.classes.iter_mut().for_each(|class| class.limit = *limit);
    }
}
