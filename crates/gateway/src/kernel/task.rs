//! The slow half of the gate in the kernel: looks, decides, writes, ten times a second.

use super::ceiling::{
    Decision, NewsCeiling, Seen, ServiceSeen, connections_per_request, decide, headroom, retry_after,
    tier_ceilings,
};
use super::guard::{Guard, GuardError};
use super::told::{figures, status};
use super::window::{Counts, Window};
use crate::shared::Shared;
use flashweir_admission::flash_crowd::Limit;
use flashweir_config::{Class, Config, Service};
use flashweir_core::{Duration, Instant, Reason};
use flashweir_kernel::gate::{ServiceCounts, ServicePlan, TIERS};
use flashweir_runtime::kernel::refusal;
use flashweir_telemetry::{ClassMetrics, Happening};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// As often as the planner of NEWS decides by default.
const INTERVAL: Duration = Duration::from_millis(100);
/// A third of the silence after which the kernel lets everything in.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// What decides about the kernel's ceiling. Lives on the control thread.
pub(super) struct KernelTask {
    shared: Arc<Shared>,
    guard: Guard,
    window: Window,
    before: ServiceCounts,
    beat_at: Instant,
    beat_age: Duration,
    had_ceiling: bool,
}

impl KernelTask {
    pub(super) fn new(shared: Arc<Shared>, mut guard: Guard) -> Self {
        let beat_at = shared.clock.now();
        guard.started(beat_at);
        // What the gate of an earlier process counted was offered to that. If it cannot be read, the next look says so.
        let before = guard.counts().unwrap_or_default();
        Self {
            shared,
            guard,
            window: Window::default(),
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
                // Nobody is served any more, which says nothing about who should be: the last plan stays.
                true => self.beat(self.shared.clock.now()),
                false => self.tick(&live.config),
            });
            if let Err(error) = done {
                self.shared.warn(
                    Happening::Kernel,
                    format_args!("the gate in the kernel cannot be told what to do: {error}"),
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
        let seen = self.seen(config);
        let decision = decide(&seen);
        self.guard.apply(now, plan(config, &seen, decision.as_ref()))?;
        // Only now: where no plan can be written any more, the kernel is to let everything in.
        self.beat(now)?;
        self.tell_news(&counts, &seen);
        self.tell(now, config, &seen, decision.as_ref(), counts)
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
    fn look(&self, now: Instant, config: &Config, counts: &ServiceCounts) -> Counts {
        let telemetry = &self.shared.telemetry;
        Counts {
            at: now,
            accepted: telemetry.sum(|worker| worker.connections.opened.value()),
            requests: telemetry.sum(|worker| worker.requests.offered.value()),
            arriving: counts.unique_offered,
            services: config
                .services
                .iter()
                .map(|service| {
                    let of = |count: fn(&ClassMetrics) -> u64| sum_of_service(&self.shared, service, count);
                    [of(|class| class.offered.value()), of(refused_by_sentry)]
                })
                .collect(),
        }
    }

    fn seen(&self, config: &Config) -> Seen {
        let live = self.shared.live.load();
        let news = match &self.shared.plan.load().limit {
            Limit::All(rate) => {
                Some(NewsCeiling { rps: rate.per_second(), shadow: config.flash_crowd.shadow })
            }
            // A SYN does not say for which host it is.
            Limit::HotSpots(_) | Limit::Open => None,
        };
        let services = config.services.iter().enumerate().map(|(index, service)| {
            let rate = |which: usize| {
                self.window.per_second(|counts| counts.services.get(index).map_or(0, |counts| counts[which]))
            };
            let sentry = live.sentries.get(index).and_then(Option::as_ref);
            ServiceSeen {
                offered_rps: rate(0),
                refused_rps: rate(1),
                capacity_rps: sentry.map_or(0.0, |sentry| sentry.plan.load().explanation.capacity_rps),
                shadow: service.sentry.shadow,
            }
        });
        Seen {
            news,
            services: services.collect(),
            has_choice: config.services.len() > 1
                || config.services.iter().any(|service| service.classes.len() > 1),
            accepted_per_s: self.window.per_second(|counts| counts.accepted),
            requests_per_s: self.window.per_second(|counts| counts.requests),
            arriving_per_s: self.window.per_second(|counts| counts.arriving),
            shadow: config.kernel.shadow,
        }
    }

    /// What was turned away here was offered all the same. The kernel knows connections: each is taken for as many
    /// requests as one brings now.
    fn tell_news(&mut self, counts: &ServiceCounts, seen: &Seen) {
        let before = std::mem::replace(&mut self.before, *counts);
        let away = |offered: fn(&ServiceCounts) -> u64| {
            let refused = |counts: &ServiceCounts| offered(counts).saturating_sub(counts.admitted);
            refused(counts).saturating_sub(refused(&before)) as f64
        };
        let requests = |connections: f64| (connections / connections_per_request(seen)) as u64;
        let turned_away = &self.shared.turned_away;
        turned_away
            .add(requests(away(|counts| counts.offered)), requests(away(|counts| counts.unique_offered)));
    }

    fn tell(
        &mut self,
        now: Instant,
        config: &Config,
        seen: &Seen,
        decision: Option<&Decision>,
        counts: ServiceCounts,
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
            seen,
            decision,
            &figures,
            &counts.tiers,
        ))));
        self.shared.telemetry.control().publish_kernel(Some(figures));
        Ok(())
    }
}

fn plan(config: &Config, seen: &Seen, decision: Option<&Decision>) -> ServicePlan {
    let Some(decision) = decision else { return ServicePlan::default() };
    // What the pipeline can use is known as one number: the least important rank has it, the others come before.
    let mut useful_rps = [0.0; TIERS];
    let admissible = &mut useful_rps[..config.kernel.tiers.count().min(TIERS)];
    admissible[admissible.len() - 1] = decision.useful_rps;
    ServicePlan {
        tiers: tier_ceilings(admissible, headroom(seen), connections_per_request(seen)),
        refusal: refusal(&config.kernel),
        shadow: decision.shadow,
        retry_after: retry_after(seen.arriving_per_s, decision.connections_per_s),
        reason: decision.reason,
        ..ServicePlan::default()
    }
}

/// A count of all classes of a service, over all workers.
fn sum_of_service(shared: &Shared, service: &Service, count: fn(&ClassMetrics) -> u64) -> u64 {
    let control = shared.telemetry.control();
    let of_class = |class: &Class| {
        let slot = control.class_slot(&service.name, &class.name);
        shared.telemetry.sum(|worker| count(worker.classes.of(slot)))
    };
    service.classes.iter().map(of_class).sum()
}

fn refused_by_sentry(class: &ClassMetrics) -> u64 {
    let by_sentry = [
        Reason::Capacity,
        Reason::Deadline,
        Reason::Reserved,
        Reason::Threshold,
        Reason::Batch,
        Reason::ClientShare,
    ];
    let refused: u64 = by_sentry.iter().map(|&reason| class.shed.value(reason)).sum();
    refused + class.shadow_shed.value()
}
