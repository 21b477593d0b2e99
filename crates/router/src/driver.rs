//! Each interval: what was seen becomes a sample, the planner decides, the gate is told. And each second a sign of life for
//! the kernel, a look at the interfaces, and figures for people.
//!
//! Cost of a tick: the observer's reading, the planner, and some ten microseconds for each place. If any of it fails the
//! router ends, and with it whatever it limited: a guard that no longer knows what it does must not stand in the way.

use crate::admin::Known;
use crate::destinations::Destinations;
use crate::error::RouterError;
use crate::figures;
use crate::guard::Guard;
use crate::orders::{hot_spots, orders};
use crate::places::Places;
use crate::record::Decision;
use crate::sample::Sampler;
use crate::settings;
use crate::status::Told;
use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{Baseline, FlashCrowdPlanner, Mode, Plan, Rule};
use flashweir_config::RouterConfig;
use flashweir_control::kernel::{Inheritance, inherited_plans, ranks};
use flashweir_control::{planner, tell_change};
use flashweir_core::{Duration, Hasher64, Instant, Rate};
use flashweir_kernel::gate::ServicePlan;
use flashweir_telemetry::KernelFigures;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

/// The kernel opens the gate after three seconds without a sign of life.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// A crash loses at most this much learning.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// The planner and what it drives.
pub(crate) struct Driver {
    config: RouterConfig,
    guard: Guard,
    planner: Option<PlannerDriver<FlashCrowdPlanner>>,
    sampler: Sampler,
    destinations: Destinations,
    places: Places,
    /// What the gate was told last, place by place.
    in_force: Vec<ServicePlan>,
    inheritance: Inheritance,
    beaten_at: Instant,
    plan_at: Instant,
    save_at: Instant,
    /// What is about to be told.
    told: Told,
    known: Arc<Known>,
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
        let learned = learned_earlier(&config);
        let mut driver = Self {
            planner: None,
            sampler: Sampler::new(now),
            destinations: Destinations::new(hasher),
            places: settings::places(&config.kernel)?,
            in_force: Vec::new(),
            inheritance: Inheritance::from(now),
            beaten_at: now,
            plan_at: now,
            save_at: now + SAVE_INTERVAL,
            told: Told::clone(&known.told.load()),
            config,
            guard,
            known,
        };
        driver.configure(now, &learned)?;
        driver.sampler.begin_after(&driver.guard.gate.counters()?);
        Ok(driver)
    }

    /// Stands before every interface from now on, or before none.
    pub(crate) fn attach(&mut self) -> Result<(), RouterError> {
        self.guard.gate.beat()?;
        self.guard.attach()?;
        self.publish()
    }

    /// Takes over another configuration: detection begins anew from what was learned, with everything let in.
    pub(crate) fn reconfigure(&mut self, config: RouterConfig) -> Result<(), RouterError> {
        self.places = settings::places(&config.kernel)?;
        let are_the_same = config.kernel.protect == self.config.kernel.protect;
        let learned = if are_the_same { self.baseline() } else { learned_earlier(&config) };
        self.config = config;
        self.configure(self.known.clock.now(), &learned)
    }

    /// What is in force.
    pub(crate) fn config(&self) -> &RouterConfig {
        &self.config
    }

    /// When there is next something to do.
    pub(crate) fn due_at(&self) -> Instant {
        self.plan_at.min(self.beaten_at + BEAT_INTERVAL)
    }

    /// Does what is due. Calling early is harmless.
    pub(crate) fn wake(&mut self) -> Result<(), RouterError> {
        let now = self.known.clock.now();
        let since_beat = now.saturating_since(self.beaten_at);
        if since_beat >= BEAT_INTERVAL {
            self.guard.gate.beat()?;
            self.beaten_at = now;
            self.told.kernel.heartbeat_age_s = since_beat.as_secs_f64();
            self.guard.look_after(now, &self.known.telemetry.warnings());
        }
        if now >= self.plan_at {
            self.tick(now)?;
        }
        self.publish()
    }

    /// Leaves the gates, where they are pinned, with the plan in force, to the router that comes next. Whether they are.
    pub(crate) fn leave(self) -> Result<bool, RouterError> {
        self.guard.leave()
    }

    /// What was learned so far.
    pub(crate) fn baseline(&self) -> Baseline {
        self.planner.as_ref().map_or_else(|| self.told.baseline.clone(), |driver| driver.planner().baseline())
    }

    fn configure(&mut self, now: Instant, learned: &Baseline) -> Result<(), RouterError> {
        let (config, guard) = (&self.config, &mut self.guard);
        guard.gate.fail_closed(config.kernel.fail_closed)?;
        guard.gate.prefer(&settings::preferred(&config.kernel))?;
        guard.gate.rank(ranks(&config.kernel))?;
        guard.gate.set_services(settings::services(&self.places, &config.kernel))?;
        guard.observer.watch(&config.kernel.protect)?;
        self.in_force = inherited_plans(&guard.gate, self.places.count());
        self.planner = planner(&config.flash_crowd, 1, learned, now);
        // Where nobody decides, or nobody is to be refused, nobody's plan is waited for.
        if settings::is_shadow(config) || self.planner.is_none() {
            self.in_force = vec![ServicePlan::default(); self.places.count()];
            guard.gate.apply(&self.in_force)?;
        }
        self.plan_at = now + config.flash_crowd.interval;
        self.told = Told::of(config, learned.clone());
        self.known.telemetry.control().set_shadow(settings::is_shadow(config));
        self.publish()
    }

    fn tick(&mut self, now: Instant) -> Result<(), RouterError> {
        let counts = self.guard.gate.counters()?;
        let observed = self.guard.observer.read()?;
        let sampled = self.sampler.sample(now, &counts, &observed, &self.places, &mut self.destinations);
        self.told.measured(&sampled, &observed);
        self.plan_at = now + self.config.flash_crowd.interval;
        let Some(planner) = &mut self.planner else { return Ok(()) };
        planner.observe(now, &sampled.sample);
        let plan = planner.plan(now);
        self.plan_at = planner.next_plan_at();
        self.told.baseline = planner.planner().baseline();
        let metrics = self.known.telemetry.control();
        metrics.samples_judged.increment();
        metrics.publish_plan(&plan);
        self.decide(now, plan)?;
        metrics.planner_tick.record(self.known.clock.now().saturating_since(now));
        self.keep_baseline(now);
        Ok(())
    }

    /// Tells the gate, and whoever asks.
    fn decide(&mut self, now: Instant, plan: Plan) -> Result<(), RouterError> {
        let hot = hot_spots(&plan, &self.destinations);
        let hottest: Vec<SocketAddr> = hot.iter().map(|(destination, _)| *destination).collect();
        if self.places.give(&hottest) {
            self.guard.gate.set_services(settings::services(&self.places, &self.config.kernel))?;
            // With new services the gate lets everything in until it is told better.
            self.in_force = vec![ServicePlan::default(); self.places.count()];
        }
        let orders = orders(&plan, &hot, &self.places, settings::manner(&self.config));
        if orders != self.in_force && !self.inheritance.stays(now, &self.guard.gate, &orders) {
            self.guard.gate.apply(&orders)?;
            self.in_force = orders;
        }
        if asks_for_fresh_evidence(plan.explanation.rule) {
            self.guard.observer.plan_changed()?;
            self.sampler.plan_changed(now);
        }
        let shadow = settings::is_shadow(&self.config);
        let before = &self.told.decision.plan.explanation;
        tell_change(&self.known.telemetry.warnings(), now, shadow, [before, &plan.explanation]);
        let hot_spots = hot.iter().map(|(at, rate)| (*at, Rate::per_second(*rate))).collect();
        self.told.decision = Arc::new(Decision { at: now, plan, hot_spots, shadow });
        let mut decisions = self.known.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        decisions.remember(self.told.decision.clone());
        Ok(())
    }

    /// What was learned in quiet times goes to the disk now and then; a crowd's baseline does not change.
    fn keep_baseline(&mut self, now: Instant) {
        let is_quiet = self.told.decision.plan.explanation.mode == Mode::Normal;
        if now < self.save_at || !is_quiet {
            return;
        }
        self.save_at = now + SAVE_INTERVAL;
        if let Some(file) = settings::state_file(&self.config) {
            let (known, baseline) = (self.known.clone(), self.baseline());
            // Syncing to the disk blocks; signs of life must not wait for it.
            tokio::task::spawn_blocking(move || file.save_or_tell(now, &baseline, &known.telemetry));
        }
    }

    fn publish(&mut self) -> Result<(), RouterError> {
        let gate = &self.guard.gate;
        let interfaces = self.guard.interfaces();
        self.told.kernel = KernelFigures {
            services: figures::services(&self.places, &gate.counters()?, &self.in_force, &self.config.kernel),
            passed: gate.passed()?.map(|(reason, count)| (reason.as_str(), count)).to_vec(),
            interfaces: interfaces.iter().filter(|interface| interface.hook.is_some()).count(),
            generation: gate.generation(),
            ..self.told.kernel.clone()
        };
        self.told.interfaces = interfaces;
        self.told.place_destinations = self.places.endpoints();
        self.known.telemetry.control().publish_kernel(Some(self.told.kernel.clone()));
        self.known.told.store(Arc::new(self.told.clone()));
        Ok(())
    }
}

/// What an earlier run learned about these servers.
fn learned_earlier(config: &RouterConfig) -> Baseline {
    settings::state_file(config).map(|file| file.load_or_begin_anew()).unwrap_or_default()
}

/// Whether from such a decision on only responses of connections that were let in under it say anything: the planner then
/// leaves out all others.
fn asks_for_fresh_evidence(rule: Rule) -> bool {
    match rule {
        Rule::Raise
        | Rule::Cut
        | Rule::Hold
        | Rule::Yield
        | Rule::ProbeUp
        | Rule::Relax
        | Rule::Release
        | Rule::Rebase => true,
        Rule::None | Rule::Seed | Rule::Learn | Rule::Suspect => false,
    }
}
