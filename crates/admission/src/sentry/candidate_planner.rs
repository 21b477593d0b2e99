//! Plans of a candidate's gates: what the live policy's planner has learned, divided by the candidate's
//! classes.
//!
//! Learned values (limit, knee, response times) are about the origin and come from what really ran, and so do
//! the times that requests take (`pace`); rates and queues are those of the candidate's own classes. Cost per
//! plan: O(classes²), as for the live policy, and a table a few times a second.

use super::classes::{Classes, Service};
use super::deciding::Deciding;
use super::learning::Rules;
use super::pace::Pace;
use super::plan::{Costs, Explanation, Plan};
use super::planner::SentryPlanner;
use super::policy::Policy;
use super::sample::Sample;
use alloc::sync::Arc;
use flashweir_core::{Duration, Instant};

/// Divides, and learns nothing of the origin's capacity.
#[derive(Debug)]
pub struct CandidatePlanner {
    classes: Classes,
    deciding: Deciding,
    pace: Pace,
    costs: Arc<Costs>,
    costs_at: Instant,
    /// Since the last plan: what the candidate's gates measured, and what the live ones did.
    gathered: Sample,
    ran: Sample,
    epoch: u64,
}

impl CandidatePlanner {
    /// Nothing has been offered yet.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        let deciding = Deciding::new(&policy);
        let mut classes = Classes::new(policy, Rules::ALL);
        Self {
            deciding,
            costs: classes.costs(Instant::ZERO),
            classes,
            pace: Pace::new(),
            costs_at: Instant::ZERO,
            gathered: Sample::default(),
            ran: Sample::default(),
            epoch: 0,
        }
    }

    /// Takes what one of the candidate's gates measured.
    pub fn observe(&mut self, sample: &Sample) {
        self.gathered.merge(sample);
    }

    /// Takes what one of the live gates measured.
    pub fn observe_live(&mut self, sample: &Sample) {
        self.ran.merge(sample);
    }

    /// The plan beside the live one's latest.
    pub fn plan(&mut self, now: Instant, live: &SentryPlanner) -> Plan {
        let service = live.service();
        let ran = core::mem::take(&mut self.ran);
        self.deciding.observe_load(now, f64::from(ran.deciding_milli) / 1e3);
        self.pace.observe(&ran);
        let sample = core::mem::take(&mut self.gathered);
        if sample.to > sample.from {
            self.classes.observe(&sample);
            self.deciding.observe(&sample);
        }
        let mut classes = self.classes.plans(&service);
        let (decide, limit) = self.deciding.plan(now, &service, &self.classes, &mut classes);
        self.epoch += 1;
        Plan {
            epoch: self.epoch,
            limit,
            classes,
            decide,
            knee_milli: service.knee_milli(),
            long: self.deciding.long(live.long()),
            costs: self.costs(now, &service),
            price: self.classes.price(&service),
            explanation: Explanation {
                target: self.classes.target(),
                guarantees_infeasible: self.classes.guarantees_infeasible(now, &service),
                ..live.current().explanation
            },
        }
    }

    /// Of requests whose URL class never ran: what others of their class would take.
    fn costs(&mut self, now: Instant, service: &Service) -> Arc<Costs> {
        if now >= self.costs_at {
            self.costs_at = now + REFRESH;
            let own = self.classes.costs(now);
            let by_url_class_us = self.pace.alone_us(service.knee.or(service.servers));
            let by_class_us = own.by_class_us.clone();
            self.costs = Arc::new(Costs { by_url_class_us, by_class_us, usual_us: own.usual_us });
        }
        self.costs.clone()
    }
}

/// Service times do not change faster than that, and a table is 4 kB.
const REFRESH: Duration = Duration::from_millis(200);
