//! A redirector's control thread: it gathers what workers count and replicas report, decides where copies
//! are, and publishes that.

use super::counts::Sample;
use super::document::{hasher, server_name};
use super::report::{Orders, Report, ReportedDocument};
use flashweir_config::{Replication, ReplicationRules};
use flashweir_core::limits::{PLACEMENT_EVENTS, REPLICA_DOCUMENTS, REPLICA_ORDERS};
use flashweir_core::measure::DecayedCounters;
use flashweir_core::{Duration, Hasher64, Instant};
use flashweir_replication::distribution::Policy;
use flashweir_replication::placement::Watermarks;
use flashweir_replication::placement::published::PublishedRule;
use flashweir_replication::servers::REPORTS_MISSED_MAX;
use flashweir_replication::{
    Placed, PlacementBy, PlacementRound, Redirector, RedirectorSettings, Ring, RoutingPlan, ServerIndex,
    ServerReport, ServerSettings, SettingsError,
};
use flashweir_telemetry::{CopyChange, Label as _};
use http::Uri;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};

/// Averaging time of the requests sent to a server: shorter than any report's interval.
const SENT_TAU: Duration = Duration::from_secs(1);
/// After copies were placed, what was sent before says nothing of what will be.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);
/// A replica cannot have more than this times the high watermark: a report that says more is cut, so that one
/// that lies makes no more copies than one server that is twice overloaded.
const LOAD_MAX: f64 = 2.0;
/// Minimum interval between reports of one replica; early ones come a second after the last.
const REPORT_GAP: Duration = Duration::from_millis(90);
/// Documents that `/status` shows.
const DOCUMENTS_SHOWN: usize = 10;
/// The table of documents is swept when it is this full, of those that have less demand than this.
const SWEPT_AT: usize = REPLICA_DOCUMENTS / 10 * 9;
const IDLE_BELOW_RPS: f64 = 0.1;
/// Copies that differ are fetched again at most this often in a row: some documents differ each time they are
/// made.
const CHECKS_MAX: u32 = 3;
/// Then they are not compared for this long.
const UNCHECKED_FOR: Duration = Duration::from_secs(600);

/// Lives on the control thread.
pub(super) struct Station {
    hasher: Hasher64,
    redirector: Redirector,
    homes: Ring,
    replicas: Vec<Replica>,
    sent: DecayedCounters,
    /// Of the documents in the redirector's table.
    names: HashMap<u64, Box<str>>,
    events: VecDeque<PlacementEvent>,
    checks: HashMap<u64, Check>,
    interval: Duration,
    watermark_rps: f64,
    rules: ReplicationRules,
    /// Before then what was sent is not taken for a load.
    settles_at: Instant,
    is_changed: bool,
    is_full: bool,
    /// Copies that replicas asked for, under the published rules, and copies that differed, since the last
    /// tick.
    offloaded: u64,
    differed: u64,
}

struct Replica {
    url: Uri,
    name: u64,
    reported_at: Option<Instant>,
    in_flight: u32,
    documents: Vec<ReportedDocument>,
    orders: VecDeque<Order>,
    /// Connections to it succeed.
    is_available: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Order {
    Purge(String),
    Invalidate(String),
}

/// Grounds for making or removing a copy, as numbers of that moment.
struct PlacementEvent {
    at: Instant,
    change: CopyChange,
    document: u64,
    server: ServerIndex,
    offered_rps: f64,
    home_load_rps: f64,
}

/// Number of times copies of one document differed.
struct Check {
    next_at: Instant,
    count: u32,
}

/// Outcome of an accepted report.
pub(super) struct Taken {
    pub(super) orders: Orders,
    /// Its load was cut.
    pub(super) is_bounded: bool,
}

/// Reason for which a replica's report was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplicaReportRefusal {
    Unknown,
    TooMany,
}

/// Changes made by one tick, for the metrics.
#[derive(Debug, Default)]
pub(super) struct TickOutcome {
    pub(super) changes: Vec<(CopyChange, u64)>,
    /// To be published, where something changed.
    pub(super) plan: Option<RoutingPlan>,
    pub(super) replicas: (usize, usize),
    pub(super) documents: (usize, usize),
    pub(super) is_full: bool,
}

impl Station {
    pub(super) fn new(config: &Replication, now: Instant) -> Result<Self, SettingsError> {
        let hasher = hasher();
        let placement = match config.rules {
            ReplicationRules::Repaired => PlacementBy::Plan,
            ReplicationRules::Published => PlacementBy::Reports(PublishedRule::ESSER),
        };
        let settings = RedirectorSettings {
            policy: policy(config.rules),
            placement,
            watermarks: watermarks(config),
            servers: ServerSettings { report_interval: config.interval, ..ServerSettings::default() },
            ..RedirectorSettings::default()
        };
        let mut redirector = Redirector::new(settings)?;
        let mut replicas = Vec::with_capacity(config.targets.len());
        for url in &config.targets {
            redirector.add_server(now, 1.0, false)?;
            let name = server_name(&hasher, url);
            replicas.push(Replica {
                url: url.clone(),
                name,
                reported_at: None,
                in_flight: 0,
                documents: Vec::new(),
                orders: VecDeque::new(),
                is_available: true,
            });
        }
        Ok(Self {
            hasher,
            redirector,
            homes: Ring::new(replicas.iter().map(|replica| replica.name))?,
            sent: DecayedCounters::new(replicas.len(), SENT_TAU),
            replicas,
            names: HashMap::new(),
            events: VecDeque::new(),
            checks: HashMap::new(),
            interval: config.interval,
            watermark_rps: config.high_watermark_rps,
            rules: config.rules,
            settles_at: Instant::ZERO,
            is_changed: true,
            is_full: false,
            offloaded: 0,
            differed: 0,
        })
    }

    /// Present places of all documents.
    pub(super) fn routing_plan(&self, now: Instant) -> RoutingPlan {
        let unavailable = self.replicas.iter().enumerate().filter(|(_, replica)| !replica.is_available);
        RoutingPlan::of(&self.redirector, &self.homes, now).without(unavailable.map(|(server, _)| server))
    }

    /// Counts what a worker saw.
    pub(super) fn count(&mut self, now: Instant, sample: Sample) {
        for (key, count) in sample.documents {
            let home = self.homes.owner(key) as ServerIndex;
            (0..count.offered).for_each(|_| self.redirector.offer(now, key, home));
            if let Some(name) = count.name
                && self.names.len() < REPLICA_DOCUMENTS
            {
                self.names.entry(key).or_insert(name);
            }
        }
        for (server, count) in sample.sent.into_iter().enumerate() {
            (0..count).for_each(|_| self.sent.add(now, server));
        }
    }

    /// Decides. `available` says of each replica whether connections to it succeed.
    pub(super) fn tick(&mut self, now: Instant, available: &[bool]) -> TickOutcome {
        for (replica, &is_available) in self.replicas.iter_mut().zip(available) {
            self.is_changed |= replica.is_available != is_available;
            replica.is_available = is_available;
        }
        // As published, a load is what the last report said.
        if now >= self.settles_at && self.rules == ReplicationRules::Repaired {
            for server in 0..self.replicas.len() {
                let sent_rps = self.sent.rate_rps(now, server);
                self.redirector.raise_load(now, server as ServerIndex, sent_rps);
            }
        }
        let is_due = now >= self.redirector.next_plan_at();
        let round = self.redirector.plan(now);
        self.is_changed |= is_due;
        let mut changes = self.remember(now, &round);
        changes.push((CopyChange::Created, std::mem::take(&mut self.offloaded)));
        self.is_full = round.is_cluster_full || (!is_due && self.is_full);
        if is_due && self.redirector.documents().len() >= SWEPT_AT {
            self.forget_idle(now);
        }
        changes.push((CopyChange::Differed, std::mem::take(&mut self.differed)));
        let plan = std::mem::take(&mut self.is_changed).then(|| self.routing_plan(now));
        let documents = self.redirector.documents();
        let copied = (0..documents.len()).filter(|&place| documents.hosts(place).len() > 1).count();
        let usable = (0..self.replicas.len()).filter(|&server| self.is_usable(server)).count();
        TickOutcome {
            changes,
            plan,
            replicas: (self.replicas.len(), usable),
            documents: (documents.len(), copied),
            is_full: self.is_full,
        }
    }

    /// Takes a replica's report, and answers with what waits for it.
    pub(super) fn report(
        &mut self,
        now: Instant,
        url: &Uri,
        report: Report,
    ) -> Result<Taken, ReplicaReportRefusal> {
        let name = server_name(&self.hasher, url);
        let server = self
            .replicas
            .iter()
            .position(|replica| replica.name == name)
            .ok_or(ReplicaReportRefusal::Unknown)?;
        let replica = &mut self.replicas[server];
        if replica.reported_at.is_some_and(|at| now.saturating_since(at) < REPORT_GAP) {
            return Err(ReplicaReportRefusal::TooMany);
        }
        let limit_rps = self.watermark_rps * LOAD_MAX;
        let load_rps = report.orca.rps_fractional.min(limit_rps);
        let is_bounded = load_rps < report.orca.rps_fractional;
        replica.reported_at = Some(now);
        replica.in_flight = report.in_flight;
        replica.documents = report.documents;
        let orders = std::mem::take(&mut replica.orders);
        let report = ServerReport { load_rps, response_ms: None, utilisation: None };
        self.redirector.report(now, server as ServerIndex, report);
        self.offload(now, server as ServerIndex);
        self.compare_copies(now, server);
        self.is_changed = true;
        let mut answer = Orders::default();
        for order in orders {
            match order {
                Order::Purge(query) => answer.purge.push(query),
                Order::Invalidate(name) => answer.invalidate.push(name),
            }
        }
        Ok(Taken { orders: answer, is_bounded })
    }

    /// Under the published rules a replica that is overloaded asks for copies of what it reported.
    fn offload(&mut self, now: Instant, source: ServerIndex) {
        if self.rules == ReplicationRules::Repaired {
            return;
        }
        let keys: HashMap<&str, u64> = self.names.iter().map(|(&key, name)| (&**name, key)).collect();
        let reported = self.replicas[usize::from(source)].documents.iter();
        let mut documents: Vec<(u64, f64)> =
            reported.filter_map(|it| Some((*keys.get(it.name.as_str())?, it.rate_rps))).collect();
        let created = self.redirector.offload(now, source, &mut documents);
        self.offloaded += created.len() as u64;
        for Placed { document, server } in created {
            self.add_event(now, CopyChange::Created, document, server);
        }
    }

    /// Every replica gets it with the answer to its next report. How many replicas.
    pub(super) fn order_purge(&mut self, query: &str) -> usize {
        self.replicas.iter_mut().for_each(|replica| replica.order(Order::Purge(query.to_owned())));
        self.replicas.len()
    }

    /// Keeps what a round changed, and says what has to be said to replicas.
    fn remember(&mut self, now: Instant, round: &PlacementRound) -> Vec<(CopyChange, u64)> {
        if !round.created.is_empty() {
            self.settles_at = now + SETTLES_WITHIN;
        }
        let kinds = [
            (CopyChange::Created, &round.created),
            (CopyChange::Dropped, &round.deleted),
            (CopyChange::Rehomed, &round.rehomed),
        ];
        for (change, all) in kinds {
            self.is_changed |= !all.is_empty();
            for &Placed { document, server } in all {
                if change == CopyChange::Dropped
                    && let Some(name) = self.names.get(&document)
                {
                    self.replicas[usize::from(server)].order(Order::Invalidate(name.to_string()));
                }
                self.add_event(now, change, document, server);
            }
        }
        kinds.map(|(change, all)| (change, all.len() as u64)).into()
    }

    fn add_event(&mut self, now: Instant, change: CopyChange, document: u64, server: ServerIndex) {
        let documents = self.redirector.documents();
        let place = documents.find(document);
        let home = place.and_then(|place| documents.hosts(place).first().copied());
        let event = PlacementEvent {
            at: now,
            change,
            document,
            server,
            offered_rps: place.map_or(0.0, |place| documents.rate_rps(now, place)),
            home_load_rps: home.map_or(0.0, |home| self.redirector.servers().load_rps(home)),
        };
        if self.events.len() >= PLACEMENT_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn forget_idle(&mut self, now: Instant) {
        self.redirector.forget_idle(now, IDLE_BELOW_RPS);
        let documents = self.redirector.documents();
        self.names.retain(|key, _| documents.find(*key).is_some());
    }

    /// Compares the versions that this replica answers with those of the others: what the fewer have is
    /// fetched again, and where no version has more than half of the replicas, all are. RFC 9111 lets copies
    /// differ while they are fresh, so this costs a fetch and is no verdict on the replica.
    fn compare_copies(&mut self, now: Instant, server: usize) {
        let mut wrong: Vec<(usize, String)> = Vec::new();
        for reported in &self.replicas[server].documents {
            let own = reported.validator();
            if own == 0 {
                continue;
            }
            let versions: Vec<(usize, u64)> = self
                .replicas
                .iter()
                .enumerate()
                .filter(|(_, replica)| replica.is_fresh(now, self.interval))
                .filter_map(|(other, replica)| {
                    let same = replica.documents.iter().find(|it| it.name == reported.name)?;
                    Some((other, same.validator())).filter(|(_, version)| *version != 0)
                })
                .collect();
            if versions.iter().all(|(_, version)| *version == own) {
                continue;
            }
            let count = |version| versions.iter().filter(|(_, other)| *other == version).count();
            let right =
                versions.iter().map(|(_, version)| *version).find(|&it| count(it) * 2 > versions.len());
            let key = self.hasher.hash(&[reported.name.as_bytes()]);
            let check = self.checks.entry(key).or_insert(Check { next_at: Instant::ZERO, count: 0 });
            if now < check.next_at {
                continue;
            }
            check.count += 1;
            let is_last = check.count >= CHECKS_MAX;
            check.next_at = now + if is_last { UNCHECKED_FOR } else { self.interval * REPORTS_MISSED_MAX };
            check.count %= CHECKS_MAX;
            let differing = versions.into_iter().filter(|(_, version)| Some(*version) != right);
            wrong.extend(differing.map(|(other, _)| (other, reported.name.clone())));
        }
        for (other, name) in wrong {
            self.differed += 1;
            if let Some((&key, _)) = self.names.iter().find(|(_, known)| ***known == *name) {
                self.add_event(now, CopyChange::Differed, key, other as ServerIndex);
            }
            self.replicas[other].order(Order::Invalidate(name));
        }
        if self.checks.len() > REPLICA_ORDERS {
            self.checks.retain(|_, check| now < check.next_at);
        }
    }

    /// The document of `/status`.
    pub(super) fn status(&self, now: Instant) -> Value {
        let documents = self.redirector.documents();
        let mut rates: Vec<(f64, usize)> =
            (0..documents.len()).map(|place| (documents.rate_rps(now, place), place)).collect();
        rates.sort_by(|one, other| other.0.total_cmp(&one.0));
        let hot = rates.iter().take(DOCUMENTS_SHOWN).filter_map(|&(rate, place)| {
            let key = documents.key(place)?;
            Some(json!({
                "document": self.name(key), "offered_rps": rate, "hosts": self.urls(documents.hosts(place)),
            }))
        });
        let servers = self.redirector.servers();
        let targets = self.replicas.iter().zip(0..).map(|(replica, server)| {
            let age = replica.reported_at.map(|at| now.saturating_since(at).as_secs_f64());
            json!({
                "url": replica.url.to_string(),
                "usable": self.is_usable(usize::from(server)),
                "load_rps": servers.load_rps(server),
                "sent_rps": self.sent.rate_rps(now, usize::from(server)),
                "in_flight": replica.in_flight,
                "reported_age_s": age,
                "documents": replica.documents.iter().take(DOCUMENTS_SHOWN).collect::<Vec<_>>(),
            })
        });
        json!({
            "role": "redirector",
            "crowd": self.redirector.is_engaged(),
            "full": self.is_full,
            "capacity_rps": self.redirector.capacity_rps(now),
            "targets": targets.collect::<Vec<_>>(),
            "documents": documents.len(),
            "hot_documents": hot.collect::<Vec<_>>(),
            "changes": self.events.iter().rev().map(|event| self.event(now, event)).collect::<Vec<_>>(),
        })
    }

    /// Places of one document, and its changes.
    pub(super) fn explain(&self, now: Instant, key: u64) -> Value {
        let documents = self.redirector.documents();
        let place = documents.find(key);
        let home = [self.homes.owner(key) as ServerIndex];
        let hosts = place.map_or(&home[..], |place| documents.hosts(place));
        let changes = self.events.iter().rev().filter(|event| event.document == key);
        json!({
            "document": self.name(key),
            "known": place.is_some(),
            "offered_rps": place.map_or(0.0, |place| documents.rate_rps(now, place)),
            "home": self.urls(&home),
            "hosts": self.urls(hosts),
            "changes": changes.map(|event| self.event(now, event)).collect::<Vec<_>>(),
        })
    }

    fn event(&self, now: Instant, event: &PlacementEvent) -> Value {
        let (offered, load) = (event.offered_rps, event.home_load_rps);
        let high = self.watermark_rps;
        let why = match event.change {
            CopyChange::Created => format!(
                "A replica had {high:.0} requests/s or more; {offered:.1}/s were offered for the document, whose home had {load:.0}/s."
            ),
            CopyChange::Dropped => {
                format!("No replica is overloaded, and only {offered:.1}/s were offered for the document.")
            }
            CopyChange::Rehomed => "All replicas that had the document were out.".to_owned(),
            CopyChange::Differed => {
                "The copy differed from those of the other replicas and is fetched again.".to_owned()
            }
        };
        json!({
            "age_s": now.saturating_since(event.at).as_secs_f64(),
            "change": event.change.as_str(),
            "document": self.name(event.document),
            "server": self.urls(&[event.server]).pop(),
            "offered_rps": offered,
            "why": why,
        })
    }

    /// Returns whether it reports and can be connected to.
    fn is_usable(&self, server: usize) -> bool {
        let has_share = self.redirector.servers().shares().get(server).is_some_and(|share| *share > 0);
        has_share && self.replicas.get(server).is_some_and(|replica| replica.is_available)
    }

    fn name(&self, key: u64) -> Option<&str> {
        self.names.get(&key).map(|name| &**name)
    }

    fn urls(&self, servers: &[ServerIndex]) -> Vec<String> {
        let known = servers.iter().filter_map(|&server| self.replicas.get(usize::from(server)));
        known.map(|replica| replica.url.to_string()).collect()
    }
}

/// Policy that chooses the host of a document for a request.
pub(super) fn policy(rules: ReplicationRules) -> Policy {
    match rules {
        ReplicationRules::Repaired => Policy::TwoChoices,
        ReplicationRules::Published => Policy::Acdn { memory: 0.0 },
    }
}

/// The watermarks of the configuration.
pub(super) fn watermarks(config: &Replication) -> Watermarks {
    Watermarks { high_rps: config.high_watermark_rps, low_rps: config.low_watermark_rps }
}

impl Replica {
    /// Returns whether its last report is recent.
    fn is_fresh(&self, now: Instant, interval: Duration) -> bool {
        self.reported_at.is_some_and(|at| now.saturating_since(at) <= interval * REPORTS_MISSED_MAX)
    }

    /// With too many it gets one that makes all others needless.
    fn order(&mut self, order: Order) {
        if self.orders.contains(&order) {
            return;
        }
        if self.orders.len() >= REPLICA_ORDERS {
            self.orders.clear();
            self.orders.push_back(Order::Purge("all=true".to_owned()));
        } else {
            self.orders.push_back(order);
        }
    }
}

#[cfg(test)]
#[path = "station_tests.rs"]
mod tests;
