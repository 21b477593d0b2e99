//! NEWS at the router: measures responses, gates SYNs, and plans each interval.

use super::flow_meter::FlowMeter;
use super::outcome::{GateCounts, Rates, Tick};
use super::{Controller, Reading, Scenario};
use crate::network::{Answer, Direction, FlowId, Packet, PacketKind, Stage};
use flashweir_admission::flash_crowd::{
    Baseline, FlashCrowdGate, FlashCrowdPlanner, GateRequest, Limit, Plan, RefusedAttempts, Response,
    Settings,
};
use flashweir_admission::{Gate as _, Planner as _};
use flashweir_core::{Hasher64, Instant, Rng, Verdict};
use flashweir_measure::mean_of_fastest;
use std::sync::Arc;

/// The server that the crowd goes to, and the one beside it.
pub(super) const TARGET: u64 = 1;
pub(super) const BYSTANDER: u64 = 5;

/// The stage at the servers' router.
pub(super) struct Router {
    gate: FlashCrowdGate,
    planner: Option<FlashCrowdPlanner>,
    meter: FlowMeter,
    reading: Reading,
    counts: GateCounts,
    /// Makes the key by which a dropped connection is known when it tries again.
    keys: Hasher64,
}

impl Router {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut seeds = Rng::new(scenario.seed).fork(ROUTER);
        let mut gate = FlashCrowdGate::new(0, seeds.next_u64(), Arc::new(RefusedAttempts::default()));
        let planner = match scenario.controller {
            Controller::None => None,
            Controller::Static(rate) => {
                gate.apply(Instant::ZERO, &Plan { epoch: 1, limit: Limit::All(rate), ..Plan::open(1) });
                None
            }
            Controller::News(mode) => {
                let interval = scenario.interval;
                let settings = Settings { mode, interval, hot_spots: false, ..Settings::default() };
                Some(FlashCrowdPlanner::new(settings, &Baseline::default()))
            }
        };
        Self {
            gate,
            planner,
            meter: FlowMeter::new(),
            reading: scenario.reading,
            counts: GateCounts::default(),
            keys: Hasher64::new(seeds.next_u64(), seeds.next_u64()),
        }
    }

    /// A flow that is about to begin: its addresses would tell a real router which server it is for.
    pub(super) fn expect(&mut self, flow: FlowId, host_key: u64) {
        self.meter.expect(flow, host_key);
    }

    pub(super) fn counts(&self) -> GateCounts {
        self.counts
    }

    /// The end of an interval: reads the responses, plans, and obeys. O(flows).
    pub(super) fn tick(&mut self, now: Instant) -> Tick {
        let mut rates = self.meter.read(now);
        rates.retain(|rate| rate.host_key == TARGET);
        for rate in &rates {
            let told = match self.reading {
                Reading::AsPublished => rate.published,
                Reading::Corrected => rate.corrected,
            };
            self.gate.observe_response(Response {
                started: rate.admitted_at,
                bytes: rate.bytes,
                // A router does not know what a response's latency should be; zero scores as "no wait".
                latency_s: 0.0,
                rate_bytes_per_s: Some(told),
                url_class: 0,
            });
        }
        let sample = self.gate.drain(now);
        let explanation = self.planner.as_mut().map(|planner| {
            planner.observe(now, &sample);
            let plan = planner.plan(now);
            self.gate.apply(now, &plan);
            plan.explanation
        });
        let published = summary(&mut rates.iter().map(|rate| rate.published).collect::<Vec<_>>());
        let corrected = summary(&mut rates.iter().map(|rate| rate.corrected).collect::<Vec<_>>());
        Tick { at: now, responses: rates.len(), published, corrected, explanation }
    }

    fn syn(&mut self, now: Instant, packet: &Packet) -> Answer {
        // Flows are expected before their first packet, so only those long gone are unknown.
        let Some(flow) = self.meter.flow(packet.flow) else { return Answer::Pass };
        // Bystanders' servers are not NEWS's target, and a connection that was let in stays so.
        if flow.host_key != TARGET || flow.admitted_at.is_some() {
            return Answer::Pass;
        }
        let person_key = self.keys.hash(&[&packet.flow.as_u64().to_le_bytes()]);
        self.counts.offered += 1;
        match self.gate.admit(now, &GateRequest { host_key: flow.host_key, person_key }) {
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
                    && flow.host_key == TARGET
                {
                    self.gate.completed();
                }
            }
            _ => {}
        }
        Answer::Pass
    }
}

/// Rates of some responses; reorders them.
fn summary(rates: &mut [f32]) -> Option<Rates> {
    let all = rates.iter().map(|&rate| f64::from(rate)).sum::<f64>() / rates.len() as f64;
    let fastest = mean_of_fastest(rates, FASTEST)?;
    rates.iter_mut().for_each(|rate| *rate = -*rate);
    let slowest = -mean_of_fastest(rates, FASTEST)?;
    Some(Rates { fastest, all, slowest })
}

/// High-bandwidth flows are the fastest tenth (p of NEWS §4.1).
const FASTEST: f64 = 0.10;
/// Names the fork that the router draws from: "rout" in ASCII.
const ROUTER: u64 = 0x726F_7574;
