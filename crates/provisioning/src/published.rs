//! The paper's rules for one pool: a partition every half an hour, and one more server after five minutes of
//! more than half refused.
//!
//! | what | paper | our reading where it is silent |
//! |---|---|---|
//! | predictive | every 30 min, by past observations | the mean rate of the last five minutes |
//! | servers for a rate | equation 14 | with the variance of the whole stream's gaps (C-8) and the target as a mean (C-5), as printed |
//! | target | by the forecast rate, from a table | |
//! | partition | maximal revenue | [`partition::published`](crate::partition::published) |
//! | reactive | more than half dropped over 5 min; at most Δ servers, at intervals of at least δ = 5 min | Δ = 1 |
//! | from | the free pool, or servers that others do not use | an application that equation 14 gives fewer than it has |
//!
//! **Errors**, each repaired in [`planner`](crate::planner): Δ and δ bound the growth to twelve servers an
//! hour at any size (a crowd that doubles in seven minutes needs 0.64 of all servers every five); five
//! minutes of more than half refused are waited for; the target is relaxed although servers are free;
//! equation 14 sees neither n nor a percentile.

use crate::application::Application;
use crate::demand::ClassRates;
use crate::partition::{Claim, published as published_partition};
use crate::plan::Rule;
use crate::policy::{ApplicationPolicy, Policy};
use crate::queueing::{ServiceTime, published_capacity_rps};
use crate::revenue::RevenueCurve;
use crate::sizing::revenue_curve;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::{Duration, Instant};

const PREDICTIVE_PERIOD: Duration = Duration::from_secs(1_800);
/// Over which drops and rates are looked at, and δ.
const REACTIVE_PERIOD: Duration = Duration::from_secs(300);
const DROPPED_ABOVE: f64 = 0.5;
/// Δ.
const REACTIVE_SERVERS: u32 = 1;

/// Times at which the published rules acted last.
#[derive(Debug)]
pub(crate) struct PublishedRules {
    predicted_at: Instant,
    reacted_at: Vec<Instant>,
}

/// Decision of the published rules about one application.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishedNeed {
    pub(crate) servers: u32,
    pub(crate) rule: Rule,
    pub(crate) forecast_rps: f64,
    pub(crate) needed: Option<u32>,
}

impl PublishedRules {
    /// The first half-hour begins now.
    pub(crate) fn new(applications: usize) -> Self {
        Self { predicted_at: Instant::ZERO, reacted_at: vec![Instant::ZERO; applications] }
    }

    /// Servers of all applications; moves steps of the ladders.
    pub(crate) fn plan(
        &mut self,
        now: Instant,
        policy: &Policy,
        applications: &mut [Application],
        planned: &[u32],
    ) -> Vec<PublishedNeed> {
        let both = || policy.applications.iter().zip(&*applications);
        let rates: Vec<ClassRates> = both()
            .map(|(_, application)| application.demand.class_rates(now, REACTIVE_PERIOD, Duration::ZERO))
            .collect();
        let is_predictive = now.saturating_since(self.predicted_at) >= PREDICTIVE_PERIOD;
        let mut needs = Vec::with_capacity(planned.len());
        for (place, (of, application)) in policy.applications.iter().zip(applications.iter_mut()).enumerate()
        {
            let forecast_rps = rates[place].iter().sum();
            if is_predictive {
                application.ladder_step = of.permitted_step(forecast_rps);
            }
            let needed = needed(of, application, &rates[place]);
            needs.push(PublishedNeed { servers: planned[place], rule: Rule::Keep, forecast_rps, needed });
        }
        if is_predictive {
            self.predicted_at = now;
            predict(policy, applications, &rates, &mut needs);
        } else {
            self.react(now, policy, applications, &mut needs);
        }
        needs
    }

    fn react(
        &mut self,
        now: Instant,
        policy: &Policy,
        applications: &[Application],
        needs: &mut [PublishedNeed],
    ) {
        for place in 0..needs.len() {
            let demand = &applications[place].demand;
            let is_due = now.saturating_since(self.reacted_at[place]) >= REACTIVE_PERIOD;
            let is_overloaded = demand.covers(now) >= REACTIVE_PERIOD
                && demand.refused_share(now, REACTIVE_PERIOD) > DROPPED_ABOVE;
            let has_room = needs[place].servers < policy.applications[place].servers_max;
            if !is_due || !is_overloaded || !has_room {
                continue;
            }
            let used: u32 = needs.iter().map(|need| need.servers).sum();
            if used >= policy.pool {
                let is_idle = |other: usize| {
                    let min = policy.applications[other].servers_min;
                    let need = &needs[other];
                    need.needed.is_some_and(|needed| needed.max(min) < need.servers)
                };
                let Some(other) = (0..needs.len()).find(|&other| other != place && is_idle(other)) else {
                    continue;
                };
                needs[other].servers -= REACTIVE_SERVERS;
                needs[other].rule = Rule::Release;
            }
            self.reacted_at[place] = now;
            needs[place].servers += REACTIVE_SERVERS;
            needs[place].rule = Rule::Panic;
        }
    }
}

fn predict(policy: &Policy, applications: &[Application], rates: &[ClassRates], needs: &mut [PublishedNeed]) {
    let curve = |place: usize| {
        let need = &needs[place];
        let needed = need.needed.unwrap_or(need.servers);
        revenue_curve(&policy.applications[place], &applications[place].demand, &rates[place], needed)
    };
    let curves: Vec<RevenueCurve> = (0..needs.len()).map(curve).collect();
    let claims: Vec<Claim<'_>> = curves
        .iter()
        .zip(&*needs)
        .zip(&policy.applications)
        .map(|((curve, need), of)| Claim {
            curve,
            current: need.servers,
            servers_min: of.servers_min,
            servers_max: of.servers_max,
            refused_share: 0.0,
            start_up_s: 0.0,
        })
        .collect();
    let servers = published_partition(policy.pool, &claims).servers;
    for (need, servers) in needs.iter_mut().zip(servers) {
        need.rule = match servers.cmp(&need.servers) {
            core::cmp::Ordering::Greater => Rule::Predict,
            core::cmp::Ordering::Equal => Rule::Keep,
            core::cmp::Ordering::Less => Rule::Release,
        };
        need.servers = servers;
    }
}

/// Servers by equation 14; none where a target does not exceed a service time, or nothing was measured.
fn needed(policy: &ApplicationPolicy, application: &Application, rates: &ClassRates) -> Option<u32> {
    let rate_rps: f64 = rates.iter().sum();
    let (mean_s, squared_variation) = application.demand.service(0)?;
    let gap_variance_s2 = application.demand.gap_variation() / (rate_rps * rate_rps).max(1e-12);
    let target_s = policy.ladder[application.ladder_step].target.as_secs_f64();
    let service = ServiceTime { mean_s, squared_variation };
    let capacity_rps = published_capacity_rps(service, gap_variance_s2, target_s);
    // `as` saturates, far above any pool.
    (capacity_rps > 0.0).then(|| libm::ceil(rate_rps / capacity_rps) as u32)
}
