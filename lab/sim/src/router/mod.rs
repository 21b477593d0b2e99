//! NEWS at a router: measures responses, gates SYNs, and plans each interval, by the very gate and planner
//! that run in the gateway. It is a [`Stage`] of a packet-level network, which its owner wakes for every
//! tick.

mod controller;
mod flow_meter;
mod tick;

pub use controller::{Controller, Reading, RouterSettings};
pub use tick::{GateCounts, Rates, Tick};

use crate::network::{Answer, Direction, FlowId, Packet, PacketKind, Stage};
use flashweir_admission::PlannerDriver;
use flashweir_admission::flash_crowd::{Baseline, CeilingPriority, FlashCrowdPlanner, Limit, Plan, Settings};
use flashweir_admission::pipeline::{ConnectionPipeline, RefusedAttempts};
use flashweir_core::{Hasher64, Instant, Rng, Verdict};
use flow_meter::FlowMeter;
use std::sync::Arc;

/// The stage at the servers' router. Memory: see the flow meter, about 200 bytes for each flow at once.
#[derive(Debug)]
pub(crate) struct Router {
    gate: ConnectionPipeline,
    planner: Option<PlannerDriver<FlashCrowdPlanner>>,
    meter: FlowMeter,
    reading: Reading,
    counts: GateCounts,
    /// Makes the key by which a dropped connection is known when it tries again.
    keys: Hasher64,
}

impl Router {
    pub(crate) fn new(settings: &RouterSettings, seed: u64) -> Self {
        let mut seeds = Rng::new(seed).fork(ROUTER);
        let mut gate = ConnectionPipeline::new(0, Arc::new(RefusedAttempts::default()));
        let planner = match settings.controller {
            Controller::None => None,
            Controller::Static(rate) => {
                gate.apply(Instant::ZERO, &Plan { epoch: 1, limit: Limit::All(rate), ..Plan::open(1) });
                None
            }
            Controller::News(mode) => {
                let RouterSettings { interval, hot_spots, .. } = *settings;
                let settings = Settings { mode, interval, hot_spots, ..Settings::default() };
                Some(PlannerDriver::new(
                    FlashCrowdPlanner::new(settings, &Baseline::default()),
                    Instant::ZERO,
                ))
            }
        };
        Self {
            gate,
            planner,
            meter: FlowMeter::new(),
            reading: settings.reading,
            counts: GateCounts::default(),
            keys: Hasher64::new(seeds.next_u64(), seeds.next_u64()),
        }
    }

    /// A flow that is about to begin: its addresses would tell a real router which server it is for, and
    /// whether that one is guarded. Flows that are not pass, and say nothing.
    pub(crate) fn expect(&mut self, flow: FlowId, host_key: u64, is_guarded: bool) {
        self.meter.expect(flow, host_key, is_guarded);
    }

    pub(crate) fn counts(&self) -> GateCounts {
        self.counts
    }

    /// The end of an interval: reads the responses, plans, and obeys. O(flows). A planner whose sample is
    /// lost knows nothing of the interval.
    pub(crate) fn tick(&mut self, now: Instant, sample_is_lost: bool) -> Tick {
        let rates = self.meter.read(now);
        for rate in &rates {
            let bytes_per_s = match self.reading {
                Reading::AsPublished => rate.published,
                Reading::Corrected => rate.corrected,
            };
            // A router does not know what a response's latency should be.
            self.gate.observe_rate(rate.admitted_at, bytes_per_s);
        }
        let sample = self.gate.drain(now);
        let explanation = self.planner.as_mut().map(|planner| {
            if !sample_is_lost {
                planner.observe(now, &sample);
            }
            let plan = planner.plan(now);
            self.gate.apply(now, &plan);
            plan.explanation
        });
        let published = Rates::of(rates.iter().map(|rate| rate.published).collect());
        let corrected = Rates::of(rates.iter().map(|rate| rate.corrected).collect());
        Tick { at: now, responses: rates.len(), published, corrected, explanation }
    }

    fn syn(&mut self, now: Instant, packet: &Packet) -> Answer {
        // Flows are expected before their first packet, so only those long gone are unknown.
        let Some(flow) = self.meter.flow(packet.flow) else { return Answer::Pass };
        // A connection that was let in stays so.
        if !flow.is_guarded || flow.admitted_at.is_some() {
            return Answer::Pass;
        }
        let person_key = self.keys.hash(&[&packet.flow.as_u64().to_le_bytes()]);
        self.counts.offered += 1;
        match self.gate.arrive(now, flow.host_key, person_key, CeilingPriority::LAST) {
            Verdict::Admit => {
                self.counts.admitted += 1;
                flow.admitted_at = Some(now);
                Answer::Pass
            }
            _ => {
                self.counts.shed += 1;
                Answer::Drop
            }
        }
    }
}

impl Stage for Router {
    fn packet(&mut self, now: Instant, direction: Direction, packet: &Packet) -> Answer {
        match (direction, packet.kind) {
            (Direction::Up, PacketKind::Syn) => return self.syn(now, packet),
            (Direction::Down, PacketKind::Data) => {
                if let Some(flow) = self.meter.flow(packet.flow)
                    && flow.data(now, u64::from(packet.bytes), packet.last)
                    && flow.is_guarded
                {
                    self.gate.completed();
                }
            }
            _ => {}
        }
        Answer::Pass
    }
}

/// Names the fork that the router draws from: "rout" in ASCII.
const ROUTER: u64 = 0x726F_7574;
