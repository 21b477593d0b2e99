//! The run itself.

use super::autoscaler::Autoscaler;
use super::fleet::Fleet;
use super::oracle::orders;
use super::outcome::{ApplicationOutcome, Bin, Order, PoolOutcome};
use super::scenario::{PoolError, Scaler, Scenario};
use super::traffic::{TickCounts, Traffic};
use flashweir_admission::PlannerDriver;
use flashweir_core::{Duration, Instant, Rng};
use flashweir_provisioning::{
    ApplicationSample, Plan, PoolState, ProvisioningPlanner, Rule, Sample, SentryLoad,
};

/// Runs a scenario; the same scenario gives the same outcome.
///
/// # Errors
/// [`PoolError`] of a scenario that makes no run.
pub fn run(scenario: &Scenario) -> Result<PoolOutcome, PoolError> {
    scenario.check()?;
    let mut world = World::new(scenario)?;
    let ticks = scenario.ends_at().as_nanos().div_ceil(scenario.tick.as_nanos() as u64);
    let (mut now, mut decide_at) = (Instant::ZERO, Instant::ZERO + world.interval());
    for _ in 0..ticks {
        now += scenario.tick;
        world.step(now);
        if now >= decide_at {
            world.decide(now);
            decide_at += world.interval();
        }
    }
    Ok(world.outcome())
}

struct World<'a> {
    scenario: &'a Scenario,
    applications: Vec<Application<'a>>,
    deciding: Deciding,
    reported_at: Instant,
    last_plan: Option<Plan>,
}

struct Application<'a> {
    traffic: Traffic<'a>,
    fleet: Fleet,
    rng: Rng,
    target: Duration,
    sentries: u32,
    /// Requests since the last report, for the sentries' load.
    offered: u64,
    bin_ends_at: Instant,
    outcome: ApplicationOutcome,
}

enum Deciding {
    Planner(Box<PlannerDriver<ProvisioningPlanner>>),
    Autoscalers(Vec<Autoscaler>, Duration),
    /// Orders by interval.
    Oracle(Vec<Vec<u32>>, usize),
    Fixed,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self, PoolError> {
        let seeds = Rng::new(scenario.seed);
        let both = || scenario.applications.iter().zip(&scenario.policy.applications);
        let applications = both().zip(0..).map(|((model, policy), place)| Application {
            traffic: Traffic::new(model),
            fleet: Fleet::new(model.servers),
            rng: seeds.fork(place),
            target: policy.ladder[0].target,
            sentries: 1,
            offered: 0,
            bin_ends_at: Instant::ZERO + scenario.bin,
            outcome: ApplicationOutcome {
                bins: vec![Bin::default()],
                orders: vec![Order { at: Instant::ZERO, servers: model.servers, rule: None }],
                sentries: vec![(Instant::ZERO, 1)],
                bin_s: scenario.bin.as_secs_f64(),
                ..ApplicationOutcome::default()
            },
        });
        let applications: Vec<Application<'_>> = applications.collect();
        let deciding = match &scenario.scaler {
            Scaler::Planner => {
                let planner = ProvisioningPlanner::new(scenario.policy.clone())?;
                Deciding::Planner(Box::new(PlannerDriver::new(planner, Instant::ZERO)))
            }
            Scaler::Autoscaler(settings) => {
                let each = applications.iter().map(|_| Autoscaler::new(*settings));
                Deciding::Autoscalers(each.collect(), settings.interval)
            }
            Scaler::Oracle => {
                Deciding::Oracle(both().map(|(model, policy)| orders(scenario, model, policy)).collect(), 0)
            }
            Scaler::Fixed => Deciding::Fixed,
        };
        let mut world =
            Self { scenario, applications, deciding, reported_at: Instant::ZERO, last_plan: None };
        if let Deciding::Oracle(..) = world.deciding {
            world.begin_as_oracle();
        }
        Ok(world)
    }

    /// The oracle knows the profile: its first servers are up at the beginning.
    fn begin_as_oracle(&mut self) {
        self.decide(Instant::ZERO);
        for application in &mut self.applications {
            application.fleet = Fleet::new(application.fleet.total());
        }
    }

    fn interval(&self) -> Duration {
        match &self.deciding {
            Deciding::Autoscalers(_, interval) => *interval,
            _ => self.scenario.policy.interval,
        }
    }

    fn step(&mut self, now: Instant) {
        let tick = self.scenario.tick;
        for (place, application) in self.applications.iter_mut().enumerate() {
            application.fleet.step(now, tick);
            let ready = application.fleet.ready;
            let counts = application.traffic.step(&mut application.rng, tick, ready, application.target);
            let ready_s = f64::from(ready) * tick.as_secs_f64();
            application.record(now, self.scenario.bin, &counts, ready_s);
            if let Deciding::Autoscalers(autoscalers, _) = &mut self.deciding {
                autoscalers[place].observe(now, counts.worked_s, ready_s);
            }
        }
    }

    fn decide(&mut self, now: Instant) {
        let sample = self.sample(now);
        match &mut self.deciding {
            Deciding::Planner(planner) => {
                planner.observe(now, &sample);
                let plan = planner.plan(now);
                self.obey(now, &plan);
                self.last_plan = Some(plan);
            }
            Deciding::Autoscalers(autoscalers, _) => {
                let each = self.applications.iter().zip(autoscalers);
                let wanted = each.map(|(it, scaler)| scaler.decide(now, it.fleet.ready, it.fleet.starting()));
                let wanted: Vec<u32> = wanted.collect();
                self.set_within_pool(now, &wanted);
            }
            Deciding::Oracle(orders, interval) => {
                let now_wanted =
                    |orders: &Vec<u32>| orders.get(*interval).or(orders.last()).copied().unwrap_or(0);
                let wanted: Vec<u32> = orders.iter().map(now_wanted).collect();
                *interval += 1;
                self.set_within_pool(now, &wanted);
            }
            Deciding::Fixed => {}
        }
    }

    /// Takes the planner's sample: everything since the last decision.
    fn sample(&mut self, now: Instant) -> Sample {
        let span_s = now.saturating_since(self.reported_at).as_secs_f64();
        let each = self.applications.iter_mut().zip(&self.scenario.applications);
        let applications = each.map(|(application, model)| {
            let sentries = model.sentry.map(|sentry| {
                let count = application.sentries;
                let busy = application.offered as f64 / span_s / sentry.capacity_rps / f64::from(count);
                SentryLoad { count, busiest: busy.min(1.0), mean: busy.min(1.0) }
            });
            application.offered = 0;
            let fleet = &mut application.fleet;
            let pool = PoolState {
                ready: fleet.ready,
                starting: fleet.starting(),
                start_ups: fleet.take_start_ups(),
            };
            ApplicationSample {
                classes: application.traffic.take_counts(),
                pool: Some(pool),
                sentries,
                ..ApplicationSample::default()
            }
        });
        let sample = Sample { from: self.reported_at, to: now, applications: applications.collect() };
        self.reported_at = now;
        sample
    }

    fn obey(&mut self, now: Instant, plan: &Plan) {
        let start_up = self.scenario.start_up;
        for (application, it) in self.applications.iter_mut().zip(&plan.applications) {
            application.target = it.target;
            if application.sentries != it.sentries {
                application.sentries = it.sentries;
                application.outcome.sentries.push((now, it.sentries));
            }
            application.set(now, it.servers, &start_up, Some(it.explanation.rule));
        }
    }

    /// Bounds by the policy and the pool, the first application first.
    fn set_within_pool(&mut self, now: Instant, wanted: &[u32]) {
        let start_up = self.scenario.start_up;
        let mut left = self.scenario.policy.pool;
        let each = self.applications.iter_mut().zip(&self.scenario.policy.applications).zip(wanted);
        for ((application, policy), &wanted) in each {
            let servers = wanted.clamp(policy.servers_min, policy.servers_max).min(left);
            left -= servers;
            application.set(now, servers, &start_up, None);
        }
    }

    fn outcome(self) -> PoolOutcome {
        let applications = self.applications.into_iter().map(|application| ApplicationOutcome {
            server_hours: application.fleet.server_s / 3_600.0,
            reversals: application.fleet.reversals,
            ..application.outcome
        });
        PoolOutcome {
            applications: applications.collect(),
            bin: self.scenario.bin,
            last_plan: self.last_plan,
        }
    }
}

impl Application<'_> {
    fn record(&mut self, now: Instant, bin: Duration, counts: &TickCounts, ready_s: f64) {
        self.offered += counts.offered;
        if now > self.bin_ends_at {
            self.bin_ends_at += bin;
            self.outcome.bins.push(Bin::default());
        }
        // There is always an open bin.
        if let Some(open) = self.outcome.bins.last_mut() {
            open.offered += counts.offered;
            open.admitted += counts.admitted;
            open.late += counts.late;
            open.revenue += counts.revenue;
            open.ready_s += ready_s;
            open.worked_s += counts.worked_s;
            open.target = self.target;
        }
    }

    fn set(&mut self, now: Instant, servers: u32, start_up: &super::scenario::StartUp, rule: Option<Rule>) {
        if self.fleet.set(now, servers, start_up, &mut self.rng) {
            self.outcome.orders.push(Order { at: now, servers, rule });
        }
    }
}
