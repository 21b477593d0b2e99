//! Measurements during a run, by instruments without a part in it.

use super::control_group::ControlGroup;
use super::network::{CROWD, FAR, Network, ROUTER, TARGET};
use crate::experiments::testbed::{Fastest, ResponseRates, Second};
use anyhow::Context as _;
use flashweir_core::Instant as RunInstant;
use flashweir_testbed::{QueueBooks, Tap, Testbed};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// All that is counted from one second to the next.
pub(super) struct Counters<'a> {
    network: &'a Network,
    clients: KernelBooks,
    server: KernelBooks,
    group: Option<&'a ControlGroup>,
}

/// Counts since the network was built.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    opened: u64,
    syns_again: u64,
    accepted: u64,
    open_now: u64,
    queue: QueueBooks,
    disk_bytes: u64,
}

impl<'a> Counters<'a> {
    pub(super) fn open(network: &'a Network, group: Option<&'a ControlGroup>) -> anyhow::Result<Self> {
        let books = |namespace| KernelBooks::open(&network.testbed, namespace);
        Ok(Self { network, clients: books(CROWD)?, server: books(TARGET)?, group })
    }

    pub(super) fn look(&self) -> anyhow::Result<Counts> {
        Ok(Counts {
            opened: self.clients.tcp("ActiveOpens")?,
            syns_again: self.clients.extended("TCPSynRetrans")?,
            accepted: self.server.tcp("PassiveOpens")?,
            open_now: self.server.tcp("CurrEstab")?,
            queue: self.network.testbed.queue(ROUTER, FAR)?,
            disk_bytes: self.group.map_or(0, ControlGroup::disk_bytes),
        })
    }
}

impl Counts {
    /// The counts since `before`.
    pub(super) fn since(&self, before: &Self) -> Second {
        let unique_offered = self.opened - before.opened;
        Second {
            offered: unique_offered + self.syns_again - before.syns_again,
            unique_offered,
            admitted: self.accepted - before.accepted,
            sent: self.queue.sent - before.queue.sent,
            dropped: self.queue.dropped - before.queue.dropped,
            waiting: self.open_now,
            disk_bytes: self.disk_bytes.saturating_sub(before.disk_bytes),
            ..Second::default()
        }
    }
}

/// The kernel's counters of one namespace, which a file keeps that was opened there.
pub(super) struct KernelBooks {
    usual: File,
    extended: File,
}

impl KernelBooks {
    pub(super) fn open(testbed: &Testbed, namespace: &str) -> anyhow::Result<Self> {
        let open = |name: &str| {
            let path = format!("/proc/thread-self/net/{name}");
            let file = testbed.inside(namespace, || File::open(&path))?;
            file.with_context(|| format!("{path}: cannot be read"))
        };
        Ok(Self { usual: open("snmp")?, extended: open("netstat")? })
    }

    pub(super) fn tcp(&self, name: &str) -> anyhow::Result<u64> {
        find(&self.usual, "Tcp", name)
    }

    fn extended(&self, name: &str) -> anyhow::Result<u64> {
        find(&self.extended, "TcpExt", name)
    }
}

/// Longer than either file.
const BOOKS_BYTES: usize = 32 << 10;

fn find(file: &File, group: &str, name: &str) -> anyhow::Result<u64> {
    let mut room = vec![0; BOOKS_BYTES];
    let length = file.read_at(&mut room, 0)?;
    let text = String::from_utf8_lossy(&room[..length]);
    counter(&text, group, name).with_context(|| format!("this kernel does not count {group} {name}"))
}

/// A counter of the tables in `/proc/net/snmp` and `netstat`: a line of names and one of values for each
/// group.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
    let (names, values) = (lines.next()?, lines.next()?);
    let (_, value) = names.split(' ').zip(values.split(' ')).find(|(other, _)| *other == name)?;
    value.parse().ok()
}

/// Reads the rates of responses from the packets that reach the crowd, from `start` on, until `over`.
pub(super) fn read_rates(tap: &Tap, every_s: u64, start: Instant, over: &AtomicBool) -> Vec<Fastest> {
    let mut rates = ResponseRates::default();
    let mut readings = Vec::new();
    let mut next_s = every_s;
    // The headers are all that is read.
    let mut room = [0; 128];
    while !over.load(Ordering::Relaxed) {
        if let Some(packet) = tap.next(&mut room) {
            rates.see(RunInstant::from_duration(start.elapsed()), packet);
        }
        if start.elapsed().as_secs() >= next_s {
            readings.extend(rates.read(RunInstant::from_duration(start.elapsed()), next_s as f64));
            next_s += every_s;
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name_and_group() {
        let text = "Ip: Forwarding InReceives\nIp: 1 7\nTcp: ActiveOpens PassiveOpens\nTcp: 5 6\n";
        assert_eq!(counter(text, "Tcp", "PassiveOpens"), Some(6));
        assert_eq!(counter(text, "Tcp", "InReceives"), None);
        assert_eq!(counter(text, "TcpExt", "ActiveOpens"), None);
        assert_eq!(counter("Tcp: ActiveOpens\n", "Tcp", "ActiveOpens"), None);
    }
}
