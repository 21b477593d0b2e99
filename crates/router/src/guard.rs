//! The programs in the kernel and the interfaces they stand before.

use crate::error::RouterError;
use crate::interface;
use flashweir_config::Kernel;
use flashweir_control::kernel::{attach, hook};
use flashweir_kernel::gate::{Attachment, Hook, KernelGate};
use flashweir_kernel::observe::{self, Observer, Reading};

/// Gate and observer. Dropping it leaves the network as it was.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Before the programs: they go first.
    interfaces: Vec<Guarded>,
    pub(crate) gate: KernelGate,
    pub(crate) observer: Observer,
}

/// An interface that is to be guarded.
#[derive(Debug)]
struct Guarded {
    name: String,
    wanted: Hook,
    programs: Option<Programs>,
    /// Why it is not guarded, as it was told last: the same is not told every second.
    told: String,
}

/// The programs before one interface.
#[derive(Debug)]
struct Programs {
    gate: Attachment,
    _observer: observe::Attachment,
}

/// What is told of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InterfaceState {
    pub(crate) name: String,
    /// Where its gate stands; none while the interface is gone.
    pub(crate) hook: Option<Hook>,
}

impl Guard {
    /// Loads the programs; they stand before no interface yet. Some 400 ms, most of it the kernel's checks.
    pub(crate) fn load(kernel: &Kernel, reading: Reading) -> Result<Self, RouterError> {
        // First what is found out at once.
        interface::check(&kernel.interfaces)?;
        let gate = KernelGate::load()?;
        let observer = Observer::load_to_read(kernel.flows, reading)?;
        let wanted = hook(kernel);
        let guarded =
            |name: &String| Guarded { name: name.clone(), wanted, programs: None, told: String::new() };
        Ok(Self { interfaces: kernel.interfaces.iter().map(guarded).collect(), gate, observer })
    }

    /// Attaches to every interface, or to none.
    pub(crate) fn attach(&mut self) -> Result<(), RouterError> {
        for guarded in &mut self.interfaces {
            guarded.programs = Some(Programs::attach(guarded, &self.gate, &mut self.observer)?);
        }
        Ok(())
    }

    /// Looks after the interfaces: one that is gone is told of, and guarded again once it is back. A system call for each.
    pub(crate) fn look_after(&mut self) {
        for guarded in &mut self.interfaces {
            let name = &guarded.name;
            if guarded.programs.as_ref().is_some_and(|programs| programs.gate.interface().is_none()) {
                guarded.programs = None;
                tracing::error!(
                    interface = name,
                    "the interface is gone: nothing is guarded there until it is back"
                );
            }
            if guarded.programs.is_some() {
                continue;
            }
            match Programs::attach(guarded, &self.gate, &mut self.observer) {
                Ok(programs) => {
                    tracing::info!(interface = name, "the interface is back and guarded again");
                    guarded.told.clear();
                    guarded.programs = Some(programs);
                }
                Err(error) => {
                    let why = error.to_string();
                    if guarded.told != why {
                        tracing::warn!(interface = name, "not guarded: {why}");
                        guarded.told = why;
                    }
                }
            }
        }
    }

    /// Every interface, in the configuration's order.
    pub(crate) fn interfaces(&self) -> Vec<InterfaceState> {
        let state = |guarded: &Guarded| InterfaceState {
            name: guarded.name.clone(),
            hook: guarded.programs.as_ref().map(|programs| programs.gate.hook()),
        };
        self.interfaces.iter().map(state).collect()
    }
}

impl Programs {
    fn attach(guarded: &Guarded, gate: &KernelGate, observer: &mut Observer) -> Result<Self, RouterError> {
        let watching = observer.attach(&guarded.name)?;
        Ok(Self { gate: attach(gate, &guarded.name, guarded.wanted)?, _observer: watching })
    }
}
