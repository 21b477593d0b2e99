//! Plan of each class: its part of the room in flight, a queue that is as long as can be answered in time,
//! and the rate it is guaranteed.
//!
//! *Room.* The least important class is let in up to the limit that was learned, which lies a fifth above
//! what the origin serves at once; the most important up to a fifth more, those between in equal steps by
//! rank (trunk reservation). So there is room for the important at once when the others fill the limit. It is
//! kept above the limit, not below it: a limit that requests wait for and do not fill would be taken by the
//! learner for an origin that does no more, and lowered, again and again.
//!
//! *Queue.* Requests of more important classes are served first. The capacity left over is the rate at which
//! a class's queue moves, and as many may wait as it serves within the time that waiting is worth. Classes
//! worth the same share that rate in proportion to their offered load.

use super::costs::CostTable;
use super::ladder::Ladder;
use super::learning::Rules;
use super::plan::{ClassPlan, Costs};
use super::policy::{ClassPolicy, Policing, Policy};
use super::price::{Demand, fill};
use super::room::standing_room;
use super::sample::Sample;
use super::threshold::Claim;
use alloc::sync::Arc;
use alloc::vec::Vec;
use flashweir_core::limits::{REQUESTS_HELD, SENTRY_IN_FLIGHT};
use flashweir_core::{Duration, Instant, Rate};

/// Learned state of the classes.
#[derive(Debug)]
pub(super) struct Classes {
    policy: Arc<Policy>,
    rules: Rules,
    classes: Vec<Class>,
    costs: CostTable,
    ladder: Ladder,
    /// Attempts of all classes, smoothed, retries left out.
    unique_offered_rps: f64,
    /// Time at which guarantees were last scaled down, or there was no room for a request within one.
    promise_broken_at: Option<Instant>,
}

/// One class, rates smoothed.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    rank: u8,
    offered_rps: f64,
    shed_rps: f64,
    /// Of these, of clients over their share.
    shed_over_share_rps: f64,
    /// Offered and refused of clients within their share, over a longer time.
    lately_offered_rps: f64,
    lately_shed_rps: f64,
    held: u32,
}

/// Learned state of the service as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    pub(super) limit: u32,
    pub(super) knee: Option<f64>,
    /// Servers as far as anything is known of them.
    pub(super) servers: Option<f64>,
    /// Requests in flight, on average.
    pub(super) in_flight: f64,
    /// Requests per second that can be completed, as far as seen.
    pub(super) capacity_rps: f64,
    /// The most that it was of late.
    pub(super) lately_rps: f64,
    /// The median response time, and the 95th percentile.
    pub(super) usual_s: f64,
    /// The longest that the median may become when the limit is reached, as far as known.
    pub(super) in_line_s: f64,
    pub(super) p95_s: Option<f64>,
    pub(super) quantile_over_mean: f64,
    /// Factor by which the origin may do more than it did, as far as known; infinite while nothing is.
    pub(super) headroom: f64,
}

impl Service {
    pub(super) fn knee_milli(&self) -> u64 {
        let knee = self.knee.or(self.servers).unwrap_or(0.0).clamp(0.0, f64::from(SENTRY_IN_FLIGHT));
        (knee * 1_000.0) as u64
    }
}

impl Classes {
    pub(super) fn new(policy: Arc<Policy>, rules: Rules) -> Self {
        let classes = policy.ranks().into_iter().map(|rank| Class { rank, ..Class::default() });
        let costs = CostTable::new(policy.classes.len());
        Self {
            classes: classes.collect(),
            costs,
            ladder: Ladder::default(),
            unique_offered_rps: 0.0,
            promise_broken_at: None,
            policy,
            rules,
        }
    }

    pub(super) fn observe(&mut self, sample: &Sample) {
        self.costs.observe(sample);
        let span_s = sample.to.saturating_since(sample.from).as_secs_f64();
        if span_s <= 0.0 {
            return;
        }
        let part = 1.0 - libm::exp(-span_s / RATE_MEMORY_S);
        let lately_part = 1.0 - libm::exp(-span_s / LASTING_S);
        let unique: u64 = sample.classes.iter().map(|counts| counts.unique_offered).sum();
        self.unique_offered_rps += (unique as f64 / span_s - self.unique_offered_rps) * part;
        for (class, counts) in self.classes.iter_mut().zip(&sample.classes) {
            class.held = counts.held;
            class.offered_rps += (counts.offered as f64 / span_s - class.offered_rps) * part;
            class.shed_rps += (counts.shed as f64 / span_s - class.shed_rps) * part;
            class.shed_over_share_rps +=
                (counts.shed_over_share as f64 / span_s - class.shed_over_share_rps) * part;
            let [offered, shed] = [counts.offered, counts.shed]
                .map(|count| count.saturating_sub(counts.shed_over_share) as f64);
            class.lately_offered_rps += (offered / span_s - class.lately_offered_rps) * lately_part;
            class.lately_shed_rps += (shed / span_s - class.lately_shed_rps) * lately_part;
        }
        if sample.classes.iter().any(|counts| counts.without_room > 0) {
            self.promise_broken_at = Some(sample.to);
        }
        // People who come again are not more people: by the rate on the wire, refusing would raise the
        // target.
        self.ladder.observe(&self.policy, self.unique_offered_rps);
    }

    /// Response-time target of the most demanding class.
    pub(super) fn target(&self) -> Duration {
        (0..self.classes.len()).map(|class| self.target_of(class)).min().unwrap_or(self.policy.target)
    }

    /// Costs of requests, for the gates.
    pub(super) fn costs(&mut self, now: Instant) -> Arc<Costs> {
        self.costs.table(now)
    }

    /// Mean service time of a class's requests, seconds; 0 while nothing is known.
    pub(super) fn cost_s(&self, class: usize) -> f64 {
        self.costs.of_class_s(class)
    }

    /// Demand of each class, its requests costing this.
    pub(super) fn claims(&self, cost_s: impl Fn(usize) -> f64) -> Vec<Claim> {
        let classes = self.classes.iter().zip(&self.policy.classes).enumerate();
        let claim = |(index, (class, policy)): (usize, (&Class, &ClassPolicy))| Claim {
            rank: class.rank,
            offered_rps: class.offered_rps,
            guaranteed_rps: policy.guaranteed_rate.per_second(),
            cost_s: cost_s(index),
        };
        classes.map(claim).collect()
    }

    /// The share of requests that is refused.
    pub(super) fn refused(&self) -> f64 {
        let offered: f64 = self.classes.iter().map(|class| class.offered_rps).sum();
        let shed: f64 = self.classes.iter().map(|class| class.shed_rps).sum();
        if offered > 0.0 { (shed / offered).min(1.0) } else { 0.0 }
    }

    /// Number of servers that the offered load would keep busy.
    pub(super) fn offered_servers(&self) -> f64 {
        let servers =
            self.classes.iter().enumerate().map(|(index, class)| class.offered_rps * self.cost_s(index));
        servers.sum()
    }

    /// Revenue per server-second of the least important request that is let in.
    pub(super) fn price(&self, service: &Service) -> f64 {
        let demand = |(index, class): (usize, &Class)| Demand {
            revenue: self.policy.classes[index].revenue,
            cost_s: self.cost_s(index),
            offered_rps: class.offered_rps,
        };
        let demands: Vec<Demand> = self.classes.iter().enumerate().map(demand).collect();
        let offered: f64 = demands.iter().map(|demand| demand.offered_rps).sum();
        let mean_s = self.offered_servers() / offered.max(f64::MIN_POSITIVE);
        fill(service.capacity_rps * mean_s, &demands).price
    }

    /// Returns true if lately the guarantees had to be scaled down, or there was no room for what is within
    /// one.
    pub(super) fn guarantees_infeasible(&mut self, now: Instant, service: &Service) -> bool {
        if self.guaranteed_share(service) < 1.0 {
            self.promise_broken_at = Some(now);
        }
        self.promise_broken_at.is_some_and(|at| now.saturating_since(at) < BROKEN_FOR)
    }

    /// Plans of all classes.
    pub(super) fn plans(&self, service: &Service) -> Vec<ClassPlan> {
        let mut plans: Vec<ClassPlan> =
            (0..self.classes.len()).map(|class| self.plan(service, class)).collect();
        // All that may wait fit into one gate.
        let all: u64 = plans.iter().map(|plan| u64::from(plan.hold_len)).sum();
        if all > REQUESTS_HELD as u64 {
            for plan in &mut plans {
                plan.hold_len = (u64::from(plan.hold_len) * REQUESTS_HELD as u64 / all).max(1) as u32;
            }
        }
        plans
    }

    fn plan(&self, service: &Service, index: usize) -> ClassPlan {
        let (class, policy) = (&self.classes[index], &self.policy.classes[index]);
        let target = self.target_of(index);
        let target_s = target.as_secs_f64();
        let served_rps = self.left_over_rps(service, index);
        // A request that waits longer would not be answered within the target; one that would wait longer
        // than half of what is left besides the response itself is better refused at once. A burst that is
        // over soon waits in the hope that the origin is no slower with more in flight. In a crowd requests
        // are refused anyway: better those who might be late.
        let is_burst = class.refused_within_share() < CALM_SHARE;
        let response_s = if is_burst { service.usual_s } else { service.in_line_s };
        let hold_s = (target_s - response_s).max(HOLD_LEAST_SHARE * target_s);
        let late_s = service.p95_s.unwrap_or(service.usual_s);
        let wait_s = ((target_s - late_s) / 2.0).clamp(WAIT_LEAST_SHARE * target_s, 0.5 * hold_s);
        let worth_it = Duration::from_secs_f64(hold_s);
        let guaranteed_rate = self.guaranteed_rate(service, policy.guaranteed_rate);
        // Guaranteed requests have places, however slow the origin is at the moment; an old queue no longer
        // than that is served oldest first.
        let promised = libm::ceil(guaranteed_rate.per_second() * hold_s);
        let (hold_len, hold_for, oldest_first_below) = if service.headroom.is_finite() {
            // A burst of a class of which hardly any request is refused may fill twice the places: what is
            // left of it is answered in time.
            let wait_s = if is_burst { (2.0 * wait_s).min(hold_s) } else { wait_s };
            let places = libm::ceil(served_rps * wait_s * service.headroom).max(promised);
            let places = places.clamp(1.0, REQUESTS_HELD as f64);
            (places as u32, worth_it, (OLDEST_FIRST_SHARE * places).max(promised) as u32)
        } else {
            let usual_s = (USUAL_HELD * service.usual_s).min(USUAL_HELD_MOST_S);
            let longest_s = f64::max(target_s * HELD_AT_START_TARGETS, usual_s);
            (REQUESTS_HELD as u32, Duration::from_secs_f64(hold_s.max(longest_s)), 0)
        };
        let (standing_len, standing_for) =
            self.standing(service, index, served_rps, target_s).unwrap_or((hold_len, hold_for));
        ClassPlan {
            rank: class.rank,
            limit: self.limit(service, class.rank),
            standing_len: standing_len.max(promised as u32).min(hold_len),
            standing_for: standing_for.min(hold_for),
            hold_len: policy.queue.map_or(hold_len, |queue| queue.min(REQUESTS_HELD as u32)),
            hold_for,
            newest_first_after: worth_it / 2,
            oldest_first_below,
            target,
            delay: Duration::ZERO,
            admit_share: u32::MAX,
            guaranteed_rate,
            retry_after: class.retry_after(served_rps),
        }
    }

    /// Room of a queue that stands; none where none may.
    fn standing(
        &self,
        service: &Service,
        index: usize,
        served_rps: f64,
        target_s: f64,
    ) -> Option<(u32, Duration)> {
        let refused_share = self.classes[index].refused_lately();
        // Batches wait for their rounds.
        let is_batch = matches!(self.policy.policing, Policing::Batch | Policing::Published(_));
        if !self.rules.standing || is_batch || !service.headroom.is_finite() || refused_share < LASTING_SHARE
        {
            return None;
        }
        let share = if self.is_before_others(index) { KEPT_SHARE } else { LAST_SHARE };
        Some(standing_room(service.capacity_rps, served_rps, refused_share, share * target_s))
    }

    /// Returns true if less important classes are offered anything.
    fn is_before_others(&self, index: usize) -> bool {
        let rank = self.classes[index].rank;
        self.classes.iter().any(|other| other.rank > rank && other.offered_rps > OFFERED_LEAST_RPS)
    }

    /// Learned limit for the last rank, and some places more for those before it.
    fn limit(&self, service: &Service, rank: u8) -> u32 {
        let last = u32::from(self.classes.iter().map(|class| class.rank).max().unwrap_or(0));
        let reserve = (RESERVE * f64::from(service.limit) + 0.5) as u32;
        let steps = (reserve * (last - u32::from(rank))).div_ceil(last.max(1));
        (service.limit + steps).min(SENTRY_IN_FLIGHT)
    }

    /// Requests of a class served per second after what more important classes are offered.
    fn left_over_rps(&self, service: &Service, index: usize) -> f64 {
        // Completed requests are taken to cost on average what offered ones do: in a crowd they are the
        // admitted part of them. Costs count only relative to each other.
        let (mut offered, mut offered_s, mut before_s, mut equal_s, mut equals) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let own = &self.classes[index];
        for (other_index, other) in self.classes.iter().enumerate() {
            let other_s = other.offered_rps * self.weight_s(other_index);
            offered += other.offered_rps;
            offered_s += other_s;
            before_s += if other.rank < own.rank { other_s } else { 0.0 };
            equal_s += if other.rank == own.rank { other_s } else { 0.0 };
            equals += if other.rank == own.rank { 1.0 } else { 0.0 };
        }
        let weight_s = self.weight_s(index);
        let mean_s = if offered > 0.0 { offered_s / offered } else { weight_s };
        // A class that is offered little now may be offered more at once: then it gets an equal share.
        let share = (own.offered_rps * weight_s / f64::max(equal_s, f64::MIN_POSITIVE)).max(1.0 / equals);
        // A dip of the limit is taken from what is left over: the queues of less important classes follow the
        // highest capacity of late.
        let capacity_rps = if own.rank == 0 { service.capacity_rps } else { service.lately_rps };
        (capacity_rps * mean_s - before_s).max(0.0) * share / weight_s
    }

    /// Cost of a request relative to others; the same for all while costs are not known.
    fn weight_s(&self, class: usize) -> f64 {
        match self.cost_s(class) {
            0.0 => 1.0,
            cost_s => cost_s,
        }
    }

    /// As the policy says, or less if the origin could not serve all guarantees.
    fn guaranteed_rate(&self, service: &Service, rate: Rate) -> Rate {
        match self.guaranteed_share(service) {
            share if share < 1.0 => Rate::from_per_second(rate.per_second() * share),
            _ => rate,
        }
    }

    /// Share of the guarantees that the origin can serve: 1 for all.
    fn guaranteed_share(&self, service: &Service) -> f64 {
        let classes = self.policy.classes.iter().enumerate();
        let guaranteed: f64 =
            classes.map(|(index, policy)| policy.guaranteed_rate.per_second() * self.cost_s(index)).sum();
        // The knee is hardly beyond the limit.
        let servers = service.knee.unwrap_or(f64::from(service.limit));
        if guaranteed > servers { servers / guaranteed } else { 1.0 }
    }

    fn target_of(&self, class: usize) -> Duration {
        self.policy.classes[class].target.unwrap_or(self.ladder.target(&self.policy))
    }
}

impl Class {
    /// The share that is refused of the requests of clients within their share.
    fn refused_within_share(&self) -> f64 {
        let offered_rps = self.offered_rps - self.shed_over_share_rps;
        let shed_rps = (self.shed_rps - self.shed_over_share_rps).max(0.0);
        if offered_rps > 0.0 { shed_rps / offered_rps } else { 0.0 }
    }

    /// The same over a longer time.
    fn refused_lately(&self) -> f64 {
        if self.lately_offered_rps > 0.0 { self.lately_shed_rps / self.lately_offered_rps } else { 0.0 }
    }

    /// The time until what waits is served, times how many come for each one that is served.
    fn retry_after(&self, served_rps: f64) -> Duration {
        let served_rps = served_rps.max(0.1);
        let excess = (self.offered_rps / served_rps).max(1.0);
        let drain_s = f64::from(self.held) / served_rps;
        Duration::from_secs_f64((drain_s.max(1.0) * excess).min(RETRY_AFTER_MOST_S))
    }
}

/// An old queue is served in the order in which it came while no more than this part of its places is taken.
const OLDEST_FIRST_SHARE: f64 = 0.5;
/// A class has bursts, not a crowd, while so small a share of its requests is refused.
const CALM_SHARE: f64 = 0.05;
/// Refused share of a class from which on its queue may stand, and the time over which it is taken. A class
/// that nearly fits loses more in a short queue than it waits in a long one; over one second chance refuses a
/// tenth of it.
const LASTING_SHARE: f64 = 0.15;
const LASTING_S: f64 = 4.0;
/// Parts of the target for which a request waits in a standing queue so that it is not empty: while one of an
/// important class is, less important requests are served. The last class has nothing to keep.
const KEPT_SHARE: f64 = 0.5;
const LAST_SHARE: f64 = 0.125;
/// A class that is offered less than this is offered nothing.
const OFFERED_LEAST_RPS: f64 = 0.01;
/// Time for which the plan says that a guarantee could not be kept.
const BROKEN_FOR: Duration = Duration::from_secs(10);
/// Time constant of the rates.
const RATE_MEMORY_S: f64 = 1.0;
/// Targets that requests may wait while nothing is known of the origin: late is better than refused for want
/// of knowledge.
const HELD_AT_START_TARGETS: f64 = 5.0;
/// Longest time in the queue while nothing speaks for refusing, in times that requests take.
const USUAL_HELD: f64 = 3.0;
/// Clients and proxies rarely wait for longer than half a minute in all, seconds.
const USUAL_HELD_MOST_S: f64 = 20.0;
/// A request of any service may wait a tenth of the target, and as many may wait as arrive in half of that.
const HOLD_LEAST_SHARE: f64 = 0.1;
const WAIT_LEAST_SHARE: f64 = 0.05;
const RETRY_AFTER_MOST_S: f64 = 30.0;
/// Places kept for the most important, as a part of the limit; none below three, where one place is half as
/// much again.
const RESERVE: f64 = 0.2;
