//! Scenarios of a pool.

use super::autoscaler::AutoscalerSettings;
use flashweir_core::limits::SIM_SERIES_BINS;
use flashweir_core::{Duration, Instant, Rng};
use flashweir_provisioning::queueing::ServiceTime;
use flashweir_provisioning::{Policy, PolicyError};
use flashweir_workload::RateProfile;

/// 95th percentile over mean of response times while nothing waits, that of exponential times.
pub(super) const LATE_QUANTILE_FACTOR: f64 = 3.0;

/// A pool, its applications, and the scaler.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Bounds, targets and values; the planner's policy.
    pub policy: Policy,
    /// In the order of the policy.
    pub applications: Vec<ApplicationModel>,
    /// Orders servers.
    pub scaler: Scaler,
    /// Time that a server takes from order to first request.
    pub start_up: StartUp,
    /// Step of the simulation; default 0.5 s, well below any start-up time.
    pub tick: Duration,
    /// Width of the bins of all series; default a minute.
    pub bin: Duration,
    /// Seed of everything that is drawn.
    pub seed: u64,
}

/// Demand and servers of one application.
#[derive(Clone, Debug)]
pub struct ApplicationModel {
    /// Demand by class, the most important first.
    pub classes: Vec<ClassLoad>,
    /// Time of a server for one request.
    pub service: ServiceTime,
    /// Servers that serve from the beginning.
    pub servers: u32,
    /// Cost of deciding at its sentries; none if they cost nothing.
    pub sentry: Option<SentryModel>,
}

/// Demand of one class.
#[derive(Clone, Debug)]
pub struct ClassLoad {
    /// Requests a second over time, offered.
    pub rate: RateProfile,
    /// Earned with one that is admitted.
    pub revenue: f64,
}

/// Sentries whose processors are the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentryModel {
    /// Requests a second that keep one sentry's processor busy.
    pub capacity_rps: f64,
}

/// Time that a server takes to start: uniform around a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartUp {
    /// The mean.
    pub mean: Duration,
    /// Half of the range, as a part of the mean, 0 to 1.
    pub spread: f64,
}

/// Rule that orders servers.
#[derive(Clone, Debug, PartialEq)]
pub enum Scaler {
    /// The planner of capacity, with the scenario's policy.
    Planner,
    /// An autoscaler on processor utilisation.
    Autoscaler(AutoscalerSettings),
    /// Knows the profile, and has each server up the moment it is needed, by the model that the planner sizes
    /// with. Of several applications the first have what they need.
    Oracle,
    /// The servers of the beginning.
    Fixed,
}

/// Reason for which a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PoolError {
    /// The policy cannot be followed.
    #[error("policy: {0}")]
    Policy(#[from] PolicyError),
    /// Models and policy do not belong together, or a number is out of range.
    #[error("{what}: {value}, expected {expected}")]
    Value {
        /// Name of the setting.
        what: &'static str,
        /// Value given.
        value: f64,
        /// Accepted values.
        expected: &'static str,
    },
}

impl Scenario {
    /// Servers that start in 24 to 36 s, steps of half a second, bins of a minute, seed 1.
    #[must_use]
    pub fn new(policy: Policy, applications: Vec<ApplicationModel>, scaler: Scaler) -> Self {
        Self {
            policy,
            applications,
            scaler,
            start_up: StartUp { mean: Duration::from_secs(30), spread: 0.2 },
            tick: Duration::from_millis(500),
            bin: Duration::from_secs(60),
            seed: 1,
        }
    }

    /// End of the longest profile.
    #[must_use]
    pub fn ends_at(&self) -> Instant {
        let classes = self.applications.iter().flat_map(|application| &application.classes);
        Instant::from_duration(classes.map(|class| class.rate.length()).max().unwrap_or_default())
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), PoolError> {
        let policy = self.policy.clone().checked()?;
        let value = |what, value: f64, is_right: bool, expected| {
            if is_right { Ok(()) } else { Err(PoolError::Value { what, value, expected }) }
        };
        let count = self.applications.len();
        value("applications", count as f64, count == policy.applications.len(), "as many as the policy has")?;
        let tick_s = self.tick.as_secs_f64();
        value("tick in seconds", tick_s, (0.01..=60.0).contains(&tick_s), "0.01 to 60")?;
        value(
            "interval in seconds",
            policy.interval.as_secs_f64(),
            policy.interval >= self.tick,
            "a tick or more",
        )?;
        value("bin in seconds", self.bin.as_secs_f64(), self.bin >= self.tick, "a tick or more")?;
        let bins = self.ends_at().as_nanos() as f64 / self.bin.as_nanos().max(1) as f64 * count as f64;
        value("bins of all series", bins, bins <= SIM_SERIES_BINS as f64, "1000000 at most")?;
        let StartUp { mean, spread } = self.start_up;
        value("start-up in seconds", mean.as_secs_f64(), mean.as_secs() < 86_400, "less than a day")?;
        value("spread of start-ups", spread, (0.0..=1.0).contains(&spread), "0 to 1")?;
        let servers: u64 = self.applications.iter().map(|it| u64::from(it.servers)).sum();
        value(
            "servers at the beginning",
            servers as f64,
            servers <= u64::from(policy.pool),
            "at most the pool's",
        )?;
        for (model, of) in self.applications.iter().zip(&policy.applications) {
            let classes = model.classes.len();
            value("classes", classes as f64, classes == of.classes.len(), "as many as the policy has")?;
            let mean_s = model.service.mean_s;
            value(
                "service time in seconds",
                mean_s,
                mean_s > 0.0 && mean_s < 3_600.0,
                "above 0 and below 3600",
            )?;
        }
        Ok(())
    }
}

impl ApplicationModel {
    /// One class worth 1, exponential service times of 15.5 ms (60/s and server, Cataclysm §6.5), `servers`
    /// at the beginning.
    #[must_use]
    pub fn new(rate: RateProfile, servers: u32) -> Self {
        Self {
            classes: vec![ClassLoad { rate, revenue: 1.0 }],
            service: ServiceTime { mean_s: 0.0155, squared_variation: 1.0 },
            servers,
            sentry: None,
        }
    }
}

impl StartUp {
    pub(super) fn draw(&self, rng: &mut Rng) -> Duration {
        self.mean.mul_f64(1.0 + self.spread * (2.0 * rng.unit_f64() - 1.0))
    }

    /// The longest there is.
    pub(super) fn longest(&self) -> Duration {
        self.mean.mul_f64(1.0 + self.spread)
    }
}
