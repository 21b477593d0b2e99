//! Before which interface the gate stands.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::query::{LinkInfo, LinkTypeInfo};

use super::hook::{Declined, Hook, is_drivers};
use super::occupant::{Occupant, programs_at};
use super::pin::{self, PinError};
use crate::interface::index_of;
use crate::program::LoadError;

/// A gate before an interface. Dropping it takes the gate away; so does the end of the process, however it
/// ends, unless the gate is pinned.
#[derive(Debug)]
#[must_use = "dropping it takes the gate away"]
pub struct Attachment {
    link: OwnedFd,
    hook: Hook,
    declined: Option<Declined>,
    pin: Option<PathBuf>,
}

impl Attachment {
    /// Hook at which the program runs: [`Hook::Native`] or [`Hook::Generic`].
    #[must_use]
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// Reason for which [`Hook::Auto`] chose the stack's door.
    #[must_use]
    pub fn declined(&self) -> Option<&Declined> {
        self.declined.as_ref()
    }

    /// The interface's number, or `None` once it is gone, and the gate with it. It stays the same when the
    /// interface is renamed. One system call.
    #[must_use]
    pub fn interface(&self) -> Option<u32> {
        match LinkInfo::from_fd(self.link.as_fd()).ok()?.info {
            LinkTypeInfo::Xdp(link) if link.ifindex != 0 => Some(link.ifindex),
            _ => None,
        }
    }

    /// Leaves a pinned gate standing for the process that takes it over ([`super::KernelGate::load_pinned`]);
    /// without one it lets everything in three seconds after the last beat, unless it is to fail closed. A
    /// gate that is not pinned goes, as when dropped.
    pub fn hand_over(mut self) {
        self.pin = None;
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if let Some(pin) = &self.pin {
            // Unbound at once: a removed pin lets go of its link only when the kernel comes round to it.
            pin::unbind(&self.link);
            // Fails where another process removed it before: then it is as it should be.
            let _ = std::fs::remove_file(pin);
        }
    }
}

/// Reason for which the gate does not stand before an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No such interface.
    #[error("there is no interface `{0}` in this network namespace")]
    NoInterface(String),
    /// Another owner's program is there.
    #[error("`{interface}` already runs {occupant}")]
    Occupied {
        /// The interface.
        interface: String,
        /// The program and its owner.
        occupant: Occupant,
    },
    /// The driver cannot, as the interface is set up.
    #[error(
        "the driver of `{interface}` does not take an XDP program ({error}): its MTU may be too large (more than about 3,500 \
         bytes), LRO may be on, or it has no XDP; try the generic hook"
    )]
    Driver {
        /// The interface.
        interface: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// Anything else.
    #[error("`{interface}` does not take the program: {error}")]
    Refused {
        /// The interface.
        interface: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// The pin cannot be had.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The program itself.
    #[error(transparent)]
    Program(#[from] LoadError),
}

pub(super) fn attach(program: &OwnedFd, interface: &str, hook: Hook) -> Result<Attachment, AttachError> {
    let index = index_of(interface).ok_or_else(|| AttachError::NoInterface(interface.to_owned()))?;
    let bound = hook.bind(program, interface, index);
    let bound = bound.map_err(|error| explained(error, interface, index))?;
    Ok(Attachment { link: bound.link, hook: bound.hook, declined: bound.declined, pin: None })
}

/// As [`attach`], with a pin that outlives the process. Where a gate is pinned there already, before this
/// interface, its link gets the new program in one step, so that every packet meets the old or the new one;
/// the hook stays as it was.
pub(super) fn attach_pinned(
    program: &OwnedFd,
    interface: &str,
    hook: Hook,
    at: &Path,
) -> Result<Attachment, AttachError> {
    let index = index_of(interface).ok_or_else(|| AttachError::NoInterface(interface.to_owned()))?;
    if let Some(pinned) = pin::open(at)? {
        let programs = programs_at(index);
        // The number alone could be that of an interface in another namespace.
        let is_here = [programs.native, programs.generic].contains(&pinned.program.id);
        match pinned.interface {
            Some(number) if number == index.unsigned_abs() && is_here => {
                pin::give_program(&pinned, program, at)?;
                let hook = if programs.generic == 0 { Hook::Native } else { Hook::Generic };
                return Ok(Attachment { link: pinned.link, hook, declined: None, pin: Some(at.to_owned()) });
            }
            Some(number) => return Err(PinError::Elsewhere { pin: at.to_owned(), number }.into()),
            // Its interface is gone: nothing is before anything any more.
            None => pin::remove(at)?,
        }
    }
    let mut attachment = attach(program, interface, hook)?;
    pin::make(&attachment.link, at)?;
    attachment.pin = Some(at.to_owned());
    Ok(attachment)
}

fn explained(error: io::Error, interface: &str, index: i32) -> AttachError {
    let occupant = Occupant::of(interface, index);
    let interface = interface.to_owned();
    match occupant {
        Some(occupant) => AttachError::Occupied { interface, occupant },
        None if is_drivers(&error) => AttachError::Driver { interface, error },
        None => AttachError::Refused { interface, error },
    }
}
