//! The interfaces that a gate stands before: taken at the start, looked after, and let go of or left to the
//! next process.

use super::hook;
use flashweir_config::Kernel;
use flashweir_core::Instant;
use flashweir_kernel::LoadError;
use flashweir_kernel::gate::{AttachError, Attachment, Hook, KernelGate, PinDirectory, PinError};
use flashweir_telemetry::{Happening, Warnings};
use std::fmt::Display;
use std::path::PathBuf;

/// Interfaces with a gate before each, and perhaps a companion of it. Dropping this takes the gates away; but
/// as long as the start may still fail ([`GuardedInterfaces::started`]), those that were found pinned stay as
/// they were.
#[derive(Debug)]
pub struct GuardedInterfaces<Companion> {
    interfaces: Vec<Guarded<Companion>>,
    hook: Hook,
    /// After the interfaces: no other process may take the pins over before they are let go of.
    pins: Option<PinDirectory>,
    /// The pin of the gate that was there before.
    found: Option<PathBuf>,
}

/// State of an interface, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceState {
    /// As configured.
    pub name: String,
    /// Hook of its gate; none while the interface is gone.
    pub hook: Option<Hook>,
}

#[derive(Debug)]
struct Guarded<Companion> {
    name: String,
    programs: Option<Programs<Companion>>,
    /// Reason for which it is not guarded, as last logged: the same reason is not logged every second.
    logged_reason: String,
}

/// The programs before one interface; the gate goes first.
#[derive(Debug)]
struct Programs<Companion> {
    gate: Standing,
    _companion: Companion,
}

/// A gate before an interface.
#[derive(Debug)]
struct Standing {
    /// Always there, but for the very end.
    attachment: Option<Attachment>,
    stays_when_dropped: bool,
}

impl<Companion> GuardedInterfaces<Companion> {
    /// The interfaces of the configuration, none of them guarded yet. Where gates are to be pinned, this
    /// process has their directory to itself from now on.
    ///
    /// # Errors
    /// When that cannot be.
    pub fn open(kernel: &Kernel) -> Result<Self, AttachError> {
        let pins = kernel.pin.as_deref().map(PinDirectory::open).transpose()?;
        let guarded =
            |name: &String| Guarded { name: name.clone(), programs: None, logged_reason: String::new() };
        Ok(Self {
            interfaces: kernel.interfaces.iter().map(guarded).collect(),
            hook: hook(kernel),
            pins,
            found: None,
        })
    }

    /// Loads the gate; over what the one before knew, where one is pinned. Some 200 ms, most of it the
    /// kernel's checks.
    ///
    /// # Errors
    /// As [`KernelGate::load_pinned`].
    pub fn load_gate(&mut self) -> Result<KernelGate, AttachError> {
        let Some(pin) = self.a_pin() else { return Ok(KernelGate::load()?) };
        let gate = KernelGate::load_pinned(&pin)?;
        self.found = Some(pin);
        Ok(gate)
    }

    /// Guards every interface, or none.
    ///
    /// # Errors
    /// As [`KernelGate::attach`] and [`KernelGate::attach_pinned`], and those of the companion.
    pub fn attach<E: From<AttachError>>(
        &mut self,
        gate: &KernelGate,
        mut companion: impl FnMut(&str) -> Result<Companion, E>,
    ) -> Result<(), E> {
        for guarded in &mut self.interfaces {
            let was_pinned = self.pins.as_ref().is_some_and(|pins| pins.pin_of(&guarded.name).exists());
            let mut programs = guarded.attach(gate, self.hook, self.pins.as_ref(), &mut companion)?;
            programs.gate.stays_when_dropped = was_pinned;
            guarded.programs = Some(programs);
        }
        Ok(())
    }

    /// The start is over: from now on every gate goes when this is dropped.
    pub fn started(&mut self, gate: &KernelGate) {
        self.programs().for_each(|programs| programs.gate.stays_when_dropped = false);
        let Some(pin) = self.found.take() else { return };
        let pin = pin.display();
        if gate.took_over() {
            tracing::info!("the gate pinned at {pin} is taken over");
        } else {
            tracing::warn!("the gate pinned at {pin} is of another version: what it knew is lost with it");
        }
    }

    /// Leaves the gates that are pinned to the process that comes next; the others go.
    pub fn leave(mut self) {
        self.programs().for_each(|programs| programs.gate.stays_when_dropped = true);
    }

    /// Returns whether gates are pinned, so that they can be left.
    #[must_use]
    pub fn are_pinned(&self) -> bool {
        self.pins.is_some()
    }

    /// Looks after the interfaces: one that is gone is logged, and guarded again once one of its name is
    /// back. A system call for each.
    pub fn look_after<E: From<AttachError> + Display>(
        &mut self,
        now: Instant,
        gate: &KernelGate,
        warnings: &Warnings,
        mut companion: impl FnMut(&str) -> Result<Companion, E>,
    ) {
        for guarded in &mut self.interfaces {
            if guarded.programs.as_ref().is_some_and(|programs| !programs.gate.is_there()) {
                guarded.programs = None;
                // Logged even if other warnings were logged recently: an operator has to act.
                let _ = warnings.count(now, Happening::Kernel);
                let interface = &guarded.name;
                tracing::error!(
                    interface,
                    "the interface is gone: nothing is guarded there until it is back"
                );
            }
            if guarded.programs.is_none() {
                let attached = guarded.attach(gate, self.hook, self.pins.as_ref(), &mut companion);
                guarded.take(attached);
            }
        }
    }

    /// Every interface, in the configuration's order, as it was when it was last looked after.
    pub fn states(&self) -> impl Iterator<Item = InterfaceState> {
        self.interfaces.iter().map(|guarded| InterfaceState {
            name: guarded.name.clone(),
            hook: guarded.programs.as_ref().and_then(|programs| programs.gate.hook()),
        })
    }

    /// One that is there. All gates of a directory are one, so any of them will do.
    fn a_pin(&self) -> Option<PathBuf> {
        let pins = self.pins.as_ref()?;
        self.interfaces.iter().map(|guarded| pins.pin_of(&guarded.name)).find(|pin| pin.exists())
    }

    fn programs(&mut self) -> impl Iterator<Item = &mut Programs<Companion>> {
        self.interfaces.iter_mut().filter_map(|guarded| guarded.programs.as_mut())
    }
}

impl<Companion> Guarded<Companion> {
    fn attach<E: From<AttachError>>(
        &self,
        gate: &KernelGate,
        hook: Hook,
        pins: Option<&PinDirectory>,
        companion: &mut impl FnMut(&str) -> Result<Companion, E>,
    ) -> Result<Programs<Companion>, E> {
        let interface = self.name.as_str();
        let companion = companion(interface)?;
        let attachment = match pins {
            Some(pins) => gate.attach_pinned(interface, hook, &pins.pin_of(interface))?,
            None => gate.attach(interface, hook)?,
        };
        if let Some(why) = attachment.declined() {
            tracing::info!(interface, "the gate stands at the stack's door, not in the driver: {why}");
        }
        let gate = Standing { attachment: Some(attachment), stays_when_dropped: false };
        Ok(Programs { gate, _companion: companion })
    }

    /// Takes the result of the attempt to guard it again.
    fn take<E: Display>(&mut self, attached: Result<Programs<Companion>, E>) {
        let interface = &self.name;
        match attached {
            Ok(programs) => {
                tracing::info!(interface, "the interface is back and guarded again");
                self.logged_reason.clear();
                self.programs = Some(programs);
            }
            Err(error) => {
                let why = error.to_string();
                if self.logged_reason != why {
                    tracing::warn!(interface, "not guarded: {why}");
                    self.logged_reason = why;
                }
            }
        }
    }
}

impl Standing {
    fn hook(&self) -> Option<Hook> {
        self.attachment.as_ref().map(Attachment::hook)
    }

    fn is_there(&self) -> bool {
        self.attachment.as_ref().is_some_and(|attachment| attachment.interface().is_some())
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        if self.stays_when_dropped
            && let Some(attachment) = self.attachment.take()
        {
            attachment.hand_over();
        }
    }
}

/// Returns whether what was asked for cannot be had as things are (no such interface, too few rights, a pin
/// that is none): trying again without a change will not help.
#[must_use]
pub fn is_configuration(error: &AttachError) -> bool {
    match error {
        AttachError::NoInterface(_) | AttachError::Occupied { .. } | AttachError::Driver { .. } => true,
        AttachError::Program(error) | AttachError::Pin(PinError::Program(error)) => {
            LoadError::is_unavailable(error)
        }
        AttachError::Pin(_) => true,
        AttachError::Refused { .. } => false,
    }
}
