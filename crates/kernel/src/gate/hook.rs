//! Position of the gate on the way of a packet.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use libbpf_rs::libbpf_sys;

use crate::interface::{driver_of, link};

/// Position on the way of a packet at which the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// In the driver where that can and loses nothing, in the stack otherwise;
    /// [`super::Attachment::declined`] says why.
    #[default]
    Auto,
    /// In the driver, before the kernel has made anything of a packet.
    ///
    /// On one of a pair of virtual interfaces (veth) resets and answers then arrive only if the other end has
    /// a program too, or joins segments (GRO); and the kernel sends it no more joined segments, which slows
    /// streams down to a third.
    Native,
    /// At the stack's door: every interface has it, and it costs about a microsecond more.
    Generic,
}

/// Reason for which [`Hook::Auto`] did not take the driver.
#[derive(Debug)]
pub enum Declined {
    /// The driver said no: its MTU may be too large, an offload in the way, or it has no XDP.
    Driver(io::Error),
    /// The interface is one of a pair of virtual ones: see [`Hook::Native`].
    Pair,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(error) => write!(f, "its driver does not take an XDP program ({error})"),
            Self::Pair => f.write_str(
                "it is one of a pair of virtual interfaces, which lose what their driver sends back",
            ),
        }
    }
}

/// A program bound to an interface, and where.
pub(super) struct Bound {
    pub(super) link: OwnedFd,
    pub(super) hook: Hook,
    pub(super) declined: Option<Declined>,
}

impl Hook {
    /// Binds a program to an interface, given by name and number.
    pub(super) fn bind(self, program: &OwnedFd, interface: &str, index: i32) -> io::Result<Bound> {
        let bind = |hook, flags, declined| {
            let link = link(program, index, libbpf_sys::BPF_XDP, flags)?;
            Ok(Bound { link, hook, declined })
        };
        let native = || bind(Self::Native, libbpf_sys::XDP_FLAGS_DRV_MODE, None);
        let generic = |declined| bind(Self::Generic, libbpf_sys::XDP_FLAGS_SKB_MODE, declined);
        match self {
            Self::Native => native(),
            Self::Generic => generic(None),
            Self::Auto if driver_of(interface).is_ok_and(|driver| driver == PAIR) => {
                generic(Some(Declined::Pair))
            }
            Self::Auto => match native() {
                Err(error) if is_drivers(&error) => generic(Some(Declined::Driver(error))),
                bound => bound,
            },
        }
    }
}

/// The driver of pairs of virtual interfaces.
const PAIR: &str = "veth";

/// Returns whether it is the driver that refuses: what drivers say to an MTU, an offload, a number of queues
/// or a program they cannot have.
pub(super) fn is_drivers(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE | libc::ENOSPC))
}
