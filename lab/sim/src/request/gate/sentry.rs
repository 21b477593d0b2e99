//! The sentry in the simulator: its planner, and what the workers share.

use super::counts::GateCounts;
use super::witness::Witness;
use flashweir_admission::PlannerDriver;
use flashweir_admission::ladder::{Rungs, in_order};
use flashweir_admission::sentry::{
    Common, Costs, Learning, LongRequests, Plan, Policing, Policy, Sample, SentryPlanner,
};
use flashweir_core::limits::{CLASSES, WORKERS};
use flashweir_core::{Duration, Instant, Rate, Rng};
use std::sync::Arc;

/// The sentry with its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct SentryPolicy {
    /// Classes and targets.
    pub policy: Arc<Policy>,
    /// Limits set by hand, each from its moment on (in order), instead of learned ones: those of a known
    /// server, with the same queue.
    pub known_limits: Vec<(Instant, u32)>,
    /// Workers, each with its own gate; the limit is on all of them together. Where there are several, a
    /// notification (of a plan, of room) takes up to 200 µs. A connection's requests go to one worker.
    pub workers: usize,
    /// Processor time of its worker that one decision takes: how busy deciding keeps the workers, by which
    /// automatic policing goes. Deciding delays no request.
    pub decision_time: Duration,
    /// Numbers and rules that it learns by.
    pub learning: Box<Learning>,
}

/// A plan of the sentry that changed something.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitTaken {
    /// Time at which it was made.
    pub at: Instant,
    /// The plan with its explanation; without the costs of requests, as a table for each plan would fill the
    /// memory.
    pub plan: Plan,
}

impl SentryPolicy {
    /// The sentry as it is: it learns the limit. One worker.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy: Arc::new(policy),
            known_limits: Vec::new(),
            workers: 1,
            decision_time: Duration::ZERO,
            learning: Box::new(Learning::SHIPPED),
        }
    }

    /// The first problem of the settings, if any, and the part that it is in.
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

/// The planner of the sentry's stage, and what checks the stages.
#[derive(Debug)]
pub(super) struct SentryPlanning {
    policy: SentryPolicy,
    /// The policy's class of each of the scenario's.
    pub(super) classes: Vec<u8>,
    driver: PlannerDriver<SentryPlanner>,
    pub(super) common: Arc<Common>,
    /// The newest; each worker takes it over when it is called.
    pub(super) plan: Plan,
    /// Thresholds and capacity of a ladder that holds the backlog, and what the gates are to do by it.
    ladder: Option<(Rungs, Rate)>,
    ordered: Option<Plan>,
    no_costs: Arc<Costs>,
    next_tick_at: Instant,
    /// Decides which samples get lost.
    losses: Rng,
    /// Random source of the time until a worker hears of something.
    pub(super) crossings: Rng,
    pub(super) witness: Witness,
}

impl SentryPlanning {
    pub(super) fn new(
        policy: &SentryPolicy,
        classes: Vec<u8>,
        workers: usize,
        losses: Rng,
        crossings: Rng,
    ) -> Self {
        let driver = PlannerDriver::new(
            SentryPlanner::with_learning(policy.policy.clone(), &policy.learning),
            Instant::ZERO,
        );
        let mut plan = driver.planner().current().clone();
        replace_limit(&mut plan, &policy.known_limits, Instant::ZERO);
        Self {
            classes,
            driver,
            common: Arc::new(Common::new(workers)),
            plan,
            ladder: None,
            ordered: None,
            no_costs: Arc::new(Costs { by_url_class_us: Vec::new(), by_class_us: Vec::new(), usual_us: 0 }),
            next_tick_at: Instant::ZERO + policy.policy.interval,
            policy: policy.clone(),
            losses,
            crossings,
            witness: Witness::new(&policy.policy, workers),
        }
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy.policy
    }

    /// The policy's class of one of the scenario's.
    pub(super) fn class(&self, class: u16) -> u8 {
        self.classes[usize::from(class)]
    }

    pub(super) fn next_tick_at(&self) -> Instant {
        self.next_tick_at
    }

    /// A worker's sample, unless it gets lost.
    pub(super) fn observe(&mut self, now: Instant, mut sample: Sample, lost_feedback: f64) {
        let sample = &mut sample;
        self.witness.add_report(sample);
        let span = sample.to.saturating_since(sample.from).as_nanos().max(1);
        let deciding = self.policy.decision_time.as_nanos() * u128::from(sample.offered) * 1_000 / span;
        // At most 1,000, so it fits.
        sample.deciding_milli = deciding.min(1_000) as u32;
        let is_lost = lost_feedback > 0.0 && self.losses.unit_f64() < lost_feedback;
        if !is_lost {
            self.driver.observe(now, sample);
        }
    }

    /// A plan, and what is kept of it for the report.
    pub(super) fn plan(&mut self, now: Instant) -> Plan {
        self.witness.compare();
        // A known limit comes with the queue that goes with it: not the one of a planner that still learns.
        if let Some(limit) = known_limit(&self.policy.known_limits, now) {
            self.driver.planner_mut().resume(now, limit, Some(f64::from(limit)));
        }
        self.plan = self.driver.plan(now);
        replace_limit(&mut self.plan, &self.policy.known_limits, now);
        self.order();
        self.next_tick_at = self.driver.next_plan_at();
        Plan { costs: self.no_costs.clone(), ..self.plan.clone() }
    }

    /// A ladder holds the backlog within these thresholds, or none does.
    pub(super) fn obey_ladder(&mut self, ladder: Option<(Rungs, Rate)>) {
        self.ladder = ladder;
        self.order();
    }

    fn order(&mut self) {
        self.ordered = self.ladder.as_ref().map(|(rungs, capacity)| in_order(&self.plan, rungs, *capacity));
    }

    /// The plan that the gates follow: as the ladder changes it, where one holds the backlog.
    pub(super) fn in_force(&self) -> &Plan {
        self.ordered.as_ref().unwrap_or(&self.plan)
    }

    /// Checks that the shared count is the number of requests in flight, and that no room is forgotten.
    pub(super) fn check(
        &self,
        counts: &GateCounts,
        waiting: u64,
        is_looked_after: bool,
    ) -> Result<(), String> {
        let counted = u64::from(self.common.in_flight()) + u64::from(self.common.long());
        let in_flight = counts.in_flight();
        if counted != in_flight {
            return Err(format!("{counted} in flight by the gates' count, but {in_flight} are"));
        }
        if waiting != counts.held {
            return Err(format!("{waiting} wait by the gates' count, but {} do", counts.held));
        }
        self.witness.check()?;
        if self.policy().policing != Policing::Reservation {
            // Others let people wait although there is room.
            return Ok(());
        }
        // Below the least of all limits there is room for every queued request, but for clients over their
        // share; so a worker has to be about to look.
        let waiting = waiting - self.witness.over_share();
        let least = self.plan.classes.iter().map(|class| class.limit).min().unwrap_or(0).min(self.plan.limit);
        if in_flight < u64::from(least) && waiting > 0 && !is_looked_after {
            return Err(format!("{waiting} wait with {in_flight} of {least} in flight, and none is called"));
        }
        Ok(())
    }
}

fn replace_limit(plan: &mut Plan, known: &[(Instant, u32)], now: Instant) {
    if let Some(limit) = known_limit(known, now) {
        plan.limit = limit;
        // It is on all requests in flight.
        plan.long = LongRequests::default();
        plan.classes.iter_mut().for_each(|class| class.limit = limit);
    }
}

fn known_limit(known: &[(Instant, u32)], now: Instant) -> Option<u32> {
    known.iter().rev().find(|(from, _)| *from <= now).map(|(_, limit)| *limit)
}
