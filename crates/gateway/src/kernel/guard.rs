//! The gate in the kernel before this gateway's interfaces: loaded and attached before a port opens.

use flashweir_config::Config;
use flashweir_core::kernel_counts::GateCounts;
use flashweir_core::{Duration, Instant};
use flashweir_kernel::LoadError;
use flashweir_kernel::gate::{
    AttachError, Ceiling, GateError, KernelGate, Page, Passed, Service, ServicePlan,
};
use flashweir_runtime::kernel::{GuardedInterfaces, Inheritance, InterfaceState, inherited_plans, ranks};
use flashweir_telemetry::Warnings;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Failure of the kernel to carry out an order.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuardError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Gate(#[from] GateError),
}

/// The gate and where it stands. Dropping it takes the gate away, unless it was found pinned and has had no
/// order yet.
#[derive(Debug)]
pub(crate) struct Guard {
    interfaces: GuardedInterfaces<()>,
    gate: KernelGate,
    in_force: ServicePlan,
    inheritance: Inheritance,
}

impl Guard {
    /// Loads the gate and puts it before every interface; it protects nothing yet, or what the one before
    /// did. Takes some 200 ms.
    pub(crate) fn open(config: &Config) -> Result<Self, GuardError> {
        let mut interfaces = GuardedInterfaces::open(&config.kernel)?;
        let gate = interfaces.load_gate()?;
        interfaces.attach(&gate, alone)?;
        let in_force = ServicePlan::default();
        Ok(Self { interfaces, gate, in_force, inheritance: Inheritance::from(Instant::ZERO) })
    }

    /// From now on it judges new connections to where the gateway listens, first by the plan of the gateway
    /// before, where there was one.
    pub(crate) fn protect(
        &mut self,
        config: &Config,
        listening_on: &[SocketAddr],
        speaks_tls: bool,
    ) -> Result<(), GuardError> {
        self.follow(config)?;
        let service = Service { endpoints: endpoints(listening_on), speaks_tls, page: Page::default() };
        self.gate.set_services(vec![service])?;
        self.in_force = inherited_plans(&self.gate, 1)[0];
        // In shadow no plan refuses.
        if config.kernel.shadow { self.put(ServicePlan::default()) } else { Ok(()) }
    }

    /// The start is over: nothing that may fail comes any more.
    pub(crate) fn started(&mut self, now: Instant) {
        self.interfaces.started(&self.gate);
        self.inheritance = Inheritance::from(now);
    }

    /// Takes over what a reload can change. Proxies that speak for others are preferred: a connection of
    /// theirs stands for many people.
    pub(crate) fn follow(&mut self, config: &Config) -> Result<(), GuardError> {
        let preferred = config.kernel.preferred.iter().chain(&config.client.trusted_proxies);
        let networks: Vec<_> = preferred.map(|network| (network.network(), network.prefix_len())).collect();
        self.gate.prefer(&networks)?;
        self.gate.rank(ranks(&config.kernel))?;
        Ok(self.gate.fail_closed(config.kernel.fail_closed)?)
    }

    /// Puts a plan into force, unless it is, or what is does better for now.
    pub(crate) fn apply(&mut self, now: Instant, plan: ServicePlan) -> Result<(), GuardError> {
        if plan != self.in_force && !self.inheritance.stays(now, &self.gate, &[plan]) {
            self.put(plan)?;
        }
        Ok(())
    }

    /// Drops new connections of a source for the time `during`.
    pub(crate) fn purge(&mut self, source: IpAddr, during: Duration) -> Result<(), GuardError> {
        Ok(self.gate.purge(source, during)?)
    }

    /// Judges them as all others again.
    pub(crate) fn pardon(&mut self, source: IpAddr) -> Result<(), GuardError> {
        Ok(self.gate.pardon(source)?)
    }

    /// The same for all sources.
    pub(crate) fn pardon_all(&mut self) -> Result<(), GuardError> {
        Ok(self.gate.pardon_all()?)
    }

    fn put(&mut self, plan: ServicePlan) -> Result<(), GuardError> {
        self.gate.apply(&[plan])?;
        self.in_force = plan;
        Ok(())
    }

    /// The ceiling in force, new connections per second.
    pub(crate) fn ceiling_per_s(&self) -> Option<f64> {
        self.in_force.tiers.total_rate().map(|rate| rate.per_second())
    }

    /// The ceilings in force by rank; none while everything is let in.
    pub(crate) fn tiers(&self) -> &[Ceiling] {
        self.in_force.tiers.ceilings()
    }

    /// Says that this process lives.
    pub(crate) fn beat(&mut self) -> Result<(), GuardError> {
        Ok(self.gate.beat()?)
    }

    /// Counts of the gate.
    pub(crate) fn counts(&self) -> Result<GateCounts, GuardError> {
        // There is one service; before it is known there is nothing to count.
        Ok(self.gate.counters()?.first().copied().unwrap_or_default())
    }

    /// Frames that went by unjudged.
    pub(crate) fn passed(&self) -> Result<[(Passed, u64); 7], GuardError> {
        Ok(self.gate.passed()?)
    }

    /// Counts plans.
    pub(crate) fn generation(&self) -> u64 {
        self.gate.generation()
    }

    /// Each interface, and how the gate stands before it.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = InterfaceState> {
        self.interfaces.states()
    }

    /// Guards interfaces that are back.
    pub(crate) fn look_after(&mut self, now: Instant, warnings: &Warnings) {
        self.interfaces.look_after(now, &self.gate, warnings, alone);
    }

    /// Leaves the gate, where it is pinned, to the gateway that comes next.
    pub(crate) fn leave(mut self) {
        // It has three seconds from now. Where this fails, it has had two.
        let _ = self.gate.beat();
        self.interfaces.leave();
    }
}

/// Nothing else stands beside the gate.
fn alone(_interface: &str) -> Result<(), AttachError> {
    Ok(())
}

/// `[::]` alone takes connections over IPv4 as well.
fn endpoints(listening_on: &[SocketAddr]) -> Vec<SocketAddr> {
    let takes_both = |at: &&SocketAddr| at.ip().is_unspecified() && at.is_ipv6();
    let also: Vec<_> = if listening_on.iter().any(SocketAddr::is_ipv4) {
        Vec::new()
    } else {
        let over_ipv4 = |at: &SocketAddr| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), at.port());
        listening_on.iter().filter(takes_both).map(over_ipv4).collect()
    };
    listening_on.iter().copied().chain(also).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_wildcard_alone_stands_for_both_families() {
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let all = [address("[::]:80")];
        assert_eq!(endpoints(&all), [address("[::]:80"), address("0.0.0.0:80")]);
        for listed in [&[address("[::]:80"), address("10.0.0.1:81")][..], &[address("[2001:db8::1]:80")]] {
            assert_eq!(endpoints(listed), listed);
        }
    }
}
