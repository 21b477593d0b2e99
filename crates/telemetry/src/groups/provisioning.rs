//! Readings, plans and orders of a control plane.

use std::sync::{Arc, Mutex, PoisonError};

use super::Outcome;
use crate::Telemetry;
use crate::counter::{Counter, CounterSet};
use crate::group::{MetricGroup, Row, Scrape};
use crate::label::labels;

/// Written by the control loop alone, read by scrapes.
#[derive(Debug, Default)]
pub struct ProvisioningMetrics {
    /// Readings of the gateway.
    pub readings: CounterSet<Outcome>,
    /// Orders given to the actuator.
    pub orders: CounterSet<Outcome>,
    /// Plans by what decided.
    pub plans: CounterSet<ProvisioningRule>,
    /// Copies that ended by themselves.
    pub crashes: Counter,
    figures: Mutex<ProvisioningFigures>,
}

/// The numbers of the last plan, and the servers there are; none where nothing is known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProvisioningFigures {
    /// Servers ordered.
    pub ordered: Option<u32>,
    /// Servers that serve.
    pub ready: Option<u32>,
    /// Servers that were ordered and do not serve yet.
    pub starting: Option<u32>,
    /// Servers that the forecast needs.
    pub needed: Option<u32>,
    /// Unique offered requests a second.
    pub offered_rps: Option<f64>,
    /// The rate that servers are planned for.
    pub forecast_rps: Option<f64>,
    /// The part of the requests that was refused.
    pub refused_ratio: Option<f64>,
    /// Time a server takes to start, as it is reckoned with.
    pub start_up_s: Option<f64>,
}

impl ProvisioningMetrics {
    /// Changes the figures.
    pub fn update(&self, change: impl FnOnce(&mut ProvisioningFigures)) {
        change(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Telemetry {
    /// Metrics of a control plane, which has no workers; by service.
    #[must_use]
    pub fn control_plane(services: Vec<(String, Arc<ProvisioningMetrics>)>, version: &'static str) -> Self {
        let mut all = Self::new(0);
        all.register(Arc::new(ProvisioningGroup(services)));
        all.register_build(version);
        all
    }
}

/// All services that a control plane orders servers for.
#[derive(Debug)]
struct ProvisioningGroup(Vec<(String, Arc<ProvisioningMetrics>)>);

impl MetricGroup for ProvisioningGroup {
    fn title(&self) -> &'static str {
        "Servers"
    }

    fn export(&self, scrape: &mut Scrape) {
        let figures = |of: &ProvisioningMetrics| *of.figures.lock().unwrap_or_else(PoisonError::into_inner);
        for &(name, help, value) in FIGURES {
            let series =
                self.0.iter().filter_map(|(service, of)| Some((vec![service.clone()], value(&figures(of))?)));
            scrape.gauge_series(name, help, &["service"], series);
        }
        let all: Vec<&ProvisioningMetrics> = self.0.iter().map(|(_, of)| &**of).collect();
        let help = "Plans of servers, by the rule that decided.";
        scrape.counter_set("provisioning_plans", help, &all, |it| &it.plans);
        let help = "Orders of servers given to the actuator; failed ones are given again.";
        scrape.counter_set("provisioning_orders", help, &all, |it| &it.orders);
        let help = "Readings of the gateway; without one servers stay as they are.";
        scrape.counter_set("provisioning_readings", help, &all, |it| &it.readings);
        let help = "Copies that ended by themselves, or did not serve in time.";
        let crashes = self.0.iter().map(|(service, of)| (vec![service.clone()], of.crashes.value() as f64));
        scrape.counter_series("provisioning_crashes", help, &["service"], crashes);
    }
}

const FIGURES: &[Row<ProvisioningFigures, Option<f64>>] = &[
    ("servers_ordered", "Servers ordered.", |it| it.ordered.map(f64::from)),
    ("servers_ready", "Servers that serve.", |it| it.ready.map(f64::from)),
    ("servers_starting", "Servers ordered that do not serve yet.", |it| it.starting.map(f64::from)),
    ("servers_needed", "Servers that the forecast needs.", |it| it.needed.map(f64::from)),
    ("demand_offered_requests_per_second", "Unique offered, as planned with.", |it| it.offered_rps),
    ("demand_forecast_requests_per_second", "The rate servers are planned for.", |it| it.forecast_rps),
    ("demand_refused_ratio", "The part of the requests of the last seconds that was refused.", |it| {
        it.refused_ratio
    }),
    ("server_start_up_seconds", "Time a server takes to start, as it is reckoned with.", |it| it.start_up_s),
];

labels! {
    /// The rule that decided the number of servers.
    ProvisioningRule, "rule" {
        /// Nothing was measured yet.
        Unknown => "unknown",
        /// It has what it needs.
        Keep => "keep",
        /// The forecast needs more.
        Predict => "predict",
        /// Demand of the last seconds needs more.
        Panic => "panic",
        /// No number of servers reaches the target.
        TargetInfeasible => "target_infeasible",
        /// Fewer would do, but not for long enough yet.
        Hold => "hold",
        /// Fewer have done for long enough.
        Release => "release",
        /// More are needed than there may be.
        Short => "short",
    }
}
