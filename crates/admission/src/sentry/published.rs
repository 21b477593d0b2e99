//! The paper's own policies and the repairs of single points of them, for an origin whose servers and service
//! time are known: to set beside the default in the same simulation.
//!
//! Requests in flight are bounded by what the target allows, not by what was learned: n servers each serve
//! target/(q S) at once before responses take q times longer than the target (Cataclysm §3.2, eq. 4, solved
//! for η).

use super::plan::{BatchTest, ClassPlan, Costs, Decide};
use super::threshold::Settings;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use flashweir_core::Duration;
use flashweir_core::limits::{REQUESTS_HELD, SENTRY_IN_FLIGHT, URL_CLASSES};

/// One of the published policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Rule by which classes are distinguished.
    pub rule: PublishedRule,
    /// Servers behind the sentry (n). 0 refuses every request.
    pub servers: u32,
    /// Service time of a request alone (S).
    pub service_time: Duration,
    /// Multiple of the mean response time that the target is to cover, thousandths (q): 1,000 in the paper,
    /// 3,000 for the 95th percentile.
    pub quantile_milli: u32,
}

/// Rule by which classes are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishedRule {
    /// Rounds (§3.2).
    Batch {
        /// Time by which each class's delay between rounds exceeds that of the class before it; the first's
        /// is 0.
        delay_step: Duration,
        /// All of a lane or none of it, as published.
        is_whole: bool,
    },
    /// A threshold (§3.3).
    Threshold {
        /// Time between recomputations: 15 s in the paper.
        period: Duration,
        /// Weight of the newest period's rates, thousandths.
        newest_milli: u32,
        /// Planned utilisation of servers, thousandths: 1,000 in the paper.
        utilisation_milli: u32,
        /// Requests in flight are bounded as well.
        is_capped: bool,
    },
    /// Trunk reservation: each class leaves `step` more places on each server to those before it, and no
    /// request waits.
    Reservation {
        /// Places on each server.
        step: u32,
    },
}

impl Published {
    /// Makes the plans of classes, in their order, follow this policy; how the gate decides, and how many may
    /// be in flight. `shares` are the threshold's.
    pub(super) fn apply(&self, plans: &mut [ClassPlan], shares: Option<&[u32]>) -> (Decide, u32) {
        let classes = plans.len() as u32;
        for (index, plan) in plans.iter_mut().enumerate() {
            let rank = u32::from(plan.rank);
            let room = self.room(plan.target);
            (plan.limit, plan.hold_len, plan.delay, plan.admit_share) = (room, 0, Duration::ZERO, u32::MAX);
            match self.rule {
                PublishedRule::Batch { delay_step, .. } => {
                    plan.limit = SENTRY_IN_FLIGHT;
                    plan.delay = delay_step * rank;
                    plan.hold_len = REQUESTS_HELD as u32 / classes;
                    plan.hold_for = plan.target;
                }
                PublishedRule::Threshold { is_capped, .. } => {
                    plan.limit = if is_capped { room } else { SENTRY_IN_FLIGHT };
                    plan.admit_share = shares.and_then(|shares| shares.get(index)).copied().unwrap_or(0);
                }
                PublishedRule::Reservation { step } => {
                    let reserved = step.saturating_mul(rank).saturating_mul(self.servers);
                    plan.limit = room.saturating_sub(reserved);
                }
            }
        }
        let most = plans.iter().map(|plan| plan.limit).max().unwrap_or(0);
        let decide = match self.rule {
            PublishedRule::Batch { is_whole, .. } => Decide::Batch(BatchTest {
                servers_milli: u64::from(self.servers) * 1_000,
                quantile_milli: self.quantile_milli.into(),
                is_whole,
            }),
            PublishedRule::Threshold { .. } => Decide::Threshold,
            PublishedRule::Reservation { .. } => Decide::Reservation,
        };
        (decide, most)
    }

    /// Every request costs the same.
    pub(super) fn costs(&self) -> Arc<Costs> {
        let usual_us = u32::try_from(self.service_time.as_micros()).unwrap_or(u32::MAX).max(1);
        Arc::new(Costs { by_url_class_us: vec![0; URL_CLASSES], by_class_us: Vec::new(), usual_us })
    }

    pub(super) fn threshold(&self) -> Settings {
        match self.rule {
            PublishedRule::Threshold { period, newest_milli, utilisation_milli, .. } => Settings {
                period,
                newest: f64::from(newest_milli) / 1_000.0,
                utilisation: f64::from(utilisation_milli) / 1_000.0,
            },
            _ => Settings::default(),
        }
    }

    /// In-flight limit of all servers together.
    fn room(&self, target: Duration) -> u32 {
        let late_s = self.service_time.as_secs_f64() * f64::from(self.quantile_milli) / 1_000.0;
        let room = f64::from(self.servers) * target.as_secs_f64() / late_s.max(1e-9);
        (room as u32).min(SENTRY_IN_FLIGHT)
    }
}
