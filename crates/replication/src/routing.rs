//! Routing on many threads: one redirector decides where copies are, and each worker chooses among them by
//! its own counts.
//!
//! A [`RoutingPlan`] is an immutable value that the redirector's thread publishes when something changed;
//! each worker's [`Router`] reads it for each request, without a lock. The plan names only documents that are
//! not at their home alone, so it is as small as the crowd's interests.
//!
//! Why each worker may balance by itself: two choices even out what one worker sends, and a sum of even parts
//! is even (docs/algorithms/replication.md, with 16 redirectors).

use crate::SettingsError;
use crate::distribution::{Distribution, Policy, ServerLoad};
use crate::placement::Watermarks;
use crate::redirector::Redirector;
use crate::ring::Ring;
use crate::servers::ServerIndex;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use flashweir_core::{Instant, Rng};

/// Places of documents, as workers need them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutingPlan {
    /// Hosts of the documents that are not at their home alone.
    hosts: BTreeMap<u64, Vec<ServerIndex>>,
    /// By server; zero: out.
    shares: Vec<u32>,
    /// Limit of all usable servers together, requests per second, while the cluster is full.
    limit_rps: Option<f64>,
    /// As of the last report, where weights are made of reports; empty for two choices, which need none.
    loads: Vec<ServerLoad>,
}

/// One worker's choices.
#[derive(Clone, Debug)]
pub struct Router {
    homes: Ring,
    distribution: Distribution,
    /// All servers, for documents whose hosts are all out.
    servers: Vec<ServerIndex>,
}

impl RoutingPlan {
    /// Of a redirector's present table. O(documents).
    #[must_use]
    pub fn of(redirector: &Redirector, homes: &Ring, now: Instant) -> Self {
        let documents = redirector.documents();
        let hosts = (0..documents.len()).filter_map(|place| {
            let (key, hosts) = (documents.key(place)?, documents.hosts(place));
            (hosts != [homes.owner(key) as ServerIndex]).then(|| (key, hosts.to_vec()))
        });
        let shares = redirector.servers().shares().to_vec();
        let limit_rps = redirector.is_cluster_full(now).then(|| redirector.capacity_rps(now));
        let has_weights = redirector.distribution().probabilities(&[], &[]).is_some();
        let loads = if has_weights { redirector.loads().to_vec() } else { Vec::new() };
        Self { hosts: hosts.collect(), shares, limit_rps, loads }
    }

    /// The same plan with servers that get nothing for now, because connections to them fail. They keep their
    /// documents.
    #[must_use]
    pub fn without(mut self, servers: impl IntoIterator<Item = usize>) -> Self {
        for server in servers {
            if let Some(share) = self.shares.get_mut(server) {
                *share = 0;
            }
        }
        self
    }

    /// The hosts of a document that is not at its home alone.
    #[must_use]
    pub fn hosts(&self, document: u64) -> Option<&[ServerIndex]> {
        self.hosts.get(&document).map(Vec::as_slice)
    }

    /// Each server's share; zero: it gets no requests.
    #[must_use]
    pub fn shares(&self) -> &[u32] {
        &self.shares
    }

    /// Limit of the usable servers together while the cluster is full; none while it is not.
    #[must_use]
    pub fn limit_rps(&self) -> Option<f64> {
        self.limit_rps
    }
}

impl Router {
    /// Over servers with these names (a hash of each one's URL), the same on every worker and redirector; two
    /// choices.
    ///
    /// # Errors
    /// [`SettingsError`] as [`Ring::new`].
    pub fn new(names: impl IntoIterator<Item = u64>) -> Result<Self, SettingsError> {
        Self::with_policy(names, Policy::TwoChoices, Watermarks::default())
    }

    /// The same with another policy.
    ///
    /// # Errors
    /// [`SettingsError`] as [`Ring::new`] and [`Distribution::new`].
    pub fn with_policy(
        names: impl IntoIterator<Item = u64>,
        policy: Policy,
        watermarks: Watermarks,
    ) -> Result<Self, SettingsError> {
        let homes = Ring::new(names)?;
        let mut distribution = Distribution::new(policy, watermarks)?;
        (0..homes.len()).for_each(|_| distribution.add_server());
        let servers = (0..homes.len() as ServerIndex).collect();
        Ok(Self { homes, distribution, servers })
    }

    /// The server where a document is while it has no copies.
    #[must_use]
    pub fn home(&self, document: u64) -> ServerIndex {
        // A ring has at most 256 places.
        self.homes.owner(document) as ServerIndex
    }

    /// Ring of the documents' servers while these have no copies.
    #[must_use]
    pub fn homes(&self) -> &Ring {
        &self.homes
    }

    /// The server that answers this request: one of the document's usable hosts, or any usable server where
    /// all of those are out. None where no server is usable. Allocates nothing.
    pub fn choose(
        &mut self,
        now: Instant,
        document: u64,
        plan: &RoutingPlan,
        rng: &mut Rng,
    ) -> Option<ServerIndex> {
        let home = [self.home(document)];
        let hosts = plan.hosts(document).unwrap_or(&home);
        let chosen = self.distribution.choose(now, document, hosts, &plan.shares, rng);
        chosen.or_else(|| self.distribution.choose(now, document, &self.servers, &plan.shares, rng))
    }

    /// A new plan: servers that became hosts start at the level of the others, or they would get every
    /// request for a second.
    pub fn follow(&mut self, before: &RoutingPlan, plan: &RoutingPlan) {
        if plan.loads != before.loads {
            self.distribution.update(&plan.loads, 0.0);
        }
        for (document, hosts) in &plan.hosts {
            let home = [self.home(*document)];
            let known = before.hosts(*document).unwrap_or(&home);
            for server in hosts.iter().filter(|server| !known.contains(server)) {
                // Of those before: another new host has no level yet.
                self.distribution.enter(*server, known, &plan.shares);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::published::PublishedRule;
    use crate::redirector::{Placed, PlacementBy, RedirectorSettings};
    use crate::servers::ServerReport;
    use flashweir_core::Rng;
    use proptest::prelude::*;

    fn cluster(servers: u16) -> (Redirector, Router) {
        let mut redirector = Redirector::new(RedirectorSettings::default()).expect("valid");
        for _ in 0..servers {
            redirector.add_server(Instant::ZERO, 1.0, false).expect("room");
        }
        (redirector, Router::new((0..u64::from(servers)).map(|name| name + 1)).expect("valid"))
    }

    /// Goal: one hot document is answered by all servers after the plan, and by its home before it.
    #[test]
    fn a_crowd_for_one_document_is_spread_by_the_plan() {
        let (mut redirector, mut router) = cluster(4);
        let (document, mut rng) = (7, Rng::new(1));
        let home = router.home(document);
        let empty = RoutingPlan::of(&redirector, router.homes(), Instant::ZERO);
        for millis in 0..1_000 {
            let now = Instant::from_millis(millis);
            redirector.offer(now, document, home);
            assert_eq!(router.choose(now, document, &empty, &mut rng), Some(home));
        }
        let now = Instant::from_secs(1);
        redirector.raise_load(now, home, 1_000.0);
        assert!(redirector.is_engaged(), "its own requests say that there is a crowd: no report was needed");
        redirector.plan(now);
        let plan = RoutingPlan::of(&redirector, router.homes(), now);
        assert_eq!(plan.hosts(document).map(<[_]>::len), Some(4));
        router.follow(&empty, &plan);
        let mut counts = [0u32; 4];
        for millis in 1_000..2_000 {
            let at = Instant::from_millis(millis);
            counts[usize::from(router.choose(at, document, &plan, &mut rng).expect("a server"))] += 1;
        }
        assert!(counts.iter().all(|&count| (200..=300).contains(&count)), "{counts:?}");
    }

    #[test]
    fn a_full_cluster_has_a_limit_and_a_silent_one_no_server() {
        let (mut redirector, mut router) = cluster(2);
        let report = ServerReport { load_rps: 400.0, response_ms: None, utilisation: None };
        (0..2).for_each(|server| redirector.report(Instant::from_secs(1), server, report));
        let now = Instant::from_secs(2);
        let plan = RoutingPlan::of(&redirector, router.homes(), now);
        assert_eq!(plan.limit_rps(), Some(600.0));
        let later = Instant::from_secs(60);
        redirector.plan(later);
        let plan = RoutingPlan::of(&redirector, router.homes(), later);
        assert_eq!(router.choose(later, 1, &plan, &mut Rng::new(1)), None);
        assert_eq!(plan.limit_rps(), None, "a cluster without servers is not full, it is gone");
    }

    /// Goal: published rules reach the workers: an overloaded server asks for copies with its report, and
    /// the weights are those of that report.
    #[test]
    fn published_rules_place_by_reports_and_route_by_their_weights() {
        let acdn = Policy::Acdn { memory: 0.0 };
        let settings = RedirectorSettings {
            policy: acdn,
            placement: PlacementBy::Reports(PublishedRule::ESSER),
            ..RedirectorSettings::default()
        };
        let mut redirector = Redirector::new(settings).expect("valid");
        for _ in 0..2 {
            redirector.add_server(Instant::ZERO, 1.0, false).expect("room");
        }
        let mut router = Router::with_policy([1, 2], acdn, Watermarks::default()).expect("valid");
        let (now, document, mut rng) = (Instant::from_secs(1), 7, Rng::new(1));
        let source = router.home(document);
        let target = 1 - source;
        redirector.offer(now, document, source);
        let empty = RoutingPlan::of(&redirector, router.homes(), now);
        let report = |load_rps| ServerReport { load_rps, response_ms: None, utilisation: None };
        redirector.report(now, target, report(0.0));
        redirector.report(now, source, report(299.0));
        assert_eq!(redirector.offload(now, source, &mut [(document, 299.0)]), [], "not overloaded");
        redirector.report(now, source, report(400.0));
        assert_eq!(redirector.plan(now).created, [], "a plan makes no copies");
        let created = redirector.offload(now, source, &mut [(document, 400.0)]);
        assert_eq!(created, [Placed { document, server: target }]);
        let plan = RoutingPlan::of(&redirector, router.homes(), now);
        router.follow(&empty, &plan);
        let chosen = (0..100).map(|_| router.choose(now, document, &plan, &mut rng));
        assert!(
            chosen.into_iter().all(|it| it == Some(target)),
            "the source is above HW: its weight is zero"
        );
        assert_eq!(plan.limit_rps(), None);
    }

    proptest! {
        /// For any plan, the chosen server is usable; none only where none is.
        #[test]
        fn the_choice_is_usable(shares in prop::collection::vec(0u32..2, 1..8), document: u64, hosts in prop::collection::vec(0u16..8, 0..8)) {
            let mut router = Router::new((0..shares.len() as u64).map(|name| name + 1)).unwrap();
            let hosts: Vec<u16> = hosts.into_iter().filter(|host| usize::from(*host) < shares.len()).collect();
            let hosts = if hosts.is_empty() { BTreeMap::new() } else { BTreeMap::from([(document, hosts)]) };
            let plan = RoutingPlan { hosts, shares, ..RoutingPlan::default() };
            match router.choose(Instant::ZERO, document, &plan, &mut Rng::new(2)) {
                Some(server) => prop_assert!(plan.shares[usize::from(server)] > 0),
                None => prop_assert!(plan.shares.iter().all(|share| *share == 0)),
            }
        }
    }
}
