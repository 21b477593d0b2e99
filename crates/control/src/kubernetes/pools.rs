//! One planner for each pool of servers: policies that share a pool are planned together. No I/O.

use crate::kubernetes::policy::CheckedPolicy;
use flashweir_admission::PlannerDriver;
use flashweir_core::{Duration, Instant};
use flashweir_provisioning::{ApplicationPlan, ApplicationSample, Policy, ProvisioningPlanner, Sample};
use std::collections::BTreeMap;

/// Namespace and name of a policy.
pub(crate) type PolicyKey = (String, String);

/// Namespace of a pool, and its name, or that of the policy that has a separate one.
type PoolKey = (String, Result<String, String>);

/// Policies that are planned together.
#[derive(Debug)]
struct Pool {
    policy: Policy,
    members: Vec<PolicyKey>,
    driver: PlannerDriver<ProvisioningPlanner>,
    /// Until when demand was counted.
    counted_to: Instant,
}

/// All pools.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pools: BTreeMap<PoolKey, Pool>,
}

/// Reason for which a policy has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unplanned {
    /// Its pool cannot be planned at all.
    Invalid(String),
    /// Another member has no sample.
    WaitsFor(String),
}

impl Pools {
    /// Follows the policies there are. A pool whose policies are as before keeps its planner, with all that
    /// it has learned. The result has policies whose pool cannot be planned.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        interval: Duration,
        policies: &BTreeMap<PolicyKey, CheckedPolicy>,
    ) -> BTreeMap<PolicyKey, Unplanned> {
        let mut wanted: BTreeMap<PoolKey, Vec<(&PolicyKey, &CheckedPolicy)>> = BTreeMap::new();
        for (key, policy) in policies {
            let name = policy.pool.as_ref().map_or(Err(key.1.clone()), |pool| Ok(pool.name.clone()));
            wanted.entry((key.0.clone(), name)).or_default().push((key, policy));
        }
        self.pools.retain(|key, _| wanted.contains_key(key));
        let mut unplanned = BTreeMap::new();
        for (pool_key, members) in wanted {
            let policy = pool_policy(interval, &members);
            let names: Vec<PolicyKey> = members.iter().map(|(key, _)| (*key).clone()).collect();
            let is_same = |pool: &Pool| pool.policy == policy && pool.members == names;
            if self.pools.get(&pool_key).is_some_and(is_same) {
                continue;
            }
            match ProvisioningPlanner::new(policy.clone()) {
                Ok(planner) => {
                    let driver = PlannerDriver::new(planner, now);
                    self.pools.insert(pool_key, Pool { policy, members: names, driver, counted_to: now });
                }
                Err(error) => {
                    self.pools.remove(&pool_key);
                    unplanned
                        .extend(names.into_iter().map(|key| (key, Unplanned::Invalid(error.to_string()))));
                }
            }
        }
        unplanned
    }

    /// Plans every pool of which all members have a sample.
    pub(crate) fn plan(
        &mut self,
        now: Instant,
        mut samples: BTreeMap<PolicyKey, ApplicationSample>,
    ) -> BTreeMap<PolicyKey, Result<(u64, ApplicationPlan), Unplanned>> {
        let mut plans = BTreeMap::new();
        for pool in self.pools.values_mut() {
            let missing = pool.members.iter().find(|key| !samples.contains_key(*key));
            if let Some((_, name)) = missing {
                let waits = Unplanned::WaitsFor(name.clone());
                plans.extend(pool.members.iter().map(|key| (key.clone(), Err(waits.clone()))));
                continue;
            }
            let applications = pool.members.iter().filter_map(|key| samples.remove(key)).collect();
            pool.driver.observe(now, &Sample { from: pool.counted_to, to: now, applications });
            pool.counted_to = now;
            let plan = pool.driver.plan(now);
            let each = pool.members.iter().cloned().zip(plan.applications);
            plans.extend(each.map(|(key, application)| (key, Ok((plan.epoch, application)))));
        }
        plans
    }
}

/// Servers of a pool that policies share are the fewest that any of them says; a policy without a pool has as
/// many as it may have.
fn pool_policy(interval: Duration, members: &[(&PolicyKey, &CheckedPolicy)]) -> Policy {
    let shared = members.iter().filter_map(|(_, policy)| policy.pool.as_ref()).map(|pool| pool.servers).min();
    let own = || members.iter().map(|(_, policy)| policy.application.servers_max).max().unwrap_or(1);
    let applications = members.iter().map(|(_, policy)| policy.application.clone()).collect();
    Policy { interval, ..Policy::new(shared.unwrap_or_else(own), applications) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::policy::PoolSpec;
    use flashweir_provisioning::{ApplicationPolicy, ClassCounts, Moments, PoolState};

    const INTERVAL: Duration = Duration::from_secs(10);

    fn key(name: &str) -> PolicyKey {
        ("shop".to_owned(), name.to_owned())
    }

    fn policy(servers_max: u32, pool: Option<u32>) -> CheckedPolicy {
        let application =
            ApplicationPolicy { servers_max, ..ApplicationPolicy::single(Duration::from_secs(1)) };
        let pool = pool.map(|servers| PoolSpec { name: "all".to_owned(), servers });
        CheckedPolicy { application, classes: Vec::new(), pool }
    }

    fn sample(offered: u64, ready: u32) -> ApplicationSample {
        let service =
            Moments { count: offered, sum_s: offered as f64 * 0.1, squares_s2: offered as f64 * 0.02 };
        let counts = ClassCounts { offered, admitted: offered, refused: 0, service };
        let pool = PoolState { ready, ..PoolState::default() };
        ApplicationSample { classes: vec![counts], pool: Some(pool), ..ApplicationSample::default() }
    }

    #[test]
    fn a_pool_is_shared_and_never_exceeded() {
        let mut pools = Pools::default();
        let policies = BTreeMap::from([(key("a"), policy(8, Some(5))), (key("b"), policy(8, Some(6)))]);
        assert!(pools.update(Instant::ZERO, INTERVAL, &policies).is_empty());
        for second in (10..200).step_by(10) {
            let samples = BTreeMap::from([(key("a"), sample(1_000, 2)), (key("b"), sample(1_000, 2))]);
            let plans = pools.plan(Instant::from_secs(second), samples);
            let servers: u32 = plans.values().map(|plan| plan.as_ref().expect("a plan").1.servers).sum();
            assert!(servers <= 5, "{servers}");
        }
    }

    #[test]
    fn one_member_without_a_sample_stops_its_pool_and_no_other() {
        let mut pools = Pools::default();
        let policies = BTreeMap::from([
            (key("a"), policy(8, Some(5))),
            (key("b"), policy(8, Some(5))),
            (key("c"), policy(3, None)),
        ]);
        pools.update(Instant::ZERO, INTERVAL, &policies);
        let samples = BTreeMap::from([(key("a"), sample(10, 1)), (key("c"), sample(10, 1))]);
        let plans = pools.plan(Instant::from_secs(10), samples);
        assert_eq!(plans[&key("a")], Err(Unplanned::WaitsFor("b".to_owned())));
        assert!(plans[&key("c")].is_ok());
    }

    #[test]
    fn a_pool_that_cannot_be_planned_is_said_and_one_that_is_unchanged_goes_on() {
        let mut pools = Pools::default();
        let mut short = policy(8, Some(5));
        short.application.servers_min = 4;
        let policies =
            BTreeMap::from([(key("a"), short.clone()), (key("b"), short), (key("c"), policy(3, None))]);
        let unplanned = pools.update(Instant::ZERO, INTERVAL, &policies);
        let expected = "servers_min of all applications together: 8, expected at most the pool's 5";
        assert_eq!(unplanned[&key("a")], Unplanned::Invalid(expected.to_owned()));
        assert!(!unplanned.contains_key(&key("c")));
        let epoch = |pools: &mut Pools, second| {
            let samples = BTreeMap::from([(key("c"), sample(10, 1))]);
            pools.plan(Instant::from_secs(second), samples)[&key("c")].as_ref().expect("a plan").0
        };
        assert_eq!(epoch(&mut pools, 10), 1);
        pools.update(Instant::from_secs(15), INTERVAL, &BTreeMap::from([(key("c"), policy(3, None))]));
        assert_eq!(epoch(&mut pools, 20), 2, "the planner is kept");
    }
}
