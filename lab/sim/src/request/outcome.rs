//! Outcome of a run: counts, levels, plans and times.

use super::books::{ClassBook, Counts};
use super::calm::CalmReport;
use super::event::Happened;
use super::gate::{GateCounts, LimitTaken, PlanTaken};
use super::packets::PacketOutcome;
use super::server::{Level, ServerCounts};
use super::signs::Demotions;
use super::world::World;
use flashweir_core::measure::Histogram;
use flashweir_core::{Duration, Instant};
use std::ops::Range;

/// Outcome of a run of requests: counts, levels, plans and times.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The classes, in the order of the scenario.
    pub classes: Vec<ClassOutcome>,
    /// Counts of the gate.
    pub gate: GateCounts,
    /// Requests offered to the server, by result.
    pub server: ServerCounts,
    /// Fill of the server, bin after bin; nothing after the last.
    pub levels: Vec<Level>,
    /// The policy's plans, in their order.
    pub plans: Vec<PlanTaken>,
    /// The sentry's plans that changed something, in their order.
    pub limits: Vec<LimitTaken>,
    /// Plans beyond the bound on those kept.
    pub plans_left_out: u64,
    /// Calm windows, and those in which the sentry refused requests, where they were looked for.
    pub calm: Option<CalmReport>,
    /// Outcome of the packet level, where the network has packets.
    pub packets: Option<PacketOutcome>,
    /// Width of the bins.
    pub bin: Duration,
    /// Time of the last event.
    pub ended_at: Instant,
    /// Things that happened.
    pub events: u64,
    /// The hash of all of them: the same for the same scenario everywhere.
    pub event_hash: u64,
}

/// Outcome of one class.
#[derive(Clone, Debug)]
pub struct ClassOutcome {
    /// Its name.
    pub name: String,
    /// Counts of the gate.
    pub gate: GateCounts,
    /// Demotions by fairness.
    pub demotions: Demotions,
    /// Over the whole run.
    pub totals: Counts,
    /// By the bin in which tries began.
    pub bins: Vec<Counts>,
    /// From the moment a try was to begin to its whole answer, microseconds, of the completed.
    pub latency_us: Histogram,
    /// The same of refusals.
    pub refusal_us: Histogram,
    /// From the moment the person first asked, over all tries, to the whole answer, microseconds.
    pub served_us: Histogram,
}

/// Means of the server's levels over some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanLevel {
    /// Requests waiting for a worker.
    pub waiting: f64,
    /// Requests in service.
    pub in_service: f64,
    /// Processors at work.
    pub busy: f64,
    /// Requests served to their end, per second.
    pub served_rps: f64,
}

impl RunOutcome {
    pub(super) fn new(mut world: World<'_>) -> Self {
        let (ended_at, events) = (world.now(), world.events());
        if let Some((_, packets)) = &world.packets {
            let network = packets.hash().value();
            world.happened(ended_at, Happened::Network, network);
        }
        let names = world.scenario.classes.iter().map(|class| class.name.clone());
        let names = names.zip(world.gate.counts_by_class().to_vec()).zip(world.gate.demotions());
        let class =
            |(((name, gate), demotions), book): (((String, GateCounts), _), ClassBook)| ClassOutcome {
                name,
                gate,
                demotions,
                totals: book.totals,
                bins: book.bins,
                latency_us: book.latency,
                refusal_us: book.refusal,
                served_us: book.served,
            };
        let (server, levels) = (world.server.counts(), world.server.into_levels());
        Self {
            classes: names.zip(world.books.classes).map(class).collect(),
            gate: world.gate.counts(),
            server,
            calm: world.calm.map(|calm| calm.report(world.scenario, &levels)),
            levels,
            plans: world.plans,
            limits: world.limits,
            plans_left_out: world.plans_left_out,
            bin: world.scenario.bin,
            packets: world.packets.map(|(described, packets)| packets.into_outcome(described)),
            ended_at,
            events,
            event_hash: world.hash.value(),
        }
    }

    /// All classes over the whole run.
    #[must_use]
    pub fn totals(&self) -> Counts {
        let mut totals = Counts::default();
        self.classes.iter().for_each(|class| totals.add(&class.totals));
        totals
    }

    /// All classes' tries that began within these bins (those that there are).
    #[must_use]
    pub fn began_within(&self, bins: Range<usize>) -> Counts {
        let mut counts = Counts::default();
        for class in &self.classes {
            class.bins.iter().take(bins.end).skip(bins.start).for_each(|bin| counts.add(bin));
        }
        counts
    }

    /// Means of the server's levels over these bins (those that there are).
    #[must_use]
    pub fn mean_level(&self, bins: Range<usize>) -> MeanLevel {
        let mut sum = MeanLevel { waiting: 0.0, in_service: 0.0, busy: 0.0, served_rps: 0.0 };
        let levels = self.levels.iter().take(bins.end).skip(bins.start);
        let nanos = levels.len() as f64 * self.bin.as_nanos() as f64;
        for level in levels {
            sum.waiting += level.waiting_nanos as f64 / nanos;
            sum.in_service += level.in_service_nanos as f64 / nanos;
            sum.busy += level.busy_nanos as f64 / nanos;
            sum.served_rps += level.served as f64 * 1e9 / nanos;
        }
        sum
    }
}
