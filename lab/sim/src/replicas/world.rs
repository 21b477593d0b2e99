//! The run: events in their order, and what each of them does.

use super::outcome::{CopiesMade, ReplicasOutcome};
use super::scenario::{PlacementRule, Scenario};
use super::station::{Job, Start, Station};
use crate::engine::{EventHash, Queue, QueueError, check_world};
use flashweir_core::measure::Histogram;
use flashweir_core::{Duration, Instant, Rng};
use flashweir_replication::placement::published::{PublishedRule, offload};
use flashweir_replication::placement::{Overload, Watermarks};
use flashweir_replication::{Redirector, ReportSchedule, Ring, ServerIndex, ServerReport, SettingsError};
use std::collections::BTreeMap;

/// A scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A setting is out of range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A number of the scenario is out of range.
    #[error("{what}: expected {expected}")]
    Scenario {
        /// Name of the setting.
        what: &'static str,
        /// Accepted values.
        expected: &'static str,
    },
    /// More events wait than the bound allows.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// Events of a cluster.
#[derive(Clone, Copy, Debug)]
enum Event {
    Arrival,
    DistributorDone { distributor: u16, processor: u8 },
    RedirectorDone { redirector: u16, processor: u8 },
    ServerDone { server: ServerIndex, processor: u8 },
    Fetched { server: ServerIndex, document: u32 },
    Report { server: ServerIndex },
    Plan,
}

impl Event {
    fn fold(self, now: Instant, hash: &mut EventHash) {
        let (kind, payload) = match self {
            Self::Arrival => (0, 0),
            Self::DistributorDone { distributor, .. } => (1, u64::from(distributor)),
            Self::RedirectorDone { redirector, .. } => (2, u64::from(redirector)),
            Self::ServerDone { server, .. } => (3, u64::from(server)),
            Self::Fetched { server, document } => (4, u64::from(server) << 32 | u64::from(document)),
            Self::Report { server } => (5, u64::from(server)),
            Self::Plan => (6, 0),
        };
        hash.fold(now, kind, payload);
    }
}

/// Interval at which redirectors are asked for a plan; they decide themselves if it is time.
const PLAN_STEP: Duration = Duration::from_millis(100);
const HOME: ServerIndex = 0;

/// A server and what it knows of itself.
#[derive(Debug)]
struct Server {
    station: Station,
    schedule: ReportSchedule,
    reported_at: Instant,
    overload: Overload,
    /// Requests for each document since the last report.
    counts: Vec<u32>,
    is_cached: Vec<bool>,
    /// Requests that wait for a document that is being fetched.
    fetching: BTreeMap<u32, Vec<Job>>,
}

struct World<'a> {
    scenario: &'a Scenario,
    queue: Queue<Event>,
    hash: EventHash,
    rng: Rng,
    /// Times of the requests still to arrive, each with the index of its phase.
    arrivals: Box<dyn Iterator<Item = (Duration, usize)> + 'a>,
    upcoming: Option<usize>,
    ring: Ring,
    redirectors: Vec<Redirector>,
    servers: Vec<Server>,
    /// Distributors, and redirectors as stations; empty without a front.
    distributors: Vec<Station>,
    redirector_stations: Vec<Station>,
    outcome: ReplicasOutcome,
}

/// Runs a scenario: a function of the scenario alone.
///
/// # Errors
/// [`RunError`] for settings out of range, or more events than the queue holds.
pub fn run(scenario: &Scenario) -> Result<ReplicasOutcome, RunError> {
    let mut world = World::new(scenario)?;
    let end = scenario.phases.iter().map(|phase| phase.arrivals.length()).sum();
    let end = Instant::from_duration(end);
    while world.queue.next_at().is_some_and(|at| at <= end)
        && let Some((now, event)) = world.queue.pop()
    {
        event.fold(now, &mut world.hash);
        world.handle(now, event)?;
        check_world(now, &world, &[("requests are conserved", World::check_conservation)]);
    }
    world.outcome.under_way = world.under_way();
    world.outcome.event_hash = world.hash.value();
    Ok(world.outcome)
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self, RunError> {
        check(scenario)?;
        let root = Rng::new(scenario.seed);
        let documents = scenario.documents as usize;
        let interval = scenario.settings.servers.report_interval;
        let early = scenario.has_early_reports.then_some(scenario.settings.watermarks);
        let server = |index: u16| {
            // Servers do not agree on when they report.
            let phase = root.fork(100 + u64::from(index)).unit_f64() * interval.as_secs_f64();
            let own = Duration::from_secs_f64(phase);
            let first_at = Instant::from_duration(scenario.first_report.unwrap_or(own));
            Server {
                station: Station::new(scenario.server, root.fork(1_000 + u64::from(index))),
                schedule: ReportSchedule::new(Instant::ZERO, first_at, interval, early),
                reported_at: Instant::ZERO,
                overload: Overload::default(),
                counts: vec![0; documents],
                is_cached: vec![scenario.is_everywhere || index == HOME; documents],
                fetching: BTreeMap::new(),
            }
        };
        let station = |part: u64| scenario.front.map(|front| Station::new(front.station, root.fork(part)));
        let count = |distributors: u16| scenario.front.map_or(0, |_| u64::from(distributors));
        let distributors = scenario.front.map_or(0, |front| front.distributors);
        let mut world = Self {
            scenario,
            queue: Queue::new(),
            hash: EventHash::new(),
            rng: root.fork(1),
            arrivals: arrivals(scenario, &root),
            upcoming: None,
            ring: Ring::new((1..=u64::from(scenario.redirectors)).map(|name| name * 7_919))?,
            redirectors: Vec::new(),
            servers: (0..scenario.servers).map(server).collect(),
            distributors: (0..count(distributors)).filter_map(|it| station(5_000 + it)).collect(),
            redirector_stations: (0..count(scenario.redirectors))
                .filter_map(|it| station(6_000 + it))
                .collect(),
            outcome: ReplicasOutcome {
                bin: scenario.bin,
                arrivals: vec![Vec::new(); usize::from(scenario.servers)],
                placements: Vec::new(),
                deleted: 0,
                rehomed: 0,
                offered: 0,
                completed: 0,
                failed: 0,
                under_way: 0,
                fetches: 0,
                latency_us: Histogram::new(),
                latency_sum_us: 0,
                event_hash: 0,
            },
        };
        world.add_redirectors()?;
        for server in 0..scenario.servers {
            let at = world.servers[usize::from(server)].schedule.next_at();
            world.queue.schedule(at, Event::Report { server })?;
        }
        if scenario.placement == PlacementRule::Repaired {
            world.queue.schedule(Instant::ZERO + PLAN_STEP, Event::Plan)?;
        }
        world.schedule_arrival()?;
        Ok(world)
    }

    fn add_redirectors(&mut self) -> Result<(), RunError> {
        let Scenario { servers, documents, is_everywhere, settings, redirectors, .. } = *self.scenario;
        for _ in 0..redirectors {
            let mut redirector = Redirector::new(settings)?;
            for _ in 0..servers {
                redirector.add_server(Instant::ZERO, 1.0, false)?;
            }
            self.redirectors.push(redirector);
        }
        for document in (0..u64::from(documents)).filter(|_| is_everywhere) {
            let redirector = &mut self.redirectors[self.ring.owner(document)];
            (0..servers).for_each(|server| redirector.place_copy(Instant::ZERO, document, HOME, server));
        }
        Ok(())
    }

    fn handle(&mut self, now: Instant, event: Event) -> Result<(), RunError> {
        match event {
            Event::Arrival => self.arrive(now)?,
            Event::DistributorDone { distributor, processor } => {
                let station = &mut self.distributors[usize::from(distributor)];
                let (job, start) = station.done(now, processor);
                let again = |processor| Event::DistributorDone { distributor, processor };
                schedule(&mut self.queue, start, again)?;
                if let Some(job) = job {
                    self.pass_on(now, job)?;
                }
            }
            Event::RedirectorDone { redirector, processor } => {
                let station = &mut self.redirector_stations[usize::from(redirector)];
                let (job, start) = station.done(now, processor);
                let again = |processor| Event::RedirectorDone { redirector, processor };
                schedule(&mut self.queue, start, again)?;
                if let Some(job) = job {
                    self.route(now, job)?;
                }
            }
            Event::ServerDone { server, processor } => {
                let station = &mut self.servers[usize::from(server)].station;
                let (job, start) = station.done(now, processor);
                schedule(&mut self.queue, start, |processor| Event::ServerDone { server, processor })?;
                if let Some(job) = job {
                    self.complete(now, server, job);
                }
            }
            Event::Fetched { server, document } => self.fetched(now, server, document)?,
            Event::Report { server } => self.regular_report(now, server)?,
            Event::Plan => self.plan(now)?,
        }
        Ok(())
    }

    fn schedule_arrival(&mut self) -> Result<(), RunError> {
        let next = self.arrivals.next();
        self.upcoming = next.map(|(_, phase)| phase);
        if let Some((at, _)) = next {
            self.queue.schedule(Instant::from_duration(at), Event::Arrival)?;
        }
        Ok(())
    }

    fn arrive(&mut self, now: Instant) -> Result<(), RunError> {
        let phase = &self.scenario.phases[self.upcoming.unwrap_or_default()];
        let draws = self.rng.fork(1_000_000 + self.outcome.offered);
        let document = phase.popularity.document(self.outcome.offered, 0, || draws);
        let job = Job { arrived: now, document: document % self.scenario.documents };
        self.outcome.offered += 1;
        self.schedule_arrival()?;
        match self.distributors.len() {
            0 => self.pass_on(now, job),
            count => {
                let distributor = (self.outcome.offered % count as u64) as u16;
                match self.distributors[usize::from(distributor)].arrive(now, job) {
                    Ok(start) => {
                        let done = |processor| Event::DistributorDone { distributor, processor };
                        schedule(&mut self.queue, start, done)
                    }
                    Err(()) => self.fail(),
                }
            }
        }
    }

    fn pass_on(&mut self, now: Instant, job: Job) -> Result<(), RunError> {
        let owner = self.ring.owner(u64::from(job.document)) as u16;
        let Some(station) = self.redirector_stations.get_mut(usize::from(owner)) else {
            return self.route(now, job);
        };
        match station.arrive(now, job) {
            Ok(start) => schedule(&mut self.queue, start, |processor| Event::RedirectorDone {
                redirector: owner,
                processor,
            }),
            Err(()) => self.fail(),
        }
    }

    fn route(&mut self, now: Instant, job: Job) -> Result<(), RunError> {
        let document = u64::from(job.document);
        let redirector = &mut self.redirectors[self.ring.owner(document)];
        let Some(server) = redirector.route(now, document, HOME, &mut self.rng) else {
            return self.fail();
        };
        let bin = (now.as_nanos() / (self.scenario.bin.as_nanos() as u64).max(1)) as usize;
        let bins = &mut self.outcome.arrivals[usize::from(server)];
        bins.resize(bins.len().max(bin + 1), 0);
        bins[bin] += 1;
        if self.is_silent(now, server) {
            return self.fail();
        }
        let at = &mut self.servers[usize::from(server)];
        at.counts[job.document as usize] += 1;
        if at.schedule.arrive(now) {
            self.report(now, server)?;
            let next = self.servers[usize::from(server)].schedule.next_at();
            self.queue.schedule(next, Event::Report { server })?;
        }
        self.serve(now, server, job)
    }

    /// From the cache; what is not in it is fetched once, however many ask.
    fn serve(&mut self, now: Instant, server: ServerIndex, job: Job) -> Result<(), RunError> {
        let at = &mut self.servers[usize::from(server)];
        if at.is_cached[job.document as usize] {
            return match at.station.arrive(now, job) {
                Ok(start) => {
                    schedule(&mut self.queue, start, |processor| Event::ServerDone { server, processor })
                }
                Err(()) => self.fail(),
            };
        }
        let waiting = at.fetching.entry(job.document).or_default();
        waiting.push(job);
        if waiting.len() == 1 {
            self.outcome.fetches += 1;
            let fetched = Event::Fetched { server, document: job.document };
            self.queue.schedule(now + self.scenario.fetch_time, fetched)?;
        }
        Ok(())
    }

    fn fetched(&mut self, now: Instant, server: ServerIndex, document: u32) -> Result<(), RunError> {
        let at = &mut self.servers[usize::from(server)];
        at.is_cached[document as usize] = true;
        let waiting = at.fetching.remove(&document).unwrap_or_default();
        waiting.into_iter().try_for_each(|job| self.serve(now, server, job))
    }

    fn complete(&mut self, now: Instant, server: ServerIndex, job: Job) {
        let mut latency =
            now.saturating_since(job.arrived) + self.servers[usize::from(server)].station.delay();
        if let (Some(distributor), Some(redirector)) =
            (self.distributors.first(), self.redirector_stations.first())
        {
            latency += distributor.delay() + redirector.delay();
        }
        let micros = latency.as_micros() as u64;
        self.outcome.latency_us.record(micros);
        self.outcome.latency_sum_us += micros;
        self.outcome.completed += 1;
    }

    /// A request that ends without a response. Always fine for the run.
    fn fail(&mut self) -> Result<(), RunError> {
        self.outcome.failed += 1;
        Ok(())
    }

    fn regular_report(&mut self, now: Instant, server: ServerIndex) -> Result<(), RunError> {
        // An early report came in between: another event stands for the next one.
        if now < self.servers[usize::from(server)].schedule.next_at() {
            return Ok(());
        }
        self.report(now, server)?;
        let next = self.servers[usize::from(server)].schedule.next_at();
        Ok(self.queue.schedule(next, Event::Report { server })?)
    }

    /// A server reports to every redirector, and asks for copies where placement is published.
    fn report(&mut self, now: Instant, server: ServerIndex) -> Result<(), RunError> {
        let is_silent = self.is_silent(now, server);
        let at = &mut self.servers[usize::from(server)];
        let load_rps = at.schedule.report(now);
        let elapsed_s = now.saturating_since(at.reported_at).as_secs_f64().max(1e-9);
        at.reported_at = now;
        let counts = std::mem::replace(&mut at.counts, vec![0; self.scenario.documents as usize]);
        if is_silent {
            return Ok(());
        }
        let watermarks = self.scenario.settings.watermarks;
        let is_overloaded = at.overload.update(load_rps, &watermarks);
        let report = ServerReport { load_rps, response_ms: None, utilisation: None };
        self.redirectors.iter_mut().for_each(|redirector| redirector.report(now, server, report));
        match self.scenario.placement {
            PlacementRule::Published(rule) if is_overloaded => {
                let asked = counts.iter().zip(0u64..).filter(|(count, _)| **count > 0);
                let mut documents: Vec<(u64, f64)> =
                    asked.map(|(&count, document)| (document, f64::from(count) / elapsed_s)).collect();
                self.offload(now, server, load_rps, &mut documents, rule, &watermarks);
            }
            PlacementRule::Repaired => self.plan_now(now),
            PlacementRule::Published(_) | PlacementRule::Never => {}
        }
        Ok(())
    }

    fn offload(
        &mut self,
        now: Instant,
        source: ServerIndex,
        load_rps: f64,
        documents: &mut [(u64, f64)],
        rule: PublishedRule,
        watermarks: &Watermarks,
    ) {
        let (ring, redirectors) = (&self.ring, &mut self.redirectors);
        let mut last = None;
        let (copies, _) = offload(load_rps, documents, watermarks, |document, relief_rps| {
            let redirector = &mut redirectors[ring.owner(document)];
            let target = redirector.accept(now, document, source, relief_rps, rule);
            last = target.or(last);
            target.is_some()
        });
        self.outcome.placements.extend(last.map(|target| CopiesMade {
            at_s: now.as_secs_f64(),
            copies,
            target,
        }));
    }

    fn plan(&mut self, now: Instant) -> Result<(), RunError> {
        self.plan_now(now);
        Ok(self.queue.schedule(now + PLAN_STEP, Event::Plan)?)
    }

    fn plan_now(&mut self, now: Instant) {
        for redirector in &mut self.redirectors {
            let round = redirector.plan(now);
            self.outcome.deleted += round.deleted.len();
            self.outcome.rehomed += round.rehomed.len();
            for gone in &round.deleted {
                self.servers[usize::from(gone.server)].is_cached[gone.document as usize] = false;
            }
            let placement = round.created.last().map(|placed| CopiesMade {
                at_s: now.as_secs_f64(),
                copies: round.created.len(),
                target: placed.server,
            });
            self.outcome.placements.extend(placement);
        }
    }

    fn is_silent(&self, now: Instant, server: ServerIndex) -> bool {
        self.scenario.silence.is_some_and(|silence| {
            let [from, until] = [silence.from, silence.until].map(Instant::from_duration);
            silence.server == server && (from..until).contains(&now)
        })
    }

    fn under_way(&self) -> u64 {
        let stations = self.distributors.iter().chain(&self.redirector_stations);
        let stations = stations.chain(self.servers.iter().map(|it| &it.station));
        let fetching = self.servers.iter().flat_map(|it| it.fetching.values()).map(Vec::len);
        stations.map(Station::len).chain(fetching).sum::<usize>() as u64
    }

    fn check_conservation(&self) -> Result<(), String> {
        let ReplicasOutcome { offered, completed, failed, .. } = self.outcome;
        let under_way = self.under_way();
        let is_conserved = offered == completed + failed + under_way;
        let problem = || format!("{offered} offered, {completed} + {failed} ended, {under_way} under way");
        is_conserved.then_some(()).ok_or_else(problem)
    }
}

fn schedule(
    queue: &mut Queue<Event>,
    start: Option<Start>,
    event: impl FnOnce(u8) -> Event,
) -> Result<(), RunError> {
    if let Some(start) = start {
        queue.schedule(start.until, event(start.processor))?;
    }
    Ok(())
}

/// All phases' moments, one phase after the other.
fn arrivals<'a>(scenario: &'a Scenario, root: &Rng) -> Box<dyn Iterator<Item = (Duration, usize)> + 'a> {
    let mut starts = Vec::new();
    let mut start = Duration::ZERO;
    for (place, phase) in scenario.phases.iter().enumerate() {
        starts.push((phase, start, place, root.fork(10 + place as u64).next_u64()));
        start += phase.arrivals.length();
    }
    let moments = |(phase, start, place, seed): (&'a super::Phase, Duration, usize, u64)| {
        phase.arrivals.moments(seed).map(move |at| (start + at, place))
    };
    Box::new(starts.into_iter().flat_map(moments))
}

fn check(scenario: &Scenario) -> Result<(), RunError> {
    let unless = |holds: bool, what, expected| {
        if holds { Ok(()) } else { Err(RunError::Scenario { what, expected }) }
    };
    unless((1..=256).contains(&scenario.servers), "number of servers", "1 to 256")?;
    unless((1..=256).contains(&scenario.redirectors), "number of redirectors", "1 to 256")?;
    unless(scenario.documents > 0, "number of documents", "1 or more")?;
    unless(!scenario.phases.is_empty(), "phases", "one or more")?;
    unless(!scenario.bin.is_zero(), "width of a bin", "above zero")?;
    let stations = [Some(scenario.server), scenario.front.map(|front| front.station)];
    let are_stations = stations.iter().flatten().all(|it| it.processors > 0 && it.requests_max > 0);
    unless(are_stations, "processors and requests of a station", "1 or more")?;
    unless(scenario.front.is_none_or(|front| front.distributors > 0), "number of distributors", "1 or more")
}
