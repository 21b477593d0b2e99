//! One redirector: it owns a part of the documents, sends each request to one of the document's hosts, and
//! moves copies.
//!
//! It decides: the server of a request, and the copies of its documents. From which inputs: the requests it
//! sees itself, and the servers' reports. It knows nothing of other redirectors.
//!
//! Rule of placement (repaired; [`Redirector::plan`], at most once a second):
//!
//! ```text
//! engaged      from the first server at HW on, until one server could carry everything below LW
//! engaged      copies by placement::spread, with this redirector's offered rates, while reports say that loads are uneven
//! not engaged  copies with little demand go
//! ```
//!
//! Cold start: every document has its home server only. Recovery: a server that reports again is used again,
//! and starts slowly where that is set. Documents whose home is out get another one: a host that is there, if
//! any. Failure modes: with wrong reports the trigger is wrong, but the split is not (it is by own counts);
//! with more documents than the table holds, the rest stays at the home server.
//!
//! Cost: a choice is a lookup, O(log documents), and the policy's; a plan is O(documents · log documents).

use crate::SettingsError;
use crate::distribution::{Distribution, Policy, ServerLoad};
use crate::documents::DocumentTable;
use crate::placement::published::{PublishedRule, offload};
use crate::placement::{
    DeletionSettings, DocumentLoad, Overload, Watermarks, achievable_loads, room_rps, spread,
};
use crate::servers::{ServerIndex, ServerReport, ServerSettings, ServerTable};
use alloc::vec::Vec;
use flashweir_core::limits::PLACEMENTS_PER_ROUND;
use flashweir_core::{Duration, Instant, Rng};

/// A reported load over the fair part from which on copies are made. Reports of ten seconds of 200 requests/s
/// differ by 2 % by chance; without this bound sixteen redirectors made thousands of copies of documents that
/// were asked for once.
const UNEVEN: f64 = 1.03;

/// Settings of a redirector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedirectorSettings {
    /// Policy that chooses the host of a request.
    pub policy: Policy,
    /// Watermarks of a server's load.
    pub watermarks: Watermarks,
    /// Reports, slow start, ejection, learned weights.
    pub servers: ServerSettings,
    /// Conditions on which copies are deleted.
    pub deletion: DeletionSettings,
    /// The shortest time between two plans, default 1 s.
    pub plan_interval: Duration,
    /// The party that asks for copies.
    pub placement: PlacementBy,
}

/// The party that asks for copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementBy {
    /// The redirector, in [`Redirector::plan`] (repaired).
    #[default]
    Plan,
    /// Overloaded servers, with their reports ([`Redirector::offload`], as published). A plan then only gives
    /// documents new homes; nothing is deleted, and the cluster never counts as full.
    Reports(PublishedRule),
}

impl Default for RedirectorSettings {
    /// Two choices, the thesis's watermarks and reports, copies by plans.
    fn default() -> Self {
        Self {
            policy: Policy::TwoChoices,
            watermarks: Watermarks::default(),
            servers: ServerSettings::default(),
            deletion: DeletionSettings::default(),
            plan_interval: Duration::from_secs(1),
            placement: PlacementBy::default(),
        }
    }
}

/// Changes made by a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacementRound {
    /// Copies made; the document is fetched with its first request.
    pub created: Vec<Placed>,
    /// Copies removed.
    pub deleted: Vec<Placed>,
    /// Documents that got a new home because theirs was out.
    pub rehomed: Vec<Placed>,
    /// All servers together have more than 0.9·HW each: replication cannot help, admission control has to.
    pub is_cluster_full: bool,
}

/// A document at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The document's key.
    pub document: u64,
    /// The server.
    pub server: ServerIndex,
}

/// One redirector.
#[derive(Clone, Debug)]
pub struct Redirector {
    settings: RedirectorSettings,
    servers: ServerTable,
    overload: Vec<Overload>,
    documents: DocumentTable,
    distribution: Distribution,
    /// Loads by which the weights were last updated.
    loads: Vec<ServerLoad>,
    is_engaged: bool,
    updated_at: Instant,
    plan_at: Instant,
    deletion_at: Instant,
}

impl Redirector {
    /// Without servers and documents.
    ///
    /// # Errors
    /// [`SettingsError`] for settings out of range.
    pub fn new(settings: RedirectorSettings) -> Result<Self, SettingsError> {
        settings.watermarks.check()?;
        if settings.plan_interval < Duration::from_millis(100) {
            return Err(SettingsError::new("plan interval", "100 ms or more"));
        }
        Ok(Self {
            servers: ServerTable::new(settings.servers)?,
            distribution: Distribution::new(settings.policy, settings.watermarks)?,
            settings,
            overload: Vec::new(),
            documents: DocumentTable::default(),
            loads: Vec::new(),
            is_engaged: false,
            updated_at: Instant::ZERO,
            plan_at: Instant::ZERO,
            deletion_at: Instant::ZERO,
        })
    }

    /// A server more; see [`ServerTable::add`].
    ///
    /// # Errors
    /// As there.
    pub fn add_server(
        &mut self,
        now: Instant,
        weight: f64,
        is_fresh: bool,
    ) -> Result<ServerIndex, SettingsError> {
        let server = self.servers.add(now, weight, is_fresh)?;
        self.overload.push(Overload::default());
        self.distribution.add_server();
        Ok(server)
    }

    /// A request for a document whose home is `home`: counts it as offered and names the server that answers.
    /// None where no host is usable; the next plan then finds another.
    pub fn route(
        &mut self,
        now: Instant,
        document: u64,
        home: ServerIndex,
        rng: &mut Rng,
    ) -> Option<ServerIndex> {
        self.offer(now, document, home);
        self.choose(now, document, home, rng)
    }

    /// Counts a request as offered, whether or not it is admitted.
    pub fn offer(&mut self, now: Instant, document: u64, home: ServerIndex) {
        if let Some(place) = self.documents.place(now, document, home) {
            self.documents.offer(now, place);
        }
    }

    /// Names the server that answers an admitted request.
    pub fn choose(
        &mut self,
        now: Instant,
        document: u64,
        home: ServerIndex,
        rng: &mut Rng,
    ) -> Option<ServerIndex> {
        let hosts = self
            .documents
            .find(document)
            .map_or(core::slice::from_ref(&home), |place| self.documents.hosts(place));
        self.distribution.choose(now, document, hosts, self.servers.shares(), rng)
    }

    /// A server's report. Weights of the policy are updated when every usable server has reported since the
    /// last update.
    pub fn report(&mut self, now: Instant, server: ServerIndex, report: ServerReport) {
        self.servers.report(now, server, report);
        if let Some(overload) = self.overload.get_mut(usize::from(server)) {
            let weight = self.servers.weight(server).max(f64::MIN_POSITIVE);
            overload.update(self.servers.load_rps(server) / weight, &self.settings.watermarks);
        }
        let all = 0..self.servers.len() as ServerIndex;
        let has_reported = |server| self.servers.reported_at(server).is_some_and(|at| at > self.updated_at);
        let is_published = matches!(self.settings.policy, Policy::Acdn { .. });
        if is_published || all.into_iter().all(|it| !self.servers.is_usable(now, it) || has_reported(it)) {
            self.updated_at = now;
            self.servers.learn(now);
            self.update_distribution(now);
        }
        self.update_engaged(now);
    }

    /// Raises a server's load to the rate `sent_rps` that was recently sent to it. A report may be older than
    /// the crowd, or may lie.
    pub fn raise_load(&mut self, now: Instant, server: ServerIndex, sent_rps: f64) {
        let missing_rps = sent_rps - self.servers.load_rps(server);
        if missing_rps.is_nan() || missing_rps <= 0.0 {
            return;
        }
        self.servers.correct_load(server, missing_rps);
        if let Some(overload) = self.overload.get_mut(usize::from(server)) {
            let weight = self.servers.weight(server).max(f64::MIN_POSITIVE);
            overload.update(self.servers.load_rps(server) / weight, &self.settings.watermarks);
        }
        self.update_engaged(now);
    }

    /// Forgets documents that are at one server and have less demand than this, requests per second, so that
    /// there is room for others. A document that returns starts at its home. O(documents · log documents).
    pub fn forget_idle(&mut self, now: Instant, below_rps: f64) {
        self.documents.forget_idle(now, below_rps);
    }

    /// Capacity of all usable servers together before they are overloaded, requests per second: HW times
    /// their weights.
    #[must_use]
    pub fn capacity_rps(&self, now: Instant) -> f64 {
        let weights = self.usable(now).into_iter().map(|server| self.servers.weight(server));
        weights.sum::<f64>() * self.settings.watermarks.high_rps
    }

    /// Takes the result of a request to a server: failures in a row eject it.
    pub fn finished(&mut self, now: Instant, server: ServerIndex, succeeded: bool) {
        self.servers.finished(now, server, succeeded);
    }

    /// Published placement: a server asks for a copy of one document. The least loaded server that does not
    /// host it gets one, and the table of loads is corrected by the relief where the rule says so. Says
    /// whether there was such a server.
    pub fn accept(
        &mut self,
        now: Instant,
        document: u64,
        source: ServerIndex,
        relief_rps: f64,
        rule: PublishedRule,
    ) -> Option<ServerIndex> {
        let place = self.documents.find(document)?;
        let hosts = self.documents.hosts(place);
        let may = |it: &ServerIndex| !hosts.contains(it) && self.servers.is_usable(now, *it);
        let others = (0..self.servers.len() as ServerIndex).filter(may);
        let load = |server| self.servers.load_rps(server);
        let target = others.min_by(|&one, &other| load(one).total_cmp(&load(other)))?;
        if !rule.acceptance.accepts(load(target), relief_rps, &self.settings.watermarks) {
            return None;
        }
        self.add_copy(now, place, target);
        if rule.has_load_correction {
            self.servers.correct_load(source, -relief_rps);
            self.servers.correct_load(target, relief_rps);
        }
        Some(target)
    }

    /// Published placement, with a server's report: while the server is overloaded it asks for copies of the
    /// documents of its report (key and requests per second; sorted here by decreasing rate). The copies
    /// made; none where placement is by plans.
    pub fn offload(
        &mut self,
        now: Instant,
        source: ServerIndex,
        documents: &mut [(u64, f64)],
    ) -> Vec<Placed> {
        let PlacementBy::Reports(rule) = self.settings.placement else { return Vec::new() };
        let mut created = Vec::new();
        let is_overloaded = self.overload.get(usize::from(source)).is_some_and(|it| it.is_overloaded());
        if is_overloaded {
            let (load_rps, watermarks) = (self.servers.load_rps(source), self.settings.watermarks);
            offload(load_rps, documents, &watermarks, |document, relief_rps| {
                let target = self.accept(now, document, source, relief_rps, rule);
                created.extend(target.map(|server| Placed { document, server }));
                target.is_some()
            });
        }
        created
    }

    /// Makes a server a host of a document whose home is `home`, as an operator may before a crowd comes.
    pub fn place_copy(&mut self, now: Instant, document: u64, home: ServerIndex, server: ServerIndex) {
        if let Some(place) = self.documents.place(now, document, home) {
            self.add_copy(now, place, server);
        }
    }

    /// Time at which the next plan may change something; calling [`plan`](Self::plan) earlier does nothing.
    #[must_use]
    pub fn next_plan_at(&self) -> Instant {
        self.plan_at
    }

    /// Repaired placement: copies, deletions and new homes. At most [`PLACEMENTS_PER_ROUND`] copies.
    pub fn plan(&mut self, now: Instant) -> PlacementRound {
        if now < self.plan_at {
            return PlacementRound::default();
        }
        self.servers.refresh(now);
        self.update_engaged(now);
        self.plan_at = now + self.settings.plan_interval;
        let rehomed = self.rehome(now);
        let is_planned = self.settings.placement == PlacementBy::Plan;
        let created = if is_planned && self.is_engaged { self.create(now) } else { Vec::new() };
        let is_deletion = is_planned && !self.is_engaged && now >= self.deletion_at;
        let deleted = if is_deletion { self.delete(now) } else { Vec::new() };
        PlacementRound { created, deleted, rehomed, is_cluster_full: self.is_cluster_full(now) }
    }

    /// Returns whether a server was at HW and the load still needs more than one server.
    #[must_use]
    pub fn is_engaged(&self) -> bool {
        self.is_engaged
    }

    /// Returns whether the usable servers' load is above 0.9·HW of them together.
    #[must_use]
    pub fn is_cluster_full(&self, now: Instant) -> bool {
        if self.settings.placement != PlacementBy::Plan {
            return false;
        }
        let usable = self.usable(now);
        let load: f64 = usable.iter().map(|&it| self.servers.load_rps(it)).sum();
        let room: f64 =
            usable.iter().map(|&it| room_rps(0.0, self.servers.weight(it), &self.settings.watermarks)).sum();
        !usable.is_empty() && load > room
    }

    /// The documents and their hosts.
    #[must_use]
    pub fn documents(&self) -> &DocumentTable {
        &self.documents
    }

    /// The servers.
    #[must_use]
    pub fn servers(&self) -> &ServerTable {
        &self.servers
    }

    /// Loads by which the weights of the policy were last updated; empty before the first report, and of use
    /// only to a policy with fixed weights.
    #[must_use]
    pub fn loads(&self) -> &[ServerLoad] {
        &self.loads
    }

    /// The policy at work.
    #[must_use]
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    fn usable(&self, now: Instant) -> Vec<ServerIndex> {
        (0..self.servers.len() as ServerIndex).filter(|&it| self.servers.is_usable(now, it)).collect()
    }

    fn update_engaged(&mut self, now: Instant) {
        let usable = self.usable(now);
        let is_overloaded = usable.iter().any(|&it| self.overload[usize::from(it)].is_overloaded());
        let total: f64 = usable.iter().map(|&it| self.servers.load_rps(it)).sum();
        let largest = usable.iter().map(|&it| self.servers.weight(it)).fold(0.0, f64::max);
        let was_engaged = self.is_engaged;
        self.is_engaged =
            is_overloaded || self.is_engaged && total >= self.settings.watermarks.low_rps * largest;
        if self.is_engaged && !was_engaged {
            // A crowd was found: the plan does not wait for its turn.
            self.plan_at = now;
        }
    }

    fn add_copy(&mut self, now: Instant, place: usize, server: ServerIndex) {
        if self.documents.add_host(now, place, server) {
            self.distribution.enter(server, self.documents.hosts(place), self.servers.shares());
        }
    }

    /// Documents whose home is out get another one, or that would be kept while copies that are there are
    /// deleted: the first usable host, or, where none is, the least loaded usable server, in turns: its load
    /// is not known yet.
    fn rehome(&mut self, now: Instant) -> Vec<Placed> {
        let mut usable = self.usable(now);
        usable.sort_by(|&one, &other| self.servers.load_rps(one).total_cmp(&self.servers.load_rps(other)));
        if usable.is_empty() || usable.len() == self.servers.len() {
            return Vec::new();
        }
        let (mut rehomed, mut lost) = (Vec::new(), 0);
        for place in 0..self.documents.len() {
            let hosts = self.documents.hosts(place);
            let is_usable = |host: &&ServerIndex| usable.contains(host);
            if hosts.first().as_ref().is_some_and(is_usable) {
                continue;
            }
            let server = hosts.iter().find(is_usable).copied().unwrap_or_else(|| {
                lost += 1;
                usable[(lost - 1) % usable.len()]
            });
            if let Some(document) = self.documents.key(place) {
                self.documents.rehome(now, place, server);
                rehomed.push(Placed { document, server });
            }
        }
        rehomed
    }

    /// Usable hosts of each document that is asked for.
    fn usable_hosts(&self, now: Instant) -> Vec<(usize, f64, Vec<ServerIndex>)> {
        let is_usable = |server: &&ServerIndex| self.servers.is_usable(now, **server);
        let of = |place| {
            let hosts: Vec<ServerIndex> =
                self.documents.hosts(place).iter().filter(is_usable).copied().collect();
            (place, self.documents.rate_rps(now, place), hosts)
        };
        (0..self.documents.len())
            .map(of)
            .filter(|(_, rate, hosts)| *rate > 0.0 && !hosts.is_empty())
            .collect()
    }

    fn weights(&self, now: Instant) -> Vec<f64> {
        let weight = |it| if self.servers.is_usable(now, it) { self.servers.weight(it) } else { 0.0 };
        (0..self.servers.len() as ServerIndex).map(weight).collect()
    }

    /// Returns whether the reports say that a usable server has more than its fair part.
    fn is_uneven(&self, weights: &[f64]) -> bool {
        let usable = || weights.iter().zip(0..).filter(|(weight, _)| **weight > 0.0);
        let total: f64 = usable().map(|(_, server)| self.servers.load_rps(server)).sum();
        let fair = total / usable().map(|(weight, _)| weight).sum::<f64>().max(f64::MIN_POSITIVE);
        usable().any(|(weight, server)| self.servers.load_rps(server) > UNEVEN * fair * weight)
    }

    /// Copies by this redirector's own rates, if the reports say that the loads are uneven: what is uneven
    /// here may be even with what the other redirectors send.
    fn create(&mut self, now: Instant) -> Vec<Placed> {
        let weights = self.weights(now);
        if !self.is_uneven(&weights) {
            return Vec::new();
        }
        let room = |(server, &weight): (usize, &f64)| {
            room_rps(self.servers.load_rps(server as ServerIndex), weight, &self.settings.watermarks)
        };
        let room_rps: Vec<f64> = weights.iter().enumerate().map(room).collect();
        let asked = self.usable_hosts(now);
        let loads = document_loads(&asked);
        let copies = spread(&loads, &weights, &room_rps, PLACEMENTS_PER_ROUND);
        let mut created = Vec::new();
        for copy in copies {
            self.add_copy(now, copy.document, copy.target);
            self.servers.correct_load(copy.source, -copy.moved_rps);
            self.servers.correct_load(copy.target, copy.moved_rps);
            let document = self.documents.key(copy.document);
            created.extend(document.map(|document| Placed { document, server: copy.target }));
        }
        created
    }

    /// One copy at most of each document goes in a round, the newest; a round each report interval.
    fn delete(&mut self, now: Instant) -> Vec<Placed> {
        self.deletion_at = now + self.settings.servers.report_interval;
        let RedirectorSettings { watermarks, deletion, .. } = self.settings;
        let mut deleted = Vec::new();
        for place in 0..self.documents.len() {
            let hosts = self.documents.hosts(place);
            let overload = |server: &ServerIndex| self.overload.get(usize::from(*server));
            let is_overloaded = hosts.iter().filter_map(overload).any(|it| it.is_overloaded());
            let (count, newest) = (hosts.len(), hosts.last().copied());
            let (rate_rps, changed_at) =
                (self.documents.rate_rps(now, place), self.documents.changed_at(place));
            let Some(low_demand) = self.documents.low_demand(place) else { continue };
            let may = low_demand.update(now, rate_rps, count, changed_at, &watermarks, &deletion);
            if let Some(server) = newest.filter(|_| may && !is_overloaded)
                && self.documents.remove_copy(place, server)
            {
                let document = self.documents.key(place);
                deleted.extend(document.map(|document| Placed { document, server }));
            }
        }
        deleted
    }

    fn update_distribution(&mut self, now: Instant) {
        let weights = self.weights(now);
        let asked = self.usable_hosts(now);
        let (exclusive, flexible): (Vec<_>, Vec<_>) =
            document_loads(&asked).into_iter().partition(|it| it.hosts.len() == 1);
        let flexible_rps: f64 = flexible.iter().map(|it| it.rate_rps).sum();
        let (exclusive_rps, _) = achievable_loads(&exclusive, &weights, 1.0);
        let loads: Vec<ServerLoad> = weights
            .iter()
            .zip(exclusive_rps)
            .enumerate()
            .map(|(server, (&weight, exclusive_rps))| ServerLoad {
                load_rps: self.servers.load_rps(server as ServerIndex)
                    / self.servers.weight(server as ServerIndex),
                exclusive_rps,
                weight,
            })
            .collect();
        self.distribution.update(&loads, flexible_rps);
        self.loads = loads;
    }
}

/// Places, offered rates and usable hosts, as placement takes them.
fn document_loads(asked: &[(usize, f64, Vec<ServerIndex>)]) -> Vec<DocumentLoad<'_>> {
    let loads = asked.iter();
    loads.map(|&(document, rate_rps, ref hosts)| DocumentLoad { document, rate_rps, hosts }).collect()
}
