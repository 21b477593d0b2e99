//! The slow half of the gate in the kernel: looks, decides, writes, ten times a second.

use super::ceiling::{
    CeilingInputs, Decision, by_tier, connections_per_request, decide, headroom, retry_after, tier_ceilings,
};
use super::guard::{Guard, GuardError};
use super::report::{figures, status};
use super::sources::Sources;
use super::window::{Counts, ServiceTotals, Window};
use crate::sentry::Sentry;
use crate::shared::Shared;
use flashweir_admission::pipeline::{ServiceDemand, StageName};
use flashweir_config::{Config, Service};
use flashweir_core::kernel_counts::GateCounts;
use flashweir_core::limits::CLASSES;
use flashweir_core::{Duration, Instant, Reason};
use flashweir_kernel::gate::ServicePlan;
use flashweir_runtime::kernel::refusal;
use flashweir_telemetry::{ClassMetrics, Happening};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// As often as the planner of NEWS decides by default.
const INTERVAL: Duration = Duration::from_millis(100);
/// A third of the silence after which the kernel lets everything in.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Decides about the kernel's ceiling. Lives on the control thread.
pub(super) struct KernelTask {
    shared: Arc<Shared>,
    guard: Guard,
    window: Window,
    sources: Sources,
    before: GateCounts,
    beat_at: Instant,
    beat_age: Duration,
    had_ceiling: bool,
}

impl KernelTask {
    pub(super) fn new(shared: Arc<Shared>, mut guard: Guard) -> Self {
        let beat_at = shared.clock.now();
        guard.started(beat_at);
        // What the gate of an earlier process counted was offered to that. If it cannot be read, the next
        // look says so.
        let before = guard.counts().unwrap_or_default();
        Self {
            shared,
            guard,
            window: Window::default(),
            sources: Sources::default(),
            before,
            beat_at,
            beat_age: Duration::ZERO,
            had_ceiling: false,
        }
    }

    /// Until the future is dropped, and the gate with it; or until it is to be left, where it is pinned.
    pub(super) async fn run(mut self, leave: CancellationToken) {
        let mut due = self.shared.clock.now();
        let mut configured = self.shared.live.load_full().config.clone();
        loop {
            let live = self.shared.live.load_full();
            let differs = live.config.kernel != configured.kernel || live.config.client != configured.client;
            let followed = if differs { self.guard.follow(&live.config) } else { Ok(()) };
            let done = followed.and_then(|()| match self.shared.is_draining() {
                // The gateway serves no more requests, which does not change the right ceiling: the last plan
                // stays.
                true => self.beat(self.shared.clock.now()),
                false => self.tick(&live.config),
            });
            if let Err(error) = done {
                self.shared.warn(
                    Happening::Kernel,
                    format_args!("the gate in the kernel does not take its orders: {error}"),
                );
            } else if differs {
                configured = live.config.clone();
            }
            // Late looks don't pile up.
            due = (due + INTERVAL).max(self.shared.clock.now());
            tokio::select! {
                () = leave.cancelled() => return self.guard.leave(),
                () = tokio::time::sleep_until(self.shared.clock.timer_at(due)) => {}
            }
        }
    }

    fn tick(&mut self, config: &Config) -> Result<(), GuardError> {
        let now = self.shared.clock.now();
        let counts = self.guard.counts()?;
        self.window.push(self.look(now, config, &counts));
        let inputs = self.inputs(config);
        let decision = decide(&inputs);
        self.sources.follow(now, &self.shared.impatient.in_force(now), &mut self.guard)?;
        let plan = plan(config, &inputs, decision.as_ref(), self.sources.purges());
        self.guard.apply(now, plan)?;
        // Only now: where no plan can be written any more, the kernel is to let everything in.
        self.beat(now)?;
        self.tell_news(&counts, &inputs);
        self.tell(now, config, &inputs, decision.as_ref(), counts)
    }

    /// Each second: says that the gateway lives, and looks after the interfaces.
    fn beat(&mut self, now: Instant) -> Result<(), GuardError> {
        if now.saturating_since(self.beat_at) >= BEAT_INTERVAL {
            self.guard.beat()?;
            self.beat_age = now.saturating_since(self.beat_at);
            self.beat_at = now;
            self.guard.look_after(now, &self.shared.warnings);
        }
        Ok(())
    }

    /// Everything that is counted, now.
    fn look(&self, now: Instant, config: &Config, counts: &GateCounts) -> Counts {
        let telemetry = &self.shared.telemetry;
        Counts {
            at: now,
            accepted: telemetry.sum(|worker| worker.connections.opened.value()),
            requests: telemetry.sum(|worker| worker.requests.offered.value()),
            arriving: counts.unique_offered,
            services: self.totals(config),
        }
    }

    /// Counts of each service, by the rank of its classes.
    fn totals(&self, config: &Config) -> Vec<ServiceTotals> {
        let live = self.shared.live.load();
        let services = config.services.iter().enumerate();
        let of_service = |(index, service): (usize, &Service)| {
            totals(&self.shared, service, live.sentries.get(index).and_then(Option::as_deref))
        };
        services.map(of_service).collect()
    }

    fn inputs(&self, config: &Config) -> CeilingInputs {
        let live = self.shared.live.load();
        let services = config.services.iter().enumerate().map(|(index, service)| {
            let rate = |count: &dyn Fn(&ServiceTotals) -> u64| {
                self.window.per_second(|counts| counts.services.get(index).map_or(0, count))
            };
            let sentry = live.sentries.get(index).and_then(Option::as_ref);
            ServiceDemand {
                offered_rps: std::array::from_fn(|rank| rate(&|service| service.offered[rank])),
                refused_rps: rate(&|service| service.refused),
                capacity_rps: sentry.map_or(0.0, |sentry| sentry.plan.load().explanation.capacity_rps),
                is_shadow: service.sentry.shadow,
            }
        });
        CeilingInputs {
            news: self.shared.plan.load_full(),
            news_is_shadow: config.flash_crowd.shadow,
            services: services.collect(),
            has_ranks: self.window.last().is_some_and(|last| {
                last.services.iter().any(|service| service.ranks.iter().any(|&rank| rank > 0))
            }),
            has_choice: config.services.len() > 1
                || config.services.iter().any(|service| service.classes.len() > 1),
            accepted_per_s: self.window.per_second(|counts| counts.accepted),
            requests_per_s: self.window.per_second(|counts| counts.requests),
            arriving_per_s: self.window.per_second(|counts| counts.arriving),
            shadow: config.kernel.shadow,
        }
    }

    /// Reports connections refused in the kernel as offered, but for sources that ignore `Retry-After`. The
    /// kernel knows connections: each is taken for as many requests as one brings now.
    fn tell_news(&mut self, counts: &GateCounts, inputs: &CeilingInputs) {
        let before = std::mem::replace(&mut self.before, *counts);
        let away = |offered: fn(&GateCounts) -> u64| {
            let refused = |counts: &GateCounts| offered(counts).saturating_sub(counts.admitted);
            refused(counts).saturating_sub(refused(&before)) as f64
        };
        let requests = |connections: f64| (connections / connections_per_request(inputs)) as u64;
        let turned_away = &self.shared.turned_away;
        turned_away.add(
            requests(away(|counts| counts.offered - counts.purged)),
            requests(away(|counts| counts.unique_offered)),
        );
    }

    fn tell(
        &mut self,
        now: Instant,
        config: &Config,
        inputs: &CeilingInputs,
        decision: Option<&Decision>,
        counts: GateCounts,
    ) -> Result<(), GuardError> {
        if decision.is_some() != self.had_ceiling {
            self.had_ceiling = decision.is_some();
            let what = match decision {
                Some(Decision { connections_per_s, reason, shadow, .. }) => format!(
                    "the kernel lets in {connections_per_s:.0} new connections per second ({reason}, shadow: {shadow})"
                ),
                None => "the kernel lets in every new connection again".to_owned(),
            };
            self.shared.warnings.inform(now, Happening::KernelCeiling, format_args!("{what}"));
        }
        let figures = figures(config, &self.guard, counts, self.beat_age)?;
        self.shared.kernel_told.store(Some(Arc::new(status(
            config,
            &self.guard,
            inputs,
            decision,
            &figures,
            &counts.tiers,
        ))));
        self.shared.telemetry.control().publish_kernel(Some(figures));
        Ok(())
    }
}

fn plan(config: &Config, inputs: &CeilingInputs, decision: Option<&Decision>, purges: bool) -> ServicePlan {
    let Some(decision) = decision else {
        // A plan that refuses nothing does not look at sources.
        let purging = ServicePlan {
            refusal: refusal(&config.kernel),
            shadow: config.kernel.shadow,
            ..ServicePlan::default()
        };
        return if purges { purging } else { ServicePlan::default() };
    };
    let admissible_rps = by_tier(&decision.admissible, inputs.has_ranks, config.kernel.tiers.count());
    ServicePlan {
        tiers: tier_ceilings(&admissible_rps, headroom(inputs), connections_per_request(inputs)),
        refusal: refusal(&config.kernel),
        shadow: decision.shadow,
        retry_after: retry_after(inputs.arriving_per_s, decision.connections_per_s),
        reason: decision.reason,
        ..ServicePlan::default()
    }
}

/// Counts of a service, over all workers.
fn totals(shared: &Shared, service: &Service, sentry: Option<&Sentry>) -> ServiceTotals {
    let control = shared.telemetry.control();
    let ranks = sentry.map_or_else(|| vec![0; service.classes.len()], |sentry| sentry.policy.ranks());
    let mut totals = ServiceTotals::default();
    for (class, &rank) in service.classes.iter().zip(&ranks) {
        let slot = control.class_slot(&service.name, &class.name);
        let sum =
            |count: fn(&ClassMetrics) -> u64| shared.telemetry.sum(|worker| count(worker.classes.of(slot)));
        totals.offered[usize::from(rank).min(CLASSES - 1)] += sum(|class| class.offered.value());
        totals.refused += sum(refused_by_sentry);
    }
    ServiceTotals { ranks, ..totals }
}

fn refused_by_sentry(class: &ClassMetrics) -> u64 {
    let by_sentry = Reason::ALL.into_iter().filter(|&reason| StageName::of(reason) == StageName::Sentry);
    by_sentry.map(|reason| class.shed.value(reason)).sum::<u64>() + class.shadow_shed.value()
}
