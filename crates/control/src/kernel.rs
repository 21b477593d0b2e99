//! The programs in the kernel, in the words of the configuration and of the metric catalogue.

use flashweir_config::{Kernel, KernelHook, KernelRefusal};
use flashweir_kernel::gate::{AttachError, Attachment, Hook, KernelGate, Refusal, ServiceCounts};
use flashweir_telemetry::KernelCounts;

/// Where on a packet's way the gate is to stand.
#[must_use]
pub fn hook(kernel: &Kernel) -> Hook {
    match kernel.hook {
        KernelHook::Auto => Hook::Auto,
        KernelHook::Native => Hook::Native,
        KernelHook::Generic => Hook::Generic,
    }
}

/// Puts the gate before an interface, and says so where it does not stand in the driver although it might.
///
/// # Errors
/// As [`KernelGate::attach`].
pub fn attach(gate: &KernelGate, interface: &str, hook: Hook) -> Result<Attachment, AttachError> {
    let attachment = gate.attach(interface, hook)?;
    if let Some(why) = attachment.declined() {
        tracing::info!(interface, "the gate stands at the stack's door, not in the driver: {why}");
    }
    Ok(attachment)
}

/// What becomes of a connection that does not fit.
#[must_use]
pub fn refusal(kernel: &Kernel) -> Refusal {
    match kernel.refusal {
        KernelRefusal::Answer => Refusal::Answer,
        KernelRefusal::Reset => Refusal::Reset,
        KernelRefusal::Drop => Refusal::Drop,
    }
}

/// What the gate counted, for the metrics.
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
