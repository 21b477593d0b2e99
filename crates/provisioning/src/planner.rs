//! The planner of capacity: what applications need, what the pool has, and what is announced to admission, in
//! one plan.
//!
//! **Decides** servers, sentries and the target of each application, every interval ([`Policy::interval`]),
//! in one epoch. **From** [`Sample`]s of gateways. **The rule** (repaired): what each application needs
//! (`application`); the pool's [`partition`](crate::partition) by revenue; servers that are left stay with
//! those that hold them, with those that earn least the last; where all together need more than the pool,
//! demand that has passed is no need; and only where an application still has fewer than it needs, a longer
//! target of its ladder, the nearest that its servers can keep, within what is permitted at its rate. Back at
//! nine tenths of the rate, so that a rate at the edge does not move the target for ever. **Why not the
//! paper's table of targets by rate:** a relaxed target buys hardly any throughput (63.4 to 64.0 requests a
//! second and server for 1 s to 2 s); given up while servers are free it buys nothing.
//!
//! **Published:** `published`. **Binding** is not asked: this planner's input is what admission refuses, and
//! it has no integrator that a stage beside it could wind up. **Cold start:** applications keep what the pool
//! says they have. **Recovery:** a restarted planner knows demand after one interval and earlier days not at
//! all. **Failure:** without samples demand falls to nothing, so a caller whose samples fail must not plan; a
//! plan beyond the pool is never made. **Cost** as the partition's, and some microseconds an application.
//! Source: Cataclysm §4.

use crate::application::{Application, Need};
use crate::partition::{Claim, MoveCost, partition};
use crate::plan::{ApplicationPlan, Explanation, Plan, Rule};
use crate::policy::{ApplicationPolicy, Mode, Policy, PolicyError};
use crate::published::{PublishedNeed, PublishedRules};
use crate::revenue::RevenueCurve;
use crate::sample::Sample;
use crate::sizing::{revenue_curve, revenue_per_server_s, sized};
use alloc::vec::Vec;
use flashweir_admission::{Binding, Flow, Planner};
use flashweir_core::{Duration, Instant};

/// For how many start-up times a partition is made: a server moves where it earns a ninth more. That holds
/// for faster starts, too: needs are whole servers, so that the earnings of one server jump with each of
/// them, and servers that start at once would move at each jump.
const PARTITION_START_UPS: f64 = 10.0;
/// It is made for this long at least, seconds.
const PARTITION_MIN_S: f64 = 600.0;
/// A target comes back when servers could keep it at this times the rate.
const RELIEF_MARGIN: f64 = 1.0 / 0.9;

/// Plans the servers of one pool.
#[derive(Debug)]
pub struct ProvisioningPlanner {
    policy: Policy,
    applications: Vec<Application>,
    published: PublishedRules,
    plan: Plan,
    next_plan_at: Instant,
}

impl ProvisioningPlanner {
    /// Nothing is known yet.
    ///
    /// # Errors
    /// [`PolicyError`] of a policy that cannot be followed.
    pub fn new(policy: Policy) -> Result<Self, PolicyError> {
        let policy = policy.checked()?;
        let applications: Vec<Application> = policy
            .applications
            .iter()
            .map(|application| Application::new(application, policy.mode))
            .collect();
        let published = PublishedRules::new(applications.len());
        Ok(Self { policy, applications, published, plan: Plan::default(), next_plan_at: Instant::ZERO })
    }

    /// Its goals.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Servers planned last; before the first plan, those that the pool has.
    fn planned(&self) -> Vec<u32> {
        if self.plan.applications.is_empty() {
            let both = self.applications.iter().zip(&self.policy.applications);
            return both.map(|(application, policy)| application.current(policy)).collect();
        }
        self.plan.applications.iter().map(|application| application.servers).collect()
    }

    fn plan_repaired(&mut self, now: Instant) -> (Vec<ApplicationPlan>, bool) {
        let planned = self.planned();
        let interval = self.policy.interval;
        let each = self.applications.iter_mut().zip(&self.policy.applications).zip(&planned);
        let mut needs: Vec<Need> = each
            .map(|((application, policy), &planned)| application.need(now, policy, interval, planned))
            .collect();
        if self.is_pool_short(&needs) {
            needs.iter_mut().for_each(Need::give_up_the_past);
        }
        let (servers, is_short_of_minimum) = self.divide(&needs, &planned);
        let plans = needs.iter().zip(servers).enumerate().map(|(place, (need, servers))| {
            let (policy, application) = (&self.policy.applications[place], &mut self.applications[place]);
            application.ladder_step = relief_step(policy, application, need, servers);
            let is_short = need.needed.is_some_and(|needed| needed > servers);
            let rule = if is_short { Rule::Short } else { need.explanation.rule };
            announced(policy, application, now, servers, Explanation { rule, ..need.explanation })
        });
        (plans.collect(), is_short_of_minimum)
    }

    /// Returns whether the applications need more servers than there are, each within its bounds.
    fn is_pool_short(&self, needs: &[Need]) -> bool {
        let both = needs.iter().zip(&self.policy.applications);
        let needed = both.map(|(need, policy)| {
            u64::from(need.needed.unwrap_or(0).clamp(policy.servers_min, policy.servers_max))
        });
        needed.sum::<u64>() > u64::from(self.policy.pool)
    }

    /// Servers of each application: the partition, then what is left to those who want to keep more than they
    /// need, in the order of what a server earns there.
    fn divide(&self, needs: &[Need], planned: &[u32]) -> (Vec<u32>, bool) {
        let policies = &self.policy.applications;
        let both = || self.applications.iter().zip(policies).zip(needs);
        let curves: Vec<RevenueCurve> = both()
            .map(|((application, policy), need)| match need.needed {
                Some(needed) => revenue_curve(policy, &application.demand, &need.rates, needed),
                None => RevenueCurve::default(),
            })
            .collect();
        let start_ups_s: Vec<f64> =
            both().map(|((application, policy), _)| application.start_up(policy).as_secs_f64()).collect();
        let longest_s = start_ups_s.iter().copied().fold(0.0, f64::max);
        let horizon_s = PARTITION_MIN_S.max(PARTITION_START_UPS * longest_s);
        let claims: Vec<Claim<'_>> = both()
            .enumerate()
            .map(|(place, ((_, policy), need))| Claim {
                curve: &curves[place],
                current: planned[place],
                // An application whose need is unknown keeps its servers.
                servers_min: if need.needed.is_none() {
                    planned[place].max(policy.servers_min)
                } else {
                    policy.servers_min
                },
                servers_max: policy.servers_max,
                refused_share: need.explanation.refused_share,
                start_up_s: start_ups_s[place].max(horizon_s / PARTITION_START_UPS),
            })
            .collect();
        let cost = MoveCost { horizon_s, revenue: self.policy.move_revenue };
        let found = partition(self.policy.pool, &claims, cost);
        let mut servers = found.servers;
        let mut left = self.policy.pool - servers.iter().sum::<u32>();
        let worth: Vec<f64> = both()
            .map(|((application, policy), need)| {
                revenue_per_server_s(policy, &application.demand, &need.rates)
            })
            .collect();
        let mut by_worth: Vec<usize> = (0..claims.len()).collect();
        // Stable: of equal worth the first keeps its servers.
        by_worth.sort_by(|&one, &other| worth[other].total_cmp(&worth[one]));
        for place in by_worth {
            let wanted = needs[place].wanted.min(claims[place].servers_max);
            let more = wanted.saturating_sub(servers[place]).min(left);
            servers[place] += more;
            left -= more;
        }
        (servers, found.is_short_of_minimum)
    }

    fn plan_published(&mut self, now: Instant) -> Vec<ApplicationPlan> {
        let planned = self.planned();
        let needs = self.published.plan(now, &self.policy, &mut self.applications, &planned);
        let each = needs.iter().zip(&self.policy.applications).zip(&mut self.applications);
        each.map(|((need, policy), application)| {
            let explanation = explained(now, policy, application, need);
            announced(policy, application, now, need.servers, explanation)
        })
        .collect()
    }
}

fn announced(
    policy: &ApplicationPolicy,
    application: &mut Application,
    now: Instant,
    servers: u32,
    explanation: Explanation,
) -> ApplicationPlan {
    ApplicationPlan {
        servers,
        sentries: application.sentries.plan(now, application.sentry_load),
        target: policy.ladder[application.ladder_step].target,
        ladder_step: application.ladder_step,
        explanation,
    }
}

fn explained(
    now: Instant,
    policy: &ApplicationPolicy,
    application: &Application,
    need: &PublishedNeed,
) -> Explanation {
    const PERIOD: Duration = Duration::from_secs(300);
    let rate_rps = application.demand.rate_rps(now, PERIOD, Duration::ZERO);
    Explanation {
        rule: need.rule,
        offered_rps: rate_rps,
        panic_rps: rate_rps,
        forecast_rps: need.forecast_rps,
        refused_share: application.demand.refused_share(now, PERIOD),
        servers_needed: need.needed,
        model: need.needed.map(|_| crate::queueing::WaitModel::Kingman),
        service_s: application.demand.service(0).map(|(mean_s, _)| mean_s),
        start_up: application.start_up(policy),
    }
}

/// The first step of the ladder that `servers` can keep, or the last that is permitted at this rate; one that
/// was left comes back with a margin.
fn relief_step(policy: &ApplicationPolicy, application: &Application, need: &Need, servers: u32) -> usize {
    let Some(needed) = need.needed else { return application.ladder_step };
    let first_kept = |times: f64| {
        let rates = need.rates.map(|rate| rate * times);
        let permitted = policy.permitted_step(rates.iter().sum());
        let is_kept = |step: &usize| {
            let found = sized(policy, &application.demand, &rates, policy.ladder[*step].target);
            found.is_some_and(|found| found.servers <= servers)
        };
        (0..permitted).find(is_kept).unwrap_or(permitted)
    };
    let now_kept = if needed <= servers { 0 } else { first_kept(1.0) };
    if now_kept >= application.ladder_step {
        return now_kept;
    }
    first_kept(RELIEF_MARGIN).clamp(now_kept, application.ladder_step)
}

impl Planner for ProvisioningPlanner {
    type Sample = Sample;
    type Plan = Plan;

    fn observe(&mut self, _: Instant, sample: &Sample) {
        for (application, counted) in self.applications.iter_mut().zip(&sample.applications) {
            application.observe(counted);
        }
    }

    fn plan(&mut self, now: Instant, _: &Binding) -> Plan {
        if now < self.next_plan_at {
            return self.plan.clone();
        }
        self.next_plan_at = now + self.policy.interval;
        self.applications.iter_mut().for_each(|application| application.close(now));
        let (applications, is_short_of_minimum) = match self.policy.mode {
            Mode::Published => (self.plan_published(now), false),
            Mode::Repaired => self.plan_repaired(now),
        };
        self.plan = Plan { epoch: self.plan.epoch + 1, applications, is_short_of_minimum };
        self.plan.clone()
    }

    fn next_plan_at(&self) -> Instant {
        self.next_plan_at
    }

    /// The share of the planned servers that admitted requests keep busy.
    fn limit_used(&self, flow: &Flow, span_s: f64) -> f64 {
        let servers: f64 = self.plan.applications.iter().map(|it| f64::from(it.servers)).sum();
        let offered: f64 = self.plan.applications.iter().map(|it| it.explanation.offered_rps).sum();
        let work =
            |it: &ApplicationPlan| it.explanation.offered_rps * it.explanation.service_s.unwrap_or(0.0);
        let service_s = self.plan.applications.iter().map(work).sum::<f64>() / offered;
        let used = flow.admitted as f64 / span_s * service_s / servers;
        if used.is_finite() { used } else { 0.0 }
    }
}
