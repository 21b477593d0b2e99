//! The servers of one service, all of which host the same: which of them are usable, and how much of the load
//! each should get.
//!
//! ```text
//! share = slow start · learned weight      in 1/1024
//! ```
//!
//! Inputs: how requests end ([`failed`](ServerPool::failed), [`succeeded`](ServerPool::succeeded)), what
//! probes find ([`probed`](ServerPool::probed)), and totals of answers ([`refresh`](ServerPool::refresh)).
//! Outputs: a bit for each server and its share, to be copied to where a [`Balancer`](crate::Balancer) reads
//! them.
//!
//! [`Ejection`] decides which server is out and until when. A server that returns starts slowly
//! ([`slow_start`]), so one that is not well after all has few requests to lose. Where no server is usable,
//! those that can be reached are used, and where none can, all: a wrong judgement must not turn slow into
//! down.
//!
//! The owner probes the servers that [`probes_due`](ServerPool::probes_due) names. A server in service is
//! probed at the configured interval, if there is something to ask; one that is doubtful or out, four times a
//! second. Servers still unknown are probed at once, so that those which are absent cost no request its time.
//!
//! Cold start: every server is usable with a full share. Cost: O(servers) a call; memory 200 bytes a server.

use crate::SettingsError;
use crate::servers::{
    Answers, Ejection, EjectionSettings, Failure, LearnedWeight, LearningSettings, OutCause, OutlierEvidence,
    ProbeOutcome, Room, SHARE_ONE, ServerIndex, ServerReport, slow_start,
};
use alloc::vec::Vec;
use flashweir_core::limits::UPSTREAM_ADDRESSES;
use flashweir_core::{Duration, Instant};

/// Between two probes of a server that is doubtful or out: three find it within a second, one of which may be
/// lost.
const PROBE_AGAIN: Duration = Duration::from_millis(250);
/// Between two comparisons of the servers' answers: enough answers at ten requests a second.
const COMPARED_EVERY: Duration = Duration::from_secs(1);
/// A probe that has not ended by then never will: longer than any timeout that can be configured.
const PROBE_LOST_AFTER: Duration = Duration::from_secs(180);
/// Answers of a server below which their mean time is chance.
const ANSWERS_MIN: u64 = 5;

/// Settings that apply to all servers of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolSettings {
    /// Settings of the ejection of servers.
    pub ejection: EjectionSettings,
    /// Time in which the share of a server that returned grows; zero: at once. Longer: new capacity helps
    /// later. Shorter: a server with cold caches is slow for more clients.
    pub slow_start: Duration,
    /// Settings of the learning of weights; none: all servers are alike.
    pub learning: Option<LearningSettings>,
    /// Between two probes of a server in service; none where there is nothing to ask a server.
    pub probe_interval: Option<Duration>,
}

impl Default for PoolSettings {
    /// Three failures, then 2 s; 5 s of slow start; weights by utilisation.
    fn default() -> Self {
        Self {
            ejection: EjectionSettings {
                failures: 3,
                first: Duration::from_secs(2),
                longest: Duration::from_secs(30),
                ..EjectionSettings::default()
            },
            slow_start: Duration::from_secs(5),
            learning: Some(LearningSettings::UTILISATION),
            probe_interval: None,
        }
    }
}

/// Totals of one server since it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// Answers, errors included.
    pub answered: u64,
    /// Answers with an error of the server, and answers that did not come in time.
    pub errors: u64,
    /// Requests that wait for an answer now (no total).
    pub waiting: u32,
    /// Time to the answers, microseconds.
    pub response_us: u64,
    /// Reports of utilisation.
    pub utilisations: u64,
    /// Utilisation in those, thousandths.
    pub utilisation_milli: u64,
}

/// Counts of servers left out, by cause, and returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolEvents {
    /// In the order of [`OutCause::ALL`].
    pub ejected: [u64; OutCause::ALL.len()],
    /// Returns.
    pub returned: u64,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct ServerPool {
    settings: PoolSettings,
    servers: Vec<Server>,
    shares: Vec<u32>,
    compare_at: Instant,
    events: PoolEvents,
}

#[derive(Clone, Debug)]
struct Server {
    ejection: Ejection,
    is_out: bool,
    /// Beginning of the present slow start; none: it had its full share from the beginning.
    fresh_since: Option<Instant>,
    learned: LearnedWeight,
    evidence: OutlierEvidence,
    counts: ServerCounts,
    probe_at: Instant,
    probing_since: Option<Instant>,
}

impl ServerPool {
    /// A pool of `servers`, all usable.
    ///
    /// # Errors
    /// [`SettingsError`] for no server, more than [`UPSTREAM_ADDRESSES`], or settings out of range.
    pub fn new(now: Instant, servers: usize, settings: PoolSettings) -> Result<Self, SettingsError> {
        if servers == 0 || servers > UPSTREAM_ADDRESSES {
            return Err(SettingsError::new("number of servers", "1 to 64"));
        }
        settings.ejection.check()?;
        settings.learning.as_ref().map_or(Ok(()), LearningSettings::check)?;
        let server = Server {
            ejection: Ejection::default(),
            is_out: false,
            fresh_since: None,
            learned: LearnedWeight::default(),
            evidence: OutlierEvidence::default(),
            counts: ServerCounts::default(),
            // A single server is used after any result; its operator hears of it.
            probe_at: now,
            probing_since: None,
        };
        Ok(Self {
            settings,
            servers: alloc::vec![server; servers],
            shares: alloc::vec![SHARE_ONE; servers],
            compare_at: now + COMPARED_EVERY,
            events: PoolEvents::default(),
        })
    }

    /// Goes on where `former` ended: `known_as` names the server there that each of these is, in their order.
    /// One that is new beside known ones starts slowly. Call it before all else; where none is known, nothing
    /// changes.
    pub fn take_over(&mut self, now: Instant, former: &Self, known_as: &[Option<ServerIndex>]) {
        let known = |index: &Option<ServerIndex>| former.servers.get(usize::from((*index)?));
        if known_as.iter().all(|index| known(index).is_none()) {
            return;
        }
        self.events = former.events;
        let keeps_weights = self.settings.learning == former.settings.learning;
        for (server, index) in self.servers.iter_mut().zip(known_as) {
            let Some(known) = known(index) else {
                server.fresh_since = Some(now);
                continue;
            };
            server.ejection = known.ejection;
            server.is_out = known.is_out;
            server.fresh_since = known.fresh_since;
            server.evidence = known.evidence;
            if keeps_weights {
                server.learned = known.learned;
            }
        }
        self.share_out(now);
    }

    /// A request to a server failed; see [`Ejection::failed`]. An unknown server is ignored, here and below.
    pub fn failed(&mut self, now: Instant, server: ServerIndex, failure: Failure, client: Option<u64>) {
        let (room, settings) = (self.room(now, server), self.settings.ejection);
        let Some(known) = self.servers.get_mut(usize::from(server)) else { return };
        known.ejection.failed(now, failure, client, &settings, room);
        known.probe_at = known.probe_at.min(now);
        self.follow(now, server);
    }

    /// A request was answered.
    pub fn succeeded(&mut self, now: Instant, server: ServerIndex) {
        let Some(known) = self.servers.get_mut(usize::from(server)) else { return };
        known.ejection.succeeded(now);
        self.follow(now, server);
    }

    /// A probe ended.
    pub fn probed(&mut self, now: Instant, server: ServerIndex, outcome: ProbeOutcome) {
        let (room, settings) = (self.room(now, server), self.settings);
        let Some(known) = self.servers.get_mut(usize::from(server)) else { return };
        known.ejection.probed(now, outcome, &settings.ejection, room);
        known.probing_since = None;
        known.probe_at = match (known.ejection.wants_probe(), settings.probe_interval) {
            (true, interval) => now + interval.map_or(PROBE_AGAIN, |interval| interval.min(PROBE_AGAIN)),
            (false, Some(interval)) => now + interval,
            (false, None) => Instant::MAX,
        };
        self.follow(now, server);
    }

    /// Servers to be probed now, at most `count_max`; each is named once until [`probed`](Self::probed) is
    /// called for it.
    pub fn probes_due(&mut self, now: Instant, count_max: usize) -> Vec<ServerIndex> {
        let is_due = |server: &Server| {
            let is_running =
                server.probing_since.is_some_and(|since| now.saturating_since(since) < PROBE_LOST_AFTER);
            now >= server.probe_at && !is_running
        };
        let due = self.servers.iter_mut().enumerate().filter(|(_, server)| is_due(server)).take(count_max);
        due.map(|(index, server)| {
            server.probing_since = Some(now);
            index as ServerIndex
        })
        .collect()
    }

    /// Ends what is over by time, compares the servers and computes the shares. `counts` are those of all
    /// servers, in their order. Call it a few times a second.
    pub fn refresh(&mut self, now: Instant, counts: &[ServerCounts]) {
        for index in 0..self.servers.len() {
            self.servers[index].ejection.settle(now);
            self.follow(now, index as ServerIndex);
        }
        if now >= self.compare_at {
            self.compare_at = now + COMPARED_EVERY;
            self.compare(now, counts);
        }
        self.share_out(now);
    }

    fn share_out(&mut self, now: Instant) {
        for (server, share) in self.servers.iter().zip(&mut self.shares) {
            let start = server
                .fresh_since
                .map_or(1.0, |since| slow_start(now.saturating_since(since), self.settings.slow_start));
            *share = (start * server.learned.factor() * f64::from(SHARE_ONE) + 0.5).max(1.0) as u32;
        }
    }

    /// The shares, as of the last refresh; also of servers that are out.
    #[must_use]
    pub fn shares(&self) -> &[u32] {
        &self.shares
    }

    /// The servers a request may be sent to, as bits: the usable ones; else those that can be reached; else
    /// all.
    #[must_use]
    pub fn candidates(&self, now: Instant) -> u64 {
        let bits = |is_candidate: &dyn Fn(Option<OutCause>) -> bool| {
            let causes = self.servers.iter().map(|server| server.ejection.cause(now));
            causes
                .enumerate()
                .filter(|(_, cause)| is_candidate(*cause))
                .fold(0u64, |bits, (index, _)| bits | 1 << index)
        };
        let usable = bits(&|cause| cause.is_none());
        let reachable = || bits(&|cause| cause != Some(OutCause::Unreachable));
        [usable, reachable()].into_iter().find(|bits| *bits != 0).unwrap_or_else(|| bits(&|_| true))
    }

    /// Cause for which a server is left out; none while it is in service.
    #[must_use]
    pub fn cause(&self, now: Instant, server: ServerIndex) -> Option<OutCause> {
        self.servers.get(usize::from(server)).and_then(|known| known.ejection.cause(now))
    }

    /// Returns whether an answer of the server would change anything.
    #[must_use]
    pub fn is_doubtful(&self, server: ServerIndex) -> bool {
        self.servers.get(usize::from(server)).is_some_and(|known| known.ejection.is_doubtful())
    }

    /// Returns whether everything is as it was configured: nothing is doubtful, out, or growing.
    #[must_use]
    pub fn is_settled(&self, now: Instant) -> bool {
        let window = self.settings.slow_start;
        self.servers.iter().all(|server| {
            let is_growing = server.fresh_since.is_some_and(|since| now.saturating_since(since) < window);
            !is_growing && !server.ejection.wants_probe()
        })
    }

    /// Counts of servers left out and returned, since the pool was made.
    #[must_use]
    pub fn events(&self) -> PoolEvents {
        self.events
    }

    /// Counts what has become of a server, and begins its slow start.
    fn follow(&mut self, now: Instant, server: ServerIndex) {
        let known = &mut self.servers[usize::from(server)];
        let cause = known.ejection.cause(now);
        match (known.is_out, cause) {
            (false, Some(cause)) => {
                self.events.ejected[cause as usize] += 1;
                known.probe_at = known.probe_at.min(now + PROBE_AGAIN);
            }
            (true, None) => {
                self.events.returned += 1;
                known.fresh_since = Some(known.ejection.returned_at());
                known.evidence.clear();
            }
            _ => {}
        }
        known.is_out = cause.is_some();
    }

    fn room(&self, now: Instant, server: ServerIndex) -> Room {
        let others = self.servers.iter().enumerate().filter(|(other, _)| *other != usize::from(server));
        let mut room = Room { servers: self.servers.len(), judged: 0, usable: 0 };
        for (_, other) in others {
            match other.ejection.cause(now) {
                None => room.usable += 1,
                Some(cause) => room.judged += usize::from(cause.is_judgement()),
            }
        }
        room
    }

    fn compare(&mut self, now: Instant, counts: &[ServerCounts]) {
        let usable: Vec<usize> =
            (0..self.servers.len()).filter(|&index| !self.servers[index].is_out).collect();
        let news: Vec<ServerCounts> = (self.servers.iter_mut().zip(counts))
            .map(|(server, counts)| since(core::mem::replace(&mut server.counts, *counts), *counts))
            .collect();
        if news.len() < self.servers.len() {
            return;
        }
        let sum: u64 = usable.iter().map(|&index| news[index].answered).sum();
        for &index in &usable {
            let answers = news[index];
            let others = (sum - answers.answered) as f64 / (usable.len() - 1).max(1) as f64;
            let answers =
                Answers { answered: answers.answered, errors: answers.errors, waiting: answers.waiting };
            self.servers[index].evidence.add(answers, others);
        }
        for &index in &usable {
            let others = usable.iter().filter(|&&other| other != index);
            let evidence = &self.servers[index].evidence;
            if evidence.is_outlier(others.map(|&other| &self.servers[other].evidence)) {
                let (server, settings) = (index as ServerIndex, self.settings.ejection);
                let room = self.room(now, server);
                self.servers[index].ejection.found_outlier(now, &settings, room);
                self.follow(now, server);
            }
        }
        self.learn(&usable, &news);
    }

    /// Corrects the weights by what all of the usable servers report; nothing is learned while one of them is
    /// silent.
    fn learn(&mut self, usable: &[usize], news: &[ServerCounts]) {
        let Some(settings) = self.settings.learning else { return };
        let pressures = usable.iter().map(|&index| settings.pressure(&report(&news[index]), 1.0));
        let Some(pressures) = pressures.collect::<Option<Vec<f64>>>() else { return };
        let mean = pressures.iter().sum::<f64>() / pressures.len().max(1) as f64;
        if mean < settings.mean_min() {
            return;
        }
        for (&index, pressure) in usable.iter().zip(pressures) {
            self.servers[index].learned.update(pressure, mean, &settings);
        }
    }
}

/// Counts between two moments; a total that went back counts as nothing.
fn since(before: ServerCounts, now: ServerCounts) -> ServerCounts {
    ServerCounts {
        answered: now.answered.saturating_sub(before.answered),
        errors: now.errors.saturating_sub(before.errors),
        waiting: now.waiting.min(before.waiting),
        response_us: now.response_us.saturating_sub(before.response_us),
        utilisations: now.utilisations.saturating_sub(before.utilisations),
        utilisation_milli: now.utilisation_milli.saturating_sub(before.utilisation_milli),
    }
}

/// One server's means over an interval.
fn report(news: &ServerCounts) -> ServerReport {
    let mean = |sum: u64, count: u64, count_min: u64| (count >= count_min).then(|| sum as f64 / count as f64);
    ServerReport {
        load_rps: news.answered as f64 / COMPARED_EVERY.as_secs_f64(),
        response_ms: mean(news.response_us, news.answered, ANSWERS_MIN).map(|us| us / 1e3),
        utilisation: mean(news.utilisation_milli, news.utilisations, 1).map(|milli| milli / 1e3),
    }
}

#[cfg(test)]
mod tests;
