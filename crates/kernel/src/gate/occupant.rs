//! The other program that is attached to an interface.

use std::fmt;

use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, ProgInfoIter};

/// An XDP program that another owner attached to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The program's number in this kernel.
    pub program: u32,
    /// Its name, at most 15 bytes; empty where this process may not know.
    pub name: String,
    /// The number of the link that holds it; `None` where it was put there without one, and outlives the
    /// process that did.
    pub link: Option<u32>,
    interface: String,
}

impl fmt::Display for Occupant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, name, link, interface } = self;
        let name = if name.is_empty() { "?" } else { name };
        write!(f, "an XDP program, `{name}` (number {program}); ")?;
        match link {
            Some(link) => {
                write!(f, "it goes with the process or the pin that holds its link (number {link})")
            }
            None => write!(f, "remove it with `ip link set {interface} xdp off`"),
        }
    }
}

impl Occupant {
    /// Of an interface of this namespace, by its name and number.
    pub(super) fn of(interface: &str, index: i32) -> Option<Self> {
        let programs = programs_at(index);
        let program =
            [programs.native, programs.generic, programs.offloaded].into_iter().find(|id| *id != 0)?;
        let name = ProgInfoIter::default().find(|info| info.id == program).map(|info| info.name);
        // Interfaces of other namespaces may have the same number, but hardly the same program too.
        let holds = |link: &LinkTypeInfo| matches!(link, LinkTypeInfo::Xdp(link) if link.ifindex == index.unsigned_abs());
        let link = LinkInfoIter::default().find(|link| link.prog_id == program && holds(&link.info));
        Some(Self {
            program,
            name: name.unwrap_or_default().to_string_lossy().into_owned(),
            link: link.map(|link| link.id),
            interface: interface.to_owned(),
        })
    }
}

/// The numbers of the XDP programs before an interface, 0 where there is none.
pub(super) struct Programs {
    pub(super) native: u32,
    pub(super) generic: u32,
    pub(super) offloaded: u32,
}

pub(super) fn programs_at(interface: i32) -> Programs {
    let mut programs = libbpf_sys::bpf_xdp_query_opts {
        sz: size_of::<libbpf_sys::bpf_xdp_query_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    // SAFETY: the options outlive the call and say their own size. Where it fails they stay zero: no program
    // is known.
    unsafe { libbpf_sys::bpf_xdp_query(interface, 0, &raw mut programs) };
    Programs { native: programs.drv_prog_id, generic: programs.skb_prog_id, offloaded: programs.hw_prog_id }
}
