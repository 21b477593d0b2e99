//! The gate in the kernel before this gateway's interfaces: loaded and attached before a port opens.

use flashweir_config::Config;
use flashweir_control::kernel::{attach, hook};
use flashweir_kernel::LoadError;
use flashweir_kernel::gate::{
    AttachError, Attachment, GateError, Hook, KernelGate, Page, Passed, Service, ServiceCounts, ServicePlan,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Why the kernel does not do as it is told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GuardError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Gate(#[from] GateError),
}

/// The gate and where it stands. Dropping it takes the gate away.
#[derive(Debug)]
pub(crate) struct Guard {
    gate: KernelGate,
    attached: Vec<(String, Attachment)>,
    in_force: ServicePlan,
}

impl Guard {
    /// Loads the gate and puts it before every interface; it protects nothing yet. Takes some 200 ms.
    pub(crate) fn open(config: &Config) -> Result<Self, GuardError> {
        let kernel = &config.kernel;
        let mut gate = KernelGate::load()?;
        let attach = |name: &String| Ok((name.clone(), attach(&gate, name, hook(kernel))?));
        let attached = kernel.interfaces.iter().map(attach).collect::<Result<Vec<_>, AttachError>>()?;
        follow(&mut gate, config)?;
        Ok(Self { gate, attached, in_force: ServicePlan::default() })
    }

    /// From now on it judges new connections to where the gateway listens.
    pub(crate) fn protect(
        &mut self,
        listening_on: &[SocketAddr],
        speaks_tls: bool,
    ) -> Result<(), GuardError> {
        let service = Service { endpoints: endpoints(listening_on), speaks_tls, page: Page::default() };
        Ok(self.gate.set_services(vec![service])?)
    }

    /// Takes over what a reload can change.
    pub(crate) fn follow(&mut self, config: &Config) -> Result<(), GuardError> {
        follow(&mut self.gate, config)
    }

    /// Puts a plan into force, unless it is.
    pub(crate) fn apply(&mut self, plan: ServicePlan) -> Result<(), GuardError> {
        if plan != self.in_force {
            self.gate.apply(&[plan])?;
            self.in_force = plan;
        }
        Ok(())
    }

    /// Says that this process lives.
    pub(crate) fn beat(&mut self) -> Result<(), GuardError> {
        Ok(self.gate.beat()?)
    }

    /// What the gate counted.
    pub(crate) fn counts(&self) -> Result<ServiceCounts, GuardError> {
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

    /// Each interface, how the gate stands before it, and whether it still does: an interface may go.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = (&str, Hook, bool)> {
        self.attached
            .iter()
            .map(|(name, attachment)| (name.as_str(), attachment.hook(), attachment.interface().is_some()))
    }
}

/// Proxies that speak for others are preferred: a connection of theirs stands for many people.
fn follow(gate: &mut KernelGate, config: &Config) -> Result<(), GuardError> {
    let preferred = config.kernel.preferred.iter().chain(&config.client.trusted_proxies);
    let networks: Vec<_> = preferred.map(|network| (network.network(), network.prefix_len())).collect();
    gate.prefer(&networks)?;
    Ok(gate.fail_closed(config.kernel.fail_closed)?)
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
