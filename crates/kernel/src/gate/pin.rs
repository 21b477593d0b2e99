//! A gate that outlives its process: its link has a name in the BPF file system.
//!
//! One name is enough. The link holds the program, and the program its maps, so there is nothing of which
//! half can be left: who opens the link finds the budgets and counters of the gate before, and removing the
//! one file removes all.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use libbpf_rs::query::{LinkInfo, LinkTypeInfo, ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{MapCore as _, MapHandle, OpenObject, libbpf_sys};

use super::{CLOCK, PROGRAM};
use crate::program::LoadError;

/// Reason for which a gate cannot be pinned, or a pinned gate cannot be taken over.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file cannot be.
    #[error("`{pin}` cannot be a gate's pin ({error}): a pin is a file in a BPF file system (`mount -t bpf bpf /sys/fs/bpf`)", pin = pin.display())]
    File {
        /// Path of the pin.
        pin: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// Something else has that name.
    #[error("what is pinned at `{pin}` is no gate", pin = pin.display())]
    NoGate {
        /// Path of the pin.
        pin: PathBuf,
    },
    /// The gate that is pinned there stands before another interface.
    #[error("the gate pinned at `{pin}` stands before another interface (number {number}); remove the pin or choose another", pin = pin.display())]
    Elsewhere {
        /// Path of the pin.
        pin: PathBuf,
        /// The other interface's number.
        number: u32,
    },
    /// The gate that is pinned there does not give way.
    #[error("the gate pinned at `{pin}` cannot be replaced: {error}", pin = pin.display())]
    NotReplaced {
        /// Path of the pin.
        pin: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// Pins are kept in a BPF file system, and this directory is in none, or is none.
    #[error("`{directory}` is no directory of a BPF file system, which pins are kept in (`mount -t bpf bpf /sys/fs/bpf`)", directory = directory.display())]
    NoBpfFiles {
        /// Path of the directory.
        directory: PathBuf,
    },
    /// A directory that cannot be used.
    #[error("`{directory}` cannot be a directory for pins: {error}", directory = directory.display())]
    Directory {
        /// Path of the directory.
        directory: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// Two processes would tell one gate what to do.
    #[error("another process guards by the pins in `{directory}`: stop it first, its gate stays until the next takes over", directory = directory.display())]
    InUse {
        /// Path of the directory.
        directory: PathBuf,
    },
    /// The kernel does not take the program.
    #[error(transparent)]
    Program(#[from] LoadError),
}

/// A gate's link found by its name.
pub(super) struct Pinned {
    pub(super) link: OwnedFd,
    /// The number of the interface that it is before, while that lasts.
    pub(super) interface: Option<u32>,
    pub(super) program: ProgramInfo,
}

/// The object pinned there, if there is one.
pub(super) fn open(pin: &Path) -> Result<Option<Pinned>, PinError> {
    let name = name_of(pin)?;
    // SAFETY: the pointer is to a string that ends in zero and outlives the call.
    let descriptor = unsafe { libbpf_sys::bpf_obj_get(name.as_ptr()) };
    match -descriptor {
        libc::ENOENT => return Ok(None),
        error @ 1.. => return Err(failed(pin, io::Error::from_raw_os_error(error))),
        _ => {}
    }
    // SAFETY: the kernel has just opened this descriptor for this process; no other owner exists.
    let link = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let no_gate = || PinError::NoGate { pin: pin.to_owned() };
    // A map or a program would describe itself in other structures.
    let kind = std::fs::read_link(format!("/proc/self/fd/{}", link.as_raw_fd())).unwrap_or_default();
    if !kind.to_string_lossy().contains("link") {
        return Err(no_gate());
    }
    let info = LinkInfo::from_fd(link.as_fd()).map_err(|_| no_gate())?;
    let LinkTypeInfo::Xdp(xdp) = info.info else { return Err(no_gate()) };
    let with_maps = ProgInfoQueryOptions::default().include_map_ids(true);
    let program = ProgInfoIter::with_query_opts(with_maps).find(|program| program.id == info.prog_id);
    let program = program.filter(|program| program.name == PROGRAM).ok_or_else(no_gate)?;
    let interface = Some(xdp.ifindex).filter(|index| *index != 0);
    Ok(Some(Pinned { link, interface, program }))
}

/// Gives a link a name.
pub(super) fn make(link: &OwnedFd, pin: &Path) -> Result<(), PinError> {
    let name = name_of(pin)?;
    // SAFETY: the descriptor is open, the pointer is to a string that ends in zero and outlives the call.
    let status = unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), name.as_ptr()) };
    if status < 0 { Err(failed(pin, io::Error::from_raw_os_error(-status))) } else { Ok(()) }
}

pub(super) fn remove(pin: &Path) -> Result<(), PinError> {
    std::fs::remove_file(pin).map_err(|error| failed(pin, error))
}

/// Takes a link's program away from its interface, even if another process holds the link.
pub(super) fn unbind(link: &OwnedFd) {
    // SAFETY: the descriptor is open. It fails where the interface is gone already, which is as good.
    unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) };
}

/// Puts a program in the place of the link's.
pub(super) fn give_program(pinned: &Pinned, program: &OwnedFd, pin: &Path) -> Result<(), PinError> {
    let options = libbpf_sys::bpf_link_update_opts {
        sz: size_of::<libbpf_sys::bpf_link_update_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let link = pinned.link.as_raw_fd();
    // SAFETY: both descriptors are open, the options outlive the call and say their own size.
    let status = unsafe { libbpf_sys::bpf_link_update(link, program.as_raw_fd(), &raw const options) };
    if status == 0 {
        return Ok(());
    }
    Err(PinError::NotReplaced { pin: pin.to_owned(), error: io::Error::from_raw_os_error(-status) })
}

/// The maps of the program that a link holds.
pub(super) fn maps_of(pinned: &Pinned) -> Result<Vec<MapHandle>, LoadError> {
    let open =
        |&id| MapHandle::from_map_id(id).map_err(|error| LoadError::Map { map: "of the gate before", error });
    pinned.program.map_ids.iter().map(open).collect()
}

/// Lets an object use these maps in place of those it declares; all of them, or, where the gate before was
/// laid out otherwise, none. Whether it does.
pub(super) fn inherit(object: &mut OpenObject, maps: &[MapHandle]) -> Result<bool, LoadError> {
    let before = |name: &std::ffi::OsStr| maps.iter().find(|map| map.name() == name);
    let fits = object.maps().filter(|map| map.name() != CLOCK).all(|map| {
        before(map.name()).is_some_and(|before| {
            (before.map_type(), before.key_size(), before.value_size(), before.max_entries())
                == (map.map_type(), map.key_size(), map.value_size(), map.max_entries())
        })
    });
    if fits {
        for mut map in object.maps_mut().filter(|map| map.name() != CLOCK) {
            let before = before(map.name()).ok_or(LoadError::Missing("map of the gate before"))?;
            map.reuse_fd(before.as_fd())
                .map_err(|error| LoadError::Map { map: "of the gate before", error })?;
        }
    }
    Ok(fits)
}

fn name_of(pin: &Path) -> Result<CString, PinError> {
    CString::new(pin.as_os_str().as_bytes()).map_err(|error| failed(pin, error.into()))
}

fn failed(pin: &Path, error: io::Error) -> PinError {
    PinError::File { pin: pin.to_owned(), error }
}
