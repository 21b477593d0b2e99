//! Goals of a planner of capacity: applications, targets, bounds.

use crate::queueing::Dispatch;
use alloc::vec::Vec;
use flashweir_admission::sentry::LadderStep;
use flashweir_core::Duration;
use flashweir_core::limits::{CLASSES, LADDER_STEPS, PROVISIONED_APPLICATIONS, PROVISIONED_SERVERS};

/// By which rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The paper's: a partition every half an hour, one more server after five minutes of more than half
    /// refused.
    Published,
    /// Ours.
    #[default]
    Repaired,
}

/// A pool and its applications.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// By which rules.
    pub mode: Mode,
    /// Servers there are, [`PROVISIONED_SERVERS`] at most.
    pub pool: u32,
    /// Time between plans. Default 10 s: shorter, and start-up times of seconds decide anyway; longer, and a
    /// crowd waits for the plan.
    pub interval: Duration,
    /// Revenue that moving a server costs besides the time in which it starts. Default 0.
    pub move_revenue: f64,
    /// At least one, [`PROVISIONED_APPLICATIONS`] at most.
    pub applications: Vec<ApplicationPolicy>,
}

/// One application.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationPolicy {
    /// Values of its classes; the most important first.
    pub classes: Vec<ClassValue>,
    /// Targets for the 95th percentile of response times. Each step has the longest target that is permitted
    /// up to its rate. The published mode takes what is permitted, the repaired one only what it needs of it
    /// when servers have run out.
    pub ladder: Vec<LadderStep>,
    /// Servers that it keeps in any case.
    pub servers_min: u32,
    /// Servers that it gets at most.
    pub servers_max: u32,
    /// Dispatch of requests to its servers. Default one queue, as behind a gateway.
    pub dispatch: Dispatch,
    /// Start-up time of a server, assumed until that was measured. Default 30 s.
    pub start_up: Duration,
    /// Time after which demand repeats itself. Default a day.
    pub season: Duration,
}

/// A class of one application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassValue {
    /// Earned with one request; more than 0.
    pub revenue: f64,
    /// Requests a second that are promised, 0 for none.
    pub guaranteed_rps: f64,
    /// Target for the 95th percentile of its response times; none: that of the ladder.
    pub target: Option<Duration>,
}

/// A policy that cannot be followed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// A number of things out of range.
    #[error("{what}: {count}, expected {min} to {max}")]
    Count {
        /// Name of the quantity.
        what: &'static str,
        /// The number given.
        count: u64,
        /// The fewest accepted.
        min: u64,
        /// The most accepted.
        max: u64,
    },
    /// A quantity out of range.
    #[error("application {application}: {what} must be {expected} (is {value})")]
    Value {
        /// Number of the application, from 0.
        application: usize,
        /// Name of the quantity.
        what: &'static str,
        /// The value given.
        value: f64,
        /// The accepted values.
        expected: &'static str,
    },
    /// Minimums that together exceed the pool.
    #[error("servers_min of all applications together: {total}, expected at most the pool's {pool}")]
    Minimums {
        /// Their sum.
        total: u64,
        /// The pool.
        pool: u32,
    },
}

impl Policy {
    /// Repaired, a plan every 10 s, moves free of cost.
    #[must_use]
    pub fn new(pool: u32, applications: Vec<ApplicationPolicy>) -> Self {
        Self {
            mode: Mode::Repaired,
            pool,
            interval: Duration::from_secs(10),
            move_revenue: 0.0,
            applications,
        }
    }

    /// The policy, if it can be followed.
    ///
    /// # Errors
    /// [`PolicyError`], the first in the order of the fields.
    pub fn checked(self) -> Result<Self, PolicyError> {
        let count = |what, count: u64, min: u64, max: u64| {
            if (min..=max).contains(&count) {
                Ok(())
            } else {
                Err(PolicyError::Count { what, count, min, max })
            }
        };
        count("servers of the pool", self.pool.into(), 1, PROVISIONED_SERVERS.into())?;
        let interval_ms = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
        count("interval in milliseconds", interval_ms, 100, 3_600_000)?;
        count("applications", self.applications.len() as u64, 1, PROVISIONED_APPLICATIONS as u64)?;
        for (place, application) in self.applications.iter().enumerate() {
            application.check(place)?;
        }
        let total: u64 = self.applications.iter().map(|it| u64::from(it.servers_min)).sum();
        if total > u64::from(self.pool) {
            return Err(PolicyError::Minimums { total, pool: self.pool });
        }
        Ok(self)
    }
}

impl ApplicationPolicy {
    /// One class, one target, any number of servers.
    #[must_use]
    pub fn single(target: Duration) -> Self {
        Self {
            classes: alloc::vec![ClassValue::default()],
            ladder: alloc::vec![LadderStep { below_rps: f64::INFINITY, target }],
            servers_min: 1,
            servers_max: PROVISIONED_SERVERS,
            dispatch: Dispatch::SharedQueue,
            start_up: Duration::from_secs(30),
            season: Duration::from_secs(86_400),
        }
    }

    /// The last step of the ladder that is permitted at this rate (Cataclysm, table 1).
    #[must_use]
    pub fn permitted_step(&self, rate_rps: f64) -> usize {
        let last = self.ladder.len().saturating_sub(1);
        self.ladder.iter().position(|step| rate_rps < step.below_rps).unwrap_or(last)
    }

    fn check(&self, application: usize) -> Result<(), PolicyError> {
        let value = |what, value: f64, is_right: bool, expected| {
            if is_right { Ok(()) } else { Err(PolicyError::Value { application, what, value, expected }) }
        };
        let [classes, steps] = [self.classes.len(), self.ladder.len()];
        value("number of classes", classes as f64, (1..=CLASSES).contains(&classes), "1 to 16")?;
        value("number of ladder steps", steps as f64, (1..=LADDER_STEPS).contains(&steps), "1 to 16")?;
        for class in &self.classes {
            let ClassValue { revenue, guaranteed_rps, .. } = *class;
            value("revenue", revenue, revenue > 0.0 && revenue.is_finite(), "greater than 0")?;
            let is_rate = guaranteed_rps >= 0.0 && guaranteed_rps.is_finite();
            value("guaranteed_rps", guaranteed_rps, is_rate, "0 or more")?;
        }
        let mut before = Duration::ZERO;
        for step in &self.ladder {
            let is_longer = step.target > before;
            value(
                "ladder target in seconds",
                step.target.as_secs_f64(),
                is_longer,
                "longer than the step before",
            )?;
            before = step.target;
        }
        let max = f64::from(self.servers_max);
        value("servers_max", max, self.servers_max >= self.servers_min.max(1), "at least 1 and servers_min")?;
        value(
            "start_up in seconds",
            self.start_up.as_secs_f64(),
            self.start_up.as_secs() < 86_400,
            "less than a day",
        )?;
        let season_s = self.season.as_secs_f64();
        value("season in seconds", season_s, season_s >= 60.0, "60 or more")
    }
}

impl Default for ClassValue {
    /// Worth 1, nothing promised.
    fn default() -> Self {
        Self { revenue: 1.0, guaranteed_rps: 0.0, target: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_cannot_be_followed_says_what_and_where() {
        let application = || ApplicationPolicy::single(Duration::from_secs(1));
        let error = |policy: Policy| ToString::to_string(&policy.checked().unwrap_err());
        assert!(Policy::new(10, alloc::vec![application()]).checked().is_ok());
        assert_eq!(error(Policy::new(0, alloc::vec![])), "servers of the pool: 0, expected 1 to 1000000");
        assert_eq!(error(Policy::new(1, alloc::vec![])), "applications: 0, expected 1 to 4096");
        let minimums = [6, 5].map(|servers_min| ApplicationPolicy { servers_min, ..application() });
        assert_eq!(
            error(Policy::new(10, minimums.to_vec())),
            "servers_min of all applications together: 11, expected at most the pool's 10"
        );
        let mut poor = application();
        poor.classes[0].revenue = -1.0;
        assert_eq!(
            error(Policy::new(10, alloc::vec![application(), poor])),
            "application 1: revenue must be greater than 0 (is -1)"
        );
        let mut falling = application();
        falling.ladder.push(falling.ladder[0]);
        assert_eq!(
            error(Policy::new(10, alloc::vec![falling])),
            "application 0: ladder target in seconds must be longer than the step before (is 1)"
        );
    }
}
