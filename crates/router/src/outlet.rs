//! Environment of the router's planner: programs in the kernel that it learns from and gives orders to, the
//! state file, and figures for people.

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
use crate::status::RouterStatus;
use flashweir_admission::flash_crowd::{FlashCrowdPlanner, Plan, Rule, Sample};
use flashweir_config::RouterConfig;
use flashweir_core::{Duration, Instant, Rate};
use flashweir_kernel::gate::ServicePlan;
use flashweir_runtime::kernel::Inheritance;
use flashweir_runtime::planner_loop::{LoopEvent, Outlet};
use flashweir_runtime::{BaselineKeeper, planner, tell_change, tell_verdict};
use flashweir_telemetry::KernelFigures;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};

/// Everything around the planner.
pub(crate) struct RouterOutlet {
    pub(crate) config: RouterConfig,
    pub(crate) guard: Guard,
    pub(crate) sampler: Sampler,
    pub(crate) destinations: Destinations,
    pub(crate) places: Places,
    /// The gate's last orders, place by place.
    pub(crate) in_force: Vec<ServicePlan>,
    pub(crate) inheritance: Inheritance,
    pub(crate) keeper: BaselineKeeper,
    /// The next report for people.
    pub(crate) status: RouterStatus,
    pub(crate) known: Arc<Known>,
}

impl RouterOutlet {
    /// The measurements of the programs in the kernel since the last sample.
    pub(crate) fn sample(&mut self, now: Instant) -> Result<Sample, RouterError> {
        let counts = self.guard.gate.counters()?;
        let observed = self.guard.observer.read()?;
        let sampled = self.sampler.sample(now, &counts, &observed, &self.places, &mut self.destinations);
        self.status.measured(&sampled, &observed);
        Ok(sampled.sample)
    }

    /// Publishes the figures.
    pub(crate) fn show(&mut self) -> Result<(), RouterError> {
        let gate = &self.guard.gate;
        let interfaces = self.guard.interfaces();
        self.status.kernel = KernelFigures {
            services: figures::services(&self.places, &gate.counters()?, &self.in_force, &self.config.kernel),
            passed: gate.passed()?.map(|(reason, count)| (reason.as_str(), count)).to_vec(),
            interfaces: interfaces.iter().filter(|interface| interface.hook.is_some()).count(),
            generation: gate.generation(),
            ..self.status.kernel.clone()
        };
        self.status.interfaces = interfaces;
        self.status.place_destinations = self.places.endpoints();
        self.known.telemetry.control().publish_kernel(Some(self.status.kernel.clone()));
        self.known.status.store(Arc::new(self.status.clone()));
        Ok(())
    }
}

impl Outlet<FlashCrowdPlanner> for RouterOutlet {
    type Error = RouterError;

    fn now(&self) -> Instant {
        self.known.clock.now()
    }

    fn interval(&self) -> Duration {
        self.config.flash_crowd.interval
    }

    fn planner(&mut self) -> Option<FlashCrowdPlanner> {
        planner(&self.config.flash_crowd, 1, self.keeper.latest())
    }

    fn epoch_in_force(&self) -> u64 {
        self.status.decision.plan.epoch
    }

    fn publish(
        &mut self,
        now: Instant,
        plan: Plan,
        _: Option<&FlashCrowdPlanner>,
    ) -> Result<(), RouterError> {
        self.known.telemetry.control().publish_plan(&plan);
        let hot = hot_spots(&plan, &self.destinations);
        let hottest: Vec<SocketAddr> = hot.iter().map(|(destination, _)| *destination).collect();
        if self.places.give(&hottest) {
            self.guard.gate.set_services(settings::services(&self.places, &self.config.kernel))?;
            // With new services the gate lets everything in until it gets orders.
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
        let before = &self.status.decision.plan.explanation;
        tell_change(shadow, [before, &plan.explanation]);
        let causes = [before.cause.as_str(), plan.explanation.cause.as_str()];
        tell_verdict(&self.known.telemetry.warnings(), now, causes);
        let hot_spots = hot.iter().map(|(at, rate)| (*at, Rate::per_second(*rate))).collect();
        self.status.decision = Arc::new(Decision { at: now, plan, hot_spots, shadow });
        let mut decisions = self.known.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        decisions.remember(self.status.decision.clone());
        Ok(())
    }

    /// Signs of life must not wait for the disk.
    fn keep_baseline(&mut self, now: Instant, planner: &FlashCrowdPlanner) {
        if !self.keeper.refresh(now, || planner.baseline()) {
            return;
        }
        let mode = self.status.decision.plan.explanation.mode;
        if let Some(file) =
            self.keeper.is_save_due(now, mode).then(|| settings::state_file(&self.config)).flatten()
        {
            self.keeper.save_soon(now, file, self.known.clone(), |known| &known.telemetry);
        }
    }

    fn report(&mut self, now: Instant, event: &LoopEvent) {
        event.tell(&self.known.telemetry.warnings(), now, "the planner of NEWS");
    }
}

/// Returns whether from such a decision on only responses of connections that were let in under it say
/// anything: the planner then leaves out all others.
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
        Rule::None | Rule::Seed | Rule::Learn | Rule::Suspect | Rule::Decay => false,
    }
}
