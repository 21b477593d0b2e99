//! Before which interface the gate stands.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use libbpf_rs::libbpf_sys;

use crate::program::LoadError;

/// Where on the way of a packet the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// In the driver where that can, in the stack otherwise.
    #[default]
    Auto,
    /// In the driver, before the kernel has made anything of a packet.
    Native,
    /// At the stack's door: every interface has it, and it costs about a microsecond more.
    Generic,
}

/// A gate before an interface. Dropping it takes the gate away; so does the end of the process, however it ends.
#[derive(Debug)]
#[must_use = "dropping it takes the gate away"]
pub struct Attachment {
    link: OwnedFd,
    hook: Hook,
}

impl Attachment {
    /// Where the program runs: [`Hook::Native`] or [`Hook::Generic`].
    #[must_use]
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// The interface's number, or `None` once it is gone, and the gate with it. One system call.
    #[must_use]
    pub fn interface(&self) -> Option<u32> {
        let mut info = libbpf_sys::bpf_link_info::default();
        let mut bytes = size_of_val(&info) as u32;
        // SAFETY: the descriptor is an open link's, the pointers are to a structure and its size that outlive the call.
        let status = unsafe {
            libbpf_sys::bpf_link_get_info_by_fd(self.link.as_raw_fd(), &raw mut info, &raw mut bytes)
        };
        // SAFETY: for a link of this kind the kernel fills this member; all are integers.
        let interface = unsafe { info.__bindgen_anon_1.xdp.ifindex };
        (status == 0 && interface != 0).then_some(interface)
    }
}

/// Why the gate does not stand before an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No such interface.
    #[error("there is no interface `{0}` in this network namespace")]
    NoInterface(String),
    /// Somebody else's program is there.
    #[error(
        "`{interface}` already runs an XDP program (number {program}); remove it with `ip link set {interface} xdp off`"
    )]
    Occupied {
        /// The interface.
        interface: String,
        /// The program's number in this kernel.
        program: u32,
    },
    /// The driver cannot, as the interface is set up.
    #[error(
        "the driver of `{interface}` does not take an XDP program ({error}): its MTU may be too large (more than about 3,500 \
         bytes), LRO may be on, or it has no XDP; try the generic hook"
    )]
    Driver {
        /// The interface.
        interface: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// Anything else.
    #[error("`{interface}` does not take the program: {error}")]
    Refused {
        /// The interface.
        interface: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// The program itself.
    #[error(transparent)]
    Program(#[from] LoadError),
}

pub(super) fn attach(program: OwnedFd, interface: &str, hook: Hook) -> Result<Attachment, AttachError> {
    let index = index_of(interface).ok_or_else(|| AttachError::NoInterface(interface.to_owned()))?;
    let native = || link(&program, index, libbpf_sys::XDP_FLAGS_DRV_MODE);
    let generic = || link(&program, index, libbpf_sys::XDP_FLAGS_SKB_MODE);
    let attached = |link, hook| Attachment { link, hook };
    match hook {
        Hook::Native => native().map(|link| attached(link, Hook::Native)),
        Hook::Generic => generic().map(|link| attached(link, Hook::Generic)),
        Hook::Auto => native().map(|link| attached(link, Hook::Native)).or_else(|error| {
            if is_drivers(&error) { generic().map(|link| attached(link, Hook::Generic)) } else { Err(error) }
        }),
    }
    .map_err(|error| explained(error, interface, index))
}

fn explained(error: io::Error, interface: &str, index: i32) -> AttachError {
    let interface = interface.to_owned();
    match program_at(index) {
        Some(program) => AttachError::Occupied { interface, program },
        None if is_drivers(&error) => AttachError::Driver { interface, error },
        None => AttachError::Refused { interface, error },
    }
}

/// Whether it is the driver that refuses: what drivers say to an MTU, an offload or a program they cannot have.
fn is_drivers(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE))
}

fn index_of(interface: &str) -> Option<i32> {
    let name = CString::new(interface).ok()?;
    // SAFETY: the pointer is to a string that ends in zero and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    i32::try_from(index).ok().filter(|index| *index != 0)
}

/// Binds a program to an interface by a link, which lasts as long as its descriptor.
fn link(program: &OwnedFd, interface: i32, flags: u32) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags,
        ..Default::default()
    };
    // SAFETY: the descriptor is open, the options outlive the call and say their own size.
    let link = unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), interface, libbpf_sys::BPF_XDP, &raw const options)
    };
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the kernel has just opened this descriptor for us; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// The XDP program before an interface, if there is one.
fn program_at(interface: i32) -> Option<u32> {
    let mut program = 0;
    // SAFETY: the pointer is to a number that outlives the call.
    let status = unsafe { libbpf_sys::bpf_xdp_query_id(interface, 0, &raw mut program) };
    (status == 0 && program != 0).then_some(program)
}
