//! Each interval: the observations become a sample, the planner decides, the gate gets its orders. And each
//! second a sign of life for the kernel, a look at the interfaces, and figures for people.
//!
//! Cost of a tick: the observer's reading, the planner, and some ten microseconds for each place. If any of
//! it but the planner fails the router ends, and with it all its limits: a guard that no longer knows what it
//! does must not stand in the way. A planner that fails is restarted by its loop.

use crate::admin::Known;
use crate::destinations::Destinations;
use crate::error::RouterError;
use crate::guard::Guard;
use crate::outlet::RouterOutlet;
use crate::sample::Sampler;
use crate::settings;
use crate::status::RouterStatus;
use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Plan};
use flashweir_admission::pace::TICK_INTERVAL_MIN;
use flashweir_config::RouterConfig;
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_kernel::gate::ServicePlan;
use flashweir_runtime::BaselineKeeper;
use flashweir_runtime::kernel::{Inheritance, inherited_plans, ranks};
use flashweir_runtime::planner_loop::PlannerLoop;
use std::sync::Arc;

/// The kernel opens the gate after three seconds without a sign of life.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// The planner and what it drives.
pub(crate) struct Driver {
    planner_loop: PlannerLoop<FlashCrowdPlanner>,
    outlet: RouterOutlet,
    beaten_at: Instant,
    plan_at: Instant,
}

impl Driver {
    /// A driver of programs that are loaded and stand before no interface yet.
    pub(crate) fn new(
        config: RouterConfig,
        guard: Guard,
        hasher: Hasher64,
        known: Arc<Known>,
    ) -> Result<Self, RouterError> {
        let now = known.clock.now();
        let mut outlet = RouterOutlet {
            sampler: Sampler::new(now),
            destinations: Destinations::new(hasher),
            places: settings::places(&config.kernel)?,
            in_force: Vec::new(),
            inheritance: Inheritance::from(now),
            status: RouterStatus::clone(&known.status.load()),
            keeper: BaselineKeeper::new(learned_earlier(&config), now),
            config,
            guard,
            known,
        };
        let planner_loop = PlannerLoop::new(&mut outlet, Plan::open(1));
        let mut driver = Self { planner_loop, outlet, beaten_at: now, plan_at: now };
        driver.configure(now)?;
        driver.outlet.sampler.begin_after(&driver.outlet.guard.gate.counters()?);
        Ok(driver)
    }

    /// Stands before every interface from now on, or before none.
    pub(crate) fn attach(&mut self) -> Result<(), RouterError> {
        self.outlet.guard.gate.beat()?;
        self.outlet.guard.attach()?;
        self.outlet.show()
    }

    /// Takes over another configuration: detection begins again from what was learned, with everything let
    /// in.
    pub(crate) fn reconfigure(&mut self, config: RouterConfig) -> Result<(), RouterError> {
        let outlet = &mut self.outlet;
        outlet.places = settings::places(&config.kernel)?;
        let are_the_same = config.kernel.protect == outlet.config.kernel.protect;
        if !are_the_same {
            outlet.keeper.replace(learned_earlier(&config));
        } else if let Some(planner) = self.planner_loop.planner() {
            outlet.keeper.replace(planner.baseline());
        }
        outlet.config = config;
        let now = outlet.known.clock.now();
        self.planner_loop.rebuild(outlet, Plan::open(1));
        self.configure(now)
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> &RouterConfig {
        &self.outlet.config
    }

    /// Time of the next work.
    pub(crate) fn due_at(&self) -> Instant {
        self.plan_at.min(self.beaten_at + BEAT_INTERVAL)
    }

    /// Does what is due. Calling early is harmless.
    pub(crate) fn wake(&mut self) -> Result<(), RouterError> {
        let outlet = &mut self.outlet;
        let now = outlet.known.clock.now();
        let since_beat = now.saturating_since(self.beaten_at);
        if since_beat >= BEAT_INTERVAL {
            outlet.guard.gate.beat()?;
            self.beaten_at = now;
            outlet.status.kernel.heartbeat_age_s = since_beat.as_secs_f64();
            outlet.guard.look_after(now, &outlet.known.telemetry.warnings());
        }
        if now >= self.plan_at {
            self.tick(now)?;
        }
        self.outlet.show()
    }

    /// Leaves the gates, where they are pinned, with the plan in force, to the router that comes next.
    /// Whether they are.
    pub(crate) fn leave(self) -> Result<bool, RouterError> {
        self.outlet.guard.leave()
    }

    /// The baseline learned so far.
    pub(crate) fn baseline(&self) -> Baseline {
        let latest = || self.outlet.keeper.latest().clone();
        self.planner_loop.planner().map_or_else(latest, FlashCrowdPlanner::baseline)
    }

    fn configure(&mut self, now: Instant) -> Result<(), RouterError> {
        let outlet = &mut self.outlet;
        let (config, guard) = (&outlet.config, &mut outlet.guard);
        guard.gate.fail_closed(config.kernel.fail_closed)?;
        guard.gate.prefer(&settings::preferred(&config.kernel))?;
        guard.gate.rank(ranks(&config.kernel))?;
        guard.gate.set_services(settings::services(&outlet.places, &config.kernel))?;
        guard.observer.watch(&config.kernel.protect)?;
        outlet.in_force = inherited_plans(&guard.gate, outlet.places.count());
        // Where no planner decides, or no connection is to be refused, no plan is waited for.
        if settings::is_shadow(config) || self.planner_loop.planner().is_none() {
            outlet.in_force = vec![ServicePlan::default(); outlet.places.count()];
            guard.gate.apply(&outlet.in_force)?;
        }
        self.plan_at = now + config.flash_crowd.interval;
        outlet.status = RouterStatus::of(config, outlet.keeper.latest().clone());
        outlet.known.telemetry.control().set_shadow(settings::is_shadow(config));
        outlet.show()
    }

    fn tick(&mut self, now: Instant) -> Result<(), RouterError> {
        let outlet = &mut self.outlet;
        let sample = outlet.sample(now)?;
        self.planner_loop.observe(outlet, now, &sample);
        self.planner_loop.evaluate(outlet)?;
        let interval = outlet.config.flash_crowd.interval;
        // A planner that fails may name any moment.
        let due = self.planner_loop.next_plan_at().unwrap_or(now + interval);
        self.plan_at = due.max(now + TICK_INTERVAL_MIN).min(now + 2 * interval);
        if let Some(planner) = self.planner_loop.planner() {
            outlet.status.baseline = planner.baseline();
            let metrics = outlet.known.telemetry.control();
            metrics.samples_judged.increment();
            metrics.planner_tick.record(outlet.known.clock.now().saturating_since(now));
        }
        Ok(())
    }
}

/// The baseline that an earlier run learned about these servers.
fn learned_earlier(config: &RouterConfig) -> Baseline {
    settings::state_file(config).map(|file| file.load_or_begin_anew()).unwrap_or_default()
}
