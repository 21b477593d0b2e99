//! Way of deciding in force, and the state it needs.
//!
//! `batch` looks at each request's service time and costs the sentry most; `threshold` looks only at the
//! class. `auto` goes from the first to the second when deciding keeps its processors busy, and back when it
//! has long ceased to (Cataclysm §3.3; the paper gives no numbers). How busy they are is measured outside.

use super::classes::{Classes, Service};
use super::delays::{Delays, Load};
use super::long::LongRequests;
use super::plan::{BatchTest, ClassPlan, Costs, Decide};
use super::policy::{Policing, Policy};
use super::sample::Sample;
use super::threshold::{Settings, Threshold};
use alloc::sync::Arc;
use flashweir_core::{Duration, Instant};

/// The policing of a policy at work.
#[derive(Debug)]
pub(super) struct Deciding {
    policing: Policing,
    threshold: Threshold,
    delays: Delays,
    auto: Auto,
}

/// Choice of `auto`, and since when the load speaks for the other.
#[derive(Debug, Default)]
struct Auto {
    is_threshold: bool,
    other_since: Option<Instant>,
}

impl Deciding {
    pub(super) fn new(policy: &Policy) -> Self {
        let classes = policy.classes.len();
        let settings = match policy.policing {
            Policing::Published(published) => published.threshold(),
            _ => Settings::default(),
        };
        Self {
            policing: policy.policing,
            threshold: Threshold::new(settings, classes),
            delays: Delays::new(classes),
            auto: Auto::default(),
        }
    }

    pub(super) fn observe(&mut self, sample: &Sample) {
        self.threshold.observe(sample);
        self.delays.observe(sample);
    }

    /// Records the part of the time, 0 to 1, for which deciding keeps its processors busy.
    pub(super) fn observe_load(&mut self, now: Instant, share: f64) {
        self.auto.observe(now, share);
    }

    /// Costs that are known beforehand.
    pub(super) fn costs(&self) -> Option<Arc<Costs>> {
        match self.policing {
            Policing::Published(published) => Some(published.costs()),
            _ => None,
        }
    }

    /// Requests that hold no place: none under a published policy, which knows of none.
    pub(super) fn long(&self, long: &LongRequests) -> LongRequests {
        match self.policing {
            Policing::Published(_) => LongRequests::default(),
            _ => long.clone(),
        }
    }

    /// Completes the plans of the classes; how the gate decides, and the limit on requests in flight.
    pub(super) fn plan(
        &mut self,
        now: Instant,
        service: &Service,
        classes: &Classes,
        plans: &mut [ClassPlan],
    ) -> (Decide, u32) {
        let is_threshold = match self.policing {
            Policing::Reservation => return (Decide::Reservation, most(plans)),
            Policing::Published(published) => {
                let cost_s = published.service_time.as_secs_f64();
                let claims = classes.claims(|_| cost_s);
                let shares = self.threshold.shares(now, published.servers.into(), &claims);
                return published.apply(plans, Some(shares));
            }
            Policing::Batch => false,
            Policing::Threshold => true,
            Policing::Auto => self.auto.is_threshold,
        };
        // Either needs to know how many the origin serves at once; a sentry itself overloaded makes do with
        // what it surely does not.
        let is_overloaded = matches!(self.policing, Policing::Auto) && is_threshold;
        let at_most = (is_overloaded && service.headroom <= 1.0).then_some(f64::from(service.limit));
        let Some(knee) = service.knee.or(at_most) else { return (Decide::Reservation, most(plans)) };
        if is_threshold {
            let claims = classes.claims(|class| classes.cost_s(class));
            let servers = self.threshold.find_servers(knee, service.limit, classes.target());
            let shares = self.threshold.shares(now, servers, &claims);
            for (plan, &share) in plans.iter_mut().zip(shares) {
                (plan.admit_share, plan.limit) = (share, service.limit);
            }
            return (Decide::Threshold, service.limit);
        }
        let load = Load {
            classes: classes
                .claims(|_| 0.0)
                .iter()
                .zip(plans.iter())
                .map(|(claim, plan)| (claim.rank, claim.offered_rps, plan.target))
                .collect(),
            in_service: (service.in_flight / knee.max(1e-9)).max(1.0),
            refused: classes.refused(),
            utilisation: classes.offered_servers() / knee.max(1e-9),
        };
        for (plan, delay) in plans.iter_mut().zip(self.delays.plan(now, &load)) {
            plan.delay = delay;
        }
        let test = BatchTest {
            servers_milli: service.knee_milli(),
            quantile_milli: (service.quantile_over_mean * 1_000.0) as u64,
            is_whole: false,
        };
        (Decide::Batch(test), most(plans))
    }
}

/// Requests in flight at most.
fn most(plans: &[ClassPlan]) -> u32 {
    plans.iter().map(|plan| plan.limit).max().unwrap_or(0)
}

impl Auto {
    fn observe(&mut self, now: Instant, share: f64) {
        let speaks_for_other = if self.is_threshold { share < LOW } else { share > HIGH };
        if !speaks_for_other {
            self.other_since = None;
            return;
        }
        let since = *self.other_since.get_or_insert(now);
        let wait = if self.is_threshold { LOW_FOR } else { HIGH_FOR };
        if now.saturating_since(since) >= wait {
            *self = Self { is_threshold: !self.is_threshold, other_since: None };
        }
    }
}

/// Load above which the threshold decides, and for how long: soon, because it is the sentry itself that is
/// overloaded.
const HIGH: f64 = 0.8;
const HIGH_FOR: Duration = Duration::from_secs(2);
/// Load below which rounds decide again, and for how long: they cost about five times as much (Cataclysm
/// §5.3), so it must be certain that the crowd has gone.
const LOW: f64 = 0.5;
const LOW_FOR: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_changes_over_soon_and_back_late() {
        let mut auto = Auto::default();
        let mut at = |ms, share| {
            auto.observe(Instant::from_millis(ms), share);
            auto.is_threshold
        };
        assert_eq!([at(0, 0.9), at(1_000, 0.7), at(1_500, 0.9), at(3_400, 0.9)], [false; 4]);
        assert_eq!([at(3_500, 0.9), at(4_000, 0.4), at(63_900, 0.1), at(64_000, f64::NAN)], [true; 4]);
        assert_eq!([at(70_000, 0.1), at(129_999, 0.1), at(130_000, 0.1)], [true, true, false]);
    }
}
