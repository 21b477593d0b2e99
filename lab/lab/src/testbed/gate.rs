//! A gate in the kernel without a planner: a fixed limit, or all or nothing by what waits at the server.

use super::instruments::KernelBooks;
use super::network::{FAR, Network, ROUTER, TARGET};
use super::protection_record::ProtectionRecord;
use anyhow::Context as _;
use flashweir_core::{Duration, Rate};
use flashweir_kernel::gate::{
    Attachment, Ceiling, ExcessTreatment, Hook, KernelGate, Page, Service, ServicePlan,
};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::park_timeout;

/// As the paper's bucket.
const BURST: u32 = 50;
const LONGER_THAN_A_RUN: Duration = Duration::from_secs(3_600);
/// Between two looks at the server, and often enough for the gate to know that this process lives.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) struct Gate {
    gate: KernelGate,
    _attachment: Attachment,
    threshold: Option<(Threshold, KernelBooks)>,
}

/// Everything of the clients it is about is dropped from `discard` open connections on, down to `abate`.
pub(super) struct Threshold {
    pub(super) discard: u64,
    pub(super) abate: u64,
    /// Admitted connections a second of all clients but the crowd, also beyond the threshold.
    pub(super) spared_per_s: Option<f64>,
}

impl Gate {
    /// Before the router, for the crowd's server.
    pub(super) fn with_limit(network: &Network, per_s: f64) -> anyhow::Result<Self> {
        let mut gate = Self::before(network, ROUTER, FAR)?;
        gate.refuse_beyond(Some(Ceiling { rate: Rate::from_per_second(per_s), burst: BURST }))?;
        Ok(gate)
    }

    /// Before the server itself; the uncontrolled client always comes in.
    pub(super) fn with_threshold(network: &Network, threshold: Threshold) -> anyhow::Result<Self> {
        let mut gate = Self::before(network, TARGET, ROUTER)?;
        if let Some(guests) = network.guests {
            gate.gate.prefer(&[(IpAddr::V4(guests), 32)])?;
        }
        if threshold.spared_per_s.is_some() {
            // Purged sources are dropped while a ceiling is in force, however much it has left.
            gate.gate.purge(IpAddr::V4(network.crowd), LONGER_THAN_A_RUN)?;
        }
        gate.threshold = Some((threshold, KernelBooks::open(&network.testbed, TARGET)?));
        Ok(gate)
    }

    fn before(network: &Network, namespace: &str, interface: &str) -> anyhow::Result<Self> {
        let mut gate = KernelGate::load()?;
        let service = Service { endpoints: vec![network.target], speaks_tls: false, page: Page::default() };
        gate.set_services(vec![service])?;
        let attach = || gate.attach(interface, Hook::Auto);
        let attachment = network.testbed.inside(namespace, attach)?.context("the static limiter")?;
        Ok(Self { gate, _attachment: attachment, threshold: None })
    }

    fn refuse_beyond(&mut self, ceiling: Option<Ceiling>) -> anyhow::Result<()> {
        let refusal = if ceiling.is_some() { ExcessTreatment::Drop } else { ExcessTreatment::Pass };
        Ok(self.gate.apply(&[ServicePlan { tiers: ceiling.into(), refusal, ..ServicePlan::default() }])?)
    }

    /// Looks at the server and says that it lives, until `over`.
    pub(super) fn act(mut self, over: &AtomicBool) -> anyhow::Result<ProtectionRecord> {
        let mut discards = false;
        while !over.load(Ordering::Relaxed) {
            if let Some((threshold, server)) = &self.threshold {
                let waiting = server.tcp("CurrEstab")?;
                let next = if discards { waiting > threshold.abate } else { waiting >= threshold.discard };
                if next != discards {
                    discards = next;
                    let rate = threshold.spared_per_s.map_or(Rate::ZERO, Rate::from_per_second);
                    self.refuse_beyond(discards.then_some(Ceiling { rate, burst: 1 }))?;
                }
            }
            self.gate.beat()?;
            park_timeout(LOOK_EVERY);
        }
        Ok(ProtectionRecord::default())
    }
}
