//! One service's limit, learned and divided by the leader.
//!
//! **What it decides:** the plan of the whole service, and each gateway's share of its limit. **From:** what
//! all gateways measured. One planner for all gateways is the same thing as one planner for all workers of a
//! gateway: each gateway is a gate. So several gateways admit what one would. (A planner in each gateway
//! would see the origin slow down by what the others send, and take that for its own doing.)
//!
//! **Rounds.** Gateways report at their own moments, each covering the time since its last report. A round
//! takes one report of each, and ends when all are there, or after [`ROUND_MAX`] without those that are late;
//! their counts are in the next one. So every moment of each gateway is counted once, and clocks of gateways
//! are never compared.
//!
//! **A new leader** listens for [`SETTLING`], and goes on from the newest plan that any report names.
//!
//! **Cost** of a round: O(gateways) and one plan. Memory: a sample for each gateway, typically 1 kB.

use super::{Epoch, LeaderError, SETTLING, ShareBroadcast, ShareLeader, ShareReport};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use flashweir_admission::PlannerDriver;
use flashweir_admission::sentry::{Plan, Policy, Sample, SentryPlanner};
use flashweir_core::{Duration, Instant};

/// A round waits for late reports until it has lasted for this: two reports of ten a second.
pub const ROUND_MAX: Duration = Duration::from_millis(200);
/// A round lasts at least this long, so that a gateway that reports too often does not make the planner
/// decide by less than it asks for.
const ROUND_MIN: Duration = Duration::from_millis(50);

/// Report of one gateway on one service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceReport {
    /// The gateway, and the part of the limit that it uses.
    pub share: ShareReport,
    /// Measurements of its gates since its last report.
    pub sample: Sample,
    /// The whole service's limit in the plan it carries out; 0 where it carries out none.
    pub limit: u32,
    /// The whole service's knee in that plan, thousandths; 0 while unknown.
    pub knee_milli: u64,
}

/// Broadcast of the leader about one service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceBroadcast {
    /// Parts of the limit, by gateway.
    pub shares: ShareBroadcast,
    /// The plan of the whole service.
    pub plan: Arc<Plan>,
    /// Requests of all gateways at the origin.
    pub in_flight: u32,
}

/// Plans one service for all gateways.
#[derive(Debug)]
pub struct ServiceLeader {
    planner: PlannerDriver<SentryPlanner>,
    shares: ShareLeader,
    /// Reports since the last round began, by gateway.
    reported: BTreeMap<u64, Sample>,
    /// Requests in flight by the last report of each gateway of the last round.
    in_flight: u32,
    began: Instant,
    round_began: Instant,
    /// The newest plan that a report names: its number, limit and knee. None once this leader has planned.
    inherited: Option<(Epoch, u32, u64)>,
    has_planned: bool,
    last: Option<ServiceBroadcast>,
}

impl ServiceLeader {
    /// Begins to lead in this term, which is larger than that of every leader before.
    #[must_use]
    pub fn new(now: Instant, term: u64, policy: &Policy) -> Self {
        // A round is a plan: a shorter interval would only be asked in between.
        let policy = Policy { interval: ROUND_MIN, ..policy.clone() };
        Self {
            planner: PlannerDriver::new(SentryPlanner::new(Arc::new(policy)), now),
            shares: ShareLeader::new(now, term, 0.0),
            reported: BTreeMap::new(),
            in_flight: 0,
            began: now,
            round_began: now,
            inherited: None,
            has_planned: false,
            last: None,
        }
    }

    /// Gateways that report.
    #[must_use]
    pub fn gateways(&self) -> usize {
        self.shares.gateways()
    }

    /// The last broadcast.
    #[must_use]
    pub fn last(&self) -> Option<&ServiceBroadcast> {
        self.last.as_ref()
    }

    /// Takes a report. O(what was measured).
    ///
    /// # Errors
    /// [`LeaderError`]: the report is not counted.
    pub fn observe(&mut self, now: Instant, report: &ServiceReport) -> Result<(), LeaderError> {
        self.shares.observe(now, &report.share)?;
        let is_newer = self.inherited.is_none_or(|(epoch, ..)| epoch < report.share.applied);
        if !self.has_planned && report.limit > 0 && is_newer {
            self.inherited = Some((report.share.applied, report.limit, report.knee_milli));
        }
        let known = self.reported.entry(report.share.gateway).or_default();
        known.append(&report.sample);
        known.compact();
        Ok(())
    }

    /// The next broadcast where a round has ended; call it often. A round is a plan and a broadcast.
    pub fn step(&mut self, now: Instant) -> Option<&ServiceBroadcast> {
        let lasted = now.saturating_since(self.round_began);
        let is_settled = now.saturating_since(self.began) >= SETTLING;
        let have_all_reported = self.reported.len() >= self.shares.gateways();
        if !is_settled || lasted < ROUND_MIN || (lasted < ROUND_MAX && !have_all_reported) {
            return None;
        }
        let mut sample = Sample::default();
        for reported in core::mem::take(&mut self.reported).values() {
            sample.merge(reported);
        }
        (sample.from, sample.to) = (self.round_began, now);
        self.in_flight = sample.in_flight;
        self.round_began = now;
        if !self.has_planned {
            self.has_planned = true;
            if let Some((_, limit, knee_milli)) = self.inherited.take() {
                let knee = (knee_milli > 0).then_some(knee_milli as f64 / 1e3);
                self.planner.planner_mut().resume(now, limit, knee);
            }
        }
        self.planner.observe(now, &sample);
        let plan = self.planner.plan(now);
        self.shares.set_limit(f64::from(plan.limit));
        let shares = self.shares.broadcast(now)?;
        let in_flight = self.in_flight;
        self.last = Some(ServiceBroadcast { shares, plan: Arc::new(plan), in_flight });
        self.last.as_ref()
    }
}
