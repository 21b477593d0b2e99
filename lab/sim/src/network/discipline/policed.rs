//! Disciplines that treat flows differently: BLACK, Purge as published, Purge repaired
//! ([`flashweir_aqm::purge`]).

use super::DisciplineStatus;
use super::black::BlackLike;
use super::published::{PublishedPurge, PublishedSettings};
use crate::network::packet::Packet;
use flashweir_aqm::{Arrival, Fate, FlowHasher, FlowIdentity, Purge, PurgeSettings, Rem};
use flashweir_core::{Duration, Instant, Rng};
use std::collections::VecDeque;

#[derive(Debug)]
pub(in crate::network) struct Policed {
    hasher: FlowHasher,
    policy: Policy,
}

#[derive(Debug)]
enum Policy {
    BlackLike(BlackLike),
    Published(PublishedPurge),
    Repaired(Purge),
}

impl Policed {
    pub(super) fn black_like(rem: &Rem, period: Duration, rate_bits_per_s: u64, seed: &Rng) -> Self {
        Self::new(Policy::BlackLike(BlackLike::new(rem, period, rate_bits_per_s)), seed)
    }

    pub(super) fn published(settings: &PublishedSettings, rate_bits_per_s: u64, seed: &Rng) -> Self {
        Self::new(Policy::Published(PublishedPurge::new(settings, rate_bits_per_s)), seed)
    }

    pub(super) fn repaired(settings: &PurgeSettings, rate_bits_per_s: u64, seed: &Rng) -> Self {
        Self::new(Policy::Repaired(Purge::new(settings, rate_bits_per_s)), seed)
    }

    fn new(policy: Policy, seed: &Rng) -> Self {
        let mut keys = seed.fork(0);
        let hasher = FlowHasher::new(keys.next_u64(), keys.next_u64(), FlowIdentity::FiveTuple);
        Self { hasher, policy }
    }

    pub(super) fn arrived(
        &mut self,
        now: Instant,
        waiting: &VecDeque<Packet>,
        packet: &Packet,
        rng: &mut Rng,
    ) -> Fate {
        let Self { hasher, policy } = self;
        let arrival = arrival(hasher, packet);
        let sample = |rng: &mut Rng| {
            let sampled = waiting.get(rng.below(waiting.len() as u64) as usize)?;
            Some(hasher.hash_number(sampled.flow_number()))
        };
        match policy {
            Policy::BlackLike(black) => black.arrive(now, waiting.len(), arrival, rng, sample),
            Policy::Published(purge) => purge.arrive(now, waiting.len(), arrival, rng, sample),
            Policy::Repaired(purge) => purge.arrive(now, waiting.len(), arrival, rng),
        }
    }

    pub(super) fn leaves_marked(
        &mut self,
        now: Instant,
        waiting: usize,
        packet: &Packet,
        rng: &mut Rng,
    ) -> bool {
        // Until it leaves, the packet itself was waiting too.
        let waiting = waiting + 1;
        match &mut self.policy {
            Policy::BlackLike(black) => black.depart(now, waiting, packet.ecn.capable, rng),
            Policy::Published(purge) => purge.depart(now, waiting, arrival(&self.hasher, packet), rng),
            Policy::Repaired(purge) => purge.depart(now, waiting, packet.ecn.capable, rng),
        }
    }

    pub(super) fn status(&self) -> DisciplineStatus {
        let active_flows = match &self.policy {
            Policy::BlackLike(black) => black.active_flows(),
            Policy::Published(purge) => purge.active_flows(),
            Policy::Repaired(purge) => purge.active_flows(),
        };
        DisciplineStatus { active_flows: Some(active_flows) }
    }
}

fn arrival(hasher: &FlowHasher, packet: &Packet) -> Arrival {
    Arrival {
        flow: hasher.hash_number(packet.flow_number()),
        bytes: u32::from(packet.bytes),
        is_markable: packet.ecn.capable,
    }
}
