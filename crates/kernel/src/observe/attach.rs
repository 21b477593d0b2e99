//! At which interface the observer stands.
//!
//! Where the kernel has TCX (Linux 6.6) the programs are bound by links, which end with this process however
//! that ends. Older kernels know only filters of the interface's `clsact` queueing discipline: those are
//! taken away when the [`Attachment`] is dropped, but a process that is killed leaves them. They cost what
//! the observer costs and no process reads what they count; the next observer at that interface takes their
//! place, and `tc filter del dev IF ingress pref 7` and the same with `egress` remove them.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{LinkInfo, LinkTypeInfo};

use super::attach_error::AttachError;
use super::filters::Filters;
use super::route_netlink::hardware_of;
use crate::interface::{index_of, link};

/// An observer at an interface. Dropping it takes the observer away.
#[derive(Debug)]
#[must_use = "dropping it takes the observer away"]
pub struct Attachment {
    pub(super) index: i32,
    bound: Bound,
}

#[derive(Debug)]
enum Bound {
    Links([Link; 2]),
    Filters(Filters),
}

impl Link {
    /// The number of the interface at which a program of tc is bound, or `None` once that is gone. A system
    /// call.
    pub(crate) fn tcx_interface(&self) -> Option<u32> {
        match LinkInfo::from_fd(self.0.as_fd()).ok()?.info {
            LinkTypeInfo::Tcx(link) if link.ifindex != 0 => Some(link.ifindex),
            _ => None,
        }
    }
}

/// A program bound to an interface, until this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Link(pub(crate) OwnedFd);

impl Drop for Link {
    fn drop(&mut self) {
        // Closing the descriptor would do, were there no process being started at this moment that has a copy
        // of it. Fails where the interface is gone, and the program with it. SAFETY: the descriptor is an
        // open link's.
        unsafe { libbpf_sys::bpf_link_detach(self.0.as_raw_fd()) };
    }
}

impl Attachment {
    /// Returns whether the observer stays, unread, when this process is killed: so on kernels before Linux
    /// 6.6.
    #[must_use]
    pub fn outlives_its_process(&self) -> bool {
        matches!(self.bound, Bound::Filters(_))
    }

    /// The interface's number, or `None` once it is gone, and the observer with it. One or two system calls.
    #[must_use]
    pub fn interface(&self) -> Option<u32> {
        match &self.bound {
            Bound::Links([link, _]) => link.tcx_interface(),
            Bound::Filters(filters) => filters.are_there().then_some(self.index.unsigned_abs()),
        }
    }
}

/// Binds the programs for what comes in and for what goes out.
pub(super) fn attach(programs: [OwnedFd; 2], interface: &str) -> Result<Attachment, AttachError> {
    let index = check(interface)?;
    match links(&programs, index) {
        Ok(links) => Ok(Attachment { index, bound: Bound::Links(links) }),
        // What a kernel without TCX says to a kind of link that it does not know.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            attach_filters(programs, interface, index)
        }
        Err(error) => Err(AttachError::Refused { interface: interface.to_owned(), error }),
    }
}

/// The way of older kernels.
pub(super) fn attach_filters(
    programs: [OwnedFd; 2],
    interface: &str,
    index: i32,
) -> Result<Attachment, AttachError> {
    let filters = Filters::put(programs, interface, index)?;
    Ok(Attachment { index, bound: Bound::Filters(filters) })
}

/// The number of an interface that frames can be read at.
pub(crate) fn check(interface: &str) -> Result<i32, AttachError> {
    let index = index_of(interface).ok_or_else(|| AttachError::NoInterface(interface.to_owned()))?;
    // ARPHRD_ETHER and ARPHRD_LOOPBACK, whose frames look the same. Without an answer, binding will say what
    // is wrong.
    match hardware_of(index) {
        Ok(1 | 772) | Err(_) => Ok(index),
        Ok(_) => Err(AttachError::NotEthernet(interface.to_owned())),
    }
}

fn links(programs: &[OwnedFd; 2], interface: i32) -> io::Result<[Link; 2]> {
    let [incoming, outgoing] = programs;
    Ok([
        Link(link(incoming, interface, libbpf_sys::BPF_TCX_INGRESS, 0)?),
        Link(link(outgoing, interface, libbpf_sys::BPF_TCX_EGRESS, 0)?),
    ])
}
