//! The programs in the kernel and the interfaces they stand before.

use crate::error::RouterError;
use crate::interface;
use flashweir_config::Kernel;
use flashweir_core::Instant;
use flashweir_kernel::gate::KernelGate;
use flashweir_kernel::observe::{Attachment, Observer, Reading};
use flashweir_runtime::kernel::{GuardedInterfaces, InterfaceState};
use flashweir_telemetry::Warnings;

/// Gate and observer. Dropping it leaves the network as it was; but for gates that were found pinned, as long
/// as the start may still fail.
///
/// Only gates are pinned. An observer without a process to read it is of no use: what it counted until the
/// next one comes belongs to an interval without a plan, and its flows are measured again within seconds.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Before the programs: they go first.
    interfaces: GuardedInterfaces<Attachment>,
    pub(crate) gate: KernelGate,
    pub(crate) observer: Observer,
}

impl Guard {
    /// Loads the programs; they stand before no interface yet. Some 400 ms, most of it the kernel's checks.
    /// With `is_behind_link` the observer leaves out responses that a link's classifier cuts.
    pub(crate) fn load(kernel: &Kernel, reading: Reading, is_behind_link: bool) -> Result<Self, RouterError> {
        // First what is found out at once.
        interface::check(&kernel.interfaces)?;
        let mut interfaces = GuardedInterfaces::open(kernel)?;
        let gate = interfaces.load_gate()?;
        let observer = match is_behind_link {
            true => Observer::load_behind_link(kernel.flows, reading)?,
            false => Observer::load_to_read(kernel.flows, reading)?,
        };
        Ok(Self { interfaces, gate, observer })
    }

    /// Attaches to every interface, or to none. Nothing that may fail comes after it.
    pub(crate) fn attach(&mut self) -> Result<(), RouterError> {
        self.interfaces.attach(&self.gate, |interface| watch(&mut self.observer, interface))?;
        self.interfaces.started(&self.gate);
        Ok(())
    }

    /// Looks after the interfaces: one that is gone is logged, and guarded again once it is back. A system
    /// call for each.
    pub(crate) fn look_after(&mut self, now: Instant, warnings: &Warnings) {
        let watch = |interface: &str| watch(&mut self.observer, interface);
        self.interfaces.look_after(now, &self.gate, warnings, watch);
    }

    /// Every interface, in the configuration's order.
    pub(crate) fn interfaces(&self) -> Vec<InterfaceState> {
        self.interfaces.states().collect()
    }

    /// Leaves the gates, where they are pinned, to the router that comes next. Whether they are.
    pub(crate) fn leave(mut self) -> Result<bool, RouterError> {
        // They have three seconds from now.
        self.gate.beat()?;
        let are_pinned = self.interfaces.are_pinned();
        self.interfaces.leave();
        Ok(are_pinned)
    }
}

fn watch(observer: &mut Observer, interface: &str) -> Result<Attachment, RouterError> {
    Ok(observer.attach(interface)?)
}
