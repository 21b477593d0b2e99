//! Reports of gateways and of the pool between two plans.

use alloc::vec::Vec;
use flashweir_admission::{Flow, Sample as PlannerSample};
use flashweir_core::{Duration, Instant};

/// Counts of one gateway, and events of the pool, from `from` to `to`. Several gateways may report for the
/// same time: counts add up, the state of the pool is that of the last report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Beginning of the counts.
    pub from: Instant,
    /// End of the counts.
    pub to: Instant,
    /// In the order of the policy's applications; missing ones have counted nothing, further ones are
    /// ignored.
    pub applications: Vec<ApplicationSample>,
}

/// Counts of one gateway for one application.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApplicationSample {
    /// In the order of the policy's classes.
    pub classes: Vec<ClassCounts>,
    /// Squared gaps between arrivals, seconds², over all gaps that were measured: with the rate, their
    /// variation.
    pub gaps: Moments,
    /// Ratio of the 95th percentile of response times to their mean; none where too few were measured.
    pub quantile_factor: Option<f64>,
    /// The application's part of the pool; none from a gateway that does not know it.
    pub pool: Option<PoolState>,
    /// Load of the sentries; none from a gateway that does not know it.
    pub sentries: Option<SentryLoad>,
}

/// Requests of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassCounts {
    /// Unique offered: each attempt of a person once, refused ones included.
    pub offered: u64,
    /// Admitted.
    pub admitted: u64,
    /// Refused for want of capacity: those of an abuser, or beyond a bound of the configuration, are no
    /// demand for servers.
    pub refused: u64,
    /// Inherent times of completed requests: what each would take alone.
    pub service: Moments,
}

/// Sums over values, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum_s: f64,
    /// The sum of their squares.
    pub squares_s2: f64,
}

/// One application's part of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolState {
    /// Servers that serve.
    pub ready: u32,
    /// Servers that were ordered and do not serve yet.
    pub starting: u32,
    /// Start-up times, from order to first request, of the servers that became ready since the last report.
    pub start_ups: Moments,
}

/// Load of one application's sentries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentryLoad {
    /// Sentries that serve.
    pub count: u32,
    /// Share of the busiest one's processor that was in use, 0 to 1.
    pub busiest: f64,
    /// The same, mean of all.
    pub mean: f64,
}

impl Moments {
    /// Takes a value.
    pub fn push(&mut self, value_s: f64) {
        self.add(&Self { count: 1, sum_s: value_s, squares_s2: value_s * value_s });
    }

    /// Takes all values of another.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_s += other.sum_s;
        self.squares_s2 += other.squares_s2;
    }

    /// The mean; none of no value, and of sums that are no numbers.
    #[must_use]
    pub fn mean_s(&self) -> Option<f64> {
        Some(self.sum_s / self.count as f64).filter(|mean| mean.is_finite() && *mean > 0.0)
    }

    /// The squared coefficient of variation; none where there is no mean.
    #[must_use]
    pub fn squared_variation(&self) -> Option<f64> {
        let mean_s = self.mean_s()?;
        let variation = self.squares_s2 / self.count as f64 / (mean_s * mean_s) - 1.0;
        Some(variation.max(0.0)).filter(|variation| variation.is_finite())
    }
}

impl Sample {
    /// The time that it covers.
    #[must_use]
    pub fn span(&self) -> Duration {
        self.to.saturating_since(self.from)
    }
}

impl PlannerSample for Sample {
    fn flow(&self) -> Flow {
        let mut flow = Flow::default();
        for class in self.applications.iter().flat_map(|application| &application.classes) {
            flow.add(&Flow {
                offered: class.offered,
                admitted: class.admitted,
                refused_by_later: class.refused,
                ..Flow::default()
            });
        }
        flow
    }
}
