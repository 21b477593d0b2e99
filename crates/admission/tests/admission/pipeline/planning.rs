//! Effects of planners and the configuration on a world: plans, candidates, and versions of services that
//! come and go.

use crate::pipeline::ops::{Limiting, SentryMode};
use crate::pipeline::world::{CLASSES, CeilingMode, SERVICES, Service, ServiceAtWorker, WORKERS, World};
use flashweir_admission::flash_crowd::{self, HotSpotLimit, Limit};
use flashweir_admission::pipeline::ServiceSettings;
use flashweir_admission::sentry::{CandidateGate, ClassPolicy, Common, Decide, Plan, Policy, SentryPlanner};
use flashweir_core::{Duration, Instant, Rate};
use std::sync::Arc;

fn all(rps: f64) -> Limit {
    Limit::All(Rate::from_per_second(rps))
}

/// A limit of the flash-crowd stage.
fn drawn(limit: u8) -> Limit {
    match limit {
        0 => Limit::Open,
        1 => all(0.001),
        2 => all(50.0),
        _ => Limit::HotSpots(vec![HotSpotLimit { key: 0, rate: Rate::from_per_second(10.0) }]),
    }
}

impl World {
    pub(crate) fn add_version(&mut self, service: usize, mode: SentryMode) {
        let mode = self.setup.sentry.unwrap_or(mode);
        let class = |(revenue, guaranteed_rps)| ClassPolicy {
            revenue,
            guaranteed_rate: Rate::from_per_second(guaranteed_rps),
            ..ClassPolicy::default()
        };
        let classes = [(9.0, 20.0), (3.0, 0.0), (1.0, 2.0)].map(class).to_vec();
        let policy = Policy { classes, ..Policy::single(Duration::from_secs(1)) };
        let plan = SentryPlanner::new(Arc::new(policy.clone())).current().clone();
        let mut version = Service {
            common: Arc::new(Common::new(WORKERS)),
            plan: plan.clone(),
            policy,
            mode,
            at: (0..WORKERS).map(|_| ServiceAtWorker::default()).collect(),
        };
        version.plan = version.limited(Limiting { limit: 4, queue: 6, decide: Decide::Reservation }, 1);
        self.newest[service] = self.services.len();
        self.services.push(version);
    }

    /// A worker takes the newest configuration of a service over: the version before it is retired.
    pub(crate) fn take_over(&mut self, worker: usize, service: usize) {
        let (before, newest) = (self.current[worker][service], self.newest[service]);
        let version = &mut self.services[newest];
        if version.at[worker].key.is_some() {
            return;
        }
        let is_shadow = version.mode == SentryMode::Shadow;
        let sentry = (version.mode != SentryMode::Off).then_some((
            &version.common,
            &version.policy,
            &version.plan,
            is_shadow,
        ));
        let key = self.pipelines[worker].add_service(ServiceSettings { sentry, upstream_capacity: 12 });
        (version.at[worker].key, version.at[worker].plan_epoch) = (Some(key), version.plan.epoch);
        // The first version of a service replaces none.
        if let Some(key) = self.services[before].at[worker].key.filter(|_| newest >= SERVICES) {
            self.services[before].at[worker].is_retired = true;
            self.pipelines[worker].retire_service(key);
        }
        self.current[worker][service] = newest;
    }

    pub(crate) fn apply_ceiling(&mut self, worker: usize, limit: u8, is_stale: bool) {
        let limit = match self.setup.ceiling {
            Some(CeilingMode::Open) => Limit::Open,
            Some(CeilingMode::Boundless) => all(1e12),
            Some(CeilingMode::ShadowRefusesAll) => all(0.001),
            None => drawn(limit),
        };
        let epoch = self.plan_epoch(is_stale);
        let plan = flash_crowd::Plan {
            epoch,
            limit,
            // Some plans change the limit, and then earlier responses say nothing about it.
            evidence_from: Instant::from_secs(1_000 + epoch % 7),
            ..flash_crowd::Plan::open(WORKERS)
        };
        self.pipelines[worker].apply_flash_crowd(self.now, &plan);
        if self.setup.has_ceiling_twins {
            self.pipelines[worker].apply_flash_crowd_candidate(self.now, &plan);
        }
    }

    pub(crate) fn plan_ceiling_candidate(&mut self, worker: usize, limit: Option<u8>, is_stale: bool) {
        // Drawn for every setup alike, so that all plans have the same numbers.
        let epoch = self.plan_epoch(is_stale);
        if !self.setup.has_candidates || self.setup.has_ceiling_twins {
            return;
        }
        let Some(limit) = limit.map(drawn) else { return self.set_ceiling_candidate(worker, false) };
        if !self.has_ceiling_candidate[worker] {
            self.set_ceiling_candidate(worker, true);
        }
        let plan = flash_crowd::Plan { epoch, limit, ..flash_crowd::Plan::open(WORKERS) };
        self.pipelines[worker].apply_flash_crowd_candidate(self.now, &plan);
    }

    pub(crate) fn set_ceiling_candidate(&mut self, worker: usize, is_set: bool) {
        let open = is_set.then(|| flash_crowd::Plan::open(WORKERS));
        self.pipelines[worker].set_flash_crowd_candidate(self.now, open.as_ref());
        self.has_ceiling_candidate[worker] = is_set;
    }

    pub(crate) fn plan_sentry(
        &mut self,
        service: usize,
        limiting: Limiting,
        worker: Option<usize>,
        is_stale: bool,
    ) {
        let workers = worker.map_or(0..WORKERS, |worker| worker..worker + 1);
        let epoch = self.plan_epoch(is_stale);
        for worker in workers {
            let version = self.current[worker][service];
            let key = self.key(worker, version);
            let service = &mut self.services[version];
            let plan = service.limited(limiting, epoch);
            self.pipelines[worker].apply_sentry(key, &plan);
            self.pipelines[worker].apply_candidate(key, &plan);
            // A plan that is no newer than the one in force changes nothing.
            if epoch > service.at[worker].plan_epoch {
                service.at[worker].plan_epoch = epoch;
                service.plan = plan;
            }
        }
    }

    /// A number that no plan has had: greater than those before, or smaller, as that of a plan that comes
    /// late.
    fn plan_epoch(&mut self, is_stale: bool) -> u64 {
        const MIDDLE: u64 = 1 << 32;
        self.epoch += 1;
        if is_stale { MIDDLE - self.epoch } else { MIDDLE + self.epoch }
    }

    pub(crate) fn set_candidate(&mut self, worker: usize, service: usize, is_set: bool) {
        if !self.setup.has_candidates {
            return;
        }
        let version = self.current[worker][service];
        let key = self.key(worker, version);
        let Service { policy, plan, .. } = &self.services[version];
        let candidate =
            is_set.then(|| CandidateGate::new(Arc::new(Common::new(WORKERS)), worker, policy, plan));
        self.pipelines[worker].set_candidate(key, candidate);
    }
}

impl Service {
    /// A plan for its policy: the two better classes have a little more room than the last.
    fn limited(&self, limiting: Limiting, epoch: u64) -> Plan {
        let Limiting { limit, queue, decide } = match self.mode {
            // It would refuse nearly everything.
            SentryMode::Shadow => Limiting { limit: 1, queue: 0, decide: Decide::Reservation },
            _ => limiting,
        };
        let mut plan = Plan { epoch, limit, decide, ..self.plan.clone() };
        for (index, class) in plan.classes.iter_mut().enumerate() {
            class.limit = limit + (CLASSES - 1 - index) as u32;
            class.hold_len = queue;
            class.hold_for = Duration::from_millis(400);
            class.newest_first_after = Duration::from_millis(200);
            class.delay = Duration::from_millis(20);
            class.admit_share = [u32::MAX, u32::MAX / 2, 0][index];
        }
        plan
    }
}
