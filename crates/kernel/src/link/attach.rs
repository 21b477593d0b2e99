//! At which interface the classifier stands, on which side, and the queue there.

use std::io;
use std::os::fd::OwnedFd;

use libbpf_rs::libbpf_sys;

use crate::interface::link;
use crate::observe::AttachError;
use crate::observe::attach::{Link, check};
use crate::observe::queue::Queue;
use flashweir_core::kernel_counts::QueueCounts;

/// Packets of an interface that the classifier sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Packets that leave by it, before they are queued.
    #[default]
    Egress,
    /// Packets that come in by it: for a link whose queue is at the other end.
    Ingress,
}

/// A classifier at an interface. Dropping it takes the classifier away, and so does the end of the process.
#[derive(Debug)]
#[must_use = "dropping it takes the classifier away"]
pub struct LinkAttachment {
    link: Link,
    queue: Option<Queue>,
}

impl LinkAttachment {
    /// Returns whether the interface is still there, and the classifier at it. A system call.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.link.tcx_interface().is_some()
    }

    /// Counts of the interface's queue since the last call; `None` at ingress, and where the kernel says
    /// nothing of a queue.
    pub fn read_queue(&mut self) -> Option<QueueCounts> {
        self.queue.as_mut()?.read()
    }
}

/// Binds the program. It goes before those that stand there, which then do not see what it drops.
pub(super) fn attach(program: &OwnedFd, interface: &str, side: Side) -> Result<LinkAttachment, AttachError> {
    let index = check(interface)?;
    let at = match side {
        Side::Egress => libbpf_sys::BPF_TCX_EGRESS,
        Side::Ingress => libbpf_sys::BPF_TCX_INGRESS,
    };
    let bound = link(program, index, at, libbpf_sys::BPF_F_BEFORE);
    let refused = |error: io::Error| match error.raw_os_error() {
        // What a kernel without TCX says to a kind of link that it does not know.
        Some(libc::EINVAL) => AttachError::NoTcx(interface.to_owned()),
        _ => AttachError::Refused { interface: interface.to_owned(), error },
    };
    let queue = (side == Side::Egress).then(|| Queue::of(index).ok()).flatten();
    Ok(LinkAttachment { link: Link(bound.map_err(refused)?), queue })
}
