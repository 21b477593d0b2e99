//! The run, and what is read from it.

use super::described::{BOTTLENECK, described};
use super::outcome::{Bin, People};
use super::{NewsError, NewsOutcome, Scenario};
use crate::request::{self, PacketOutcome, Simulation};
use flashweir_core::{Duration, Instant};

/// Simulates a flash crowd to the end of its arrivals.
///
/// About one event in 0.1 to 0.5 µs, and 30 to 100 events for each person. Memory: about 1.2 kB for each
/// person who waits, which without a controller may be all the people whom the bottleneck cannot carry.
///
/// # Errors
/// Settings out of range, by the names of the request level, or more people or packets at once than the
/// simulator's bounds.
///
/// # Panics
/// If people or packets are not conserved: an invariant of the simulator, not a result.
pub fn run(scenario: &Scenario) -> Result<NewsOutcome, NewsError> {
    let request = described(scenario)?;
    let mut simulation = Simulation::new(&request)?;
    // Events at the very end belong to the run.
    simulation.run_until(Instant::from_duration(scenario.length() + Duration::from_nanos(1)))?;
    let bins = scenario.length().as_nanos() / NewsOutcome::BIN.as_nanos();
    Ok(outcome(simulation.finish(), usize::try_from(bins).unwrap_or(usize::MAX)))
}

fn outcome(of: request::RunOutcome, bins: usize) -> NewsOutcome {
    // Holds because the crowd goes over packets, by a router.
    let packets = of.packets.as_ref().expect("a run over packets has an outcome of them");
    let router = packets.router.clone().expect("a run with a router has an outcome of it");
    let totals = of.totals();
    let sum = |count: fn(&request::ConnectionBin) -> u64| packets.connections.iter().map(count).sum::<u64>();
    let people = People {
        unique_offered: totals.unique_offered,
        completed: totals.completed,
        not_connected: sum(|bin| bin.not_connected),
        given_up: sum(|bin| bin.given_up),
        abandoned: totals.abandoned + totals.timed_out + sum(|bin| bin.reset),
        dropped_by_server: of.server.dropped,
        in_flight: totals.in_flight(),
    };
    assert!(people.is_conserved(), "people are not conserved: {people:?}");
    NewsOutcome {
        people,
        gate: router.totals,
        bins: (0..bins).map(|index| bin(&of, packets, index)).collect(),
        ticks: router.ticks,
        events: of.events,
        event_hash: of.event_hash,
    }
}

fn bin(of: &request::RunOutcome, packets: &PacketOutcome, index: usize) -> Bin {
    let responses = &packets.wires[BOTTLENECK].back[index];
    Bin {
        unique_offered: of.classes[0].bins[index].unique_offered,
        gate: packets.router.as_ref().map_or_else(Default::default, |router| router.bins[index]),
        completed: packets.connections[index].answered,
        response_packets: responses.offered,
        response_packets_lost: responses.dropped,
        bulk_bytes: packets.transfers.first().map_or(0, |bulk| bulk.received_bytes[index]),
    }
}
