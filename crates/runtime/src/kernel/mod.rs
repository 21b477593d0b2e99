//! The programs in the kernel, in the words of the configuration and of the metric catalogue.

mod guarded;
mod inheritance;

use flashweir_config::{Kernel, KernelHook, KernelRefusal};
use flashweir_kernel::gate::{ExcessTreatment, Hook, Ranks};

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

/// Number of ranks by which the gate's counts are shown: none where all connections have the same.
#[must_use]
pub fn shown_ranks(kernel: &Kernel) -> usize {
    match kernel.tiers.count() {
        1 => 0,
        count => count,
    }
}
