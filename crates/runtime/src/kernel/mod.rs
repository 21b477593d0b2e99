//! The programs in the kernel, in the words of the configuration and of the metric catalogue.

mod guarded;
mod inheritance;

use flashweir_config::{Kernel, KernelHook, KernelRefusal};
use flashweir_kernel::gate::{ExcessTreatment, Hook, Ranks, ServiceCounts, TierCounts};
use flashweir_telemetry::{KernelCounts, KernelTier};

pub use guarded::{GuardedInterfaces, InterfaceState, is_configuration};
pub use inheritance::{Inheritance, inherited_plans};

/// Hook at which the gate is to stand.
fn hook(kernel: &Kernel) -> Hook {
    match kernel.hook {
        KernelHook::Auto => Hook::Auto,
        KernelHook::Native => Hook::Native,
        KernelHook::Generic => Hook::Generic,
    }
}

/// Refusal of a connection beyond the ceiling by the gate.
#[must_use]
pub fn refusal(kernel: &Kernel) -> ExcessTreatment {
    match kernel.refusal {
        KernelRefusal::Answer => ExcessTreatment::Answer,
        KernelRefusal::Reset => ExcessTreatment::Reset,
        KernelRefusal::Drop => ExcessTreatment::Drop,
    }
}

/// Ranks of new connections.
#[must_use]
pub fn ranks(kernel: &Kernel) -> Ranks {
    let tiers = &kernel.tiers;
    let networks = tiers.networks.iter();
    Ranks {
        networks: networks.map(|(network, rank)| (network.network(), network.prefix_len(), *rank)).collect(),
        marks: tiers.marks.clone(),
        ports: tiers.ports.clone(),
        default_rank: tiers.default_rank,
    }
}

/// Counts of the gate by rank, for the metrics: none where all connections have the same rank.
#[must_use]
pub fn kernel_tiers(counts: &ServiceCounts, kernel: &Kernel) -> Vec<KernelTier> {
    let ranks = match kernel.tiers.count() {
        1 => 0,
        count => count,
    };
    let tier = |tier: &TierCounts| KernelTier { offered: tier.offered, admitted: tier.admitted };
    counts.tiers.iter().take(ranks).map(tier).collect()
}

/// Counts of the gate, for the metrics.
#[must_use]
pub fn kernel_counts(counts: ServiceCounts) -> KernelCounts {
    KernelCounts {
        offered: counts.offered,
        unique_offered: counts.unique_offered,
        admitted: counts.admitted,
        dropped: counts.dropped,
        reset: counts.reset,
        answered: counts.answered,
        purged: counts.purged,
        failed_open: counts.failed_open,
        shadowed: counts.shadowed,
        preferred_offered: counts.preferred_offered,
        preferred_admitted: counts.preferred_admitted,
        responses: counts.responses,
        late_resets: counts.late_resets,
        absorbed: counts.absorbed,
        unsent: counts.unsent,
    }
}
