//! Check that a run fits into memory, made before it begins.

use crate::scenario::problem::{Problem, wrong};
use flashweir_core::limits::{SCENARIO_MEMORY_BYTES, SIM_PACKETS, SIM_PEOPLE, SIM_PLANS};
use flashweir_sim::network::{Buffer, LinkSettings};
use flashweir_sim::request::{NetworkModel, PacketNetwork, Scenario};
use flashweir_workload::people::SessionLength;

/// Bytes of one bin of one series, of one plan, of one document of a popularity, and of a person with their
/// try.
const BIN_BYTES: u64 = 160;
const PLAN_BYTES: u64 = 200;
const DOCUMENT_BYTES: u64 = 32;
const PERSON_BYTES: u64 = 360;
/// Bytes of a class in a plan of the sentry.
const PLAN_CLASS_BYTES: u64 = 144;
/// The same of what the packet level has besides: a connection, a packet (no smaller on the wire than in
/// memory, so data on its way takes as much as it is), a client with its links and routes, a decision of the
/// router.
const FLOW_BYTES: u64 = 700;
const PACKET_BYTES: u64 = 40;
const CLIENT_BYTES: u64 = 1_000;
const TICK_BYTES: u64 = 320;

/// Refuses what all seeds together would keep, beyond [`SCENARIO_MEMORY_BYTES`], and crowds of which it is
/// certain that more than [`SIM_PEOPLE`] would be present at once. Crowds that pile up because no server
/// serves them are the simulator's to refuse: how many stay depends on the policy.
pub(crate) fn check(scenario: &Scenario, documents: u64, seeds: u32) -> Result<(), Problem> {
    let people = people_at_once(scenario);
    if people > SIM_PEOPLE as f64 {
        return wrong(
            "workload",
            format!("about {people:.0} people would be present at once, at most {SIM_PEOPLE} can be"),
        );
    }
    let bins = scenario.schedule.length().as_nanos() / scenario.bin.as_nanos().max(1) + 1;
    let packets = match &scenario.network {
        NetworkModel::Packets(packets) => Some(&**packets),
        NetworkModel::Delay(_) => None,
    };
    let of_packets = packets
        .map_or(0, |packets| 2 * packets.wires.len() + packets.transfers.len() + packets.datagrams.len() + 2);
    let series = scenario.classes.len() + 1 + of_packets;
    let series = u64::try_from(bins).unwrap_or(u64::MAX).saturating_mul(series as u64);
    let ticks = packets.map_or(0, |packets| ticks(scenario, packets).saturating_mul(TICK_BYTES));
    let kept = series
        .saturating_mul(BIN_BYTES)
        .saturating_add(
            plans(scenario).saturating_mul(PLAN_BYTES + plan_classes(scenario) * PLAN_CLASS_BYTES),
        )
        .saturating_add(ticks);
    let run = documents.saturating_mul(DOCUMENT_BYTES).saturating_add(people as u64 * PERSON_BYTES);
    let run = run.saturating_add(packets.map_or(0, |packets| network_bytes(packets, people as u64)));
    let bytes = kept.saturating_mul(seeds.into()).saturating_add(run);
    if bytes > SCENARIO_MEMORY_BYTES {
        return wrong(
            "seeds",
            format!(
                "{seeds} runs would keep about {} MiB, at most {} are allowed: fewer seeds, wider bins or a \
                 shorter run",
                bytes >> 20,
                SCENARIO_MEMORY_BYTES >> 20
            ),
        );
    }
    Ok(())
}

fn plans(scenario: &Scenario) -> u64 {
    let flash_crowd = scenario.policy.flash_crowd_policy().map(|policy| policy.settings.interval);
    let sentry = scenario.policy.sentry_policy().map(|policy| policy.policy.interval);
    let length = scenario.schedule.length().as_nanos();
    let plans: u128 =
        flash_crowd.into_iter().chain(sentry).map(|interval| length / interval.as_nanos().max(1)).sum();
    u64::try_from(plans).unwrap_or(u64::MAX).min(SIM_PLANS as u64)
}

/// Number of classes in each plan.
fn plan_classes(scenario: &Scenario) -> u64 {
    scenario.policy.sentry_policy().map_or(0, |sentry| sentry.policy.classes.len() as u64)
}

fn ticks(scenario: &Scenario, packets: &PacketNetwork) -> u64 {
    let Some(router) = &packets.router else { return 0 };
    let ticks = scenario.schedule.length().as_nanos() / router.settings.interval.as_nanos().max(1);
    u64::try_from(ticks).unwrap_or(u64::MAX).min(SIM_PLANS as u64)
}

/// A network with all its buffers full and the connection of every person open.
fn network_bytes(packets: &PacketNetwork, people: u64) -> u64 {
    let links = packets.wires.iter().flat_map(|wire| [&wire.there, &wire.back]).map(link_bytes);
    let links = links.fold(0, u64::saturating_add);
    let access = packets.clients.iter().map(|group| {
        let buffers = 2 * u64::from(group.access_buffer_packets) * PACKET_BYTES;
        u64::from(group.count).saturating_mul(buffers.saturating_add(CLIENT_BYTES))
    });
    let packets_most = SIM_PACKETS as u64 * PACKET_BYTES;
    let access = access.fold(0, u64::saturating_add);
    let flows = people + packets.transfers.len() as u64;
    links.min(packets_most).saturating_add(access).saturating_add(flows.saturating_mul(FLOW_BYTES))
}

fn link_bytes(link: &LinkSettings) -> u64 {
    let waiting = match link.buffer {
        Buffer::Packets(packets) => u64::from(packets) * PACKET_BYTES,
        Buffer::Bytes(bytes) => bytes,
    };
    // At most 10^12 bits a second for a minute.
    let travelling = link.rate_bits_per_s as f64 / 8.0 * link.delay.as_secs_f64();
    waiting.saturating_add(travelling as u64)
}

/// The least that can be present in the busiest moment: all people are answered at once and goes on as they
/// like.
fn people_at_once(scenario: &Scenario) -> f64 {
    let schedule = &scenario.schedule;
    let of_stream = |stream: &flashweir_workload::Stream| {
        let expected = stream.arrivals.expected();
        let peak = stream.arrivals.profile().map_or(0.0, flashweir_workload::RateProfile::peak_rate);
        let weights: f64 = stream.classes.iter().map(|share| share.weight).sum();
        let stay_s: f64 = stream
            .classes
            .iter()
            .filter_map(|share| {
                let class = scenario.classes.get(usize::from(share.class))?;
                Some((share.weight, class, asking_s(scenario, share.class)))
            })
            .map(|(weight, class, asking_s)| weight / weights * stay_s(class, asking_s))
            .sum();
        (peak * stay_s).min(expected)
    };
    schedule.streams().iter().map(of_stream).sum()
}

/// The least time between question and answer, work not counted, seconds: a round trip, and one before it for
/// the connection where there are any.
fn asking_s(scenario: &Scenario, class: u16) -> f64 {
    match &scenario.network {
        NetworkModel::Delay(one_way) => 2.0 * one_way.as_secs_f64(),
        NetworkModel::Packets(packets) => {
            let path = packets.paths.get(usize::from(class));
            let clients = path.and_then(|path| packets.clients.get(path.clients));
            clients.map_or(0.0, |clients| 4.0 * clients.access_delay.0.as_secs_f64())
        }
    }
}

fn stay_s(class: &flashweir_sim::request::ClassModel, asking_s: f64) -> f64 {
    let session = &class.habits.session;
    let requests = match session.requests {
        SessionLength::Exactly(count) => f64::from(count.get()),
        SessionLength::Geometric { mean } => mean.max(1.0),
        SessionLength::Endless => f64::INFINITY,
    };
    // No word for work in a scenario depends on the size of documents.
    let asking_s = asking_s + class.work.mean_s(0.0);
    requests * asking_s + (requests - 1.0) * session.think.mean().as_secs_f64()
}
