//! Filters of an interface's `clsact` queueing discipline: how programs stand at tc before Linux 6.6.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder};

use super::attach_error::AttachError;
use super::queue::is_kind;
use super::route_netlink::{
    ALL, GET_FILTERS, GET_QUEUES, NEW_FILTER, RouteNetlink, traffic_answer, traffic_question,
};

/// Priority of our filters among an interface's: early, so that others cannot keep packets from them, and
/// with a number of their own, by which what a killed process left behind is found again.
const PRIORITY: u32 = 7;
const HANDLE: u32 = 0x7377;
/// Parents of clsact's filters (linux/pkt_sched.h): of those for what comes in, and of those for what goes
/// out.
const PARENTS: [u32; 2] = [0xffff_fff2, 0xffff_fff3];
const NAMES: [&str; 2] = ["flashweir_in", "flashweir_out"];

/// Both filters, removed when dropped; and the discipline with them, if it was put there for them and no
/// other process has filters there by then.
#[derive(Debug)]
pub(super) struct Filters {
    programs: [OwnedFd; 2],
    interface: i32,
    made_discipline: bool,
}

impl Filters {
    /// Puts them there, in place of those that an observer before left.
    pub(super) fn put(programs: [OwnedFd; 2], interface: &str, index: i32) -> Result<Self, AttachError> {
        let refused = |error: libbpf_rs::Error| AttachError::Refused {
            interface: interface.to_owned(),
            error: io::Error::other(error),
        };
        let [mut first, second] = hooks(&programs, index);
        // No answer is taken for a discipline that is there: then it stays, and what is wrong will show.
        let had_discipline = has_discipline(index).unwrap_or(true);
        if !had_discipline {
            first.create().map_err(refused)?;
        }
        for (hook, name) in [first, second].into_iter().zip(NAMES) {
            if let Some(program) = program_at(hook).filter(|program| program != name) {
                return Err(AttachError::Occupied { interface: interface.to_owned(), program });
            }
        }
        let filters = Self { programs, interface: index, made_discipline: !had_discipline };
        for mut hook in hooks(&filters.programs, index) {
            hook.attach().map_err(refused)?;
        }
        Ok(filters)
    }

    pub(super) fn are_there(&self) -> bool {
        hooks(&self.programs, self.interface).into_iter().all(|mut hook| hook.query().is_ok())
    }
}

impl Drop for Filters {
    fn drop(&mut self) {
        let hooks = hooks(&self.programs, self.interface);
        for mut hook in hooks {
            // Fails where another process removed it before, or the interface is gone: then it is as it
            // should be.
            let _ = hook.detach();
        }
        if self.made_discipline && is_without_filters(self.interface).unwrap_or(false) {
            let [mut both, _] = hooks;
            let _ = both.attach_point(TC_INGRESS | TC_EGRESS).destroy();
        }
    }
}

fn hooks([incoming, outgoing]: &[OwnedFd; 2], interface: i32) -> [TcHook; 2] {
    [hook(incoming, interface, TC_INGRESS), hook(outgoing, interface, TC_EGRESS)]
}

fn hook(program: &OwnedFd, interface: i32, way: libbpf_rs::TcAttachPoint) -> TcHook {
    let mut builder = TcHookBuilder::new(program.as_fd());
    builder.ifindex(interface).handle(HANDLE).priority(PRIORITY).replace(true);
    builder.hook(way)
}

/// The name of the program in our place, if there is one.
fn program_at(mut hook: TcHook) -> Option<String> {
    let program = hook.query().ok()?;
    let name = ProgInfoIter::default().find(|info| info.id == program).map(|info| info.name);
    Some(name.map_or("?".to_owned(), |name| name.to_string_lossy().into_owned()))
}

fn has_discipline(interface: i32) -> io::Result<bool> {
    let mut found = false;
    RouteNetlink::open()?.ask(GET_QUEUES, ALL, &traffic_question(interface, 0), |_, answer| {
        let of = traffic_answer(answer);
        found |= of.is_some_and(|(of, _, attributes)| of == interface && is_kind(attributes, "clsact"));
    })?;
    Ok(found)
}

fn is_without_filters(interface: i32) -> io::Result<bool> {
    let mut filters = 0;
    for parent in PARENTS {
        RouteNetlink::open()?.ask(GET_FILTERS, ALL, &traffic_question(interface, parent), |kind, _| {
            filters += usize::from(kind == NEW_FILTER);
        })?;
    }
    Ok(filters == 0)
}
